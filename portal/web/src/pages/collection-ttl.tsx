// Time to live of a collection: its TTL indexes, and the rule of each document's own `ttl`. First what a setting would do,
// then the button that does it.

import { useState } from "preact/hooks";
import { forecastTtl, previewTtl, previewTtlIndex, ttlHistory } from "../api/admin";
import type { ContainerName } from "../api/cosmos";
import { createIndex, listIndexes, setExpireAfter } from "../api/mongo";
import { MAX_TTL, exactDuration, parseDuration } from "../lib/duration";
import { LAST_WRITE, type TtlIndex, ttlIndexes } from "../lib/extended";
import { count } from "../lib/format";
import { refreshCatalog } from "../state/catalog";
import { readOnly } from "../state/session";
import { Button, Failure, Field, inputValue } from "../ui/controls";
import { useFresh, useLoad } from "../ui/load";
import { DropIndex } from "./drop-index";
import { Owners, Preview } from "./outlook";
import { Changes, Purge, Upcoming } from "./ttl";

export function CollectionTtl({ name }: { name: ContainerName }) {
  const indexes = useLoad(async () => ttlIndexes(await listIndexes(name)), [name.db, name.coll]);
  const forecast = useLoad(() => forecastTtl(name), [name.db, name.coll]);
  const history = useLoad(() => ttlHistory(name), [name.db, name.coll]);
  useFresh(forecast);
  const [editing, setEditing] = useState<TtlIndex | null>(null);
  const [dropping, setDropping] = useState<TtlIndex | null>(null);
  const changed = (): void => {
    setEditing(null);
    setDropping(null);
    indexes.reload();
    forecast.reload();
    history.reload();
    void refreshCatalog();
  };
  if (!indexes.value || !forecast.value) {
    const error = indexes.error ?? forecast.error;
    return <div class="page">{error ? <Failure error={error} /> : <div class="skeleton-lines"><i /><i /><i /></div>}</div>;
  }
  const rule = indexes.value.find((index) => index.field === LAST_WRITE);
  return (
    <div class="page ttl-page stack">
      <section class="card stack" aria-labelledby="ttl-indexes">
        <h2 id="ttl-indexes">TTL indexes</h2>
        {indexes.value.length === 0 ? (
          <p class="faint">None: nothing expires, and a <code>ttl</code> field is plain data.</p>
        ) : (
          <div class="table-box"><table class="plain-table">
            <thead><tr><th>Index</th><th>Field</th><th>Expires</th><th><span class="visually-hidden">Actions</span></th></tr></thead>
            <tbody>
              {indexes.value.map((index) => (
                <tr key={index.name}>
                  <td class="mono">{index.name}</td>
                  <td><code>{index.field}</code>{index.partial && <div class="small faint mono">only {JSON.stringify(index.partial)}</div>}</td>
                  <td>{words(index)}</td>
                  <td><div class="row end">
                    {!readOnly.value && (
                      <>
                        <Button kind="quiet" label={`Change ${index.name}`} onClick={() => setEditing(index)}>Change</Button>
                        <Button kind="quiet" icon="trash" label={`Drop ${index.name}`} onClick={() => setDropping(index)} />
                      </>
                    )}
                  </div></td>
                </tr>
              ))}
            </tbody>
          </table></div>
        )}
        {!readOnly.value && <Form key={`${editing?.name ?? ""}/${editing?.seconds ?? ""}/${indexes.value.length}`} name={name} present={editing} indexCount={indexes.value.length} onDone={changed} onCancel={editing ? () => setEditing(null) : null} />}
      </section>
      <section class="card stack" aria-labelledby="own-rule">
        <div class="row wrap"><h2 id="own-rule" class="grow">Each document's own ttl</h2><span class={rule ? "badge good" : "badge"}>{rule ? (rule.seconds === -1 ? "On, no default" : `On, ${exactDuration(rule.seconds)}`) : "Off"}</span></div>
        <p class="small">
          A TTL index on <code>{LAST_WRITE}</code>, the moment of the last write, turns it on: a document whose <code>ttl</code> is a number of seconds goes so long after its last
          write, one with <code>-1</code> never does, and the others follow the index. With <code>expireAfterSeconds</code> −1 the others stay.
        </p>
      </section>
      <div class="columns even">
        <Upcoming forecast={forecast.value} />
        <div class="stack">
          <Purge forecast={forecast.value} />
          <Changes title="Changes of the default" none="No TTL index on the last write was made or changed." changes={history.value} />
        </div>
      </div>
      {dropping && <DropIndex name={name} index={dropping.name} loss={`Documents no longer expire ${words(dropping)}. What has expired already does not come back.`} onClose={() => setDropping(null)} onDone={changed} />}
    </div>
  );
}

function words(index: Pick<TtlIndex, "field" | "seconds">): string {
  if (index.field === LAST_WRITE) return index.seconds === -1 ? "by their own ttl only" : `${exactDuration(index.seconds)} after the last write`;
  return index.seconds === 0 ? "at the date" : `${exactDuration(index.seconds)} after the date`;
}

function Form({ name, present, indexCount, onDone, onCancel }: { name: ContainerName; present: TtlIndex | null; indexCount: number; onDone: () => void; onCancel: (() => void) | null }) {
  const [field, setField] = useState(present?.field ?? "");
  const [text, setText] = useState(present === null ? "" : present.seconds > 0 ? exactDuration(present.seconds) : String(present.seconds));
  const isRule = field === LAST_WRITE;
  const seconds = text.trim() === "-1" ? -1 : parseDuration(text);
  const least = isRule ? 1 : 0;
  const validSeconds = seconds !== null && ((isRule && seconds === -1) || (seconds >= least && seconds <= MAX_TTL));
  const validField = field !== "" && field !== "_id" && !field.startsWith("$");
  const same = present !== null && present.seconds === seconds;
  return (
    <div class="stack">
      <h3>{present ? `Change ${present.name}` : "New TTL index"}</h3>
      <div class="row wrap ttl-index-form">
        <Field label="Field" hint={isRule ? "The last write: turns on each document's own ttl." : "A date, or a list of dates; _ts is the last write."} error={field !== "" && !validField ? "The _id cannot expire, and names do not begin with $." : null}>
          {(props) => <input {...props} class="input mono" placeholder="createdAt" autocomplete="off" disabled={present !== null} value={field} onInput={(event) => setField(inputValue(event))} />}
        </Field>
        <Field label="expireAfterSeconds" hint={validSeconds ? (seconds === -1 ? "On without a default" : `${exactDuration(seconds)} = ${count(seconds)} second(s)`) : "Seconds, or something like 7 d"} error={text !== "" && !validSeconds ? `Give seconds from ${least} to ${count(MAX_TTL)}${isRule ? ", or -1" : ""}.` : null}>
          {(props) => <input {...props} class="input mono" placeholder="1 h" autocomplete="off" value={text} onInput={(event) => setText(inputValue(event))} />}
        </Field>
      </div>
      {validField && validSeconds && !same ? (
        <Preview
          key={`${field}/${seconds}`}
          name={name}
          load={() => (isRule ? previewTtl(name, seconds) : previewTtlIndex(name, present ? { index: present.name } : { field }, seconds))}
          save={() => (present ? setExpireAfter(name, present.name, seconds) : createIndex(name, JSON.stringify({ key: { [field]: 1 }, name: `${field}_1`, expireAfterSeconds: seconds })))}
          saved={`${name.coll}: documents expire ${words({ field, seconds })}`}
          notSaved="The TTL index was not set"
          saveLabel={present ? "Save" : "Make TTL index"}
          onSaved={onDone}
          discardLabel="Cancel"
          onDiscard={onCancel}
        >
          {(it) => (isRule ? <Owners it={it} /> : indexCount > (present ? 1 : 0) && <p class="small faint">Together with the other TTL indexes: the earliest end counts.</p>)}
        </Preview>
      )
      : onCancel && <div class="row end"><Button onClick={onCancel}>Cancel</Button></div>}
    </div>
  );
}
