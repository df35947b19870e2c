// The items of a container: a filter in SQL, and the panel of the one that is open.

import { useCallback, useMemo, useState } from "preact/hooks";
import type { ContainerOverview } from "../api/admin";
import { type ContainerName, type ItemRef, listItems, putItem, queryItems, refOf } from "../api/cosmos";
import { ApiError } from "../api/http";
import { at, cell } from "../lib/document";
import { utc } from "../lib/format";
import { type Item, lifeOf } from "../lib/life";
import { filterQuery, problemOf } from "../lib/sql";
import { deletionKey, doomedItem } from "../state/deletions";
import { go, route, withParams } from "../state/route";
import { credential } from "../state/session";
import { errorDetail } from "../state/toasts";
import { type Page, usePages } from "../ui/pages";
import { ItemPanel } from "./item";
import { ItemsFrame, upserted } from "./items-frame";

const PAGE = 500;
const CLOSED = { item: null, pk: null } as const;

async function page(name: ContainerName, filter: string, continuation: string | null, signal: AbortSignal): Promise<Page<Item>> {
  const who = credential.value;
  const partitionKey = who?.kind === "token" ? (who.partitionKey ?? undefined) : undefined;
  const options = { continuation: continuation ?? undefined, pageSize: PAGE, signal, partitionKey };
  const { value, headers } = filter.trim() === "" ? await listItems(name, options) : await queryItems(name, filterQuery(filter), [], options);
  return { rows: value.Documents, next: headers.get("x-ms-continuation") };
}

export function Items({ name, container }: { name: ContainerName; container: ContainerOverview }) {
  const { params } = route.value;
  const filter = params.get("filter") ?? "";
  const [turn, setTurn] = useState(0);
  const pages = usePages<Item>((next, signal) => page(name, filter, next, signal), [name.db, name.coll, filter, turn]);
  const { partitionKey: paths, defaultTtl } = container;
  const keyOf = useMemo(() => {
    // Asked for every row that is drawn, again and again; an item's key never changes.
    const keys = new WeakMap<Item, string>();
    return (item: Item): string => {
      let key = keys.get(item);
      if (key === undefined) keys.set(item, (key = deletionKey(name, refOf(item, paths))));
      return key;
    };
  }, [name.db, name.coll, paths.join()]);
  const countdownOf = useCallback((item: Item) => {
    const { deadline, rule } = lifeOf(item, defaultTtl);
    return { deadline, word: rule === "pinned" ? "pinned" : "never" };
  }, [defaultTtl]);

  const id = params.get("item");
  const openRef: ItemRef | null = id === null ? null : { id, partitionKey: params.get("pk") ?? "[]" };
  const isNew = params.has("new");
  return (
    <ItemsFrame<Item>
      name={name}
      pages={pages}
      reload={() => setTurn(turn + 1)}
      keyOf={keyOf}
      plainOf={itself}
      wholeOf={itself}
      countdownOf={defaultTtl === null ? null : countdownOf}
      fixed={["/id", ...paths]}
      columns={[
        { id: "id", title: "id", least: 8, share: 1.2, render: (item) => <span class="mono">{item.id}</span> },
        ...paths.filter((path) => path !== "/id").map((path) => ({ id: path, title: path, least: 6, share: 1, render: (item: Item) => cell(at(item, path)) })),
      ]}
      lastColumns={[{ id: "_ts", title: "Last write", least: 11, share: 0, render: (item) => <span class="faint">{utc(item._ts).slice(0, 19)}</span> }]}
      titleOf={(path) => path}
      filterSign="WHERE"
      filterHint='c.user = "ada" AND c.total > 20'
      problemOf={(error) => (error instanceof ApiError && error.status === 400 ? { message: problemOf(error.message).message, detail: errorDetail(error) } : null)}
      queryOf={filterQuery}
      emptyTitle="No items"
      noun="container"
      current={openRef ? deletionKey(name, openRef) : null}
      open={(item) => {
        const ref = refOf(item, paths);
        return { item: ref.id, pk: ref.partitionKey };
      }}
      closed={CLOSED}
      doom={(item) => doomedItem(name, refOf(item, paths))}
      put={(text, replace) => putItem(name, text, paths, replace)}
      panel={(remove) => (
        <ItemPanel
          key={isNew ? "new" : deletionKey(name, openRef!)}
          name={name}
          container={container}
          itemRef={isNew ? null : openRef}
          onClose={() => go(withParams({ ...CLOSED, new: null }))}
          onWritten={(item) => pages.setRows((all) => upserted(all, item, keyOf))}
          onDelete={(item) => remove([item])}
        />
      )}
    />
  );
}

const itself = (item: Item): Item => item;
