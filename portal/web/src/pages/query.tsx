// Queries: a tab for each, of whichever container. Results stay with the container they came from.

import { useEffect } from "preact/hooks";
import type { ContainerName } from "../api/cosmos";
import { go, inContainer } from "../state/route";
import { closeTab, openTab, tabs } from "../state/tabs";
import { Button } from "../ui/controls";
import { CollectionTab } from "./collection-query";
import { forgetResults } from "./query-frame";
import { goToTab } from "./shortcuts";
import { SqlTab } from "./sql-query";

export function Query({ name, isCollection, tabId }: { name: ContainerName; isCollection: boolean; tabId: string | null }) {
  const tab = tabs.value.find((each) => each.id === tabId && each.db === name.db && each.coll === name.coll);
  useEffect(() => {
    if (tab) return;
    const other = tabs.value.find((each) => each.db === name.db && each.coll === name.coll);
    go(inContainer(name.db, name.coll, `query/${(other ?? openTab(name)).id}`), true);
  }, [tab === undefined]);
  if (!tab) return null;
  return (
    <div class="query">
      <div class="query-tabs" role="navigation" aria-label="Query tabs">
        {tabs.value.map((each) => (
          <span key={each.id} class={each.id === tab.id ? "query-tab current" : "query-tab"}>
            <a href={inContainer(each.db, each.coll, `query/${each.id}`)} aria-current={each.id === tab.id ? "page" : undefined} title={`${each.db} / ${each.coll}`}>
              <span class="faint">{each.coll}</span> {each.title}
            </a>
            <button type="button" aria-label={`Close ${each.title}`} title="Close (Ctrl+Alt+W)" onClick={() => (forgetResults(each.id), goToTab(closeTab(each.id)))}>×</button>
          </span>
        ))}
        <Button kind="quiet" icon="plus" label="New query" keys="Ctrl+J" onClick={() => go(inContainer(name.db, name.coll, `query/${openTab(name).id}`))} />
      </div>
      {isCollection ? <CollectionTab key={tab.id} name={name} tab={tab} /> : <SqlTab key={tab.id} name={name} tab={tab} />}
    </div>
  );
}
