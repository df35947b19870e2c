// The change feed as it happens.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ContainerOverview } from "../api/admin";
import { type Change, type ContainerName, listRanges, readChanges, readContainer } from "../api/cosmos";
import { ApiError } from "../api/http";
import { cell, at, withoutSystem } from "../lib/document";
import { count, utc } from "../lib/format";
import type { Item, Json } from "../lib/life";
import { keepVersions } from "../api/mongo";
import { go, inContainer, route, withParams } from "../state/route";
import { readOnly } from "../state/session";
import { failed } from "../state/toasts";
import { Button, Empty, Failure, Segmented, inputValue } from "../ui/controls";

type Kind = "latest" | "all";
type Operation = "write" | "create" | "replace" | "delete" | "expire";

interface Entry {
  number: number;
  operation: Operation;
  id: string;
  key: string;
  at: number;
  document: Json;
}

/** Older entries make room. */
const ENTRIES_MAX = 2_000;
const QUIET_MS = 1_000;

export function Feed({ name, container }: { name: ContainerName; container: ContainerOverview }) {
  const { params } = route.value;
  const kind: Kind = params.get("kind") === "all" ? "all" : "latest";
  const from = params.get("from") === "beginning" && kind === "latest" ? "beginning" : "now";
  const text = params.get("filter") ?? "";
  const operation = params.get("operation") ?? "";
  const [logKept, setLogKept] = useState<boolean | null>(null);
  useEffect(() => {
    readContainer(name).then(({ value }) => setLogKept(value.changeFeedPolicy !== undefined), () => setLogKept(false));
  }, [name.db, name.coll]);
  const [paused, setPaused] = useState(false);
  const { entries, error, clear } = useTail(name, container, kind, from, paused || (kind === "all" && logKept !== true));
  const shown = useMemo(() => {
    const needle = text.toLowerCase();
    return entries.filter((entry) => (operation === "" || entry.operation === operation) && (needle === "" || `${entry.id} ${entry.key} ${JSON.stringify(entry.document)}`.toLowerCase().includes(needle)));
  }, [entries, text, operation]);
  const [open, setOpen] = useState<number | null>(null);
  const operations: Operation[] = ["create", "replace", "delete", "expire"];

  return (
    <div class="feed">
      <div class="toolbar wrap">
        <Segmented label="Which changes" value={kind} onChange={(kind) => go(withParams({ kind: kind === "all" ? "all" : null, operation: null }))} options={[{ value: "latest", text: "Latest versions" }, { value: "all", text: "All versions & deletes" }]} />
        {kind === "latest" && <Segmented label="Start" value={from} onChange={(from) => go(withParams({ from: from === "now" ? null : from }))} options={[{ value: "now", text: "From now" }, { value: "beginning", text: "From the beginning" }]} />}
        <input class="input grow" aria-label="Filter" placeholder="Filter by any text" value={text} onInput={(event) => go(withParams({ filter: inputValue(event) || null }), true)} />
        {kind === "all" && (
          <select class="input" aria-label="Operation" value={operation} onChange={(event) => go(withParams({ operation: inputValue(event) || null }), true)}>
            <option value="">All operations</option>
            {operations.map((each) => <option key={each} value={each}>{LABELS[each]}</option>)}
          </select>
        )}
        <Button icon={paused ? "play" : "pause"} pressed={paused} onClick={() => setPaused(!paused)}>{paused ? "Go on" : "Pause"}</Button>
        <Button icon="trash" label="Clear the list" onClick={clear} disabled={entries.length === 0} />
      </div>
      {error !== null && <Failure error={error} />}
      {kind === "all" && logKept === false ? (
        <Empty
          title="Only latest versions are kept"
          action={!container.isCollection ? <a class="button" href={inContainer(name.db, name.coll, "settings/policies")}>Change the policy</a> : !readOnly.value && <Button onClick={() => void keepVersions(name).then(() => setLogKept(true), (error: unknown) => failed("They are not kept", error))}>Keep them from now on</Button>}
        >
          {container.isCollection ? "To see deletes and expiries, this collection has to keep all versions, as one with a change stream does." : "To see deletes and expiries, this container has to keep all versions."}
        </Empty>
      ) : shown.length === 0 ? (
        <Empty title={paused ? "Paused" : "Waiting for changes"}>{entries.length > 0 ? "Nothing passes the filter." : kind === "all" ? "Writes, deletes and expiries appear here as they happen." : "Writes appear here as they happen."}</Empty>
      ) : (
        <ul class="feed-list" aria-label="Changes, newest first">
          {shown.slice(0, 400).map((entry) => (
            <li key={entry.number} class="feed-entry">
              <button type="button" class="feed-row" aria-expanded={open === entry.number} onClick={() => setOpen(open === entry.number ? null : entry.number)}>
                <span class={`op ${entry.operation}`}>{LABELS[entry.operation]}</span>
                <span class="mono ellipsis">{entry.id}</span>
                <span class="faint ellipsis hide-small">{entry.key}</span>
                <time class="faint small nowrap">{utc(entry.at).slice(0, 19)}</time>
              </button>
              {open === entry.number && <pre class="feed-json" tabIndex={0}>{JSON.stringify(entry.document, null, 2)}</pre>}
            </li>
          ))}
        </ul>
      )}
      <div class="statusline" role="status">{count(entries.length)} seen{shown.length !== entries.length ? `, ${count(shown.length)} shown` : ""}{paused ? " · paused" : " · live"}</div>
    </div>
  );
}

const LABELS: Record<Operation, string> = { write: "Write", create: "Create", replace: "Replace", delete: "Delete", expire: "TTL expired" };

function useTail(name: ContainerName, container: ContainerOverview, kind: Kind, from: "now" | "beginning", still: boolean) {
  const [entries, setEntries] = useState<Entry[]>([]);
  const [error, setError] = useState<unknown>(null);
  // How far each partition key range has been read.
  const positions = useRef(new Map<string, string>());
  const number = useRef(0);
  const paths = container.partitionKey;

  useEffect(() => {
    positions.current = new Map();
    setEntries([]);
    setError(null);
  }, [name.db, name.coll, kind, from]);

  useEffect(() => {
    if (still) return;
    const stop = new AbortController();
    const follow = async (): Promise<void> => {
      const ranges = (await listRanges(name)).value.PartitionKeyRanges;
      while (!stop.signal.aborted) {
        let quiet = true;
        for (const { id } of ranges) {
          const position = positions.current.get(id);
          const start = position === undefined ? from : { etag: position };
          const { value, headers } = await readChanges(name, id, kind === "all" ? "Full-Fidelity Feed" : "Incremental Feed", start, stop.signal);
          const reached = headers.get("etag");
          if (reached !== null) positions.current.set(id, reached);
          const fresh = (value?.Documents ?? []).map((change) => entryOf(change, kind, paths, ++number.current));
          if (fresh.length === 0) continue;
          quiet = false;
          setEntries((old) => [...fresh.reverse(), ...old].slice(0, ENTRIES_MAX));
        }
        setError(null);
        if (quiet) await new Promise((done) => setTimeout(done, QUIET_MS));
      }
    };
    const again = (): void =>
      void follow().catch((error: unknown) => {
        if (stop.signal.aborted) return;
        setError(error);
        // A server that restarts comes back; a refusal does not change by itself.
        if (error instanceof ApiError && error.status === 0) setTimeout(again, 3_000);
      });
    again();
    return () => stop.abort();
  }, [name.db, name.coll, kind, from, still]);

  return { entries, error, clear: () => setEntries([]) };
}

function entryOf(change: Item | Change, kind: Kind, paths: string[], number: number): Entry {
  if (kind === "latest") {
    const item = change as Item;
    return { number, operation: "write", id: item.id, key: paths.map((path) => cell(at(item, path))).join(" / "), at: item._ts, document: withoutSystem(item) };
  }
  const { current, previous, metadata } = change as Change;
  const document: Json = current && Object.keys(current).length > 0 ? current : (previous ?? {});
  const operation = metadata?.timeToLiveExpired ? "expire" : ((metadata?.operationType ?? "write") as Operation);
  const shown: Json = operation === "expire" || operation === "delete" ? { previous: previous ?? null, metadata: (metadata ?? {}) as Json } : document;
  return { number, operation, id: metadata?.id ?? current?.id ?? "", key: paths.map((path) => cell(at(document, path))).join(" / "), at: metadata?.expiredAt ?? metadata?.crts ?? 0, document: shown };
}
