// Indexes of a collection: which there are, a new one, and dropping one.

import { useState } from "preact/hooks";
import type { ContainerName } from "../api/cosmos";
import { createIndex, listIndexes } from "../api/mongo";
import { type MongoIndex, numberOf } from "../lib/extended";
import { parts } from "../lib/rawjson";
import { refreshCatalog } from "../state/catalog";
import { inContainer } from "../state/route";
import { readOnly } from "../state/session";
import { failed, toast } from "../state/toasts";
import { Button, Failure, Field, inputValue } from "../ui/controls";
import { useLoad } from "../ui/load";
import { DropIndex } from "./drop-index";

export function CollectionIndexes({ name }: { name: ContainerName }) {
  const indexes = useLoad(() => listIndexes(name), [name.db, name.coll]);
  const [dropping, setDropping] = useState<string | null>(null);
  const changed = (): void => {
    setDropping(null);
    indexes.reload();
    void refreshCatalog();
  };
  return (
    <div class="page stack">
      <section class="card stack" aria-labelledby="indexes">
        <h2 id="indexes">Indexes</h2>
        {indexes.error ? <Failure error={indexes.error} /> : null}
        <div class="table-box"><table class="plain-table">
          <thead><tr><th>Name</th><th>Key</th><th>Options</th><th><span class="visually-hidden">Actions</span></th></tr></thead>
          <tbody>
            {indexes.value?.map((index) => (
              <tr key={index.name}>
                <td class="mono">{index.name}</td>
                <td class="mono">{JSON.stringify(index.key)}</td>
                <td><Options index={index} /></td>
                <td><div class="row end">{!readOnly.value && index.name !== "_id_" && <Button kind="quiet" icon="trash" label={`Drop ${index.name}`} onClick={() => setDropping(index.name)} />}</div></td>
              </tr>
            ))}
          </tbody>
        </table></div>
        <p class="small faint">What makes documents expire is set on the page <a href={inContainer(name.db, name.coll, "ttl")}>Time to Live</a>, with a look at what it does.</p>
      </section>
      {!readOnly.value && <NewIndex name={name} onMade={changed} />}
      {dropping !== null && <DropIndex name={name} index={dropping} loss="Queries that used it will read more. It can be made again." onClose={() => setDropping(null)} onDone={changed} />}
    </div>
  );
}

function Options({ index }: { index: MongoIndex }) {
  const seconds = numberOf(index.expireAfterSeconds);
  return (
    <span class="row wrap">
      {index.unique && <span class="badge">unique</span>}
      {index.sparse && <span class="badge">sparse</span>}
      {index.hidden && <span class="badge warn">hidden</span>}
      {seconds !== null && <span class="badge">TTL {seconds} s</span>}
      {index.partialFilterExpression && <span class="small mono faint">only {JSON.stringify(index.partialFilterExpression)}</span>}
    </span>
  );
}

/** What is wrong with a key, if anything is. */
export function keyProblem(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    if (value === null || typeof value !== "object" || Array.isArray(value) || Object.keys(value).length === 0) return 'A key is an object such as { "user": 1 }.';
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : "This is not JSON.";
  }
}

function NewIndex({ name, onMade }: { name: ContainerName; onMade: () => void }) {
  const [key, setKey] = useState("");
  const [unique, setUnique] = useState(false);
  const [sparse, setSparse] = useState(false);
  const [busy, setBusy] = useState(false);
  const wrong = key === "" ? null : keyProblem(key);
  const make = async (): Promise<void> => {
    setBusy(true);
    try {
      // As drivers name them: fields and directions, in their order.
      const title = parts(key).map(([field, value]) => `${field}_${value.replaceAll('"', "")}`).join("_");
      await createIndex(name, `{"key":${key},"name":${JSON.stringify(title)}${unique ? ',"unique":true' : ""}${sparse ? ',"sparse":true' : ""}}`);
      toast({ tone: "good", text: `Made the index ${title}` });
      setKey("");
      onMade();
    } catch (error) {
      failed("The index was not made", error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="card stack" aria-labelledby="new-index" onSubmit={(event) => (event.preventDefault(), wrong === null && key !== "" && void make())}>
      <h2 id="new-index">New index</h2>
      <Field label="Key" error={wrong} hint="1 is ascending, -1 descending; the order of fields counts.">
        {(props) => <input {...props} class="input mono" placeholder='{ "user": 1, "total": -1 }' autocomplete="off" spellcheck={false} value={key} onInput={(event) => setKey(inputValue(event))} />}
      </Field>
      <div class="row wrap">
        <label class="choice"><input type="checkbox" checked={unique} onChange={() => setUnique(!unique)} /> Unique</label>
        <label class="choice"><input type="checkbox" checked={sparse} onChange={() => setSparse(!sparse)} /> Sparse</label>
        <span class="grow" />
        <Button kind="primary" submit busy={busy} disabled={key === "" || wrong !== null}>Make index</Button>
      </div>
    </form>
  );
}
