// One document of a collection: reading and writing its Extended JSON as it is, and its life.

import { useEffect, useState } from "preact/hooks";
import type { ContainerName } from "../api/cosmos";
import { insertDocument, readDocument, replaceDocument, setOwnTtl } from "../api/mongo";
import { cell } from "../lib/document";
import { exactDuration } from "../lib/duration";
import { LAST_WRITE, type TtlIndex, shown } from "../lib/extended";
import { type Fate, explainFate, fateWord } from "../lib/fate";
import { utc } from "../lib/format";
import type { Json } from "../lib/life";
import { indented, newObjectId, textAt, withId } from "../lib/rawjson";
import { refreshCatalog } from "../state/catalog";
import { now } from "../state/clock";
import { documentKey } from "../state/deletions";
import { draftOf, dropDraft, forgetGone, putDraft } from "../state/drafts";
import { go, withParams } from "../state/route";
import { readOnly } from "../state/session";
import { toast } from "../state/toasts";
import { Button } from "../ui/controls";
import { type Row, rowsOf } from "./collection-items";
import { Conflict, ItemFrame } from "./item-frame";
import { ExpireIn, LifeCard } from "./life-card";

interface Props {
  name: ContainerName;
  /** The `_id` as a text of Extended JSON; none for a document that is to be made. */
  id: string | null;
  indexes: TtlIndex[];
  onClose: () => void;
  onWritten: (row: Row) => void;
  onDelete: (row: Row) => void;
}

const FIRST_TEXT = '{\n  "name": ""\n}';

/** A document as the server wrote it, and its row. */
interface Stored {
  text: string;
  row: Row;
}

async function load(name: ContainerName, id: string): Promise<Stored | null> {
  const text = await readDocument(name, id);
  if (text === null) return null;
  const [row] = await rowsOf(name, [JSON.parse(text) as Json]);
  return row ? { text, row } : null;
}

/** Two texts of the same id. */
const sameId = (a: string, b: string): boolean => JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b));

export function DocumentPanel({ name, id, indexes, onClose, onWritten, onDelete }: Props) {
  const [stored, setStored] = useState<Stored | null>(null);
  const key = id === null ? `${name.db}\n${name.coll}\nnew` : documentKey(name, id);
  const [text, setText] = useState(id === null ? (draftOf(key)?.text ?? FIRST_TEXT) : "");
  /** The stored text that this one is an edit of. Not the latest, where a draft was found that is older. */
  const [base, setBase] = useState<string | null>(null);
  const [gone, setGone] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const [conflict, setConflict] = useState<Stored | null>(null);
  const [busy, setBusy] = useState(false);

  const show = (fresh: Stored | null): void => {
    if (fresh === null) forgetGone(key);
    else dropDraft(key);
    setBase(fresh?.text ?? null);
    setGone(fresh === null);
    setStored(fresh);
    setProblem(null);
    setConflict(null);
    if (fresh !== null) setText(indented(fresh.text));
  };
  const open = (fresh: Stored | null): void => {
    const draft = draftOf(key);
    if (fresh === null || draft === null || draft.text === indented(fresh.text)) return show(fresh);
    setStored(fresh);
    setBase(draft.base);
    setText(draft.text);
    putDraft(key, { ...draft, deadline: fresh.row.fate.expiresAt });
  };
  // Another rule gives another end.
  const rules = JSON.stringify(indexes);
  useEffect(() => {
    if (id !== null) load(name, id).then((fresh) => (stored === null ? open(fresh) : setStored(fresh)), setProblem);
  }, [id, rules]);

  const wrong = problemIn(text, id);
  const dirty = id === null ? text !== FIRST_TEXT : stored !== null && text !== indented(stored.text);
  const changed = id === null || dirty;
  const edit = (text: string): void => {
    setText(text);
    if (text === (stored === null ? FIRST_TEXT : indented(stored.text))) dropDraft(key);
    else putDraft(key, { label: id === null ? "New item" : cell(shown(JSON.parse(id) as Json)), text, base: base ?? "", deadline: stored?.row.fate.expiresAt ?? null });
  };
  // Its time comes while it is being edited: what was typed goes with it.
  const deadline = stored?.row.fate.expiresAt ?? null;
  const over = dirty && deadline !== null && deadline <= now.value;
  useEffect(() => {
    if (!over) return;
    forgetGone(key);
    setText("");
  }, [over]);

  /** Writes, and shows what is there afterwards. */
  const writing = async (work: () => Promise<string | null>): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      const done = await work();
      if (done !== null && id !== null) {
        const fresh = await load(name, id);
        show(fresh);
        if (fresh !== null) onWritten(fresh.row);
        toast({ tone: "good", text: done });
      }
      void refreshCatalog();
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  const save = async (overwrite = false): Promise<void> => {
    if (readOnly.value || busy || !changed) return;
    if (wrong !== null) return setProblem(new Error(wrong));
    await writing(async () => {
      if (id === null) {
        const document = withId(text, newObjectId(now.value, crypto.getRandomValues(new Uint8Array(8))));
        await insertDocument(name, document);
        dropDraft(key);
        const [row] = await rowsOf(name, [JSON.parse(document) as Json]);
        if (row) {
          onWritten(row);
          toast({ tone: "good", text: `Made “${cell(shown(row.raw["_id"]))}”` });
          go(withParams({ new: null, item: row.id }));
        }
        return null;
      }
      if ((await replaceDocument(name, id, overwrite ? null : base, text)) === 0) {
        const theirs = await load(name, id);
        if (theirs === null) show(null);
        else setConflict(theirs);
        return null;
      }
      return `Saved “${cell(shown(JSON.parse(id) as Json))}”`;
    });
  };

  return (
    <>
      <ItemFrame
        title={id === null ? "" : cell(shown(JSON.parse(id) as Json))}
        isNew={id === null}
        gone={gone || over}
        copy={stored === null ? null : indented(stored.text)}
        text={text}
        onText={edit}
        wrong={wrong}
        changed={changed}
        dirty={dirty}
        stale={stored !== null && dirty && base !== stored.text ? () => setConflict(stored) : null}
        busy={busy}
        problem={problem}
        note={id === null ? "Without an _id, one is made." : 'Extended JSON: types other than JSON\'s are written as { "$date": … }.'}
        onSave={() => void save()}
        onDiscard={() => (stored === null ? (dropDraft(key), setText(FIRST_TEXT)) : show(stored))}
        onDelete={() => stored !== null && onDelete(stored.row)}
        onClose={onClose}
      >
        {stored !== null && id !== null && (
          <DocumentLife
            fate={stored.row.fate}
            indexes={indexes}
            busy={busy || changed}
            onTtl={(ttl, done) => void writing(async () => ((await setOwnTtl(name, id, ttl)) === 0 ? (show(null), null) : done))}
          />
        )}
      </ItemFrame>
      {conflict !== null && (
        <Conflict
          mine={text}
          theirs={indented(conflict.text)}
          words="It is not what it was when you opened it."
          onClose={() => setConflict(null)}
          onTake={() => (onWritten(conflict.row), show(conflict))}
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

function DocumentLife({ fate, indexes, busy, onTtl }: { fate: Fate; indexes: TtlIndex[]; busy: boolean; onTtl: (ttl: number | null, done: string) => void }) {
  const [asking, setAsking] = useState(false);
  if (indexes.length === 0) return null;
  const { words, sum } = explainFate(fate, indexes);
  // A ttl of its own counts only where an index on the last write says so.
  const mayChange = !readOnly.value && indexes.some((index) => index.field === LAST_WRITE);
  return (
    <LifeCard
      deadline={fate.expiresAt}
      word={fateWord(fate, indexes) === "pinned" ? "Pinned" : "Never expires"}
      seconds={sum?.seconds ?? null}
      tone={fate.expiresAt === null ? "noDefault" : "own"}
      words={words}
      sum={sum && `${sum.base} ${utc(sum.at)} + ${sum.rule} ${sum.seconds} = ${utc(sum.at + sum.seconds)}`}
    >
      {mayChange && (
        <div class="row wrap">
          {fate.ownTtl !== -1 && <Button icon="pin" disabled={busy} onClick={() => onTtl(-1, "Pinned: its last write does not count")}>Never expire</Button>}
          <Button icon="clock" disabled={busy} onClick={() => setAsking(true)}>Expire in…</Button>
          {fate.ownTtl !== null && <Button disabled={busy} onClick={() => onTtl(null, "The TTL index on the last write counts again")}>Use default</Button>}
        </div>
      )}
      {asking && <ExpireIn onClose={() => setAsking(false)} onChoose={(seconds) => (setAsking(false), onTtl(seconds, `Expires in ${exactDuration(seconds)}`))} />}
    </LifeCard>
  );
}
