// Rows as CSV (RFC 4180). A column per property at the top; values inside go as JSON.

import { cell } from "./document";
import type { Json } from "./life";

export function columnsOf(rows: Json[]): string[] {
  const names = new Set<string>();
  for (const row of rows) {
    if (row !== null && typeof row === "object" && !Array.isArray(row)) Object.keys(row).forEach((name) => names.add(name));
    else names.add("value");
  }
  return [...names];
}

export function valueIn(row: Json, column: string): Json | undefined {
  if (row !== null && typeof row === "object" && !Array.isArray(row)) return row[column];
  return column === "value" ? row : undefined;
}

export function toCsv(rows: Json[]): string {
  const columns = columnsOf(rows);
  // A spreadsheet would run what begins like a formula; a quote in front keeps it text.
  const safe = (text: string): string => (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
  const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const line = (cells: string[]): string => cells.map((text) => quoted(safe(text))).join(",");
  return [line(columns), ...rows.map((row) => line(columns.map((column) => cell(valueIn(row, column)))))].join("\r\n") + "\r\n";
}
