// Queries of a collection: a filter or a pipeline, and how it was answered.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ContainerName } from "../api/cosmos";
import { closeCursor, explain, getMore, open } from "../api/mongo";
import { commonPaths } from "../lib/document";
import { shown } from "../lib/extended";
import { count, decimals, plural } from "../lib/format";
import type { Json } from "../lib/life";
import { type MongoPlan, type MongoQuery, commandOf, planOf, readQuery } from "../lib/mongo";
import { inContainer } from "../state/route";
import type { QueryTab } from "../state/tabs";
import { Failure } from "../ui/controls";
import type { EditorHandle } from "../ui/editor";
import { QueryFrame, type Results, useNames, useRuns } from "./query-frame";
import { isMongoText } from "./saved";

const BATCH = 200;

interface MongoResults extends Results {
  /** Rows are documents of the collection; what a pipeline gives may be anything. */
  isFind: boolean;
}

const textOf = (editor: EditorHandle | null, tab: QueryTab): string => editor?.selection().trim() || tab.text;

const plain = (rows: Json[]): Json[] => rows.map((row) => shown(row) ?? null);

export function CollectionTab({ name, tab }: { name: ContainerName; tab: QueryTab }) {
  const editor = useRef<EditorHandle | null>(null);
  const names = useNames(name, async () => {
    const { documents } = await open(name.db, `{"find":${JSON.stringify(name.coll)},"limit":50,"singleBatch":true}`);
    return commonPaths(plain(documents), 4);
  });
  const page = async (query: MongoQuery, before: MongoResults | null, signal: AbortSignal): Promise<MongoResults> => {
    const batch = before?.next ? await getMore(name, before.next, BATCH, signal) : await open(name.db, commandOf(query, name.coll, BATCH), signal);
    return { isFind: query.kind === "find", rows: (before?.rows ?? []).concat(batch.documents), next: batch.cursor, milliseconds: (before?.milliseconds ?? 0) + batch.milliseconds };
  };
  const runs = useRuns<MongoResults>(tab, (before, signal) => {
    const query = readQuery(textOf(editor.current, tab));
    if (typeof query === "string") return query;
    if (before === null && runs.results?.next) closeCursor(name, runs.results.next);
    return page(query, before, signal);
  });
  return (
    <QueryFrame<MongoResults, "plan">
      tab={tab}
      runs={runs}
      editor={editor}
      language="mongo"
      label="Filter or pipeline"
      hint='{ "user": "ada" }'
      tip="A filter { … } or a pipeline [ … ], in Extended JSON"
      names={names}
      fits={isMongoText}
      views={[{ value: "plan", text: "Plan" }]}
      draw={() => <PlanView name={name} text={textOf(editor.current, tab)} />}
      summary={({ rows, next, milliseconds }) => `${plural(rows.length, "document")}${next ? ", more to come" : ""} from ${name.coll} · ${decimals(milliseconds, 0)} ms`}
      plain={plain}
      linkOf={({ rows, isFind }, n) => (isFind ? inContainer(name.db, name.coll, "items", { item: JSON.stringify((rows[n] as Record<string, Json>)["_id"]) }) : null)}
      failure={(error) => <Failure error={error} title="The query was refused" />}
      emptyTitle="No documents"
    />
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
