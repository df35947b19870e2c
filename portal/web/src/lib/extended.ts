// Extended JSON for people: what a value is in plain words, and which indexes take documents.

import type { Json } from "./life";

type Fields = { [name: string]: Json };

const isFields = (value: Json | undefined): value is Fields => value !== null && typeof value === "object" && !Array.isArray(value);

/** The one field of an object that stands for a value, such as `{"$oid": "…"}`. */
function wrapped(value: Json | undefined): [name: string, content: Json] | null {
  if (!isFields(value)) return null;
  const entries = Object.entries(value);
  return entries.length === 1 && entries[0]![0].startsWith("$") ? entries[0]! : null;
}

/** The milliseconds of a date; null if it is none. */
export function dateOf(value: Json | undefined): number | null {
  const found = wrapped(value);
  if (found?.[0] !== "$date") return null;
  const inner = wrapped(found[1]);
  const millis = typeof found[1] === "string" ? Date.parse(found[1]) : inner?.[0] === "$numberLong" ? Number(inner[1]) : Number(found[1]);
  return Number.isNaN(millis) ? null : millis;
}

/** A number, however it is written. */
export function numberOf(value: Json | undefined): number | null {
  if (typeof value === "number") return value;
  const found = wrapped(value);
  if (!found || !/^\$number(Int|Long|Double|Decimal)$/.test(found[0])) return null;
  const number = Number(found[1]);
  return Number.isNaN(number) ? null : number;
}

/** The value without the signs of its type, for a cell. */
export function shown(value: Json | undefined): Json | undefined {
  if (Array.isArray(value)) return value.map((each) => shown(each) ?? null);
  const found = wrapped(value);
  if (found) {
    const [name, content] = found;
    const millis = dateOf(value);
    if (millis !== null) return Math.abs(millis) < 8.64e15 ? new Date(millis).toISOString() : `${millis} ms`;
    if (["$oid", "$uuid", "$symbol", "$numberDecimal"].includes(name)) return content;
    if (name.startsWith("$number")) return Number.isSafeInteger(Number(content)) || !/^-?\d+$/.test(String(content)) ? (Number.isFinite(Number(content)) ? Number(content) : content) : content;
    return value;
  }
  if (!isFields(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shown(each) ?? null]));
}

export interface MongoIndex {
  name: string;
  key: Fields;
  expireAfterSeconds?: Json;
  partialFilterExpression?: Fields;
  unique?: boolean;
  sparse?: boolean;
  hidden?: boolean;
}

export interface TtlIndex {
  name: string;
  field: string;
  seconds: number;
  /** Documents that it leaves alone. */
  partial: Fields | null;
}

/** The indexes that take documents, the one of the per-document rule among them. */
export function ttlIndexes(indexes: MongoIndex[]): TtlIndex[] {
  return indexes.flatMap((index) => {
    const seconds = numberOf(index.expireAfterSeconds);
    const field = Object.keys(index.key)[0];
    return seconds === null || field === undefined ? [] : [{ name: index.name, field, seconds, partial: index.partialFilterExpression ?? null }];
  });
}

/** The field that stands for the moment of a document's last write. */
export const LAST_WRITE = "_ts";
