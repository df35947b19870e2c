// Deleting with a way back: items are hidden at once and deleted when the time to undo is over. Whoever closes the page
// before that meant to delete, so it is done on the way out.

import { signal } from "@preact/signals";
import { type ContainerName, type ItemRef, deleteItem } from "../api/cosmos";
import { deleteDocument } from "../api/mongo";
import { ApiError } from "../api/http";
import { plural } from "../lib/format";
import { refreshCatalog } from "./catalog";
import { dismiss, failed, toast } from "./toasts";

const UNDO_MS = 8_000;

/** Something to delete. */
export interface Doomed {
  key: string;
  label: string;
  delete: (keepalive: boolean) => Promise<unknown>;
}

interface Pending {
  name: ContainerName;
  doomed: Doomed[];
  timer: number;
  toast: number;
}

const pending = new Set<Pending>();

/** What lists leave out. */
export const hidden = signal<ReadonlySet<string>>(new Set());
export const deletionKey = (name: ContainerName, ref: ItemRef): string => `${name.db}\n${name.coll}\n${ref.partitionKey}\n${ref.id}`;

export const doomedItem = (name: ContainerName, ref: ItemRef): Doomed => ({
  key: deletionKey(name, ref),
  label: ref.id,
  delete: (keepalive) => deleteItem(name, ref, undefined, keepalive),
});

/** The key of a document, whose id is a text of Extended JSON. */
export const documentKey = (name: ContainerName, id: string): string => `${name.db}\n${name.coll}\n${id}`;

export const doomedDocument = (name: ContainerName, id: string, label: string): Doomed => ({
  key: documentKey(name, id),
  label,
  delete: (keepalive) => deleteDocument(name, id, keepalive),
});

export function deleteSoon(name: ContainerName, doomed: Doomed[], done: () => void): void {
  hidden.value = new Set([...hidden.value, ...doomed.map((each) => each.key)]);
  const what = doomed.length === 1 ? `“${doomed[0]!.label}”` : plural(doomed.length, "item");
  const entry: Pending = { name, doomed, timer: 0, toast: 0 };
  entry.toast = toast({
    tone: "plain",
    text: `Deleting ${what} from ${name.coll}`,
    lasts: UNDO_MS,
    action: { label: "Undo", run: () => undo(entry) },
  });
  entry.timer = window.setTimeout(() => void carryOut(entry, done), UNDO_MS);
  pending.add(entry);
}

function undo(entry: Pending): void {
  clearTimeout(entry.timer);
  pending.delete(entry);
  dismiss(entry.toast);
  show(entry);
}

function show(entry: Pending): void {
  const keys = new Set(entry.doomed.map((each) => each.key));
  hidden.value = new Set([...hidden.value].filter((key) => !keys.has(key)));
}

async function carryOut(entry: Pending, done: () => void): Promise<void> {
  pending.delete(entry);
  const errors: unknown[] = [];
  const queue = [...entry.doomed];
  const worker = async (): Promise<void> => {
    for (let each = queue.pop(); each; each = queue.pop()) {
      try {
        await each.delete(false);
      } catch (error) {
        // Gone already is what was wanted.
        if (!(error instanceof ApiError && error.status === 404)) errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: 6 }, worker));
  if (errors.length > 0) failed(`${plural(errors.length, "item")} could not be deleted`, errors[0]);
  else toast({ tone: "good", text: `Deleted ${plural(entry.doomed.length, "item")} from ${entry.name.coll}` });
  done();
  show(entry);
  void refreshCatalog();
}

addEventListener("pagehide", () => {
  for (const entry of pending) {
    clearTimeout(entry.timer);
    for (const each of entry.doomed) void each.delete(true).catch(() => undefined);
  }
  pending.clear();
});
