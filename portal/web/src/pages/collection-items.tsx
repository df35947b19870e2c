// The documents of a collection: the grid, a filter in MongoDB's words, and the panel of the one that is open.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ContainerOverview } from "../api/admin";
import type { ContainerName } from "../api/cosmos";
import { closeCursor, getMore, listIndexes, open } from "../api/mongo";
import { at, cell, commonPaths } from "../lib/document";
import { shortDuration } from "../lib/duration";
import { type TtlIndex, fateOf, shown, ttlIndexes } from "../lib/extended";
import { count, plural, utc } from "../lib/format";
import type { Json } from "../lib/life";
import { commandOf, readQuery } from "../lib/mongo";
import { now } from "../state/clock";
import { deleteSoon, documentKey, doomedDocument, hidden } from "../state/deletions";
import { keep, kept } from "../state/prefs";
import { go, inContainer, route, withParams } from "../state/route";
import { readOnly } from "../state/session";
import { openTab } from "../state/tabs";
import { Button, Empty, Failure, inputValue } from "../ui/controls";
import { type Column, Grid } from "../ui/grid";
import { useLoad } from "../ui/load";
import { DocumentPanel } from "./collection-item";
import { Columns, FilterHistory, Value } from "./items";
import { useAction } from "./shortcuts";

const PAGE = 500;
const COLUMNS_AT_FIRST = 3;

/** A row: what was found, and the same in plain words. */
export interface Row {
  /** The `_id` as a text of Extended JSON. */
  id: string;
  raw: Record<string, Json>;
  plain: Json;
}

export function rowOf(raw: Json): Row {
  const fields = raw as Record<string, Json>;
  return { id: JSON.stringify(fields["_id"] ?? null), raw: fields, plain: shown(raw) ?? null };
}

/** Loads batch after batch, one at a time. */
function useDocuments(name: ContainerName, filter: string, turn: number) {
  const [rows, setRows] = useState<Row[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [done, setDone] = useState(false);
  const [first, setFirst] = useState(true);
  const state = useRef<{ cursor: string | null; begun: boolean; busy: boolean; stop: AbortController }>({ cursor: null, begun: false, busy: false, stop: new AbortController() });

  const more = useCallback(() => {
    const mine = state.current;
    if (mine.busy || mine.stop.signal.aborted || (mine.begun && mine.cursor === null)) return;
    mine.busy = true;
    const query = readQuery(filter);
    const batch =
      typeof query === "string" || query.kind !== "find" ? Promise.reject(new Error(typeof query === "string" ? query : "A filter is an object { … }. Pipelines have the page Query."))
      : mine.cursor === null ? open(name.db, commandOf(query, name.coll, PAGE), mine.stop.signal)
      : getMore(name, mine.cursor, PAGE, mine.stop.signal);
    mine.begun = true;
    batch.then(
      (got) => {
        if (mine.stop.signal.aborted) return;
        mine.busy = false;
        mine.cursor = got.cursor;
        setRows((rows) => (got.documents.length === 0 ? rows : rows.concat(got.documents.map(rowOf))));
        setDone(got.cursor === null);
        setFirst(false);
        setError(null);
      },
      (error: unknown) => {
        if (mine.stop.signal.aborted) return;
        mine.busy = false;
        mine.cursor = null;
        setError(error);
        setFirst(false);
        setDone(true);
      },
    );
  }, [name.db, name.coll, filter, turn]);

  useEffect(() => {
    state.current.stop.abort();
    state.current = { cursor: null, begun: false, busy: false, stop: new AbortController() };
    setRows([]);
    setError(null);
    setDone(false);
    setFirst(true);
    more();
    const mine = state.current;
    return () => {
      mine.stop.abort();
      if (mine.cursor !== null) closeCursor(name, mine.cursor);
    };
  }, [more]);

  return { rows, setRows, error, done, first, more };
}

export function CollectionItems({ name, container }: { name: ContainerName; container: ContainerOverview }) {
  const { params } = route.value;
  const filter = params.get("filter") ?? "";
  const [turn, setTurn] = useState(0);
  const { rows, setRows, error, done, first, more } = useDocuments(name, filter, turn);
  // The default is one of the indexes; when it changes they are looked at again.
  const indexes = useLoad(async () => ttlIndexes(await listIndexes(name)), [name.db, name.coll, container.defaultTtl, turn]);
  const expiring = indexes.value ?? [];
  const [draft, setDraft] = useState(filter);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [sort, setSort] = useState<{ column: string; descending: boolean } | null>(null);
  const [choosing, setChoosing] = useState(false);
  const filterBox = useRef<HTMLInputElement>(null);
  useEffect(() => setDraft(filter), [filter]);

  const keyOf = (row: Row): string => documentKey(name, row.id);
  const place = `columns.${name.db}/${name.coll}`;
  const [chosen, setChosen] = useState<string[] | null>(kept(place, null));
  const known = useMemo(() => commonPaths(rows.slice(0, 200).map((row) => row.plain)), [rows.length > 0, rows.length > 200]);
  const extra = chosen ?? known.filter((path) => path !== "/_id" && path !== "/ttl").slice(0, COLUMNS_AT_FIRST);
  const visible = useMemo(() => (hidden.value.size === 0 ? rows : rows.filter((row) => !hidden.value.has(keyOf(row)))), [rows, hidden.value]);
  const living = useLiving(visible, expiring);
  const sorted = useMemo(() => order(living, sort), [living, sort]);

  const openId = params.get("item");
  const isNew = params.has("new");
  const remove = (doomed: Row[]): void => {
    if (doomed.length === 0 || readOnly.value) return;
    const keys = new Set(doomed.map(keyOf));
    deleteSoon(name, doomed.map((row) => doomedDocument(name, row.id, cell(shown(row.raw["_id"])))), () => setRows((all) => all.filter((row) => !keys.has(keyOf(row)))));
    setSelected(new Set());
    if (openId !== null && keys.has(documentKey(name, openId))) go(withParams({ item: null }));
  };
  const chosenRows = (): Row[] => sorted.filter((row) => selected.has(keyOf(row)));
  useAction("filter", () => filterBox.current?.focus());
  useAction("newItem", readOnly.value ? null : () => go(withParams({ item: null, new: "1" })));
  useAction("delete", selected.size > 0 ? () => remove(chosenRows()) : null);

  const columns: Column<Row>[] = [
    { id: "/_id", title: "_id", least: 8, share: 1.2, render: (row) => <span class="mono">{cell(at(row.plain, "/_id"))}</span> },
    ...extra.map((path): Column<Row> => ({ id: path, title: path.slice(1).replaceAll("/", "."), least: 6, share: 1, render: (row) => <Value value={at(row.plain, path)} /> })),
    ...(expiring.length === 0 ? [] : [{ id: "expires", title: "Expires in", least: 8, share: 0, numeric: true, sortable: false, render: (row: Row) => <ExpiresIn row={row} indexes={expiring} /> }]),
  ];
  const problem = error !== null && filter !== "" ? (error instanceof Error ? error.message : String(error)) : null;
  return (
    <div class={openId !== null || isNew ? "items with-panel" : "items"}>
      <div class="items-main">
        <form
          class="toolbar"
          onSubmit={(event) => {
            event.preventDefault();
            if (draft === filter) setTurn(turn + 1);
            else go(withParams({ filter: draft || null, item: null }));
          }}
        >
          <label class="filter grow">
            <span class="mono faint">FIND</span>
            <input ref={filterBox} class="mono" aria-label="Filter" placeholder='{ "user": "ada", "total": { "$gt": 20 } }' spellcheck={false} autocomplete="off" list="filters" value={draft} aria-invalid={problem !== null ? true : undefined} aria-describedby={problem !== null ? "filter-problem" : undefined} onInput={(event) => setDraft(inputValue(event))} />
            {draft !== "" && <Button kind="quiet" icon="close" label="Clear the filter" onClick={() => (setDraft(""), go(withParams({ filter: null })))} />}
          </label>
          <FilterHistory filter={error ? "" : filter} />
          <Button submit>Apply</Button>
          <Button icon="refresh" label="Load again" onClick={() => setTurn(turn + 1)} />
          <Button icon="columns" label="Choose columns" onClick={() => setChoosing(true)} />
          {!readOnly.value && (
            <>
              <Button icon="trash" label="Delete the selected items" keys="Alt+D" disabled={selected.size === 0} onClick={() => remove(chosenRows())} />
              <Button kind="primary" icon="plus" keys="Alt+N I" onClick={() => go(withParams({ item: null, new: "1" }))}>New item</Button>
            </>
          )}
        </form>
        {problem !== null && <div class="filter-problem" id="filter-problem" role="alert"><b>The filter is not right.</b> {problem}</div>}
        {error !== null && problem === null && <Failure error={error} />}
        {!error && done && rows.length === 0 ? (
          <Empty
            title={filter === "" ? "No documents" : "Nothing matches"}
            action={filter !== "" ? <Button onClick={() => go(inContainer(name.db, name.coll, `query/${openTab(name, filter).id}`))}>Open as a query</Button> : !readOnly.value && <Button kind="primary" icon="plus" onClick={() => go(withParams({ new: "1" }))}>New item</Button>}
          >
            {filter !== "" ? "No document passes the filter." : expiring.length === 0 ? "This collection is empty." : "This collection is empty, or everything in it has expired."}
          </Empty>
        ) : (
          problem === null && (
            <Grid
              label={`Items of ${name.coll}`}
              rows={sorted}
              columns={columns}
              rowKey={keyOf}
              selected={selected}
              current={openId === null ? null : documentKey(name, openId)}
              onSelect={setSelected}
              onOpen={(row) => go(withParams({ item: row.id, new: null }))}
              onNearEnd={more}
              sort={sort}
              onSort={(column) => setSort(sort?.column !== column ? { column, descending: false } : sort.descending ? null : { column, descending: true })}
              selectable={!readOnly.value}
              footer={first ? <span class="skeleton-lines"><i /><i /><i /></span> : done ? null : <Button kind="quiet" onClick={more}>Load more</Button>}
            />
          )
        )}
        <div class="statusline" role="status">
          {selected.size > 0 && <b>{plural(selected.size, "item")} selected · </b>}
          {count(sorted.length)} loaded{done ? "" : ", more below"}
        </div>
      </div>
      {(openId !== null || isNew) && (
        <DocumentPanel
          key={isNew ? "new" : openId!}
          name={name}
          id={isNew ? null : openId}
          indexes={expiring}
          onClose={() => go(withParams({ item: null, new: null }))}
          onWritten={(row) => setRows((all) => (all.some((each) => each.id === row.id) ? all.map((each) => (each.id === row.id ? row : each)) : [row, ...all]))}
          onDelete={(row) => remove([row])}
        />
      )}
      {choosing && <Columns known={known} chosen={extra} fixed={["/_id"]} onClose={() => setChoosing(false)} onChoose={(next) => (setChosen(next), keep(place, next))} />}
    </div>
  );
}

/** Drops rows whose date has come, without looking at all of them every second. */
function useLiving(rows: Row[], indexes: TtlIndex[]): Row[] {
  const [turn, setTurn] = useState(0);
  const { living, soonest } = useMemo(() => {
    let soonest = Infinity;
    const time = now.peek();
    const living = rows.filter((row) => {
      const deadline = fateOf(row.raw, indexes).deadline ?? Infinity;
      if (deadline > time) soonest = Math.min(soonest, deadline);
      return deadline > time;
    });
    return { living, soonest };
  }, [rows, indexes, turn]);
  const time = now.value;
  useEffect(() => {
    if (soonest <= time) setTurn((turn) => turn + 1);
  }, [soonest, time]);
  return living;
}

function order(rows: Row[], sort: { column: string; descending: boolean } | null): Row[] {
  if (!sort) return rows;
  const keyed = rows.map((row) => ({ row, value: at(row.plain, sort.column) }));
  keyed.sort(({ value: a }, { value: b }) => {
    const [x, y] = typeof a === "number" && typeof b === "number" ? [a, b] : [cell(a), cell(b)];
    return (x === y ? 0 : x < y ? -1 : 1) * (sort.descending ? -1 : 1);
  });
  return keyed.map(({ row }) => row);
}

function ExpiresIn({ row, indexes }: { row: Row; indexes: TtlIndex[] }) {
  const fate = fateOf(row.raw, indexes);
  if (fate.deadline !== null) {
    const left = fate.deadline - now.value;
    return <span class={`life ${left <= 60 ? "soon" : left <= 3600 ? "near" : "far"}`} title={utc(fate.deadline)}>{left <= 0 ? "gone" : shortDuration(left)}</span>;
  }
  if (fate.within !== null) return <span class="life far" title="Counted from its last write, whose time MongoDB does not show">≤ {shortDuration(fate.within)}</span>;
  return <span class="faint">{fate.unsure ? "depends" : fate.pinned ? "pinned" : "never"}</span>;
}
