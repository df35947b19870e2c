// The documents of a collection: a filter in MongoDB's words, and the panel of the one that is open.

import { useCallback, useState } from "preact/hooks";
import { type ContainerOverview, readFates } from "../api/admin";
import type { ContainerName } from "../api/cosmos";
import { closeCursor, getMore, insertDocument, listIndexes, open, putDocument } from "../api/mongo";
import { at, cell } from "../lib/document";
import { shown, ttlIndexes } from "../lib/extended";
import { type Fate, fateWord } from "../lib/fate";
import type { Json } from "../lib/life";
import { commandOf, readQuery } from "../lib/mongo";
import { textAt } from "../lib/rawjson";
import { documentKey, doomedDocument } from "../state/deletions";
import { go, route, withParams } from "../state/route";
import { useLoad } from "../ui/load";
import { type Page, usePages } from "../ui/pages";
import { DocumentPanel } from "./collection-item";
import { ItemsFrame, upserted } from "./items-frame";

const PAGE = 500;
const CLOSED = { item: null } as const;

/** A row: what was found, and the same in plain words. */
export interface Row {
  /** The `_id` as a text of Extended JSON. */
  id: string;
  raw: Record<string, Json>;
  plain: Json;
  /** When it goes. */
  fate: Fate;
}

/** Rows of documents that are still there; the server says of each when it goes. */
export async function rowsOf(name: ContainerName, documents: Json[], signal?: AbortSignal): Promise<Row[]> {
  const found = documents.map((raw) => ({ id: JSON.stringify((raw as Record<string, Json>)["_id"] ?? null), raw: raw as Record<string, Json>, plain: shown(raw) ?? null }));
  const fates = await readFates(name, found.map(({ id }) => id), signal);
  return found.flatMap((row, n) => (fates[n] ? [{ ...row, fate: fates[n] }] : []));
}

async function page(name: ContainerName, filter: string, cursor: string | null, signal: AbortSignal): Promise<Page<Row>> {
  const query = readQuery(filter);
  if (typeof query === "string") throw new Error(query);
  if (query.kind !== "find") throw new Error("A filter is an object { … }. Pipelines have the page Query.");
  const batch = cursor === null ? await open(name.db, commandOf(query, name.coll, PAGE), signal) : await getMore(name, cursor, PAGE, signal);
  return { rows: await rowsOf(name, batch.documents, signal), next: batch.cursor };
}

export function CollectionItems({ name, container }: { name: ContainerName; container: ContainerOverview }) {
  const { params } = route.value;
  const filter = params.get("filter") ?? "";
  const [turn, setTurn] = useState(0);
  // When a rule about time changes, every document may have another end.
  const pages = usePages<Row>((cursor, signal) => page(name, filter, cursor, signal), [name.db, name.coll, filter, turn, container.defaultTtl, container.ttlIndexes], (cursor) => closeCursor(name, cursor));
  const indexes = useLoad(async () => ttlIndexes(await listIndexes(name)), [name.db, name.coll, container.defaultTtl, container.ttlIndexes, turn]);
  const expiring = indexes.value ?? [];
  const keyOf = useCallback((row: Row): string => documentKey(name, row.id), [name.db, name.coll]);
  const countdownOf = useCallback(({ fate }: Row) => ({ deadline: fate.expiresAt, word: fateWord(fate, expiring) }), [indexes.value]);

  const openId = params.get("item");
  const isNew = params.has("new");
  return (
    <ItemsFrame<Row>
      name={name}
      pages={pages}
      reload={() => setTurn(turn + 1)}
      keyOf={keyOf}
      plainOf={plainOf}
      wholeOf={rawOf}
      countdownOf={expiring.length === 0 ? null : countdownOf}
      fixed={["/_id"]}
      columns={[{ id: "/_id", title: "_id", least: 8, share: 1.2, render: (row) => <span class="mono">{cell(at(row.plain, "/_id"))}</span> }]}
      titleOf={(path) => path.slice(1).replaceAll("/", ".")}
      filterSign="FIND"
      filterHint='{ "user": "ada", "total": { "$gt": 20 } }'
      problemOf={(error) => (filter === "" ? null : { message: error instanceof Error ? error.message : String(error) })}
      queryOf={(text) => text}
      emptyTitle="No documents"
      noun="collection"
      current={openId === null ? null : documentKey(name, openId)}
      open={(row) => ({ item: row.id })}
      closed={CLOSED}
      doom={(row) => doomedDocument(name, row.id, cell(shown(row.raw["_id"])))}
      put={(text, replace) => (replace && textAt(text, "_id") !== null ? putDocument(name, text) : insertDocument(name, text))}
      panel={(remove) => (
        <DocumentPanel
          key={isNew ? "new" : openId!}
          name={name}
          id={isNew ? null : openId}
          indexes={expiring}
          onClose={() => go(withParams({ ...CLOSED, new: null }))}
          onWritten={(row) => pages.setRows((all) => upserted(all, row, keyOf))}
          onDelete={(row) => remove([row])}
        />
      )}
    />
  );
}

const plainOf = (row: Row): Json => row.plain;
const rawOf = (row: Row): Json => row.raw;
