// Scale & Settings: throughput, the indexing policy, and what cannot be changed.

import { useEffect, useState } from "preact/hooks";
import { type ContainerDefinition, type ContainerName, type Offer, listOffers, readContainer, replaceContainer, replaceOffer } from "../api/cosmos";
import { exactDuration } from "../lib/duration";
import { plural } from "../lib/format";
import type { Json } from "../lib/life";
import { draftOf, dropDraft, putDraft } from "../state/drafts";
import { inContainer } from "../state/route";
import { readOnly } from "../state/session";
import { failed, toast } from "../state/toasts";
import { Button, Empty, Failure, Field, LinkTabs, Notice, inputValue } from "../ui/controls";
import { Editor } from "../ui/editor";
import { useEvery, useLoad } from "../ui/load";

interface Read {
  definition: ContainerDefinition;
  progress: number;
}

const SECTIONS: [id: string, text: string][] = [["scale", "Scale"], ["indexing", "Indexing policy"], ["policies", "Keys & policies"]];

export function Settings({ name, section }: { name: ContainerName; section: string }) {
  const container = useLoad(async (): Promise<Read> => {
    const { value, headers } = await readContainer(name);
    return { definition: value, progress: Number(headers.get("x-ms-documentdb-collection-index-transformation-progress") ?? 100) };
  }, [name.db, name.coll]);
  return (
    <div class="page stack">
      <LinkTabs label="Settings" items={SECTIONS.map(([id, text]) => ({ href: inContainer(name.db, name.coll, `settings/${id}`), text, current: id === section }))} />
      {container.error ? <Failure error={container.error} /> : null}
      {container.value && section === "scale" && <Scale definition={container.value.definition} />}
      {container.value && section === "indexing" && <Indexing key={container.value.definition._etag ?? ""} name={name} read={container.value} reload={container.reload} />}
      {container.value && section === "policies" && <Policies name={name} definition={container.value.definition} onChanged={container.reload} />}
    </div>
  );
}

function Scale({ definition }: { definition: ContainerDefinition }) {
  const offers = useLoad(async () => (await listOffers()).value.Offers, []);
  const offer = offers.value?.find((each) => each.offerResourceId === definition._rid);
  if (offers.error) return <Failure error={offers.error} />;
  if (offers.value === null) return <div class="skeleton-lines"><i /><i /></div>;
  if (!offer) return <Empty title="Shared throughput">This container takes part in the throughput of its database.</Empty>;
  return <Throughput key={offer._rid} offer={offer} onChanged={offers.reload} />;
}

function Throughput({ offer, onChanged }: { offer: Offer; onChanged: () => void }) {
  const autoscale = offer.content.offerAutopilotSettings !== undefined;
  const present = offer.content.offerAutopilotSettings?.maxThroughput ?? offer.content.offerThroughput ?? 400;
  const [text, setText] = useState(String(present));
  const [busy, setBusy] = useState(false);
  const units = Number(text);
  const least = autoscale ? 1000 : 400;
  const step = autoscale ? 1000 : 100;
  const problem = Number.isInteger(units) && units >= least && units % step === 0 ? null : `From ${least}, in steps of ${step}.`;
  const save = async (): Promise<void> => {
    setBusy(true);
    try {
      const content = autoscale ? { ...offer.content, offerAutopilotSettings: { maxThroughput: units } } : { ...offer.content, offerThroughput: units };
      await replaceOffer({ ...offer, content });
      toast({ tone: "good", text: `Throughput: ${units} RU/s` });
      onChanged();
    } catch (error) {
      failed("The throughput was not changed", error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="card stack narrow" onSubmit={(event) => (event.preventDefault(), void save())}>
      <h2>Throughput</h2>
      <Field label={autoscale ? "Autoscale, at most (RU/s)" : "Manual (RU/s)"} error={problem} hint="Held to only when the server runs with --throttle.">
        {(props) => <input {...props} class="input mono" type="number" min={least} step={step} disabled={readOnly.value} value={text} onInput={(event) => setText(inputValue(event))} />}
      </Field>
      {!readOnly.value && (
        <div class="row end">
          <Button disabled={text === String(present)} onClick={() => setText(String(present))}>Discard</Button>
          <Button kind="primary" submit busy={busy} disabled={problem !== null || text === String(present)}>Save</Button>
        </div>
      )}
    </form>
  );
}

/** What can be said about a policy before it is sent. */
export function policyProblem(text: string): string | null {
  let policy: Json;
  try {
    policy = JSON.parse(text) as Json;
  } catch (error) {
    return error instanceof Error ? error.message : "This is not JSON.";
  }
  if (policy === null || typeof policy !== "object" || Array.isArray(policy)) return "A policy is a JSON object.";
  const mode = policy["indexingMode"];
  if (mode !== undefined && !["consistent", "lazy", "none"].includes(String(mode).toLowerCase())) return `indexingMode is consistent, lazy or none, not ${JSON.stringify(mode)}.`;
  for (const list of ["includedPaths", "excludedPaths"]) {
    const paths = policy[list];
    if (paths === undefined) continue;
    if (!Array.isArray(paths)) return `${list} is a list of objects with a path.`;
    for (const each of paths) {
      const path = each !== null && typeof each === "object" && !Array.isArray(each) ? each["path"] : undefined;
      if (typeof path !== "string" || !path.startsWith("/")) return `${list}: each has a path that begins with a slash, like { "path": "/name/?" }.`;
      if (!/(\/\?|\/\*|^\/)$/.test(path)) return `${list}: ${path} has to end with /? (this value) or /* (everything below).`;
    }
  }
  const has = (list: string): boolean => JSON.stringify(policy[list] ?? []).includes('"/*"');
  if (mode !== "none" && (policy["includedPaths"] || policy["excludedPaths"]) && !has("includedPaths") && !has("excludedPaths")) return "The root path /* has to be included or excluded.";
  return null;
}

function Indexing({ name, read, reload }: { name: ContainerName; read: Read; reload: () => void }) {
  const present = JSON.stringify(read.definition.indexingPolicy ?? {}, null, 2);
  const key = `${name.db}\n${name.coll}\nindexing policy`;
  const version = read.definition._etag ?? "";
  const [text, setText] = useState(draftOf(key)?.text ?? present);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const stale = (draftOf(key)?.base ?? version) !== version;
  const edit = (text: string): void => {
    setText(text);
    if (text === present) dropDraft(key);
    else putDraft(key, { label: `Indexing policy of ${name.coll}`, text, base: version, deadline: null });
  };
  const building = read.progress < 100;
  // Not too often: a server that is asked builds more slowly.
  useEvery(2_000, () => building && reload());
  useEffect(() => {
    if (draftOf(key) === null) setText(present);
  }, [present]);
  const wrong = policyProblem(text);
  const changed = text !== present;
  const save = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      await replaceContainer(name, { ...read.definition, indexingPolicy: JSON.parse(text) as Json });
      dropDraft(key);
      toast({ tone: "good", text: "The indexing policy is set; the index follows in the background" });
      reload();
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="card stack" aria-labelledby="indexing">
      <div class="row wrap">
        <h2 id="indexing" class="grow">Indexing policy</h2>
        <span class={building ? "badge warn" : "badge good"}>{building ? `Building: ${read.progress} %` : "Index complete"}</span>
      </div>
      {building && <progress class="life-bar" max={100} value={read.progress} aria-label="Index building" />}
      <p class="small faint">Queries stay right while an index is being built: what it does not have yet is looked up.</p>
      <div class="framed tall">
        <Editor language="json" label="Indexing policy" value={text} readOnly={readOnly.value} onChange={edit} onSave={() => changed && !wrong && void save()} />
      </div>
      {wrong !== null && <Notice tone="warn">{wrong}</Notice>}
      {changed && stale && <Notice tone="warn">The container has changed since you began this draft. What is stored now: <pre class="small" tabIndex={0}>{present}</pre></Notice>}
      {problem !== null && <Failure error={problem} />}
      {!readOnly.value && (
        <div class="row end">
          <Button disabled={!changed} onClick={() => edit(present)}>Discard</Button>
          <Button kind="primary" icon="save" keys="Ctrl+S" busy={busy} disabled={!changed || wrong !== null} onClick={() => void save()}>Save</Button>
        </div>
      )}
    </section>
  );
}

function Policies({ name, definition, onChanged }: { name: ContainerName; definition: ContainerDefinition; onChanged: () => void }) {
  const unique = definition.uniqueKeyPolicy?.uniqueKeys ?? [];
  const minutes = definition.changeFeedPolicy?.retentionDuration ?? 0;
  const others = ["conflictResolutionPolicy", "geospatialConfig", "vectorEmbeddingPolicy", "fullTextPolicy", "computedProperties", "clientEncryptionPolicy"].filter((each) => definition[each] !== undefined);
  const setLog = async (on: boolean): Promise<void> => {
    try {
      const next = { ...definition };
      if (on) next.changeFeedPolicy = { retentionDuration: 1440 };
      else delete next.changeFeedPolicy;
      await replaceContainer(name, next);
      toast({ tone: "good", text: on ? "All versions and deletes are kept for a day" : "Only latest versions are kept" });
      onChanged();
    } catch (error) {
      failed("The policy was not changed", error);
    }
  };
  return (
    <div class="columns even">
      <section class="card stack" aria-labelledby="pk">
        <h2 id="pk">Partition key</h2>
        <ol class="paths">{definition.partitionKey.paths.map((path) => <li key={path}><code>{path}</code></li>)}</ol>
        <p class="small faint">{plural(definition.partitionKey.paths.length, "level")}, hash version {definition.partitionKey.version ?? 1}. It cannot be changed; copy the items to a new container instead.</p>
        <h2>Unique keys</h2>
        {unique.length === 0 ? <p class="faint">None. They can be given when a container is made.</p> : <ul class="paths">{unique.map((key) => <li key={key.paths.join()}><code>{key.paths.join(", ")}</code></li>)}</ul>}
      </section>
      <section class="card stack" aria-labelledby="log">
        <h2 id="log">All versions and deletes</h2>
        <p class="small faint">{minutes > 0 ? `The change feed keeps every version, delete and expiry for ${exactDuration(minutes * 60)}.` : "The change feed has the latest version of each item. Deletes and expiries are not kept."}</p>
        {!readOnly.value && <div><Button onClick={() => void setLog(minutes === 0)}>{minutes > 0 ? "Stop keeping them" : "Keep them for a day"}</Button></div>}
        <h2>Other policies</h2>
        {others.map((each) => (
          <details key={each}><summary class="mono small">{each}</summary><pre class="small" tabIndex={0}>{JSON.stringify(definition[each], null, 2)}</pre></details>
        ))}
      </section>
    </div>
  );
}
