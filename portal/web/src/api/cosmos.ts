// The operations of the protocol that the portal uses.

import { partitionKeyHeader } from "../lib/document";
import type { Item, Json } from "../lib/life";
import { type Answer, resource } from "./http";

export interface ContainerName {
  db: string;
  coll: string;
}

export interface ContainerDefinition {
  id: string;
  partitionKey: { paths: string[]; kind?: string; version?: number };
  indexingPolicy?: Json;
  uniqueKeyPolicy?: { uniqueKeys: { paths: string[] }[] };
  defaultTtl?: number;
  changeFeedPolicy?: { retentionDuration: number };
  _etag?: string;
  _rid?: string;
  _self?: string;
  [name: string]: unknown;
}

export const linkOf = ({ db, coll }: ContainerName): string => `dbs/${db}/colls/${coll}`;

export const createDatabase = (id: string): Promise<Answer<Json>> =>
  resource({ verb: "POST", link: "", feed: "dbs", body: JSON.stringify({ id }) });

export const deleteDatabase = (id: string): Promise<Answer<Json>> => resource({ verb: "DELETE", link: `dbs/${id}` });

export const createContainer = (db: string, definition: ContainerDefinition, throughput?: number): Promise<Answer<ContainerDefinition>> =>
  resource({
    verb: "POST",
    link: `dbs/${db}`,
    feed: "colls",
    body: JSON.stringify(definition),
    headers: throughput === undefined ? {} : { "x-ms-offer-throughput": String(throughput) },
  });

export const readContainer = (name: ContainerName): Promise<Answer<ContainerDefinition>> => resource({ verb: "GET", link: linkOf(name) });

export const replaceContainer = (name: ContainerName, definition: ContainerDefinition): Promise<Answer<ContainerDefinition>> =>
  resource({
    verb: "PUT",
    link: linkOf(name),
    body: JSON.stringify(definition),
    headers: definition._etag === undefined ? {} : { "if-match": definition._etag },
  });

export const deleteContainer = (name: ContainerName): Promise<Answer<Json>> => resource({ verb: "DELETE", link: linkOf(name) });

interface Page {
  Documents: Item[];
}

export interface QueryOptions {
  continuation?: string | undefined;
  pageSize?: number;
  metrics?: boolean;
  signal?: AbortSignal | undefined;
  /** Confines a caller whose token reaches one logical partition. */
  partitionKey?: string | undefined;
}

export interface Parameter {
  name: string;
  value: Json;
}

export function queryItems(name: ContainerName, query: string, parameters: Parameter[], options: QueryOptions): Promise<Answer<Page>> {
  return resource({
    verb: "POST",
    link: linkOf(name),
    feed: "docs",
    body: JSON.stringify({ query, parameters }),
    headers: {
      "content-type": "application/query+json",
      "x-ms-documentdb-isquery": "True",
      "x-ms-documentdb-query-enablecrosspartition": "True",
      "x-ms-max-item-count": String(options.pageSize ?? 100),
      ...(options.metrics ? { "x-ms-documentdb-populatequerymetrics": "True" } : {}),
      ...(options.continuation ? { "x-ms-continuation": options.continuation } : {}),
      ...(options.partitionKey ? { "x-ms-documentdb-partitionkey": options.partitionKey } : {}),
    },
    ...(options.signal ? { signal: options.signal } : {}),
  });
}

export function listItems(name: ContainerName, options: QueryOptions): Promise<Answer<Page>> {
  return resource({
    verb: "GET",
    link: linkOf(name),
    feed: "docs",
    headers: {
      "x-ms-max-item-count": String(options.pageSize ?? 100),
      ...(options.continuation ? { "x-ms-continuation": options.continuation } : {}),
      ...(options.partitionKey ? { "x-ms-documentdb-partitionkey": options.partitionKey } : {}),
    },
    ...(options.signal ? { signal: options.signal } : {}),
  });
}

export interface ItemRef {
  id: string;
  partitionKey: string;
}

const keyed = (ref: ItemRef, etag?: string): Record<string, string> => ({
  "x-ms-documentdb-partitionkey": ref.partitionKey,
  ...(etag === undefined ? {} : { "if-match": etag }),
});

export const refOf = (item: Item, paths: string[]): ItemRef => ({ id: item.id, partitionKey: partitionKeyHeader(item, paths) });

export const readItem = (name: ContainerName, ref: ItemRef): Promise<Answer<Item>> =>
  resource({ verb: "GET", link: `${linkOf(name)}/docs/${ref.id}`, headers: keyed(ref) });

export const createItem = (name: ContainerName, body: Record<string, Json>, paths: string[]): Promise<Answer<Item>> =>
  resource({
    verb: "POST",
    link: linkOf(name),
    feed: "docs",
    body: JSON.stringify(body),
    headers: { "x-ms-documentdb-partitionkey": partitionKeyHeader(body, paths) },
  });

/** The same from a text, as it is. */
export const putItem = (name: ContainerName, text: string, paths: string[], upsert: boolean): Promise<Answer<Item>> =>
  resource({
    verb: "POST",
    link: linkOf(name),
    feed: "docs",
    body: text,
    headers: { "x-ms-documentdb-partitionkey": partitionKeyHeader(JSON.parse(text) as Json, paths), ...(upsert ? { "x-ms-documentdb-is-upsert": "True" } : {}) },
  });

export const replaceItem = (name: ContainerName, ref: ItemRef, body: string, etag?: string): Promise<Answer<Item>> =>
  resource({ verb: "PUT", link: `${linkOf(name)}/docs/${ref.id}`, body, headers: keyed(ref, etag) });

export const patchItem = (name: ContainerName, ref: ItemRef, operations: Json[], etag?: string): Promise<Answer<Item>> =>
  resource({
    verb: "PATCH",
    link: `${linkOf(name)}/docs/${ref.id}`,
    body: JSON.stringify({ operations }),
    headers: keyed(ref, etag),
  });

export const deleteItem = (name: ContainerName, ref: ItemRef, etag?: string, keepalive = false): Promise<Answer<null>> =>
  resource({ verb: "DELETE", link: `${linkOf(name)}/docs/${ref.id}`, headers: keyed(ref, etag), keepalive });

export interface Offer {
  id: string;
  _rid: string;
  _self: string;
  resource: string;
  offerResourceId: string;
  content: { offerThroughput?: number; offerAutopilotSettings?: { maxThroughput: number } };
  [name: string]: unknown;
}

export const listOffers = (): Promise<Answer<{ Offers: Offer[] }>> => resource({ verb: "GET", link: "", feed: "offers" });

/** Offers are signed with their RID alone, in lower case. */
export const replaceOffer = (offer: Offer): Promise<Answer<Offer>> =>
  resource({ verb: "PUT", link: `offers/${offer._rid}`, body: JSON.stringify(offer) });

export interface Change {
  current?: Item;
  previous?: Item;
  metadata?: { lsn: number; crts: number; operationType: string; timeToLiveExpired?: boolean; expiredAt?: number; id?: string };
}

/** The partition key ranges of a container; each has a change feed of its own. */
export const listRanges = (name: ContainerName): Promise<Answer<{ PartitionKeyRanges: { id: string }[] }>> =>
  resource({ verb: "GET", link: linkOf(name), feed: "pkranges" });

/** One page of a range's change feed; a null value means that nothing is new. */
export function readChanges(
  name: ContainerName,
  range: string,
  kind: "Incremental Feed" | "Full-Fidelity Feed",
  start: { etag: string } | { since: Date } | "now" | "beginning",
  signal?: AbortSignal,
): Promise<Answer<{ Documents: (Item | Change)[] } | null>> {
  const from: Record<string, string> =
    start === "now" ? { "if-none-match": "*" }
    : start === "beginning" ? {}
    : "etag" in start ? { "if-none-match": start.etag }
    : { "if-modified-since": start.since.toUTCString() };
  return resource({
    verb: "GET",
    link: linkOf(name),
    feed: "docs",
    headers: { "a-im": kind, "x-ms-max-item-count": "200", "x-ms-documentdb-partitionkeyrangeid": range, ...from },
    ...(signal ? { signal } : {}),
  });
}
