// Where we are: everything after the `#`, so that it works below any path.

import { signal } from "@preact/signals";

export interface Route {
  /** Decoded parts of the path. */
  parts: string[];
  params: URLSearchParams;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const decoded = (part: string): string => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  return { parts: path.split("/").filter((part) => part !== "").map(decoded), params: new URLSearchParams(query) };
}

export const route = signal<Route>(read());
addEventListener("hashchange", () => (route.value = read()));

export function href(parts: string[], params: Record<string, string | null> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value !== null && value !== "") query.set(name, value);
  const text = query.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function go(to: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", to);
    route.value = read();
  } else {
    location.hash = to;
  }
}

/** The same place with some parameters changed; null takes one away. */
export function withParams(change: Record<string, string | null>): string {
  const params = Object.fromEntries(route.value.params);
  return href(route.value.parts, { ...params, ...change });
}

/** A choice that stands in the address. The first of the options stands for itself. */
export function choice<T extends string>(name: string, options: readonly T[]): [chosen: T, choose: (value: T) => void] {
  const written = route.value.params.get(name);
  const chosen = options.find((option) => option === written) ?? options[0]!;
  return [chosen, (value) => go(withParams({ [name]: value === options[0] ? null : value }), true)];
}

export const inContainer = (db: string, coll: string, page: string, params: Record<string, string | null> = {}): string =>
  href(["c", db, coll, ...page.split("/")], params);
