// Why an item lives as long as it does: the rule of docs/ttl.md, in words.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Item = { id: string; _ts: number; _etag: string; _rid?: string; ttl?: Json } & { [name: string]: Json };

export type Rule = "off" | "pinned" | "own" | "default" | "noDefault";

export interface Life {
  rule: Rule;
  /** The second it is gone; null is never. */
  deadline: number | null;
  seconds: number | null;
}

/** A `ttl` that counts: -1, or whole seconds from 1 to the limit. */
function ownTtl(value: Json | undefined): number | null {
  const valid = typeof value === "number" && Number.isInteger(value) && (value === -1 || (value >= 1 && value <= 2_147_483_647));
  return valid ? value : null;
}

export function lifeOf(item: Pick<Item, "_ts" | "ttl">, defaultTtl: number | null): Life {
  if (defaultTtl === null) return { rule: "off", deadline: null, seconds: null };
  const own = ownTtl(item.ttl);
  if (own === -1) return { rule: "pinned", deadline: null, seconds: null };
  if (own !== null) return { rule: "own", deadline: item._ts + own, seconds: own };
  if (defaultTtl === -1) return { rule: "noDefault", deadline: null, seconds: null };
  return { rule: "default", deadline: item._ts + defaultTtl, seconds: defaultTtl };
}

export function lifeWords(life: Life): string {
  switch (life.rule) {
    case "off":
      return "Time to live is off for this container, so nothing expires. A ttl property is plain data.";
    case "pinned":
      return "Pinned: its own ttl is -1, so it never expires, whatever the default says.";
    case "own":
      return "Its own ttl counts, not the container's default.";
    case "default":
      return "It has no ttl of its own, so the container's default counts.";
    case "noDefault":
      return "The container has no default and the item no ttl of its own, so it never expires.";
  }
}
