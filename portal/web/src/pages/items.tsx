// Items: the grid, its filter, and the panel of the item that is open.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ContainerOverview } from "../api/admin";
import { type ContainerName, type ItemRef, listItems, queryItems, refOf } from "../api/cosmos";
import { ApiError } from "../api/http";
import { at, cell, commonPaths } from "../lib/document";
import { shortDuration } from "../lib/duration";
import { count, plural, utc } from "../lib/format";
import { type Item, type Json, lifeOf } from "../lib/life";
import { filterQuery, problemOf } from "../lib/sql";
import { now } from "../state/clock";
import { deleteSoon, deletionKey, doomedItem, hidden } from "../state/deletions";
import { keep, kept } from "../state/prefs";
import { go, inContainer, route, withParams } from "../state/route";
import { credential, readOnly } from "../state/session";
import { openTab } from "../state/tabs";
import { Button, Dialog, Empty, Failure, inputValue } from "../ui/controls";
import { type Column, Grid } from "../ui/grid";
import { ItemPanel } from "./item";
import { useAction } from "./shortcuts";

const PAGE = 500;
const COLUMNS_AT_FIRST = 3;

interface Page {
  items: Item[];
  next: string | null;
}

/** Loads page after page, one at a time. */
function useItems(name: ContainerName, filter: string, turn: number) {
  const [items, setItems] = useState<Item[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [done, setDone] = useState(false);
  const [first, setFirst] = useState(true);
  const state = useRef<{ next: string | undefined; busy: boolean; stop: AbortController }>({ next: undefined, busy: false, stop: new AbortController() });

  const more = useCallback(() => {
    const mine = state.current;
    if (mine.busy || mine.stop.signal.aborted || mine.next === "end") return;
    mine.busy = true;
    void page(name, filter, mine.next, mine.stop.signal).then(
      (got) => {
        if (mine.stop.signal.aborted) return;
        mine.busy = false;
        mine.next = got.next ?? "end";
        setItems((items) => (got.items.length === 0 ? items : items.concat(got.items)));
        setDone(got.next === null);
        setFirst(false);
        setError(null);
        // A page may be empty and yet not the last.
        if (got.items.length === 0 && got.next !== null) more();
      },
      (error: unknown) => {
        if (mine.stop.signal.aborted) return;
        mine.busy = false;
        mine.next = "end";
        setError(error);
        setFirst(false);
        setDone(true);
      },
    );
  }, [name.db, name.coll, filter, turn]);

  useEffect(() => {
    // The grid may have asked already, in the name of what was shown before.
    state.current.stop.abort();
    state.current = { next: undefined, busy: false, stop: new AbortController() };
    setItems([]);
    setError(null);
    setDone(false);
    setFirst(true);
    more();
    const { stop } = state.current;
    return () => stop.abort();
  }, [more]);

  return { items, setItems, error, done, first, more };
}

async function page(name: ContainerName, filter: string, continuation: string | undefined, signal: AbortSignal): Promise<Page> {
  const who = credential.value;
  const partitionKey = who?.kind === "token" ? (who.partitionKey ?? undefined) : undefined;
  const options = { continuation, pageSize: PAGE, signal, partitionKey };
  const { value, headers } = filter.trim() === "" ? await listItems(name, options) : await queryItems(name, filterQuery(filter), [], options);
  return { items: value.Documents, next: headers.get("x-ms-continuation") };
}

export function Items({ name, container }: { name: ContainerName; container: ContainerOverview }) {
  const { params } = route.value;
  const filter = params.get("filter") ?? "";
  const [turn, setTurn] = useState(0);
  const { items, setItems, error, done, first, more } = useItems(name, filter, turn);
  const [draft, setDraft] = useState(filter);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [sort, setSort] = useState<{ column: string; descending: boolean } | null>(null);
  const [choosing, setChoosing] = useState(false);
  const filterBox = useRef<HTMLInputElement>(null);
  const paths = container.partitionKey;
  const keyOf = useMemo(() => {
    // Asked for every row that is drawn, again and again; an item's key never changes.
    const keys = new WeakMap<Item, string>();
    return (item: Item): string => {
      let key = keys.get(item);
      if (key === undefined) keys.set(item, (key = deletionKey(name, refOf(item, paths))));
      return key;
    };
  }, [name.db, name.coll, paths.join()]);

  useEffect(() => setDraft(filter), [filter]);
  const place = `columns.${name.db}/${name.coll}`;
  const [chosen, setChosen] = useState<string[] | null>(kept(place, null));
  const known = useMemo(() => commonPaths(items.slice(0, 200)), [items.length > 0, items.length > 200]);
  const plain = (path: string): boolean => !["/id", "/ttl", ...paths].includes(path) && !items.slice(0, 20).some((item) => Array.isArray(at(item, path)));
  const extra = chosen ?? known.filter(plain).slice(0, COLUMNS_AT_FIRST);

  const defaultTtl = container.defaultTtl;
  // What expires while it is looked at goes; the clock moves on once a second.
  const visible = useMemo(() => (hidden.value.size === 0 ? items : items.filter((item) => !hidden.value.has(keyOf(item)))), [items, hidden.value, keyOf]);
  const living = useLiving(visible, defaultTtl);
  const sorted = useMemo(() => order(living, sort, defaultTtl), [living, sort, defaultTtl]);

  const openKey = params.get("item");
  const openRef: ItemRef | null = openKey === null ? null : { id: openKey, partitionKey: params.get("pk") ?? "[]" };
  const isNew = params.has("new");

  const remove = (items: Item[]): void => {
    if (items.length === 0 || readOnly.value) return;
    const keys = new Set(items.map(keyOf));
    deleteSoon(name, items.map((item) => doomedItem(name, refOf(item, paths))), () => setItems((all) => all.filter((item) => !keys.has(keyOf(item)))));
    setSelected(new Set());
    if (openRef && keys.has(deletionKey(name, openRef))) go(withParams({ item: null, pk: null }));
  };
  const chosenItems = (): Item[] => sorted.filter((item) => selected.has(keyOf(item)));

  useAction("filter", () => filterBox.current?.focus());
  useAction("newItem", readOnly.value ? null : () => go(withParams({ item: null, pk: null, new: "1" })));
  useAction("delete", selected.size > 0 ? () => remove(chosenItems()) : null);

  const columns: Column<Item>[] = [
    { id: "id", title: "id", least: 8, share: 1.2, render: (item) => <span class="mono">{item.id}</span> },
    ...paths.filter((path) => path !== "/id").map((path): Column<Item> => ({ id: path, title: path, least: 6, share: 1, render: (item) => cell(at(item, path)) })),
    ...extra.map((path): Column<Item> => ({ id: path, title: path, least: 6, share: 1, render: (item) => <Value value={at(item, path)} /> })),
    { id: "_ts", title: "Last write", least: 11, share: 0, render: (item) => <span class="faint">{utc(item._ts).slice(0, 19)}</span> },
    ...(defaultTtl === null ? [] : [{ id: "expires", title: "Expires in", least: 8, share: 0, numeric: true, render: (item: Item) => <ExpiresIn item={item} defaultTtl={defaultTtl} /> }]),
  ];
  const problem = error instanceof ApiError && error.status === 400 ? problemOf(error.message) : null;

  return (
    <div class={openRef || isNew ? "items with-panel" : "items"}>
      <div class="items-main">
        <form
          class="toolbar"
          onSubmit={(event) => {
            event.preventDefault();
            if (draft === filter) setTurn(turn + 1);
            else go(withParams({ filter: draft || null, item: null, pk: null }));
          }}
        >
          <label class="filter grow">
            <span class="mono faint">WHERE</span>
            <input
              ref={filterBox}
              class="mono"
              aria-label="Filter"
              placeholder='c.user = "ada" AND c.total > 20'
              spellcheck={false}
              autocomplete="off"
              list="filters"
              value={draft}
              aria-invalid={problem ? true : undefined}
              aria-describedby={problem ? "filter-problem" : undefined}
              onInput={(event) => setDraft(inputValue(event))}
            />
            {draft !== "" && <Button kind="quiet" icon="close" label="Clear the filter" onClick={() => (setDraft(""), go(withParams({ filter: null })))} />}
          </label>
          <FilterHistory filter={error ? "" : filter} />
          <Button submit>Apply</Button>
          <Button icon="refresh" label="Load again" onClick={() => setTurn(turn + 1)} />
          <Button icon="columns" label="Choose columns" onClick={() => setChoosing(true)} />
          {!readOnly.value && (
            <>
              <Button icon="trash" label="Delete the selected items" keys="Alt+D" disabled={selected.size === 0} onClick={() => remove(chosenItems())} />
              <Button kind="primary" icon="plus" keys="Alt+N I" onClick={() => go(withParams({ item: null, pk: null, new: "1" }))}>New item</Button>
            </>
          )}
        </form>
        {problem && (
          <div class="filter-problem" id="filter-problem" role="alert">
            <b>The filter is not right.</b> {problem.message}
            {error instanceof ApiError && <span class="faint small mono"> Status {error.status} · activity {error.activityId}</span>}
          </div>
        )}
        {error !== null && !problem && <Failure error={error} />}
        {!error && done && items.length === 0 ? (
          filter === "" ? (
            <Empty
              title="No items"
              action={!readOnly.value && <Button kind="primary" icon="plus" onClick={() => go(withParams({ new: "1" }))}>New item</Button>}
            >
              {defaultTtl === null ? "This container is empty." : "This container is empty, or everything in it has expired."}
            </Empty>
          ) : (
            <Empty title="Nothing matches" action={<Button onClick={() => go(inContainer(name.db, name.coll, `query/${openTab(name, filterQuery(filter)).id}`))}>Open as a query</Button>}>
              No item passes the filter.
            </Empty>
          )
        ) : (
          !problem && (
            <Grid
              label={`Items of ${name.coll}`}
              rows={sorted}
              columns={columns}
              rowKey={keyOf}
              selected={selected}
              current={openRef ? deletionKey(name, openRef) : null}
              onSelect={setSelected}
              onOpen={(item) => {
                const ref = refOf(item, paths);
                go(withParams({ item: ref.id, pk: ref.partitionKey, new: null }));
              }}
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
      {(openRef || isNew) && (
        <ItemPanel
          key={isNew ? "new" : deletionKey(name, openRef!)}
          name={name}
          container={container}
          itemRef={isNew ? null : openRef}
          onClose={() => go(withParams({ item: null, pk: null, new: null }))}
          onWritten={(item) => setItems((all) => upserted(all, item, keyOf))}
          onDelete={(item) => remove([item])}
        />
      )}
      {choosing && (
        <Columns known={known} chosen={extra} fixed={["/id", ...paths]} onClose={() => setChoosing(false)} onChoose={(next) => (setChosen(next), keep(place, next))} />
      )}
    </div>
  );
}

/** Drops rows when their time has come, without looking at all of them every second. */
function useLiving(items: Item[], defaultTtl: number | null): Item[] {
  const [turn, setTurn] = useState(0);
  const { living, soonest } = useMemo(() => {
    if (defaultTtl === null) return { living: items, soonest: Infinity };
    let soonest = Infinity;
    const time = now.peek();
    const living = items.filter((item) => {
      const deadline = lifeOf(item, defaultTtl).deadline ?? Infinity;
      if (deadline > time) soonest = Math.min(soonest, deadline);
      return deadline > time;
    });
    return { living, soonest };
  }, [items, defaultTtl, turn]);
  const time = now.value;
  useEffect(() => {
    if (soonest <= time) setTurn((turn) => turn + 1);
  }, [soonest, time]);
  return living;
}

function upserted(all: Item[], item: Item, keyOf: (item: Item) => string): Item[] {
  const key = keyOf(item);
  const at = all.findIndex((each) => keyOf(each) === key);
  return at === -1 ? [item, ...all] : all.with(at, item);
}

function order(items: Item[], sort: { column: string; descending: boolean } | null, defaultTtl: number | null): Item[] {
  if (!sort) return items;
  const value = (item: Item): Json | undefined =>
    sort.column === "expires" ? (lifeOf(item, defaultTtl).deadline ?? Infinity) : at(item, sort.column.startsWith("/") ? sort.column : `/${sort.column}`);
  const keyed = items.map((item) => ({ item, value: value(item) }));
  keyed.sort((a, b) => compare(a.value, b.value) * (sort.descending ? -1 : 1));
  return keyed.map(({ item }) => item);
}

function compare(a: Json | undefined, b: Json | undefined): number {
  if (typeof a === "number" && typeof b === "number") return a === b ? 0 : a < b ? -1 : 1;
  const [x, y] = [cell(a), cell(b)];
  return x === y ? 0 : x < y ? -1 : 1;
}

export function Value({ value }: { value: Json | undefined }) {
  if (value === undefined) return <span class="faint">–</span>;
  const text = cell(value);
  return <span class={typeof value === "string" ? undefined : "mono"}>{text.length > 120 ? `${text.slice(0, 120)}…` : text}</span>;
}

function ExpiresIn({ item, defaultTtl }: { item: Item; defaultTtl: number | null }) {
  const life = lifeOf(item, defaultTtl);
  if (life.deadline === null) return <span class="faint">{life.rule === "pinned" ? "pinned" : "never"}</span>;
  const left = life.deadline - now.value;
  const tone = left <= 60 ? "soon" : left <= 3600 ? "near" : "far";
  return <span class={`life ${tone}`} title={utc(life.deadline)}>{left <= 0 ? "gone" : shortDuration(left)}</span>;
}

const HISTORY_MAX = 100;

export function FilterHistory({ filter }: { filter: string }) {
  const [past, setPast] = useState<string[]>(kept("filters", []));
  useEffect(() => {
    if (filter === "" || past[0] === filter) return;
    const next = [filter, ...past.filter((each) => each !== filter)].slice(0, HISTORY_MAX);
    setPast(next);
    keep("filters", next);
  }, [filter]);
  return <datalist id="filters">{past.map((each) => <option key={each} value={each} />)}</datalist>;
}

export function Columns({ known, chosen, fixed, onChoose, onClose }: { known: string[]; chosen: string[]; fixed: string[]; onChoose: (paths: string[]) => void; onClose: () => void }) {
  const [other, setOther] = useState("");
  const all = [...new Set([...chosen, ...known])].filter((path) => !fixed.includes(path));
  const flip = (path: string): void => onChoose(chosen.includes(path) ? chosen.filter((each) => each !== path) : [...chosen, path]);
  return (
    <Dialog title="Columns" onClose={onClose}>
      <div class="stack tight scroll-list">
        {all.map((path) => (
          <label class="choice" key={path}><input type="checkbox" checked={chosen.includes(path)} onChange={() => flip(path)} /> <span class="mono">{path}</span></label>
        ))}
        {all.length === 0 && <p class="faint">The loaded items have no other properties.</p>}
      </div>
      <form class="row" onSubmit={(event) => (event.preventDefault(), other.startsWith("/") && (flip(other), setOther("")))}>
        <input class="input mono grow" aria-label="Another path" placeholder="/address/city" value={other} onInput={(event) => setOther(inputValue(event))} />
        <Button submit disabled={!other.startsWith("/")}>Add</Button>
      </form>
    </Dialog>
  );
}
