// Queries in SQL: parameters, what a query cost, and how it was answered.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Explanation, explainQuery } from "../api/admin";
import { type ContainerName, type Parameter, listItems, queryItems } from "../api/cosmos";
import { ApiError } from "../api/http";
import { at, commonPaths, partitionKeyHeader } from "../lib/document";
import { count, decimals, plural } from "../lib/format";
import type { Json } from "../lib/life";
import { parameterNames, problemOf, statementAt } from "../lib/sql";
import { addPage, newStats, statRows, type Stats } from "../lib/stats";
import { containerOf } from "../state/catalog";
import { inContainer } from "../state/route";
import { credential, isAdministrator } from "../state/session";
import { changeTab, type QueryTab } from "../state/tabs";
import { Failure, inputValue } from "../ui/controls";
import type { EditorHandle } from "../ui/editor";
import { QueryFrame, type Results, useNames, useRuns } from "./query-frame";
import { isMongoText } from "./saved";

const PAGE = 200;

interface SqlResults extends Results {
  query: string;
  parameters: Parameter[];
  stats: Stats;
}

/** A token that reaches one logical partition is confined to it. */
const partitionOfToken = (): string | undefined => {
  const who = credential.value;
  return who?.kind === "token" ? (who.partitionKey ?? undefined) : undefined;
};

/** What is selected, or the statement at the cursor. */
const chosen = (editor: EditorHandle | null, tab: QueryTab): string => editor?.selection().trim() || statementAt(tab.text, editor?.cursor() ?? 0);

export function SqlTab({ name, tab }: { name: ContainerName; tab: QueryTab }) {
  const editor = useRef<EditorHandle | null>(null);
  const parameters = useMemo(() => parameterNames(tab.text), [tab.text]);
  const names = useNames(name, async () => (partitionOfToken() === undefined ? commonPaths((await listItems(name, { pageSize: 50 })).value.Documents, 4) : []));

  const page = async (start: SqlResults, signal: AbortSignal): Promise<SqlResults> => {
    editor.current?.mark(null);
    try {
      const { value, headers, milliseconds } = await queryItems(name, start.query, start.parameters, {
        continuation: start.next ?? undefined,
        pageSize: PAGE,
        metrics: true,
        signal,
        partitionKey: partitionOfToken(),
      });
      const stats = addPage(start.stats, headers, milliseconds);
      return { ...start, rows: start.rows.concat(value.Documents as Json[]), next: headers.get("x-ms-continuation"), stats, milliseconds: stats.milliseconds };
    } catch (error) {
      if (error instanceof ApiError) markProblem(editor.current, tab.text, start.query, error.message);
      throw error;
    }
  };
  const runs = useRuns<SqlResults>(tab, (before, signal) => {
    const start = before ?? begin(editor.current, tab);
    return typeof start === "string" ? start : page(start, signal);
  });

  return (
    <QueryFrame<SqlResults, "stats" | "plan">
      tab={tab}
      runs={runs}
      editor={editor}
      language="sql"
      label="Query"
      hint="SELECT * FROM c"
      tip="Runs the selection, or the statement at the cursor"
      names={names}
      fits={(text) => !isMongoText(text)}
      views={[{ value: "stats", text: "Query Stats" }, ...(isAdministrator.value ? [{ value: "plan" as const, text: "Plan" }] : [])]}
      draw={(view) => (view === "plan" ? <PlanView name={name} tab={tab} editor={editor.current} last={runs.results} /> : runs.results && <StatsView results={runs.results} />)}
      summary={({ rows, next, stats }) => `${plural(rows.length, "row")}${next ? ", more to come" : ""} from ${name.coll} · ${decimals(stats.charge)} RU · ${decimals(stats.milliseconds, 0)} ms`}
      plain={(rows) => rows}
      linkOf={({ rows }, n) => linkTo(name, rows[n]!)}
      failure={(error) => <QueryFailure error={error} />}
      emptyTitle="No rows"
    >
      {parameters.length > 0 && (
        <div class="parameters" role="group" aria-label="Parameters">
          {parameters.map((each) => (
            <label key={each} class="parameter">
              <span class="mono">{each}</span>
              <input class="input mono" placeholder='"text", 12, true' value={tab.parameters[each] ?? ""} onInput={(event) => changeTab(tab.id, { parameters: { ...tab.parameters, [each]: inputValue(event) } })} />
            </label>
          ))}
        </div>
      )}
    </QueryFrame>
  );
}

/** The page of the item that a row is, if the row says which. */
function linkTo(name: ContainerName, row: Json): string | null {
  const paths = containerOf(name)?.partitionKey;
  const id = at(row, "/id");
  if (!paths || typeof id !== "string" || at(row, "/_etag") === undefined || paths.some((path) => at(row, path) === undefined)) return null;
  return inContainer(name.db, name.coll, "items", { item: id, pk: partitionKeyHeader(row, paths) });
}

/** What is to be run, with nothing found yet; a text says what is missing. */
function begin(editor: EditorHandle | null, tab: QueryTab): SqlResults | string {
  const query = chosen(editor, tab);
  if (query === "") return "There is nothing to run.";
  const parameters = readParameters(query, tab);
  if (typeof parameters === "string") return parameters;
  return { query, parameters, rows: [], next: null, milliseconds: 0, stats: newStats() };
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

function StatsView({ results }: { results: SqlResults }) {
  return (
    <div class="scroll">
      <table class="plain-table stats">
        <thead><tr><th>Metric</th><th class="num">Value</th></tr></thead>
        <tbody>{statRows(results.stats, results.rows.length).map(([name, value]) => <tr key={name}><td>{name}</td><td class="num mono">{value}</td></tr>)}</tbody>
      </table>
    </div>
  );
}

function PlanView({ name, tab, editor, last }: { name: ContainerName; tab: QueryTab; editor: EditorHandle | null; last: SqlResults | null }) {
  const [plan, setPlan] = useState<Explanation | null>(null);
  const [error, setError] = useState<unknown>(null);
  const query = chosen(editor, tab);
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
              <tbody>{plan.conditions.map((each, n) => <tr key={n}><td><code>{each.path}</code></td><td class="mono">{each.test}</td><td>{each.used ? <span class="badge good">used</span> : each.indexed ? "indexed, not needed" : <a class="badge warn" href={inContainer(name.db, name.coll, "settings/indexing")}>not indexed</a>}</td></tr>)}</tbody>
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
