// Why a document of a collection lives as long as it does. When, the server has said: MongoDB shows neither the time of the
// last write nor which documents a partial index takes.

import { LAST_WRITE, type TtlIndex } from "./extended";

export interface Fate {
  /** The second of its last write. */
  lastWrite: number;
  /** Its own `ttl`, if that is one: -1 is never. */
  ownTtl: number | null;
  /** The second it is gone, with a fraction; null is never. */
  expiresAt: number | null;
  /** The index whose date decides; null if the time since the last write does. */
  index: string | null;
}

export const fateWord = (fate: Fate, indexes: TtlIndex[]): string => (isPinned(fate, indexes) ? "pinned" : "never");

/** A `ttl` counts only where the last write does. */
const isPinned = (fate: Fate, indexes: TtlIndex[]): boolean => fate.ownTtl === -1 && indexes.some((index) => index.field === LAST_WRITE);

export interface Explained {
  words: string;
  /** The parts of the sum that gives the end; null if there is none. */
  sum: { base: string; at: number; rule: string; seconds: number } | null;
}

export function explainFate(fate: Fate, indexes: TtlIndex[]): Explained {
  if (fate.expiresAt === null) {
    if (isPinned(fate, indexes)) return { words: "Pinned: its own ttl is -1, so the time of its last write does not count.", sum: null };
    return { words: "No TTL index takes it: it has no date that one looks for.", sum: null };
  }
  const index = indexes.find((each) => each.name === fate.index);
  if (index) {
    const words = `The TTL index ${index.name} counts from the date in ${index.field}, the earliest if there are several.`;
    return { words, sum: { base: index.field, at: fate.expiresAt - index.seconds, rule: "expireAfterSeconds", seconds: index.seconds } };
  }
  const seconds = fate.expiresAt - fate.lastWrite;
  return fate.ownTtl === null
    ? { words: "It has no ttl of its own, so the TTL index on the last write counts.", sum: { base: "last write", at: fate.lastWrite, rule: "expireAfterSeconds", seconds } }
    : { words: "Its own ttl counts, from its last write.", sum: { base: "last write", at: fate.lastWrite, rule: "ttl", seconds } };
}
