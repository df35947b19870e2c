// Queries of a collection: a filter or a pipeline, with the tabs, views and exports of every query.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ContainerName } from "../api/cosmos";
import { closeCursor, explain, getMore, open } from "../api/mongo";
import { toCsv } from "../lib/csv";
import { commonPaths } from "../lib/document";
import { shown } from "../lib/extended";
import { count, decimals, plural } from "../lib/format";
import type { Json } from "../lib/life";
import { type MongoPlan, commandOf, planOf, readQuery } from "../lib/mongo";
import { changeTab, type QueryTab } from "../state/tabs";
import { Button, Empty, Failure, Segmented } from "../ui/controls";
import { Editor, type EditorHandle } from "../ui/editor";
import { JsonView, TableView, download } from "./results";
import { Save, SavedMenu, isMongoText } from "./saved";
import { useAction } from "./shortcuts";

const BATCH = 200;

interface Results {
  rows: Json[];
  cursor: string | null;
  milliseconds: number;
}

type View = "table" | "json" | "plan";

/** Results outlive a visit to another page, not a reload. */
const memory = new Map<string, Results>();

export const forgetResults = (tabId: string): void => void memory.delete(tabId);

const textOf = (editor: EditorHandle | null, tab: QueryTab): string => editor?.selection().trim() || tab.text;

export function CollectionTab({ name, tab }: { name: ContainerName; tab: QueryTab }) {
  const [results, setResults] = useState<Results | null>(memory.get(tab.id) ?? null);
  const [view, setView] = useState<View>("table");
  const [running, setRunning] = useState<AbortController | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [saving, setSaving] = useState(false);
  const [paths, setPaths] = useState<string[]>([]);
  const editor = useRef<EditorHandle | null>(null);

  // A look at some documents gives the names to complete.
  useEffect(() => {
    open(name.db, `{"find":${JSON.stringify(name.coll)},"limit":50,"singleBatch":true}`).then(
      ({ documents }) => setPaths(commonPaths(documents.map((each) => shown(each) ?? null), 4)),
      () => undefined,
    );
  }, [name.db, name.coll]);

  const run = async (more = false): Promise<void> => {
    const query = readQuery(textOf(editor.current, tab));
    if (typeof query === "string") return setError(new Error(query));
    const stop = new AbortController();
    running?.abort();
    setRunning(stop);
    setError(null);
    const before = more ? results : null;
    if (!more && results?.cursor) closeCursor(name, results.cursor);
    try {
      const batch = before?.cursor ? await getMore(name, before.cursor, BATCH, stop.signal) : await open(name.db, commandOf(query, name.coll, BATCH), stop.signal);
      const next = { rows: (before?.rows ?? []).concat(batch.documents), cursor: batch.cursor, milliseconds: (before?.milliseconds ?? 0) + batch.milliseconds };
      setResults(next);
      memory.set(tab.id, next);
    } catch (error) {
      if (!stop.signal.aborted) setError(error);
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
          <span class="small faint hide-small">A filter {"{ … }"} or a pipeline [ … ], in Extended JSON</span>
          <span class="grow" />
          <SavedMenu fits={isMongoText} onChoose={(text) => changeTab(tab.id, { text })} />
          <Button icon="save" label="Save the query" keys="Ctrl+S" onClick={() => setSaving(true)} />
        </div>
        <div class="framed query-editor">
          <Editor
            language="mongo"
            label="Filter or pipeline"
            hint='{ "user": "ada" }'
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
      </div>
      <div class="query-results" aria-busy={running !== null}>
        <div class="toolbar">
          <Segmented label="Results as" value={view} onChange={setView} options={[{ value: "table", text: "Table" }, { value: "json", text: "JSON" }, { value: "plan", text: "Plan" }]} />
          <span class="grow small faint" role="status">
            {running ? "Running…" : results ? `${plural(results.rows.length, "document")}${results.cursor ? ", more to come" : ""} from ${name.coll} · ${decimals(results.milliseconds, 0)} ms` : ""}
          </span>
          {results && results.rows.length > 0 && (
            <>
              <Button icon="download" onClick={() => download(`${tab.title}.csv`, "text/csv", toCsv(results.rows.map((row) => shown(row) ?? null)))}>CSV</Button>
              <Button icon="download" onClick={() => download(`${tab.title}.json`, "application/json", JSON.stringify(results.rows, null, 2))}>JSON</Button>
            </>
          )}
        </div>
        {error !== null && <Failure error={error} title="The query was refused" />}
        {view === "plan" ? <PlanView name={name} text={textOf(editor.current, tab)} />
        : !results ? error === null && !running && <Empty title="Nothing run yet">Write a filter or a pipeline and press Shift+Enter.</Empty>
        : results.rows.length === 0 ? <Empty title="No documents">The query matches nothing.</Empty>
        : view === "json" ? <JsonView rows={results.rows} />
        : <TableView rows={results.rows.map((row) => shown(row) ?? null)} />}
        {results?.cursor && !running && view !== "plan" && (
          <div class="statusline"><Button kind="quiet" onClick={() => void run(true)}>Load more</Button></div>
        )}
      </div>
      {saving && <Save tab={tab} onClose={() => setSaving(false)} />}
    </div>
  );
}

const STEP_WORDS: Record<string, string> = {
  COLLSCAN: "Reads all documents",
  IXSCAN: "Reads the index",
  IDHACK: "Reads by _id",
  FETCH: "Fetches the documents",
  SORT: "Sorts",
  EOF: "Reads nothing: there is no such collection",
};

function PlanView({ name, text }: { name: ContainerName; text: string }) {
  const [plan, setPlan] = useState<MongoPlan | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const query = readQuery(text);
    if (typeof query === "string") return setError(new Error(query));
    explain(name.db, commandOf(query, name.coll, BATCH)).then((answer) => (setPlan(planOf(answer)), setError(null)), setError);
  }, [text]);
  if (error !== null) return <Failure error={error} title="There is no plan" />;
  if (!plan) return null;
  return (
    <div class="scroll plan stack">
      <ol class="plan-steps">
        {plan.steps.map((step, n) => (
          <li key={n} class={step.stage === "COLLSCAN" ? "warn" : n === 0 ? "good" : undefined}>
            <b>{STEP_WORDS[step.stage] ?? step.stage}</b> {step.index !== null && <code>{step.index}</code>} {step.keys !== null && <span class="mono small faint">{step.keys}</span>}
          </li>
        ))}
        {plan.pipeline.map((stage, n) => <li key={`stage-${n}`}><b>Runs</b> <code>{stage}</code></li>)}
      </ol>
      {plan.returned !== null && (
        <p class="small">
          {count(plan.documents ?? 0)} documents and {count(plan.keys ?? 0)} keys looked at for {plural(plan.returned, "document")}{plan.milliseconds === null ? "" : `, ${plan.milliseconds} ms`}
        </p>
      )}
    </div>
  );
}
