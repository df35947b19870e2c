// One item of a container: reading and writing it, and its life.

import { useEffect, useState } from "preact/hooks";
import type { ContainerOverview } from "../api/admin";
import { type ContainerName, type ItemRef, createItem, patchItem, readItem, refOf, replaceItem } from "../api/cosmos";
import { ApiError } from "../api/http";
import { withoutSystem } from "../lib/document";
import { exactDuration } from "../lib/duration";
import { utc } from "../lib/format";
import { type Item, type Json, lifeOf, lifeWords } from "../lib/life";
import { refreshCatalog } from "../state/catalog";
import { now } from "../state/clock";
import { deletionKey } from "../state/deletions";
import { draftOf, dropDraft, forgetGone, putDraft } from "../state/drafts";
import { go, inContainer } from "../state/route";
import { isAdministrator, readOnly } from "../state/session";
import { failed, toast } from "../state/toasts";
import { Button } from "../ui/controls";
import { Conflict, ItemFrame } from "./item-frame";
import { ExpireIn, LifeCard } from "./life-card";

interface Props {
  name: ContainerName;
  container: ContainerOverview;
  /** None for an item that is to be made. */
  itemRef: ItemRef | null;
  onClose: () => void;
  onWritten: (item: Item) => void;
  onDelete: (item: Item) => void;
}

const pretty = (item: Record<string, Json>): string => JSON.stringify(withoutSystem(item), null, 2);

/** A first text for a new item, with its partition key. */
function draftFor(paths: string[]): string {
  const draft: Record<string, Json> = { id: "" };
  for (const path of paths) {
    let at = draft;
    const names = path.split("/").slice(1);
    names.forEach((each, n) => {
      if (n === names.length - 1) at[each] ??= "";
      else at = (at[each] ??= {}) as Record<string, Json>;
    });
  }
  return JSON.stringify(draft, null, 2);
}

export function ItemPanel({ name, container, itemRef, onClose, onWritten, onDelete }: Props) {
  const [item, setItem] = useState<Item | null>(null);
  const isNew = itemRef === null;
  const key = isNew ? `${name.db}\n${name.coll}\nnew` : deletionKey(name, itemRef);
  const [text, setText] = useState(() => (isNew ? (draftOf(key)?.text ?? draftFor(container.partitionKey)) : ""));
  /** The version that the text is an edit of. Not the stored one, where a draft was found that is older. */
  const [base, setBase] = useState("");
  const [problem, setProblem] = useState<unknown>(null);
  const [conflict, setConflict] = useState<Item | null>(null);
  const [busy, setBusy] = useState(false);

  const show = (item: Item): void => {
    dropDraft(key);
    setItem(item);
    setBase(item._etag);
    setText(pretty(item));
    setProblem(null);
    setConflict(null);
  };
  const open = (item: Item): void => {
    const draft = draftOf(key);
    if (draft === null || draft.text === pretty(item)) return show(item);
    setItem(item);
    setBase(draft.base);
    setText(draft.text);
    putDraft(key, { ...draft, deadline: deadlineOf(item) });
  };
  const deadlineOf = (item: Item): number | null => lifeOf(item, container.defaultTtl).deadline;
  useEffect(() => {
    if (itemRef)
      readItem(name, itemRef).then(({ value }) => open(value), (error: unknown) => {
        if (isGone(error)) forgetGone(key);
        setProblem(error);
      });
  }, [itemRef?.id, itemRef?.partitionKey]);

  const parsed = parse(text);
  const dirty = isNew ? text !== draftFor(container.partitionKey) : item !== null && text !== pretty(item);
  /** Keeps a text as the draft it is, for this version of the item. */
  const edit = (text: string, item: Item | null, base: string): void => {
    setText(text);
    if (text === (item ? pretty(item) : draftFor(container.partitionKey))) dropDraft(key);
    else putDraft(key, { label: isNew ? "New item" : itemRef.id, text, base, deadline: item && deadlineOf(item) });
  };
  // Its time comes while it is being edited: what was typed goes with it.
  const deadline = item && deadlineOf(item);
  const over = dirty && !isNew && deadline !== null && deadline <= now.value;
  useEffect(() => {
    if (!over) return;
    forgetGone(key);
    setText("");
  }, [over]);

  const save = async (etag?: string): Promise<void> => {
    if (readOnly.value || busy) return;
    if (typeof parsed === "string") return setProblem(new Error(parsed));
    setBusy(true);
    setProblem(null);
    try {
      if (isNew) {
        const { value } = await createItem(name, parsed, container.partitionKey);
        dropDraft(key);
        onWritten(value);
        toast({ tone: "good", text: `Made “${value.id}”` });
        const ref = refOf(value, container.partitionKey);
        go(inContainer(name.db, name.coll, "items", { item: ref.id, pk: ref.partitionKey }));
      } else if (item) {
        const { value } = await replaceItem(name, itemRef, text, etag ?? base);
        show(value);
        onWritten(value);
        toast({ tone: "good", text: `Saved “${value.id}”` });
      }
      void refreshCatalog();
    } catch (error) {
      if (error instanceof ApiError && error.status === 412 && itemRef) {
        await readItem(name, itemRef).then(({ value }) => setConflict(value), setProblem);
      } else {
        setProblem(error);
      }
    } finally {
      setBusy(false);
    }
  };
  const patch = async (operations: Json[], done: string): Promise<void> => {
    if (!item || !itemRef) return;
    setBusy(true);
    try {
      const { value } = operations.length > 0 ? await patchItem(name, itemRef, operations, item._etag) : await replaceItem(name, itemRef, pretty(item), item._etag);
      const merged = dirty ? withTtlOf(text, value) : null;
      if (!dirty) show(value);
      else setItem(value);
      if (merged !== null && base === item._etag) {
        setBase(value._etag);
        edit(merged, value, value._etag);
      } else if (dirty) {
        // An edit that cannot be put together with this change stays one of the older version: saving it asks.
        edit(text, value, base);
      }
      onWritten(value);
      toast({ tone: "good", text: dirty ? `${done}. Your changes are not saved yet` : done });
    } catch (error) {
      if (error instanceof ApiError && error.status === 412) await readItem(name, itemRef).then(({ value }) => setConflict(value), setProblem);
      else failed("The item was not changed", error);
    } finally {
      setBusy(false);
    }
  };

  const gone = over || (isGone(problem) && !item);
  const stale = item !== null && dirty && base !== item._etag;
  return (
    <>
      <ItemFrame
        title={isNew ? "" : itemRef.id}
        isNew={isNew}
        gone={gone}
        copy={item && JSON.stringify(item, null, 2)}
        text={text}
        onText={(text) => edit(text, item, base)}
        wrong={typeof parsed === "string" ? parsed : null}
        changed={isNew || dirty}
        dirty={dirty}
        stale={stale ? () => setConflict(item) : null}
        busy={busy}
        problem={problem}
        note={item ? `etag ${item._etag.replaceAll('"', "")}` : "The partition key has to have a value."}
        onSave={() => void save()}
        onDiscard={() => (item ? show(item) : (dropDraft(key), setText(draftFor(container.partitionKey))))}
        onDelete={() => item && onDelete(item)}
        onClose={onClose}
      >
        {item && <ItemLife name={name} item={item} container={container} busy={busy} onPatch={(operations, done) => void patch(operations, done)} />}
      </ItemFrame>
      {conflict && (
        <Conflict
          mine={text}
          theirs={pretty(conflict)}
          words={`While you were editing, it was written at ${utc(conflict._ts)} (status 412).`}
          onClose={() => setConflict(null)}
          onTake={() => (show(conflict), onWritten(conflict))}
          onOverwrite={() => {
            setItem(conflict);
            setBase(conflict._etag);
            setConflict(null);
            void save(conflict._etag);
          }}
        />
      )}
    </>
  );
}

const isGone = (error: unknown): boolean => error instanceof ApiError && error.status === 404;

/** The text with the ttl that the stored item has; null if it is not JSON at the moment. */
function withTtlOf(text: string, { ttl }: Item): string | null {
  const value = parse(text);
  if (typeof value === "string") return null;
  if ((value["ttl"] ?? null) === (ttl ?? null)) return text;
  const { ttl: _, ...rest } = value;
  return JSON.stringify(ttl === undefined ? rest : { ...rest, ttl }, null, 2);
}

function parse(text: string): Record<string, Json> | string {
  try {
    const value = JSON.parse(text) as Json;
    if (value === null || typeof value !== "object" || Array.isArray(value)) return "An item is a JSON object.";
    if (typeof value["id"] !== "string" || value["id"] === "") return "The item needs an id, a text.";
    return value;
  } catch (error) {
    return error instanceof Error ? error.message : "This is not JSON.";
  }
}

function ItemLife({ name, item, container, busy, onPatch }: { name: ContainerName; item: Item; container: ContainerOverview; busy: boolean; onPatch: (operations: Json[], done: string) => void }) {
  const [asking, setAsking] = useState(false);
  const life = lifeOf(item, container.defaultTtl);
  return (
    <LifeCard
      deadline={life.deadline}
      word={life.rule === "pinned" ? "Pinned" : "Never expires"}
      seconds={life.seconds}
      tone={life.rule}
      words={lifeWords(life)}
      sum={life.deadline !== null && (
        <>
          <span title="The last write">_ts {item._ts}</span> + <span title={life.rule === "own" ? "The item's own ttl" : "The container's default"}>{life.rule === "own" ? "ttl" : "default"} {life.seconds}</span> = {life.deadline}
        </>
      )}
    >
      {life.rule === "off" ? (
        isAdministrator.value && <a class="small" href={inContainer(name.db, name.coll, "ttl")}>Turn time to live on</a>
      ) : (
        !readOnly.value && (
          <div class="row wrap">
            {life.deadline !== null && <Button icon="refresh" disabled={busy} label="A write that changes nothing else" onClick={() => onPatch([], "The countdown starts again")}>Restart countdown</Button>}
            {life.rule !== "pinned" && <Button icon="pin" disabled={busy} onClick={() => onPatch([{ op: "set", path: "/ttl", value: -1 }], "Pinned: it never expires")}>Never expire</Button>}
            <Button icon="clock" disabled={busy} onClick={() => setAsking(true)}>Expire in…</Button>
            {item.ttl !== undefined && <Button disabled={busy} onClick={() => onPatch([{ op: "remove", path: "/ttl" }], "The container's default counts again")}>Use default</Button>}
          </div>
        )
      )}
      {asking && <ExpireIn onClose={() => setAsking(false)} onChoose={(seconds) => (setAsking(false), onPatch([{ op: "set", path: "/ttl", value: seconds }], `Expires in ${exactDuration(seconds)}`))} />}
    </LifeCard>
  );
}
