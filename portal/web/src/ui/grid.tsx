// A grid that draws only the rows in sight, whatever their number. Rows have one height, so positions are sums.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Column<T> {
  id: string;
  title: string;
  /** The least width in rem, and its share of what is left over. */
  least: number;
  share: number;
  numeric?: boolean;
  render: (row: T) => ComponentChildren;
  sortable?: boolean;
}

interface GridProps<T> {
  label: string;
  rows: T[];
  columns: Column<T>[];
  rowKey: (row: T) => string;
  selected: ReadonlySet<string>;
  current: string | null;
  /** Rows with something in them that is not saved. */
  marked: ReadonlySet<string>;
  onSelect: (selected: ReadonlySet<string>) => void;
  onOpen: (row: T) => void;
  /** Called when the end comes near. */
  onNearEnd: () => void;
  sort: { column: string; descending: boolean } | null;
  onSort: (column: string) => void;
  footer: ComponentChildren;
  selectable: boolean;
}

export const ROW_PX = 36;
const SPARE_ROWS = 12;
/** The end is near when fewer rows than this are left below. */
const AHEAD_ROWS = 400;
/** Browsers do not lay out boxes beyond some 30 million pixels; beyond this the rows are scrolled in proportion. */
const HEIGHT_MAX = 12_000_000;

export function Grid<T>(props: GridProps<T>) {
  const { rows, columns, rowKey, selected, current, onSelect, onOpen, sort } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [cursor, setCursor] = useState(0);
  const anchor = useRef(0);

  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    const seen = new ResizeObserver(() => setHeight(box.clientHeight));
    seen.observe(box);
    return () => seen.disconnect();
  }, []);

  const whole = rows.length * ROW_PX;
  const shown = Math.min(whole, HEIGHT_MAX);
  const range = Math.max(1, shown - height);
  // Equal unless the rows are too many for a box.
  const offset = whole === shown ? top : (top / range) * (whole - height);
  const first = Math.max(0, Math.floor(offset / ROW_PX) - SPARE_ROWS);
  const last = Math.min(rows.length, Math.ceil((offset + height) / ROW_PX) + SPARE_ROWS);
  const template = `${props.selectable ? "2.500rem " : ""}${columns.map(({ least, share }) => (share > 0 ? `minmax(${least}rem, ${share}fr)` : `${least}rem`)).join(" ")}`;
  // Below this the grid scrolls sideways instead of squeezing its columns.
  const minWidth = `${columns.reduce((sum, column) => sum + column.least, props.selectable ? 4.5 : 2)}rem`;

  useEffect(() => {
    if (rows.length - last < AHEAD_ROWS) props.onNearEnd();
  }, [last, rows.length, props.onNearEnd]);

  const toggle = (index: number, range: boolean): void => {
    const next = new Set(selected);
    const [from, to] = range ? [Math.min(anchor.current, index), Math.max(anchor.current, index)] : [index, index];
    const on = range || !selected.has(rowKey(rows[index]!));
    for (let i = from; i <= to; i++) {
      const key = rowKey(rows[i]!);
      if (on) next.add(key);
      else next.delete(key);
    }
    anchor.current = index;
    onSelect(next);
  };

  const moveTo = (index: number): void => {
    const to = Math.max(0, Math.min(rows.length - 1, index));
    setCursor(to);
    const box = scroller.current;
    if (!box || whole !== shown) return;
    const y = to * ROW_PX;
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y + 2 * ROW_PX > box.scrollTop + box.clientHeight) box.scrollTop = y + 2 * ROW_PX - box.clientHeight;
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor(height / ROW_PX) - 2);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length };
    const step = steps[event.key];
    if (step !== undefined && !event.altKey && !event.ctrlKey) {
      event.preventDefault();
      moveTo(cursor + step);
      if (event.shiftKey && props.selectable) toggle(Math.max(0, Math.min(rows.length - 1, cursor + step)), true);
    } else if (event.key === "Enter" && !event.shiftKey && rows[cursor]) {
      event.preventDefault();
      onOpen(rows[cursor]);
    } else if (event.key === " " && props.selectable && rows[cursor]) {
      event.preventDefault();
      toggle(cursor, event.shiftKey);
    } else if (event.key.toLowerCase() === "a" && (event.ctrlKey || event.metaKey) && props.selectable) {
      event.preventDefault();
      onSelect(new Set(rows.map(rowKey)));
    }
  };

  const allSelected = rows.length > 0 && selected.size >= rows.length;
  return (
    <div class="grid">
      <div
        class="grid-scroll"
        ref={scroller}
        role="grid"
        aria-label={props.label}
        aria-rowcount={rows.length + 1}
        aria-multiselectable={props.selectable}
        aria-activedescendant={cursor >= first && cursor < last ? `row-${cursor}` : undefined}
        tabIndex={0}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={onKeyDown}
      >
        <div class="grid-head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template, minWidth }}>
          {props.selectable && (
            <div class="grid-cell check" role="columnheader">
              <input type="checkbox" tabIndex={-1} aria-label="Select all loaded items" checked={allSelected} onChange={() => onSelect(allSelected ? new Set() : new Set(rows.map(rowKey)))} />
            </div>
          )}
          {columns.map((column) => (
            <div key={column.id} class={column.numeric ? "grid-cell num" : "grid-cell"} role="columnheader" aria-sort={sort?.column === column.id ? (sort.descending ? "descending" : "ascending") : undefined}>
              {column.sortable === false ? column.title : (
                <button type="button" class="sort" tabIndex={-1} title="Sorts the items that are loaded" onClick={() => props.onSort(column.id)}>
                  {column.title}<span aria-hidden="true">{sort?.column === column.id ? (sort.descending ? " ↓" : " ↑") : ""}</span>
                </button>
              )}
            </div>
          ))}
        </div>
        <div class="grid-space" role="rowgroup" style={{ height: `${shown}px`, minWidth }}>
          <div class="grid-rows" role="presentation" style={{ transform: `translateY(${first * ROW_PX - offset + top}px)` }}>
            {rows.slice(first, last).map((row, n) => {
              const index = first + n;
              const key = rowKey(row);
              return (
                <div
                  key={key}
                  id={`row-${index}`}
                  class={`grid-row${selected.has(key) ? " selected" : ""}${current === key ? " current" : ""}${cursor === index ? " cursor" : ""}`}
                  role="row"
                  aria-rowindex={index + 2}
                  aria-selected={selected.has(key)}
                  style={{ gridTemplateColumns: template }}
                  onClick={(event) => {
                    setCursor(index);
                    if (props.selectable && (event.ctrlKey || event.metaKey || event.shiftKey)) toggle(index, event.shiftKey);
                    else onOpen(row);
                  }}
                >
                  {props.selectable && (
                    <div class="grid-cell check" role="gridcell" onClick={(event) => event.stopPropagation()}>
                      <input type="checkbox" tabIndex={-1} aria-label="Select" checked={selected.has(key)} onClick={(event) => toggle(index, event.shiftKey)} />
                    </div>
                  )}
                  {columns.map((column, place) => (
                    <div key={column.id} class={column.numeric ? "grid-cell num" : "grid-cell"} role="gridcell">
                      {place === 0 && props.marked.has(key) && <span class="draft-mark" role="img" aria-label="Unsaved draft" title="Unsaved draft" />}
                      {column.render(row)}
                    </div>
                  ))}
                </div>
              );
            })}
          </div>
        </div>
        {props.footer && <div class="grid-foot" role="row"><div role="gridcell">{props.footer}</div></div>}
      </div>
    </div>
  );
}
