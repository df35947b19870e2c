// Two texts line by line: the longest common subsequence, after what both begin and end with.

export type DiffLine = { kind: "same" | "mine" | "theirs"; text: string };

/** Beyond this many lines on a side the middle is shown as replaced whole. */
const LINES_MAX = 2_000;

export function diffLines(mine: string, theirs: string): DiffLine[] {
  const a = mine.split("\n");
  const b = theirs.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const same = (text: string): DiffLine => ({ kind: "same", text });
  return [
    ...a.slice(0, head).map(same),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail).map(same),
  ];
}

function middle(a: string[], b: string[]): DiffLine[] {
  const replaced = (): DiffLine[] => [
    ...b.map((text): DiffLine => ({ kind: "theirs", text })),
    ...a.map((text): DiffLine => ({ kind: "mine", text })),
  ];
  if (a.length > LINES_MAX || b.length > LINES_MAX) return replaced();
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const here = i * width + j;
      longest[here] = a[i] === b[j] ? longest[here + width + 1]! + 1 : Math.max(longest[here + width]!, longest[here + 1]!);
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i]! });
      i++;
      j++;
    } else if (j < b.length && (i === a.length || longest[i * width + j + 1]! >= longest[(i + 1) * width + j]!)) {
      lines.push({ kind: "theirs", text: b[j++]! });
    } else {
      lines.push({ kind: "mine", text: a[i++]! });
    }
  }
  return lines;
}
