// The tree: databases, their containers, what is in them and how long it lives.

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { ContainerOverview, DatabaseOverview } from "../api/admin";
import { deleteContainer, deleteDatabase } from "../api/cosmos";
import { ttlBadge, ttlWords } from "../lib/duration";
import { brief, bytes, plural } from "../lib/format";
import { databases, refreshCatalog } from "../state/catalog";
import { go, inContainer, route, withParams } from "../state/route";
import { isAdministrator, readOnly } from "../state/session";
import { failed, toast } from "../state/toasts";
import { Button, Dialog, Field, inputValue } from "../ui/controls";
import { Icon } from "../ui/icons";

const closed = signal<ReadonlySet<string>>(new Set());

type Doomed = { db: DatabaseOverview; container?: ContainerOverview };

export function Tree() {
  const [doomed, setDoomed] = useState<Doomed | null>(null);
  const may = !readOnly.value && isAdministrator.value;
  const { parts } = route.value;
  const toggle = (name: string): void => {
    const next = new Set(closed.value);
    if (!next.delete(name)) next.add(name);
    closed.value = next;
  };
  return (
    <nav class="tree" aria-label="Databases and containers">
      <ul>
        <li><a class="tree-link" href="#/" aria-current={parts.length === 0 ? "page" : undefined}><Icon name="home" /> Home</a></li>
        {isAdministrator.value && (
          <li><a class="tree-link" href="#/metrics" aria-current={parts[0] === "metrics" ? "page" : undefined}><Icon name="chart" /> Metrics</a></li>
        )}
      </ul>
      <div class="tree-head">
        <h2>Data</h2>
        {may && <Button kind="quiet" icon="plus" label="New container" keys="Alt+N C" onClick={() => go(withParams({ dialog: "new-container" }))} />}
      </div>
      {databases.value === null && <div class="skeleton-lines"><i /><i /><i /></div>}
      {databases.value?.length === 0 && <p class="tree-empty faint">No databases yet.</p>}
      <ul>
        {databases.value?.map((db) => (
          <li key={db.name}>
            <div class="tree-row">
              <button type="button" class="tree-link" aria-expanded={!closed.value.has(db.name)} onClick={() => toggle(db.name)}>
                <span class="twist"><Icon name="chevron" /></span><Icon name="database" /> <span class="ellipsis">{db.name}</span>
              </button>
              {may && (
                <span class="tree-actions">
                  <Button kind="quiet" icon="plus" label={`New container in ${db.name}`} onClick={() => go(withParams({ dialog: "new-container", db: db.name }))} />
                  <Button kind="quiet" icon="trash" label={`Delete database ${db.name}`} onClick={() => setDoomed({ db })} />
                </span>
              )}
            </div>
            {!closed.value.has(db.name) && (
              <ul class="tree-inner">
                {db.containers.map((container) => <Leaf key={container.name} db={db} container={container} onDelete={may ? () => setDoomed({ db, container }) : null} />)}
                {db.containers.length === 0 && <li class="tree-empty faint">No containers</li>}
              </ul>
            )}
          </li>
        ))}
      </ul>
      {doomed && <Delete doomed={doomed} onClose={() => setDoomed(null)} />}
    </nav>
  );
}

function Leaf({ db, container, onDelete }: { db: DatabaseOverview; container: ContainerOverview; onDelete: (() => void) | null }) {
  const { parts } = route.value;
  const here = parts[0] === "c" && parts[1] === db.name && parts[2] === container.name;
  const expires = container.defaultTtl !== null || container.ttlIndexes > 0;
  const dates = container.ttlIndexes > 0 ? `, ${plural(container.ttlIndexes, "TTL index", "TTL indexes")} on dates` : "";
  const size = isAdministrator.value ? `${plural(container.live.documents, "document")}, ${bytes(container.live.bytes)}. ` : "";
  return (
    <li>
      <div class="tree-row">
        <a class="tree-link leaf" href={inContainer(db.name, container.name, "items")} aria-current={here ? "page" : undefined} title={`${size}Time to live: ${ttlWords(container.defaultTtl)}${dates}`}>
          <Icon name="container" /> <span class="ellipsis grow">{container.name}</span>
          {container.isCollection && <span class="kind-badge" title="A collection of MongoDB">mongo</span>}
          {isAdministrator.value && <span class="tree-count">{brief(container.live.documents)}</span>}
          <span class={`ttl-badge ${expires ? "on" : "off"}`}>{ttlBadge(container.defaultTtl, container.ttlIndexes)}</span>
        </a>
        {onDelete && (
          <span class="tree-actions"><Button kind="quiet" icon="trash" label={`Delete container ${container.name}`} onClick={onDelete} /></span>
        )}
      </div>
    </li>
  );
}

/** Names what goes, and how much; a container with documents has to be named back. */
function Delete({ doomed: { db, container }, onClose }: { doomed: Doomed; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const name = container?.name ?? db.name;
  const documents = (container ? [container] : db.containers).reduce((sum, each) => sum + each.live.documents, 0);
  const carryOut = async (): Promise<void> => {
    setBusy(true);
    try {
      await (container ? deleteContainer({ db: db.name, coll: container.name }) : deleteDatabase(db.name));
      toast({ tone: "good", text: `Deleted ${container ? "container" : "database"} ${name}` });
      if (route.value.parts[1] === db.name && (!container || route.value.parts[2] === container.name)) go("#/");
      await refreshCatalog();
      onClose();
    } catch (error) {
      failed(`${name} could not be deleted`, error);
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Delete ${container ? "container" : "database"} ${name}`} onClose={onClose}>
      <form class="stack" onSubmit={(event) => (event.preventDefault(), void carryOut())}>
        <p>
          This deletes {container ? <>the container <b>{name}</b> of {db.name}</> : <>the database <b>{name}</b> with {plural(db.containers.length, "container")}</>}{" "}
          and <b>{plural(documents, "document")}</b>. It cannot be undone.
        </p>
        {documents > 0 && (
          <Field label={`Type ${name} to confirm`}>
            {(props) => <input {...props} class="input mono" value={typed} autocomplete="off" onInput={(event) => setTyped(inputValue(event))} />}
          </Field>
        )}
        <div class="row end">
          <Button onClick={onClose}>Keep it</Button>
          <Button kind="danger" submit busy={busy} disabled={documents > 0 && typed !== name}>Delete</Button>
        </div>
      </form>
    </Dialog>
  );
}
