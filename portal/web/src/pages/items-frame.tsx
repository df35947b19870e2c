// The frame of a page of items, whatever they are: a filter, the grid with its chosen columns and countdowns, what is
// selected, and a panel for the one that is open.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ContainerName } from "../api/cosmos";
import { toCsv } from "../lib/csv";
import { at, cell, commonPaths } from "../lib/document";
import { shortDuration } from "../lib/duration";
import { count, plural, utc } from "../lib/format";
import type { Json } from "../lib/life";
import { now } from "../state/clock";
import { type Doomed, deleteSoon, hidden } from "../state/deletions";
import { drafted } from "../state/drafts";
import { keep, kept } from "../state/prefs";
import { go, inContainer, route, withParams } from "../state/route";
import { readOnly } from "../state/session";
import { openTab } from "../state/tabs";
import { Button, Dialog, Empty, Failure, inputValue } from "../ui/controls";
import { type Column, Grid } from "../ui/grid";
import type { Pages } from "../ui/pages";
import { Value, widthOf } from "../ui/value";
import { download } from "./results";
import { useAction } from "./shortcuts";
import { type Put, Upload } from "./upload";

const COLUMNS_AT_FIRST = 3;

/** The second at which something goes; without one, a word says what is known. */
export interface Countdown {
  deadline: number | null;
  word: string;
}

interface Frame<Row> {
  name: ContainerName;
  pages: Pages<Row>;
  /** Loads everything again. */
  reload: () => void;
  keyOf: (row: Row) => string;
  /** The row as plain JSON: what columns show and sorting compares. */
  plainOf: (row: Row) => Json;
  /** The row as it is stored, for a file. */
  wholeOf: (row: Row) => Json;
  /** When rows go; null if nothing here can expire. */
  countdownOf: ((row: Row) => Countdown) | null;
  /** Paths that have a column of their own, always. */
  fixed: string[];
  /** Columns in front of the chosen ones, and behind them. */
  columns: Column<Row>[];
  lastColumns?: Column<Row>[];
  titleOf: (path: string) => string;
  filterSign: string;
  filterHint: string;
  /** What is wrong with the filter, if that is why nothing came. */
  problemOf: (error: unknown) => { message: string; detail?: string } | null;
  queryOf: (filter: string) => string;
  emptyTitle: string;
  /** `container` or `collection`. */
  noun: string;
  /** The key of the open row, if one is open. */
  current: string | null;
  /** Parameters of the address that open a row, and those that close it. */
  open: (row: Row) => Record<string, string | null>;
  closed: Record<string, null>;
  doom: (row: Row) => Doomed;
  /** Writes an item of a file. */
  put: Put;
  panel: (remove: (rows: Row[]) => void) => ComponentChildren;
}

export function ItemsFrame<Row>(props: Frame<Row>) {
  const { name, pages, keyOf, plainOf, closed } = props;
  const { rows, setRows, error, done, first, more } = pages;
  const { params } = route.value;
  const filter = params.get("filter") ?? "";
  const [draft, setDraft] = useState(filter);
  useEffect(() => setDraft(filter), [filter]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const sort = sortIn(params.get("sort"));
  const [choosing, setChoosing] = useState(false);
  const [uploading, setUploading] = useState(false);
  const filterBox = useRef<HTMLInputElement>(null);

  const place = `columns.${name.db}/${name.coll}`;
  const [chosen, setChosen] = useState<string[] | null>(kept(place, null));
  const known = useMemo(() => commonPaths(rows.slice(0, 200).map(plainOf)), [rows.length > 0, rows.length > 200]);
  const isSimple = (path: string): boolean => !["/ttl", ...props.fixed].includes(path) && !rows.slice(0, 20).some((row) => Array.isArray(at(plainOf(row), path)));
  const extra = chosen ?? known.filter(isSimple).slice(0, COLUMNS_AT_FIRST);

  const visible = useMemo(() => (hidden.value.size === 0 ? rows : rows.filter((row) => !hidden.value.has(keyOf(row)))), [rows, hidden.value, keyOf]);
  const { countdownOf } = props;
  const living = useLiving(visible, countdownOf);
  const sorted = useMemo(() => order(living, sort, plainOf, countdownOf), [living, params.get("sort"), countdownOf]);

  const isNew = params.has("new");
  const startNew = (): void => go(withParams({ ...closed, new: "1" }));
  const remove = (doomed: Row[]): void => {
    if (doomed.length === 0 || readOnly.value) return;
    const keys = new Set(doomed.map(keyOf));
    deleteSoon(name, doomed.map(props.doom), () => setRows((all) => all.filter((row) => !keys.has(keyOf(row)))));
    setSelected(new Set());
    if (props.current !== null && keys.has(props.current)) go(withParams(closed));
  };
  const chosenRows = (): Row[] => sorted.filter((row) => selected.has(keyOf(row)));
  useAction("filter", () => filterBox.current?.focus());
  useAction("newItem", readOnly.value ? null : startNew);
  useAction("delete", selected.size > 0 ? () => remove(chosenRows()) : null);

  const widths = useMemo(() => new Map(extra.map((path) => [path, widthOf(rows.slice(0, 20).map((row) => at(plainOf(row), path)))])), [extra.join(), rows.length > 0]);
  const columns: Column<Row>[] = [
    ...props.columns,
    ...extra.map((path): Column<Row> => ({ id: path, title: props.titleOf(path), least: widths.get(path) ?? 6, share: 1, render: (row) => <Value value={at(plainOf(row), path)} /> })),
    ...(props.lastColumns ?? []),
    ...(countdownOf === null ? [] : [{ id: EXPIRES, title: "Expires in", least: 8, share: 0, numeric: true, render: (row: Row) => <ExpiresIn {...countdownOf(row)} /> }]),
  ];
  const problem = error === null ? null : props.problemOf(error);
  return (
    <div class={props.current !== null || isNew ? "items with-panel" : "items"}>
      <div class="items-main">
        <form
          class="toolbar"
          onSubmit={(event) => {
            event.preventDefault();
            if (draft === filter) props.reload();
            else go(withParams({ ...closed, filter: draft || null }));
          }}
        >
          <label class="filter grow">
            <span class="mono faint">{props.filterSign}</span>
            <input
              ref={filterBox}
              class="mono"
              aria-label="Filter"
              placeholder={props.filterHint}
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
          <Button icon="refresh" label="Load again" onClick={props.reload} />
          <Button icon="columns" label="Choose columns" onClick={() => setChoosing(true)} />
          {!readOnly.value && (
            <>
              <Button icon="trash" label="Delete the selected items" keys="Alt+D" disabled={selected.size === 0} onClick={() => remove(chosenRows())} />
              <Button icon="upload" label="Upload items from a file" onClick={() => setUploading(true)} />
              <Button kind="primary" icon="plus" keys="Alt+N I" onClick={startNew}>New item</Button>
            </>
          )}
        </form>
        {problem && (
          <div class="filter-problem" id="filter-problem" role="alert">
            <b>The filter is not right.</b> {problem.message}
            {problem.detail && <span class="faint small mono"> {problem.detail}</span>}
          </div>
        )}
        {error !== null && !problem && <Failure error={error} />}
        {!error && done && rows.length === 0 ? (
          filter === "" ? (
            <Empty title={props.emptyTitle} action={!readOnly.value && <Button kind="primary" icon="plus" onClick={startNew}>New item</Button>}>
              {countdownOf === null ? `This ${props.noun} is empty.` : `This ${props.noun} is empty, or everything in it has expired.`}
            </Empty>
          ) : (
            <Empty title="Nothing matches" action={<Button onClick={() => go(inContainer(name.db, name.coll, `query/${openTab(name, props.queryOf(filter)).id}`))}>Open as a query</Button>}>
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
              current={props.current}
              marked={drafted.value}
              onSelect={setSelected}
              onOpen={(row) => go(withParams({ ...props.open(row), new: null }))}
              onNearEnd={more}
              sort={sort}
              onSort={(column) => go(withParams({ sort: sort?.column !== column ? column : sort.descending ? null : `-${column}` }), true)}
              selectable={!readOnly.value}
              footer={first ? <span class="skeleton-lines"><i /><i /><i /></span> : done ? null : <Button kind="quiet" onClick={more}>Load more</Button>}
            />
          )
        )}
        <div class="statusline row" role="status">
          <span class="grow">
            {selected.size > 0 && <b>{plural(selected.size, "item")} selected · </b>}
            {count(sorted.length)} loaded{done ? "" : ", more below"}
          </span>
          {selected.size > 0 && (
            <>
              <Button kind="quiet" icon="download" label="Download the selected items as CSV" onClick={() => download(`${name.coll}.csv`, "text/csv", toCsv(chosenRows().map(plainOf)))}>CSV</Button>
              <Button kind="quiet" icon="download" label="Download the selected items as JSON" onClick={() => download(`${name.coll}.json`, "application/json", JSON.stringify(chosenRows().map(props.wholeOf), null, 2))}>JSON</Button>
            </>
          )}
        </div>
      </div>
      {(props.current !== null || isNew) && props.panel(remove)}
      {uploading && <Upload name={name} put={props.put} onClose={() => setUploading(false)} onDone={props.reload} />}
      {choosing && <Columns known={known} chosen={extra} fixed={props.fixed} onClose={() => setChoosing(false)} onChoose={(next) => (setChosen(next), keep(place, next))} />}
    </div>
  );
}

const EXPIRES = "expires";

/** `name` is ascending, `-name` descending. */
function sortIn(text: string | null): { column: string; descending: boolean } | null {
  if (text === null || text === "") return null;
  return text.startsWith("-") ? { column: text.slice(1), descending: true } : { column: text, descending: false };
}

/** Drops rows when their time has come, without looking at all of them every second. */
function useLiving<Row>(rows: Row[], countdownOf: ((row: Row) => Countdown) | null): Row[] {
  const [turn, setTurn] = useState(0);
  const { living, soonest } = useMemo(() => {
    if (countdownOf === null) return { living: rows, soonest: Infinity };
    let soonest = Infinity;
    const time = now.peek();
    const living = rows.filter((row) => {
      const deadline = countdownOf(row).deadline ?? Infinity;
      if (deadline > time) soonest = Math.min(soonest, deadline);
      return deadline > time;
    });
    return { living, soonest };
  }, [rows, countdownOf, turn]);
  const time = now.value;
  useEffect(() => {
    if (soonest <= time) setTurn((turn) => turn + 1);
  }, [soonest, time]);
  return living;
}

function order<Row>(rows: Row[], sort: { column: string; descending: boolean } | null, plainOf: (row: Row) => Json, countdownOf: ((row: Row) => Countdown) | null): Row[] {
  if (!sort) return rows;
  const value = (row: Row): Json | undefined =>
    sort.column === EXPIRES ? (countdownOf?.(row).deadline ?? Infinity) : at(plainOf(row), sort.column.startsWith("/") ? sort.column : `/${sort.column}`);
  const keyed = rows.map((row) => ({ row, value: value(row) }));
  keyed.sort((a, b) => compare(a.value, b.value) * (sort.descending ? -1 : 1));
  return keyed.map(({ row }) => row);
}

function compare(a: Json | undefined, b: Json | undefined): number {
  if (typeof a === "number" && typeof b === "number") return a === b ? 0 : a < b ? -1 : 1;
  const [x, y] = [cell(a), cell(b)];
  return x === y ? 0 : x < y ? -1 : 1;
}

/** The row in its place, or in front if it is new. */
export function upserted<Row>(all: Row[], row: Row, keyOf: (row: Row) => string): Row[] {
  const key = keyOf(row);
  const place = all.findIndex((each) => keyOf(each) === key);
  return place === -1 ? [row, ...all] : all.with(place, row);
}

function ExpiresIn({ deadline, word }: Countdown) {
  if (deadline === null) return <span class="faint">{word}</span>;
  const left = deadline - now.value;
  return <span class={`life ${left <= 60 ? "soon" : left <= 3600 ? "near" : "far"}`} title={utc(deadline)}>{left <= 0 ? "gone" : shortDuration(left)}</span>;
}

const HISTORY_MAX = 100;

function FilterHistory({ filter }: { filter: string }) {
  const [past, setPast] = useState<string[]>(kept("filters", []));
  useEffect(() => {
    if (filter === "" || past[0] === filter) return;
    const next = [filter, ...past.filter((each) => each !== filter)].slice(0, HISTORY_MAX);
    setPast(next);
    keep("filters", next);
  }, [filter]);
  return <datalist id="filters">{past.map((each) => <option key={each} value={each} />)}</datalist>;
}

function Columns({ known, chosen, fixed, onChoose, onClose }: { known: string[]; chosen: string[]; fixed: string[]; onChoose: (paths: string[]) => void; onClose: () => void }) {
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
