// Items from a file, with progress, and an account of those that did not get in.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ContainerName } from "../api/cosmos";
import { count, plural } from "../lib/format";
import { itemsIn } from "../lib/upload";
import { refreshCatalog } from "../state/catalog";
import { errorDetail } from "../state/toasts";
import { Button, Dialog, Field, Notice } from "../ui/controls";

/** Writes one item; `replace` says what happens to one that is there. */
export type Put = (item: string, replace: boolean) => Promise<unknown>;

const WRITERS = 6;
const ERRORS_SHOWN = 3;

interface Progress {
  done: number;
  errors: { item: number; message: string }[];
  over: boolean;
}

export function Upload({ name, put, onClose, onDone }: { name: ContainerName; put: Put; onClose: () => void; onDone: () => void }) {
  const [items, setItems] = useState<string[] | string | null>(null);
  const [replace, setReplace] = useState(false);
  const [progress, setProgress] = useState<Progress | null>(null);
  const stopped = useRef(false);
  useEffect(() => () => void (stopped.current = true), []);

  const start = async (texts: string[]): Promise<void> => {
    const now: Progress = { done: 0, errors: [], over: false };
    const show = (): void => setProgress({ ...now });
    show();
    const queue = texts.entries();
    const write = async (): Promise<void> => {
      for (const [n, text] of queue) {
        if (stopped.current) return;
        try {
          await put(text, replace);
        } catch (error) {
          now.errors.push({ item: n + 1, message: `${error instanceof Error ? error.message : String(error)} ${errorDetail(error)}` });
        }
        now.done++;
        show();
      }
    };
    await Promise.all(Array.from({ length: WRITERS }, write));
    now.over = true;
    show();
    onDone();
    void refreshCatalog();
  };

  const read = async (file: File | undefined): Promise<void> => {
    setProgress(null);
    setItems(file ? itemsIn(await file.text()) : null);
  };
  const good = Array.isArray(items) ? items : null;
  return (
    <Dialog title={`Upload items to ${name.coll}`} onClose={onClose}>
      <Field label="File" hint={good ? `${plural(good.length, "item")} in it` : "JSON: a list, one item, or one item per line"} error={typeof items === "string" ? items : null}>
        {(props) => <input {...props} class="input" type="file" accept=".json,.jsonl,.ndjson,application/json" disabled={progress !== null && !progress.over} onChange={(event) => void read(event.currentTarget.files?.[0])} />}
      </Field>
      <label class="choice"><input type="checkbox" checked={replace} onChange={() => setReplace(!replace)} /> Replace items that are there</label>
      {progress && good && (
        <div class="stack tight" role="status">
          <progress class="life-bar" max={good.length} value={progress.done} aria-label="Uploaded" />
          <span class="small">{count(progress.done - progress.errors.length)} of {count(good.length)} written{progress.errors.length > 0 ? `, ${count(progress.errors.length)} refused` : ""}</span>
        </div>
      )}
      {progress && progress.errors.length > 0 && (
        <Notice tone="warn" title={`${plural(progress.errors.length, "item")} did not get in`}>
          <ul>{progress.errors.slice(0, ERRORS_SHOWN).map((error) => <li key={error.item}>Item {error.item}: {error.message}</li>)}</ul>
          {progress.errors.length > ERRORS_SHOWN && "and more"}
        </Notice>
      )}
      <div class="row end">
        <Button onClick={onClose}>{progress?.over ? "Close" : "Cancel"}</Button>
        <Button kind="primary" busy={progress !== null && !progress.over} disabled={!good || good.length === 0 || progress?.over === true} onClick={() => good && void start(good)}>Upload{good ? ` ${plural(good.length, "item")}` : ""}</Button>
      </div>
    </Dialog>
  );
}
