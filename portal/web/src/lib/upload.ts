// A file of items: a list, one item, or one item per line. Each stays the text it was, for JavaScript's numbers do not hold all.

import { parts } from "./rawjson";

const isObject = (value: unknown): boolean => value !== null && typeof value === "object" && !Array.isArray(value);

/** The texts of the items in a file; a text alone says what is wrong with it. */
export function itemsIn(file: string): string[] | string {
  const text = file.replace(/^\ufeff/, "").trim();
  if (text === "") return "The file is empty.";
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch (error) {
    // More than one value: a line for each.
    return text.includes("\n") ? linesOf(text, error) : reasonOf(error);
  }
  if (isObject(whole)) return [text];
  if (!Array.isArray(whole)) return "The file holds neither items nor a list of them.";
  const wrong = whole.findIndex((each) => !isObject(each));
  return wrong === -1 ? parts(text).map(([, value]) => value) : `Number ${wrong + 1} of the list is not an object.`;
}

function linesOf(text: string, error: unknown): string[] | string {
  const lines = text.split(/\r?\n/);
  const items: string[] = [];
  for (const [n, line] of lines.entries()) {
    if (line.trim() === "") continue;
    try {
      if (!isObject(JSON.parse(line))) return `Line ${n + 1} is not an object.`;
    } catch (problem) {
      // A list that is broken somewhere is told from lines by its first one.
      return n === 0 ? reasonOf(error) : `Line ${n + 1}: ${reasonOf(problem)}`;
    }
    items.push(line);
  }
  return items;
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : "This is not JSON.");
