// Deleting with a way back: items are hidden at once and deleted when the time to undo is over. Whoever closes the page
// before that meant to delete, so it is done on the way out.

import { signal } from "@preact/signals";
import { type ContainerName, type ItemRef, deleteItem } from "../api/cosmos";
import { ApiError } from "../api/http";
import { plural } from "../lib/format";
import { refreshCatalog } from "./catalog";
import { dismiss, failed, toast } from "./toasts";

const UNDO_MS = 8_000;

interface Pending {
  name: ContainerName;
  refs: ItemRef[];
  timer: number;
  toast: number;
}

const pending = new Set<Pending>();

/** What lists leave out. */
export const hidden = signal<ReadonlySet<string>>(new Set());
export const deletionKey = (name: ContainerName, ref: ItemRef): string => `${name.db}\n${name.coll}\n${ref.partitionKey}\n${ref.id}`;

export function deleteSoon(name: ContainerName, refs: ItemRef[], done: () => void): void {
  hidden.value = new Set([...hidden.value, ...refs.map((ref) => deletionKey(name, ref))]);
  const what = refs.length === 1 ? `“${refs[0]!.id}”` : plural(refs.length, "item");
  const entry: Pending = { name, refs, timer: 0, toast: 0 };
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
  const keys = new Set(entry.refs.map((ref) => deletionKey(entry.name, ref)));
  hidden.value = new Set([...hidden.value].filter((key) => !keys.has(key)));
}

async function carryOut(entry: Pending, done: () => void): Promise<void> {
  pending.delete(entry);
  const errors: unknown[] = [];
  const queue = [...entry.refs];
  const worker = async (): Promise<void> => {
    for (let ref = queue.pop(); ref; ref = queue.pop()) {
      try {
        await deleteItem(entry.name, ref);
      } catch (error) {
        // Gone already is what was wanted.
        if (!(error instanceof ApiError && error.status === 404)) errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: 6 }, worker));
  if (errors.length > 0) failed(`${plural(errors.length, "item")} could not be deleted`, errors[0]);
  else toast({ tone: "good", text: `Deleted ${plural(entry.refs.length, "item")} from ${entry.name.coll}` });
  done();
  show(entry);
  void refreshCatalog();
}

addEventListener("pagehide", () => {
  for (const entry of pending) {
    clearTimeout(entry.timer);
    for (const ref of entry.refs) void deleteItem(entry.name, ref, undefined, true).catch(() => undefined);
  }
  pending.clear();
});
