// Making databases and containers.

import { useState } from "preact/hooks";
import { type ContainerDefinition, createContainer, createDatabase } from "../api/cosmos";
import { MAX_TTL, exactDuration, parseDuration } from "../lib/duration";
import { databases, refreshCatalog } from "../state/catalog";
import { failed, toast } from "../state/toasts";
import { Button, Dialog, Failure, Field, inputValue } from "../ui/controls";

export function NewDatabase({ onClose }: { onClose: () => void }) {
  const [id, setId] = useState("");
  const [busy, setBusy] = useState(false);
  const make = async (): Promise<void> => {
    setBusy(true);
    try {
      await createDatabase(id);
      await refreshCatalog();
      toast({ tone: "good", text: `Made database ${id}` });
      onClose();
    } catch (error) {
      failed("The database could not be made", error);
      setBusy(false);
    }
  };
  return (
    <Dialog title="New database" onClose={onClose}>
      <form class="stack" onSubmit={(event) => (event.preventDefault(), void make())}>
        <Field label="Database id">
          {(props) => <input {...props} class="input mono" value={id} required autofocus autocomplete="off" onInput={(event) => setId(inputValue(event))} />}
        </Field>
        <div class="row end"><Button onClick={onClose}>Cancel</Button><Button kind="primary" submit busy={busy}>Make it</Button></div>
      </form>
    </Dialog>
  );
}

type TtlMode = "off" | "noDefault" | "seconds";
type Indexing = "all" | "key" | "none";

const INDEXING: Record<Indexing, { text: string; policy: ContainerDefinition["indexingPolicy"] }> = {
  all: { text: "Every property (best for queries)", policy: { indexingMode: "consistent", includedPaths: [{ path: "/*" }] } },
  key: { text: "Nothing but what I add later (fastest writes)", policy: { indexingMode: "consistent", includedPaths: [], excludedPaths: [{ path: "/*" }] } },
  none: { text: "Off: point reads only, no time to live", policy: { indexingMode: "none", automatic: false } },
};

export function NewContainer({ db, onClose, onDone }: { db: string | null; onClose: () => void; onDone: (db: string, coll: string) => void }) {
  const known = databases.value ?? [];
  const [database, setDatabase] = useState(db ?? known[0]?.name ?? "");
  const [id, setId] = useState("");
  const [keys, setKeys] = useState(["/id"]);
  const [ttl, setTtl] = useState<TtlMode>("off");
  const [lifetime, setLifetime] = useState("7 d");
  const [indexing, setIndexing] = useState<Indexing>("all");
  const [unique, setUnique] = useState("");
  const [log, setLog] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const seconds = parseDuration(lifetime);
  const lifetimeError = ttl === "seconds" && (seconds === null || seconds < 1 || seconds > MAX_TTL) ? "Give seconds, or something like 7 d or 1 h 30 min." : null;

  const make = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      if (!known.some((each) => each.name === database)) await createDatabase(database);
      const paths = keys.map((key) => key.trim()).filter((key) => key !== "");
      const uniqueKeys = unique.split("\n").map((line) => line.split(",").map((path) => path.trim()).filter(Boolean)).filter((list) => list.length > 0);
      const definition: ContainerDefinition = {
        id,
        partitionKey: { paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2 },
        indexingPolicy: INDEXING[indexing].policy!,
        ...(ttl === "off" ? {} : { defaultTtl: ttl === "noDefault" ? -1 : seconds! }),
        ...(uniqueKeys.length > 0 ? { uniqueKeyPolicy: { uniqueKeys: uniqueKeys.map((list) => ({ paths: list })) } } : {}),
        ...(log ? { changeFeedPolicy: { retentionDuration: 1440 } } : {}),
      };
      await createContainer(database, definition);
      await refreshCatalog();
      toast({ tone: "good", text: `Made container ${id}` });
      onDone(database, id);
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };

  return (
    <Dialog title="New container" onClose={onClose} wide>
      <form class="stack" onSubmit={(event) => (event.preventDefault(), void make())}>
        <div class="pair">
          <Field label="Database" hint={known.some((each) => each.name === database) || database === "" ? undefined : "It is new and will be made."}>
            {(props) => <input {...props} class="input mono" list="databases" required value={database} autocomplete="off" onInput={(event) => setDatabase(inputValue(event))} />}
          </Field>
          <Field label="Container id">
            {(props) => <input {...props} class="input mono" required autofocus value={id} autocomplete="off" onInput={(event) => setId(inputValue(event))} />}
          </Field>
        </div>
        <datalist id="databases">{known.map((each) => <option key={each.name} value={each.name} />)}</datalist>
        <fieldset class="stack tight">
          <legend>Partition key</legend>
          {keys.map((key, level) => (
            <div class="row" key={level}>
              <input
                class="input mono grow"
                aria-label={`Partition key path${level > 0 ? `, level ${level + 1}` : ""}`}
                value={key}
                required
                pattern="/.+"
                title="A path like /user"
                onInput={(event) => setKeys(keys.map((each, n) => (n === level ? inputValue(event) : each)))}
              />
              {keys.length > 1 && <Button kind="quiet" icon="close" label={`Remove level ${level + 1}`} onClick={() => setKeys(keys.filter((_, n) => n !== level))} />}
            </div>
          ))}
          {keys.length < 3 && <div><Button kind="quiet" icon="plus" onClick={() => setKeys([...keys, ""])}>Add a level</Button></div>}
          <div class="note">Items with the same value live together. It cannot be changed later.</div>
        </fieldset>
        <fieldset class="stack tight">
          <legend>Time to live</legend>
          <div class="choices">
            {([["off", "Off"], ["noDefault", "On (no default)"], ["seconds", "On"]] as const).map(([value, text]) => (
              <label class="choice" key={value}>
                <input type="radio" name="new-ttl" checked={ttl === value} onChange={() => setTtl(value)} /> {text}
              </label>
            ))}
            {ttl === "seconds" && (
              <span class="row">
                <input class="input mono short" aria-label="Time to live" value={lifetime} aria-invalid={lifetimeError ? true : undefined} onInput={(event) => setLifetime(inputValue(event))} />
                <span class="faint small">{lifetimeError ?? `${exactDuration(seconds ?? 0)} = ${seconds} s`}</span>
              </span>
            )}
          </div>
        </fieldset>
        <Field label="Indexing">
          {(props) => (
            <select {...props} class="input" value={indexing} onChange={(event) => setIndexing(inputValue(event) as Indexing)}>
              {Object.entries(INDEXING).map(([value, { text }]) => <option key={value} value={value}>{text}</option>)}
            </select>
          )}
        </Field>
        <details>
          <summary>More</summary>
          <div class="stack">
            <Field label="Unique keys" hint="One per line; a combination is written with commas: /first, /last. Cannot be changed later.">
              {(props) => <textarea {...props} class="input mono" rows={2} value={unique} onInput={(event) => setUnique(inputValue(event))} />}
            </Field>
            <label class="choice"><input type="checkbox" checked={log} onChange={() => setLog(!log)} /> Keep all versions and deletes in the change feed for a day</label>
          </div>
        </details>
        {problem !== null && <Failure error={problem} />}
        <div class="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" submit busy={busy} disabled={lifetimeError !== null}>Make container</Button>
        </div>
      </form>
    </Dialog>
  );
}
