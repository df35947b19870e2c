// The frame of a query, whatever its language: an editor, a way to run and to stop, results, and files of them.

import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ContainerName } from "../api/cosmos";
import { toCsv } from "../lib/csv";
import type { Json } from "../lib/life";
import { choice } from "../state/route";
import { changeTab, type QueryTab } from "../state/tabs";
import { Button, Empty, Segmented } from "../ui/controls";
import { Editor, type EditorHandle } from "../ui/editor";
import { JsonView, TableView, download } from "./results";
import { Save, SavedMenu } from "./saved";
import { useAction } from "./shortcuts";

/** What every query gives, page by page. */
export interface Results {
  rows: Json[];
  /** Where it goes on; null at the end. */
  next: string | null;
  milliseconds: number;
}

/** Results outlive a visit to another page, not a reload. */
const memory = new Map<string, Results>();

export const forgetResults = (tabId: string): void => void memory.delete(tabId);

export interface Runs<R extends Results> {
  results: R | null;
  running: boolean;
  error: unknown;
  run: () => void;
  more: () => void;
  cancel: () => boolean;
}

/** Runs the query of a tab. `page` gives what there was with one page more; a text says why nothing can be run. */
export function useRuns<R extends Results>(tab: QueryTab, page: (before: R | null, signal: AbortSignal) => Promise<R> | string): Runs<R> {
  const [results, setResults] = useState<R | null>((memory.get(tab.id) as R | undefined) ?? null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const [error, setError] = useState<unknown>(null);

  const start = async (before: R | null): Promise<void> => {
    const stop = new AbortController();
    const coming = page(before, stop.signal);
    if (typeof coming === "string") return setError(new Error(coming));
    running?.abort();
    setRunning(stop);
    setError(null);
    try {
      const next = await coming;
      if (stop.signal.aborted) return;
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
  const run = (): void => void start(null);
  useAction("run", run);
  useAction("cancel", running ? () => void cancel() : null);
  return { results, running: running !== null, error, run, more: () => results && void start(results), cancel };
}

/** Whole seconds that something has been going on. */
function useElapsed(running: boolean): number {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => setSeconds((seconds) => seconds + 1), 1_000);
    return () => (clearInterval(timer), setSeconds(0));
  }, [running]);
  return seconds;
}

/** The names to complete, from a look at some documents. */
export function useNames(name: ContainerName, look: () => Promise<string[]>): string[] {
  const [names, setNames] = useState<string[]>([]);
  useEffect(() => void look().then(setNames, () => undefined), [name.db, name.coll]);
  return names;
}

interface Frame<R extends Results, V extends string> {
  tab: QueryTab;
  runs: Runs<R>;
  editor: RefObject<EditorHandle | null>;
  language: "sql" | "mongo";
  label: string;
  hint: string;
  tip: string;
  names: string[];
  /** Which saved queries are of this language. */
  fits: (text: string) => boolean;
  /** Views besides the table and the text. */
  views: { value: V; text: string }[];
  /** Draws one of those; null leaves it to the frame. */
  draw: (view: V) => ComponentChildren;
  /** What the line above the results says. */
  summary: (results: R) => string;
  /** Rows as a table and a spreadsheet show them. */
  plain: (rows: Json[]) => Json[];
  /** Where a row can be edited, if it is a whole item of this container. */
  linkOf: (results: R, row: number) => string | null;
  failure: (error: unknown) => ComponentChildren;
  emptyTitle: string;
  /** Below the editor. */
  children?: ComponentChildren;
}

export function QueryFrame<R extends Results, V extends string>(props: Frame<R, V>) {
  const { tab, runs, editor, plain } = props;
  const { results, running, error } = runs;
  const [view, setView] = choice<"table" | "json" | V>("view", ["table", "json", ...props.views.map((each) => each.value)]);
  const seconds = useElapsed(running);
  const [saving, setSaving] = useState(false);
  useAction("save", () => setSaving(true));
  const isPlain = view === "table" || view === "json";
  return (
    <div class="query-body">
      <div class="query-edit">
        <div class="toolbar">
          {running ? <Button kind="danger" icon="stop" keys="Esc" onClick={runs.cancel}>Cancel</Button> : <Button kind="primary" icon="play" keys="Shift+Enter" onClick={runs.run}>Run</Button>}
          <span class="small faint hide-small">{props.tip}</span>
          <span class="grow" />
          <SavedMenu fits={props.fits} onChoose={(text) => changeTab(tab.id, { text })} />
          <Button icon="save" label="Save the query" keys="Ctrl+S" onClick={() => setSaving(true)} />
        </div>
        <div class="framed query-editor">
          <Editor
            language={props.language}
            label={props.label}
            hint={props.hint}
            value={tab.text}
            paths={() => props.names}
            onReady={(handle) => {
              editor.current = handle;
              handle.focus();
            }}
            onChange={(text) => changeTab(tab.id, { text })}
            onRun={runs.run}
            onSave={() => setSaving(true)}
            onCancel={runs.cancel}
          />
        </div>
        {props.children}
      </div>
      <div class="query-results" aria-busy={running}>
        <div class="toolbar">
          <Segmented<"table" | "json" | V> label="Results as" value={view} onChange={setView} options={[{ value: "table", text: "Table" }, { value: "json", text: "JSON" }, ...props.views]} />
          <span class="grow small faint" role="status">{running ? `Running…${seconds > 0 ? ` ${seconds} s` : ""}` : results ? props.summary(results) : ""}</span>
          {results && results.rows.length > 0 && (
            <>
              <Button icon="download" onClick={() => download(`${tab.title}.csv`, "text/csv", toCsv(plain(results.rows)))}>CSV</Button>
              <Button icon="download" onClick={() => download(`${tab.title}.json`, "application/json", JSON.stringify(results.rows, null, 2))}>JSON</Button>
            </>
          )}
        </div>
        {error !== null && props.failure(error)}
        {!isPlain && (results || view === "plan") ? props.draw(view as V)
        : !results ? error === null && !running && <Empty title="Nothing run yet">Write a query and press Shift+Enter.</Empty>
        : results.rows.length === 0 ? <Empty title={props.emptyTitle}>{results.next ? "None so far; the server has not looked at everything yet." : "The query matches nothing."}</Empty>
        : view === "json" ? <JsonView rows={results.rows} />
        : <TableView rows={plain(results.rows)} linkOf={(n) => props.linkOf(results, n)} />}
        {results?.next && !running && isPlain && <div class="statusline"><Button kind="quiet" onClick={runs.more}>Load more</Button></div>}
      </div>
      {saving && <Save tab={tab} onClose={() => setSaving(false)} />}
    </div>
  );
}
