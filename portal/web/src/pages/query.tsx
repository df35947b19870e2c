// Queries: an editor per tab, results that stay with the container they came from, and what they cost.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Explanation, explainQuery } from "../api/admin";
import { type ContainerName, type Parameter, listItems, queryItems } from "../api/cosmos";
import { ApiError } from "../api/http";
import { toCsv } from "../lib/csv";
import { commonPaths } from "../lib/document";
import { count, decimals, plural } from "../lib/format";
import type { Json } from "../lib/life";
import { parameterNames, problemOf, statementAt } from "../lib/sql";
import { addPage, newStats, statRows, type Stats } from "../lib/stats";
import { go, inContainer } from "../state/route";
import { credential, isAdministrator } from "../state/session";
import { changeTab, closeTab, openTab, tabs, type QueryTab } from "../state/tabs";
import { Button, Empty, Failure, Segmented, inputValue } from "../ui/controls";
import { Editor, type EditorHandle } from "../ui/editor";
import { CollectionTab, forgetResults } from "./collection-query";
import { JsonView, TableView, download } from "./results";
import { Save, SavedMenu, isMongoText } from "./saved";
import { goToTab, useAction } from "./shortcuts";

const PAGE = 200;

interface Results {
  query: string;
  parameters: Parameter[];
  rows: Json[];
  next: string | null;
  stats: Stats;
}

type View = "table" | "json" | "stats" | "plan";

/** Results outlive a visit to another page, not a reload. */
const memory = new Map<string, Results>();

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
            <button type="button" aria-label={`Close ${each.title}`} title="Close (Ctrl+Alt+W)" onClick={() => (memory.delete(each.id), forgetResults(each.id), goToTab(closeTab(each.id)))}>×</button>
          </span>
        ))}
        <Button kind="quiet" icon="plus" label="New query" keys="Ctrl+J" onClick={() => go(inContainer(name.db, name.coll, `query/${openTab(name).id}`))} />
      </div>
      {isCollection ? <CollectionTab key={tab.id} name={name} tab={tab} /> : <Tab key={tab.id} name={name} tab={tab} />}
    </div>
  );
}

function Tab({ name, tab }: { name: ContainerName; tab: QueryTab }) {
  const [results, setResults] = useState<Results | null>(memory.get(tab.id) ?? null);
  const [view, setView] = useState<View>("table");
  const [running, setRunning] = useState<AbortController | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [saving, setSaving] = useState(false);
  const [paths, setPaths] = useState<string[]>([]);
  const editor = useRef<EditorHandle | null>(null);
  const names = useMemo(() => parameterNames(tab.text), [tab.text]);

  // A look at some items gives the names to complete.
  useEffect(() => {
    const who = credential.value;
    if (who?.kind === "token" && who.partitionKey) return;
    listItems(name, { pageSize: 50 }).then(({ value }) => setPaths(commonPaths(value.Documents, 4)), () => undefined);
  }, [name.db, name.coll]);

  const keepResults = (next: Results | null): void => {
    setResults(next);
    if (next) memory.set(tab.id, next);
  };

  const run = async (more = false): Promise<void> => {
    const start = more ? results : begin(editor.current, tab);
    if (!start) return;
    if (typeof start === "string") return setError(new Error(start));
    const stop = new AbortController();
    running?.abort();
    setRunning(stop);
    setError(null);
    editor.current?.mark(null);
    try {
      const who = credential.value;
      const { value, headers, milliseconds } = await queryItems(name, start.query, start.parameters, {
        continuation: start.next ?? undefined,
        pageSize: PAGE,
        metrics: true,
        signal: stop.signal,
        partitionKey: who?.kind === "token" ? (who.partitionKey ?? undefined) : undefined,
      });
      const rows = value.Documents as Json[];
      keepResults({
        ...start,
        rows: start.rows.concat(rows),
        next: headers.get("x-ms-continuation"),
        stats: addPage(start.stats, headers, milliseconds),
      });
    } catch (error) {
      if (stop.signal.aborted) return;
      setError(error);
      if (error instanceof ApiError) markProblem(editor.current, tab.text, start.query, error.message);
    } finally {
      setRunning((now) => (now === stop ? null : now));
    }
  };
  const cancel = (): boolean => {
    running?.abort();
    setRunning(null);
    return running !== null;
  };
  useAction("run", () => void run());
  useAction("cancel", running ? () => void cancel() : null);
  useAction("save", () => setSaving(true));

  return (
    <div class="query-body">
      <div class="query-edit">
        <div class="toolbar">
          {running ? <Button kind="danger" icon="stop" keys="Esc" onClick={cancel}>Cancel</Button> : <Button kind="primary" icon="play" keys="Shift+Enter" onClick={() => void run()}>Run</Button>}
          <span class="small faint hide-small">Runs the selection, or the statement at the cursor</span>
          <span class="grow" />
          <SavedMenu fits={(text) => !isMongoText(text)} onChoose={(text) => changeTab(tab.id, { text })} />
          <Button icon="save" label="Save the query" keys="Ctrl+S" onClick={() => setSaving(true)} />
        </div>
        <div class="framed query-editor">
          <Editor
            language="sql"
            label="Query"
            hint="SELECT * FROM c"
            value={tab.text}
            paths={() => paths}
            onReady={(handle) => {
              editor.current = handle;
              handle.focus();
            }}
            onChange={(text) => changeTab(tab.id, { text })}
            onRun={() => void run()}
            onSave={() => setSaving(true)}
            onCancel={cancel}
          />
        </div>
        {names.length > 0 && (
          <div class="parameters" role="group" aria-label="Parameters">
            {names.map((each) => (
              <label key={each} class="parameter">
                <span class="mono">{each}</span>
                <input class="input mono" placeholder='"text", 12, true' value={tab.parameters[each] ?? ""} onInput={(event) => changeTab(tab.id, { parameters: { ...tab.parameters, [each]: inputValue(event) } })} />
              </label>
            ))}
          </div>
        )}
      </div>
      <div class="query-results" aria-busy={running !== null}>
        <div class="toolbar">
          <Segmented
            label="Results as"
            value={view}
            onChange={setView}
            options={[{ value: "table", text: "Table" }, { value: "json", text: "JSON" }, { value: "stats", text: "Query Stats" }, ...(isAdministrator.value ? [{ value: "plan" as const, text: "Plan" }] : [])]}
          />
          <span class="grow small faint" role="status">
            {running ? "Running…" : results ? `${plural(results.rows.length, "row")}${results.next ? ", more to come" : ""} from ${name.coll} · ${decimals(results.stats.charge)} RU · ${decimals(results.stats.milliseconds, 0)} ms` : ""}
          </span>
          {results && results.rows.length > 0 && (
            <>
              <Button icon="download" onClick={() => download(`${tab.title}.csv`, "text/csv", toCsv(results.rows))}>CSV</Button>
              <Button icon="download" onClick={() => download(`${tab.title}.json`, "application/json", JSON.stringify(results.rows, null, 2))}>JSON</Button>
            </>
          )}
        </div>
        {error !== null && <QueryFailure error={error} />}
        {view === "plan" ? <PlanView name={name} tab={tab} editor={editor.current} />
        : !results ? error === null && !running && <Empty title="Nothing run yet">Write a query and press Shift+Enter.</Empty>
        : view === "stats" ? <StatsView results={results} />
        : results.rows.length === 0 ? <Empty title="No rows">{results.next ? "None so far; the server has not looked at everything yet." : "The query matches nothing."}</Empty>
        : view === "json" ? <JsonView rows={results.rows} />
        : <TableView rows={results.rows} />}
        {results?.next && !running && view !== "stats" && view !== "plan" && (
          <div class="statusline"><Button kind="quiet" onClick={() => void run(true)}>Load more</Button></div>
        )}
      </div>
      {saving && <Save tab={tab} onClose={() => setSaving(false)} />}
    </div>
  );

  function begin(handle: EditorHandle | null, tab: QueryTab): Results | string {
    const selected = handle?.selection().trim() ?? "";
    const query = selected !== "" ? selected : statementAt(tab.text, handle?.cursor() ?? 0);
    if (query === "") return "There is nothing to run.";
    const parameters = readParameters(query, tab);
    if (typeof parameters === "string") return parameters;
    return { query, parameters, rows: [], next: null, stats: newStats() };
  }
}

function readParameters(query: string, tab: QueryTab): Parameter[] | string {
  const parameters: Parameter[] = [];
  for (const name of parameterNames(query)) {
    const text = tab.parameters[name]?.trim() ?? "";
    if (text === "") return `The parameter ${name} has no value.`;
    try {
      parameters.push({ name, value: JSON.parse(text) as Json });
    } catch {
      return `The value of ${name} is not JSON. A text is written in quotes: "${text}"`;
    }
  }
  return parameters;
}

/** Underlines the place in the editor that a refusal points to. */
function markProblem(handle: EditorHandle | null, text: string, query: string, message: string): void {
  const problem = problemOf(message);
  const at = text.indexOf(query);
  if (problem.start === null || at === -1) return;
  handle?.mark({ from: at + problem.start, to: at + (problem.end ?? problem.start + 1), message: problem.message });
}

function QueryFailure({ error }: { error: unknown }) {
  if (!(error instanceof ApiError)) return <Failure error={error} />;
  return <Failure error={new ApiError(error.status, error.substatus, error.activityId, problemOf(error.message).message)} title="The query was refused" />;
}

function StatsView({ results }: { results: Results }) {
  return (
    <div class="scroll">
      <table class="plain-table stats">
        <thead><tr><th>Metric</th><th class="num">Value</th></tr></thead>
        <tbody>{statRows(results.stats, results.rows.length).map(([name, value]) => <tr key={name}><td>{name}</td><td class="num mono">{value}</td></tr>)}</tbody>
      </table>
    </div>
  );
}

function PlanView({ name, tab, editor }: { name: ContainerName; tab: QueryTab; editor: EditorHandle | null }) {
  const [plan, setPlan] = useState<Explanation | null>(null);
  const [error, setError] = useState<unknown>(null);
  const query = editor?.selection().trim() || statementAt(tab.text, editor?.cursor() ?? 0);
  const last = memory.get(tab.id);
  useEffect(() => {
    const parameters = readParameters(query, tab);
    if (typeof parameters === "string") return setError(new Error(parameters));
    explainQuery(name, query, parameters).then((value) => (setPlan(value), setError(null)), setError);
  }, [query, JSON.stringify(tab.parameters)]);
  if (error !== null) return <QueryFailure error={error} />;
  if (!plan) return null;
  const retrieved = last?.query === query ? last.stats.metrics["retrievedDocumentCount"] : undefined;
  return (
    <div class="scroll plan stack">
      <ol class="plan-steps">
        <li class={plan.access === "index" ? "good" : "warn"}>
          <b>{!plan.readsDocuments ? "Reads no documents" : plan.access === "index" ? `Reads the index at ${plan.conditions.find((each) => each.used)?.path ?? ""}` : "Reads all documents"}</b>
          <span> {plan.scope === "partition" ? "of one logical partition" : plan.scope === "partitionPrefix" ? "below a part of the partition key" : "of the whole container"}</span>
          {retrieved !== undefined && <div class="small faint">{count(retrieved)} looked at for {plural(last!.rows.length, "row")}, {decimals(last!.stats.charge)} RU</div>}
        </li>
        {plan.conditions.length > 0 && (
          <li>
            <b>Filters</b>
            <table class="plain-table">
              <thead><tr><th>Path</th><th>Condition</th><th>Index</th></tr></thead>
              <tbody>{plan.conditions.map((each, n) => <tr key={n}><td><code>{each.path}</code></td><td class="mono">{each.test}</td><td>{each.used ? <span class="badge good">used</span> : each.indexed ? "indexed, not needed" : <span class="badge warn">not indexed</span>}</td></tr>)}</tbody>
            </table>
          </li>
        )}
        {plan.groupBy.length > 0 && <li><b>Groups by</b> <code>{plan.groupBy.join(", ")}</code></li>}
        {plan.aggregates > 0 && <li><b>Aggregates</b> {plural(plan.aggregates, "value")}</li>}
        {plan.orderBy.length > 0 && <li><b>Sorts by</b> <code>{plan.orderBy.map((each) => `${each.text}${each.descending ? " DESC" : ""}`).join(", ")}</code></li>}
        {plan.distinct && <li><b>Leaves out duplicates</b></li>}
        {(plan.limit !== null || plan.offset !== null) && <li><b>Takes</b> {plan.limit ?? "all"} rows{plan.offset ? ` after ${plan.offset}` : ""}</li>}
        <li><b>{plan.streams ? "Gives rows as it goes" : "Gives rows at the end"}</b> <span class="faint small">{plan.streams ? "The first page does not wait for the last document." : "Every document has to be seen before the first row is known."}</span></li>
      </ol>
    </div>
  );
}
