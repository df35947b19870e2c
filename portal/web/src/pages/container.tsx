// A container's frame: its name, its pages.

import { plural } from "../lib/format";
import { bytes } from "../lib/format";
import type { ContainerName } from "../api/cosmos";
import { containerOf, databases } from "../state/catalog";
import { inContainer } from "../state/route";
import { isAdministrator } from "../state/session";
import { tabs } from "../state/tabs";
import { Empty, LinkTabs } from "../ui/controls";
import { CollectionIndexes } from "./collection-indexes";
import { CollectionItems } from "./collection-items";
import { CollectionTtl } from "./collection-ttl";
import { Feed } from "./feed";
import { Items } from "./items";
import { Query } from "./query";
import { Settings } from "./settings";
import { TimeToLive } from "./ttl";

export function ContainerPage({ name, page, rest }: { name: ContainerName; page: string; rest: string[] }) {
  const container = containerOf(name);
  if (databases.value === null) return <div class="page"><div class="skeleton-lines"><i /><i /><i /></div></div>;
  if (!container) {
    return (
      <Empty title={`There is no container ${name.coll}`} action={<a class="button primary" href="#/">Go home</a>}>
        The database {name.db} does not have it, or you may not see it.
      </Empty>
    );
  }
  const admin = isAdministrator.value;
  const tab = tabs.value.find((each) => each.db === name.db && each.coll === name.coll);
  const pages: [id: string, text: string, path: string][] = [
    ["items", "Items", "items"],
    ["query", "Query", tab ? `query/${tab.id}` : "query"],
    ...(admin ? ([["ttl", "Time to Live", "ttl"], container.isCollection ? ["indexes", "Indexes", "indexes"] : ["settings", "Scale & Settings", "settings/scale"]] as [string, string, string][]) : []),
    ["feed", "Change feed", "feed"],
  ];
  return (
    <div class="container-page">
      <header class="container-head">
        <h1 title={`${name.db} / ${name.coll}`}><span class="faint hide-small">{name.db} / </span>{name.coll}</h1>
        {container.isCollection && <span class="badge">MongoDB</span>}
        {admin && <span class="faint small nowrap" data-testid="container-size">{plural(container.live.documents, "document")} · {bytes(container.live.bytes)}</span>}
      </header>
      <LinkTabs
        label={`Pages of ${name.coll}`}
        items={pages.map(([id, text, path]) => ({ href: inContainer(name.db, name.coll, path), text, current: page === id }))}
      />
      <div class="container-body" key={`${page}/${page === "query" ? "" : (rest[0] ?? "")}`}>
        {page === "items" && (container.isCollection ? <CollectionItems name={name} container={container} /> : <Items name={name} container={container} />)}
        {page === "query" && <Query name={name} isCollection={container.isCollection} tabId={rest[0] ?? null} />}
        {page === "ttl" && admin && (container.isCollection ? <CollectionTtl name={name} /> : <TimeToLive name={name} />)}
        {page === "indexes" && admin && container.isCollection && <CollectionIndexes name={name} />}
        {page === "settings" && admin && !container.isCollection && <Settings name={name} section={rest[0] ?? "scale"} />}
        {page === "feed" && <Feed name={name} container={container} />}
      </div>
    </div>
  );
}
