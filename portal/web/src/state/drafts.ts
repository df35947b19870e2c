// What was typed and not saved. A draft outlives a click elsewhere and a reload; it ends with the tab, with the session, and
// with the document it is of: when that has expired, its text may not be here any longer.

import { effect, signal } from "@preact/signals";
import { utc } from "../lib/format";
import { heard, now } from "./clock";
import { credential } from "./session";
import { toast } from "./toasts";

export interface Draft {
  /** What it is of, for people. */
  label: string;
  text: string;
  /** The version that was edited: an etag or a stored text. Empty for something new. */
  base: string;
  /** The second at which the document goes, if it does. */
  deadline: number | null;
}

const PLACE = "mayfly.draft.";
/** Between typing and keeping: to keep a text of megabytes at every key would be felt. */
const KEEP_AFTER_MS = 250;

const drafts = new Map<string, Draft>(read());
const unkept = new Set<string>();
let timer = 0;

/** The keys of all drafts; changes when one comes or goes, not when one is written on. */
export const drafted = signal<ReadonlySet<string>>(new Set(drafts.keys()));

export const draftOf = (key: string): Draft | null => drafts.get(key) ?? null;

export function putDraft(key: string, draft: Draft): void {
  drafts.set(key, draft);
  unkept.add(key);
  clearTimeout(timer);
  timer = window.setTimeout(keepAll, KEEP_AFTER_MS);
  if (!drafted.value.has(key)) drafted.value = new Set(drafts.keys());
}

export function dropDraft(key: string): void {
  if (!drafts.delete(key)) return;
  unkept.delete(key);
  sessionStorage.removeItem(PLACE + key);
  drafted.value = new Set(drafts.keys());
}

export function dropAllDrafts(): void {
  for (const key of [...drafts.keys()]) dropDraft(key);
}

/** Forgets the draft of a document that is gone, and says so. */
export function forgetGone(key: string): void {
  const draft = drafts.get(key);
  if (!draft) return;
  dropDraft(key);
  const when = draft.deadline !== null && draft.deadline <= now.peek() ? `expired at ${utc(draft.deadline)}` : "was deleted, or has expired";
  toast({ tone: "bad", text: `“${draft.label}” ${when}. Your draft of it is gone with it.` });
}

function read(): [string, Draft][] {
  const found: [string, Draft][] = [];
  for (let n = 0; n < sessionStorage.length; n++) {
    const place = sessionStorage.key(n);
    if (!place?.startsWith(PLACE)) continue;
    try {
      found.push([place.slice(PLACE.length), JSON.parse(sessionStorage.getItem(place) ?? "") as Draft]);
    } catch {
      // Not ours, or not whole.
    }
  }
  return found;
}

function keepAll(): void {
  for (const key of unkept) {
    const draft = drafts.get(key);
    try {
      if (draft) sessionStorage.setItem(PLACE + key, JSON.stringify(draft));
      unkept.delete(key);
    } catch {
      // The storage is full: it stays in memory, and `beforeunload` asks before that is lost.
    }
  }
}

// No later than the document.
effect(() => {
  const time = now.value;
  if (!heard.value) return;
  for (const [key, { deadline }] of drafts) if (deadline !== null && deadline <= time) forgetGone(key);
});
effect(() => {
  if (credential.value === null) dropAllDrafts();
});
addEventListener("pagehide", keepAll);
addEventListener("beforeunload", (event) => {
  keepAll();
  // A reload would keep them, but it cannot be told from the end of the tab, which does not.
  if (drafts.size > 0) event.preventDefault();
});
