// Reading documents: partition keys, paths, columns.

import type { Json } from "./life";

export const SYSTEM = ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];

/** The value at `/a/b`; undefined if there is none. */
export function at(document: Json, path: string): Json | undefined {
  let value: Json | undefined = document;
  for (const name of path.split("/").slice(1)) {
    if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
    value = value[name.replace(/^"(.*)"$/, "$1")];
  }
  return value;
}

/** The partition key header of a document: a JSON array in ASCII; `{}` stands for a missing value. */
export function partitionKeyHeader(document: Json, paths: string[]): string {
  return ascii(JSON.stringify(paths.map((path) => at(document, path) ?? (at(document, path) === null ? null : {}))));
}

/** Headers are ASCII; JSON can say everything in it. */
export function ascii(json: string): string {
  return json.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** One line for a cell. */
export function cell(value: Json | undefined): string {
  if (value === undefined) return "";
  if (typeof value === "string") return value;
  return JSON.stringify(value);
}

/** Paths of scalar properties in these documents, the most common first. */
export function commonPaths(documents: Json[], depth = 2): string[] {
  const counts = new Map<string, number>();
  const walk = (value: Json, path: string, left: number): void => {
    if (value === null || typeof value !== "object" || Array.isArray(value)) {
      counts.set(path, (counts.get(path) ?? 0) + 1);
    } else if (left > 0) {
      for (const [name, inner] of Object.entries(value)) walk(inner, `${path}/${name}`, left - 1);
    }
  };
  for (const document of documents) walk(document, "", depth);
  const plain = (path: string): boolean => path !== "" && !SYSTEM.includes(path.slice(1));
  return [...counts].filter(([path]) => plain(path)).sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).map(([path]) => path);
}

/** Without what the server owns. */
export function withoutSystem(document: Record<string, Json>): Record<string, Json> {
  return Object.fromEntries(Object.entries(document).filter(([name]) => !SYSTEM.includes(name)));
}
