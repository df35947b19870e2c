// Time to live of a collection: its TTL indexes, and the rule of each document's own `ttl`. First what a setting would do,
// then the button that does it.

import { useState } from "preact/hooks";
import { forecastTtl, previewTtl } from "../api/admin";
import type { ContainerName } from "../api/cosmos";
import { count as countDocuments, createIndex, listIndexes, setExpireAfter } from "../api/mongo";
import { MAX_TTL, exactDuration, parseDuration } from "../lib/duration";
import { LAST_WRITE, type TtlIndex, datedUntil, ttlIndexes } from "../lib/extended";
import { count } from "../lib/format";
import type { Json } from "../lib/life";
import { refreshCatalog } from "../state/catalog";
import { now } from "../state/clock";
import { readOnly } from "../state/session";
import { Button, Failure, Field, inputValue } from "../ui/controls";
import { useEvery, useLoad } from "../ui/load";
import { DropIndex } from "./drop-index";
import { type Outlook, Preview } from "./outlook";
import { Purge, Upcoming } from "./ttl";

/** An index that is to be made or changed. */
interface Proposal {
  /** The index as it is; null for a new one. */
  present: TtlIndex | null;
  field: string;
  seconds: number;
}

export function CollectionTtl({ name }: { name: ContainerName }) {
  const indexes = useLoad(async () => ttlIndexes(await listIndexes(name)), [name.db, name.coll]);
  const forecast = useLoad(() => forecastTtl(name), [name.db, name.coll]);
  useEvery(5_000, forecast.reload);
  const [editing, setEditing] = useState<TtlIndex | null>(null);
  const [dropping, setDropping] = useState<TtlIndex | null>(null);
  const changed = (): void => {
    setEditing(null);
    setDropping(null);
    indexes.reload();
    forecast.reload();
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
          <table class="plain-table">
            <thead><tr><th>Index</th><th>Field</th><th>Expires</th><th><span class="visually-hidden">Actions</span></th></tr></thead>
            <tbody>
              {indexes.value.map((index) => (
                <tr key={index.name}>
                  <td class="mono">{index.name}</td>
                  <td><code>{index.field}</code>{index.partial && <div class="small faint mono">only {JSON.stringify(index.partial)}</div>}</td>
                  <td>{words(index)}</td>
                  <td class="row end">
                    {!readOnly.value && (
                      <>
                        <Button kind="quiet" label={`Change ${index.name}`} onClick={() => setEditing(index)}>Change</Button>
                        <Button kind="quiet" icon="trash" label={`Drop ${index.name}`} onClick={() => setDropping(index)} />
                      </>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {!readOnly.value && <Form key={`${editing?.name ?? ""}/${editing?.seconds ?? ""}/${indexes.value.length}`} name={name} present={editing} onDone={changed} onCancel={editing ? () => setEditing(null) : null} />}
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
        <Purge forecast={forecast.value} />
      </div>
      {dropping && <DropIndex name={name} index={dropping.name} loss={`Documents no longer expire ${words(dropping)}. What has expired already does not come back.`} onClose={() => setDropping(null)} onDone={changed} />}
    </div>
  );
}

function words(index: Pick<TtlIndex, "field" | "seconds">): string {
  if (index.field === LAST_WRITE) return index.seconds === -1 ? "by their own ttl only" : `${exactDuration(index.seconds)} after the last write`;
  return index.seconds === 0 ? "at the date" : `${exactDuration(index.seconds)} after the date`;
}

function Form({ name, present, onDone, onCancel }: { name: ContainerName; present: TtlIndex | null; onDone: () => void; onCancel: (() => void) | null }) {
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
        <Preview<Outlook>
          key={`${field}/${seconds}`}
          name={name}
          load={() => (isRule ? previewTtl(name, seconds) : outlookOf(name, { present, field, seconds }))}
          save={() => (present ? setExpireAfter(name, present.name, seconds) : createIndex(name, JSON.stringify({ key: { [field]: 1 }, name: `${field}_1`, expireAfterSeconds: seconds })))}
          saved={`${name.coll}: documents expire ${words({ field, seconds })}`}
          notSaved="The TTL index was not set"
          saveLabel={present ? "Save" : "Make TTL index"}
          onSaved={onDone}
          discardLabel="Cancel"
          onDiscard={onCancel}
        >
          {() => !isRule && <p class="small faint">By the dates in <code>{field}</code> alone; other TTL indexes may take documents earlier.</p>}
        </Preview>
      )
      : onCancel && <div class="row end"><Button onClick={onCancel}>Cancel</Button></div>}
    </div>
  );
}

/** What a date index would take, counted by its own rule: the earliest date counts, and other values do not. */
async function outlookOf(name: ContainerName, { present, field, seconds }: Proposal): Promise<Outlook> {
  const time = now.peek();
  const only = present?.partial ?? null;
  const matching = (filter: Json): Promise<number> => countDocuments(name, only ? { $and: [only, filter] } : filter);
  const until = (ahead: number): Promise<number> => matching(datedUntil(field, time + ahead - seconds));
  const [live, dated, atOnce, hour, day, month] = await Promise.all([countDocuments(name, {}), matching({ [field]: { $type: "date" } }), until(0), until(3600), until(86_400), until(30 * 86_400)]);
  const documents = (n: number): { documents: number; bytes: null } => ({ documents: n, bytes: null });
  return {
    live: documents(live),
    expiresAtOnce: documents(atOnce),
    expiresWithinHour: documents(hour - atOnce),
    expiresWithinDay: documents(day - hour),
    expiresWithin30Days: documents(month - day),
    expiresLater: documents(dated - month),
    neverExpires: documents(live - dated),
  };
}
