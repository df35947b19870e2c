// One document of a collection: reading and writing its Extended JSON as it is, and its life.

import { useEffect, useState } from "preact/hooks";
import type { ContainerName } from "../api/cosmos";
import { insertDocument, readDocument, replaceDocument } from "../api/mongo";
import { cell } from "../lib/document";
import { exactDuration } from "../lib/duration";
import { type TtlIndex, fateOf, shown } from "../lib/extended";
import { utc } from "../lib/format";
import type { Json } from "../lib/life";
import { indented, newObjectId, textAt, withId } from "../lib/rawjson";
import { refreshCatalog } from "../state/catalog";
import { now } from "../state/clock";
import { go, withParams } from "../state/route";
import { readOnly } from "../state/session";
import { toast } from "../state/toasts";
import { type Row, rowOf } from "./collection-items";
import { Conflict, ItemFrame } from "./item-frame";

interface Props {
  name: ContainerName;
  /** The `_id` as a text of Extended JSON; none for a document that is to be made. */
  id: string | null;
  indexes: TtlIndex[];
  onClose: () => void;
  onWritten: (row: Row) => void;
  onDelete: (row: Row) => void;
}

const rowFrom = (text: string): Row => rowOf(JSON.parse(text) as Json);

/** Two texts of the same id. */
const sameId = (a: string, b: string): boolean => JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b));

export function DocumentPanel({ name, id, indexes, onClose, onWritten, onDelete }: Props) {
  /** The document as the server wrote it. */
  const [stored, setStored] = useState<string | null>(null);
  const [text, setText] = useState(id === null ? '{\n  "name": ""\n}' : "");
  const [gone, setGone] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const [conflict, setConflict] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);

  const show = (document: string | null): void => {
    setGone(document === null);
    setStored(document);
    setProblem(null);
    setConflict(null);
    if (document !== null) setText(indented(document));
  };
  useEffect(() => {
    if (id !== null) readDocument(name, id).then(show, setProblem);
  }, [id]);

  const wrong = problemIn(text, id);
  const changed = id === null || (stored !== null && text !== indented(stored));

  const save = async (overwrite = false): Promise<void> => {
    if (readOnly.value || busy || !changed) return;
    if (wrong !== null) return setProblem(new Error(wrong));
    setBusy(true);
    setProblem(null);
    try {
      if (id === null) {
        const document = withId(text, newObjectId(now.value, crypto.getRandomValues(new Uint8Array(8))));
        await insertDocument(name, document);
        const row = rowFrom(document);
        onWritten(row);
        toast({ tone: "good", text: `Made “${cell(shown(row.raw["_id"]))}”` });
        go(withParams({ new: null, item: row.id }));
      } else if ((await replaceDocument(name, id, overwrite ? null : stored, text)) === 0) {
        const theirs = await readDocument(name, id);
        if (theirs === null) show(null);
        else setConflict(theirs);
      } else {
        const fresh = await readDocument(name, id);
        show(fresh);
        if (fresh !== null) onWritten(rowFrom(fresh));
        toast({ tone: "good", text: `Saved “${cell(shown(JSON.parse(id) as Json))}”` });
      }
      void refreshCatalog();
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <ItemFrame
        title={id === null ? "" : cell(shown(JSON.parse(id) as Json))}
        isNew={id === null}
        gone={gone}
        copy={stored === null ? null : indented(stored)}
        text={text}
        onText={setText}
        wrong={wrong}
        changed={changed}
        busy={busy}
        problem={problem}
        note={id === null ? "Without an _id, one is made." : 'Extended JSON: types other than JSON\'s are written as { "$date": … }.'}
        onSave={() => void save()}
        onDiscard={() => stored !== null && setText(indented(stored))}
        onDelete={() => stored !== null && onDelete(rowFrom(stored))}
        onClose={onClose}
      >
        {stored !== null && indexes.length > 0 && <FateCard document={JSON.parse(stored) as Record<string, Json>} indexes={indexes} />}
      </ItemFrame>
      {conflict !== null && (
        <Conflict
          mine={text}
          theirs={indented(conflict)}
          words="It is not what it was when you opened it."
          onClose={() => setConflict(null)}
          onTake={() => (onWritten(rowFrom(conflict)), show(conflict))}
          onOverwrite={() => (setConflict(null), void save(true))}
        />
      )}
    </>
  );
}

/** What is wrong with the text, if anything is. */
function problemIn(text: string, id: string | null): string | null {
  try {
    const value = JSON.parse(text) as Json;
    if (value === null || typeof value !== "object" || Array.isArray(value)) return "A document is a JSON object.";
    const written = textAt(text, "_id");
    if (id !== null && (written === null || !sameId(written, id))) return "The _id cannot be changed; make a new item instead.";
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : "This is not JSON.";
  }
}

function FateCard({ document, indexes }: { document: Record<string, Json>; indexes: TtlIndex[] }) {
  const fate = fateOf(document, indexes);
  const left = fate.deadline === null ? null : fate.deadline - now.value;
  return (
    <section class={`life-card ${left === null ? "noDefault" : "own"}`} aria-label="Life of the item">
      <div class="life-line">
        <strong class="life-big">
          {left !== null ? (left <= 0 ? "Gone" : `${exactDuration(left)} left`) : fate.within !== null ? `At most ${exactDuration(fate.within)}` : fate.unsure ? "Depends" : fate.pinned ? "Pinned" : "Never expires"}
        </strong>
        {fate.deadline !== null && <span class="faint small">gone at {utc(fate.deadline)}</span>}
      </div>
      <p class="small">
        {left !== null ? "A TTL index counts from a date in the document, the earliest if there are several."
        : fate.within !== null ? "Counted from its last write: saving it starts the time again."
        : fate.unsure ? "A TTL index with a partial filter may take it; only the server knows which documents pass."
        : fate.pinned ? "Its own ttl is -1, so the time of its last write does not count."
        : "No TTL index finds a date in it."}
      </p>
    </section>
  );
}
