// JSON as text. A document of MongoDB has an order of fields and numbers that JavaScript's own objects do not keep, so what
// is edited is never read into one: it is cut out, indented and sent back as it was written.

/** The end of the value that begins at `at`. */
function endOf(text: string, at: number): number {
  let depth = 0;
  for (let n = at; n < text.length; n++) {
    const char = text[n]!;
    if (char === '"') {
      n = endOfString(text, n);
      if (depth === 0) return n + 1;
    } else if (char === "{" || char === "[") depth++;
    else if (char === "}" || char === "]") {
      if (depth === 0) return n;
      if (--depth === 0) return n + 1;
    } else if (depth === 0 && (char === "," || /\s/.test(char))) return n;
  }
  return text.length;
}

/** Where the string that begins at `at` has its last quote. */
function endOfString(text: string, at: number): number {
  let n = at + 1;
  while (n < text.length && text[n] !== '"') n += text[n] === "\\" ? 2 : 1;
  return n;
}

const skip = (text: string, at: number, what: RegExp): number => {
  while (at < text.length && what.test(text[at]!)) at++;
  return at;
};

/** The texts of the parts of an object or array that has been found to be right, with their names. */
export function parts(text: string): [name: string, value: string][] {
  const found: [string, string][] = [];
  let at = skip(text, 0, /\s/);
  const isObject = text[at] === "{";
  at = skip(text, at + 1, /[\s,]/);
  while (at < text.length && text[at] !== "}" && text[at] !== "]") {
    let name = String(found.length);
    if (isObject) {
      const end = endOfString(text, at);
      name = JSON.parse(text.slice(at, end + 1)) as string;
      at = skip(text, end + 1, /[\s:]/);
    }
    const end = endOf(text, at);
    found.push([name, text.slice(at, end)]);
    at = skip(text, end, /[\s,]/);
  }
  return found;
}

/** The text of the value below these names; null if there is none. */
export function textAt(text: string, ...names: string[]): string | null {
  let value = text;
  for (const name of names) {
    const found = parts(value).find(([each]) => each === name);
    if (!found) return null;
    value = found[1];
  }
  return value;
}

/** The objects of Extended JSON that stand for one value stay on a line. */
const ONE_LINE = /^\{\s*"\$(oid|date|number\w+|uuid|binary|timestamp|minKey|maxKey|undefined|symbol|regularExpression)"/;

/** The same JSON, indented; nothing else changes. */
export function indented(text: string, indent = ""): string {
  const trimmed = text.trim();
  const first = trimmed[0];
  if ((first !== "{" && first !== "[") || ONE_LINE.test(trimmed)) return trimmed;
  const inner = `${indent}  `;
  const lines = parts(trimmed).map(([name, value]) => `${inner}${first === "{" ? `${JSON.stringify(name)}: ` : ""}${indented(value, inner)}`);
  const close = first === "{" ? "}" : "]";
  return lines.length === 0 ? `${first}${close}` : `${first}\n${lines.join(",\n")}\n${indent}${close}`;
}

/** A fresh identifier, as drivers make it: the second, then chance. */
export function newObjectId(seconds: number, random: Uint8Array): string {
  const hex = [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return (Math.floor(seconds) % 2 ** 32).toString(16).padStart(8, "0") + hex;
}

/** The text of a document with this id in front, unless it has one. */
export function withId(text: string, id: string): string {
  const fields = parts(text);
  if (fields.some(([name]) => name === "_id")) return text;
  return `{"_id":{"$oid":"${id}"}${fields.length > 0 ? "," : ""}${text.trim().slice(1)}`;
}
