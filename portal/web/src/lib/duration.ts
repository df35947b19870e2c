// Durations between people and seconds.

export const MAX_TTL = 2_147_483_647;

const UNITS: [name: string, seconds: number, words: RegExp][] = [
  ["y", 365 * 86_400, /^(y|yr|yrs|year|years)$/],
  ["d", 86_400, /^(d|day|days)$/],
  ["h", 3_600, /^(h|hr|hrs|hour|hours)$/],
  ["min", 60, /^(m|min|mins|minute|minutes)$/],
  ["s", 1, /^(s|sec|secs|second|seconds)$/],
];
const WEEK: [string, number, RegExp] = ["w", 7 * 86_400, /^(w|wk|week|weeks)$/];

/** Reads `90`, `7d`, `1 h 30 min`. Null if it is no duration. */
export function parseDuration(text: string): number | null {
  const trimmed = text.trim().toLowerCase();
  if (/^\d+$/.test(trimmed)) return Number(trimmed);
  const parts = [...trimmed.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)\s*/g)];
  if (parts.length === 0 || parts.map((part) => part[0]).join("") !== trimmed) return null;
  let seconds = 0;
  for (const [, number, word] of parts) {
    const unit = [...UNITS, WEEK].find(([, , words]) => words.test(word ?? ""));
    if (!unit) return null;
    seconds += Number(number) * unit[1];
  }
  return Math.round(seconds);
}

/** Exactly: `1 d 2 h 3 min 4 s`. */
export function exactDuration(seconds: number): string {
  if (seconds <= 0) return "0 s";
  const parts: string[] = [];
  let rest = Math.floor(seconds);
  for (const [name, length] of UNITS) {
    if (rest >= length) parts.push(`${Math.floor(rest / length).toLocaleString("en")} ${name}`);
    rest %= length;
  }
  return parts.join(" ");
}

/** The two largest units: `6 d 23 h`, `59 s`. */
export function shortDuration(seconds: number): string {
  if (seconds < 1) return "0 s";
  const first = UNITS.findIndex(([, length]) => seconds >= length);
  const [name, length] = UNITS[first]!;
  const whole = Math.floor(seconds / length);
  const next = UNITS[first + 1];
  const rest = next ? Math.floor((seconds % length) / next[1]) : 0;
  return `${whole.toLocaleString("en")} ${name}${next && rest ? ` ${rest} ${next[0]}` : ""}`;
}

/** Time to live as a badge says it: `Off`, `On`, `7 d`; `Dates` where TTL indexes take documents by a date of theirs. */
export function ttlBadge(ttl: number | null, indexes: number): string {
  return ttl !== null ? (ttl === -1 ? "On" : shortDuration(ttl)) : indexes > 0 ? "Dates" : "Off";
}

/** A default in words. */
export function ttlWords(ttl: number | null): string {
  return ttl === null ? "Off" : ttl === -1 ? "On (no default)" : `On, ${exactDuration(ttl)}`;
}
