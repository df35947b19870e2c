// A value in a cell.

import { cell } from "../lib/document";
import type { Json } from "../lib/life";

const LENGTH_MAX = 200;
const DATE = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?Z$/;

/** One line; a moment as people read it. */
export function cellText(value: Json | undefined): string {
  const text = cell(value);
  const date = DATE.exec(text);
  if (date) return `${date[1]} ${date[2]}${date[3] === undefined || /^\.0+$/.test(date[3]) ? "" : date[3]}`;
  return text.length > LENGTH_MAX ? `${text.slice(0, LENGTH_MAX)}…` : text;
}

export function Value({ value }: { value: Json | undefined }) {
  if (value === undefined) return <span class="faint">–</span>;
  return <span class={typeof value === "string" ? undefined : "mono"} title={typeof value === "string" && value.length > 40 ? value : undefined}>{cellText(value)}</span>;
}

/** The least width in rem that shows most of these, within reason. */
export function widthOf(values: (Json | undefined)[]): number {
  const longest = Math.max(0, ...values.map((value) => cellText(value).length));
  return Math.min(13, Math.max(6, 1.5 + longest * 0.56));
}
