// Time to live: look at what a setting would do, then set it.

import { useEffect, useMemo, useState } from "preact/hooks";
import { type Forecast, type TtlChange, forecastTtl, previewTtl, ttlHistory } from "../api/admin";
import { type ContainerName, readContainer, replaceContainer } from "../api/cosmos";
import { MAX_TTL, exactDuration, parseDuration, shortDuration, ttlWords } from "../lib/duration";
import { brief, bytes, count, plural, utc } from "../lib/format";
import { refreshCatalog } from "../state/catalog";
import { now } from "../state/clock";
import { choice, go, inContainer, route, withParams } from "../state/route";
import { readOnly } from "../state/session";
import { openTab } from "../state/tabs";
import { Chart, type ChartSpec } from "../ui/chart";
import { Button, Failure, Field, Notice, Segmented, inputValue } from "../ui/controls";
import { useFresh, useLoad } from "../ui/load";
import { Owners, Preview } from "./outlook";

type Mode = "off" | "noDefault" | "seconds";

const modeOf = (ttl: number | null): Mode => (ttl === null ? "off" : ttl === -1 ? "noDefault" : "seconds");

const PRESETS = ["1 h", "1 d", "7 d", "30 d", "90 d", "1 y"];

export function TimeToLive({ name }: { name: ContainerName }) {
  const forecast = useLoad(() => forecastTtl(name), [name.db, name.coll]);
  const history = useLoad(() => ttlHistory(name), [name.db, name.coll]);
  useFresh(forecast);
  const reload = (): void => {
    forecast.reload();
    history.reload();
    void refreshCatalog();
  };
  if (!forecast.value) return <div class="page">{forecast.error ? <Failure error={forecast.error} /> : <div class="skeleton-lines"><i /><i /><i /></div>}</div>;
  return (
    <div class="page ttl-page stack">
      <Setting key={String(forecast.value.presentDefault)} name={name} present={forecast.value.presentDefault} onChanged={reload} />
      <div class="columns even">
        <Upcoming forecast={forecast.value} />
        <div class="stack">
          <Purge forecast={forecast.value} />
          <Changes title="Changes" none="The default has not been changed since the container was made." changes={history.value} mayRevert={(change) => !readOnly.value && change.from !== forecast.value!.presentDefault} />
        </div>
      </div>
    </div>
  );
}

/** Proposals are in the address, so that one can be sent to a colleague. */
function propose(ttl: number | null): void {
  go(withParams({ propose: ttl === null ? "off" : String(ttl) }));
  scrollTo({ top: 0 });
}

function proposedIn(text: string | null): number | null | undefined {
  if (text === null) return undefined;
  if (text === "off") return null;
  const seconds = Number(text);
  return Number.isInteger(seconds) && (seconds === -1 || (seconds >= 1 && seconds <= MAX_TTL)) ? seconds : undefined;
}

function Setting({ name, present, onChanged }: { name: ContainerName; present: number | null; onChanged: () => void }) {
  const fromAddress = proposedIn(route.value.params.get("propose"));
  const start = fromAddress === undefined ? present : fromAddress;
  const [mode, setMode] = useState<Mode>(modeOf(start));
  const [text, setText] = useState(start !== null && start > 0 ? exactDuration(start) : "");
  useEffect(() => {
    if (fromAddress === undefined) return;
    setMode(modeOf(fromAddress));
    if (fromAddress !== null && fromAddress > 0) setText(exactDuration(fromAddress));
  }, [fromAddress]);

  const seconds = parseDuration(text);
  const valid = mode !== "seconds" || (seconds !== null && seconds >= 1 && seconds <= MAX_TTL);
  const proposed = mode === "off" ? null : mode === "noDefault" ? -1 : seconds;
  const changed = valid && proposed !== present;
  const discard = (): void => {
    go(withParams({ propose: null }), true);
    setMode(modeOf(present));
    setText(present !== null && present > 0 ? exactDuration(present) : "");
  };

  return (
    <section class="card stack" aria-labelledby="ttl">
      <div class="row wrap"><h2 id="ttl" class="grow">Time to Live</h2><span class="badge">Now: {ttlWords(present)}</span></div>
      <fieldset class="ttl-modes" disabled={readOnly.value}>
        <legend class="visually-hidden">Time to Live</legend>
        <Choice mode={mode} value="off" onChoose={setMode} title="Off">Nothing expires. A <code>ttl</code> property is plain data.</Choice>
        <Choice mode={mode} value="noDefault" onChoose={setMode} title="On (no default)">Only items with their own <code>ttl</code> expire.</Choice>
        <Choice mode={mode} value="seconds" onChoose={setMode} title="On">Items expire this long after their last write, unless they have their own <code>ttl</code>.</Choice>
      </fieldset>
      {mode === "seconds" && (
        <div class="ttl-length">
          <Field label="Time to live" hint={valid ? `${exactDuration(seconds!)} = ${count(seconds!)} second(s)` : undefined} error={text !== "" && !valid ? `Give seconds from 1 to ${count(MAX_TTL)}, or something like 7 d or 1 h 30 min.` : null}>
            {(props) => <input {...props} class="input mono" inputMode="text" placeholder="7 d" required disabled={readOnly.value} value={text} onInput={(event) => setText(inputValue(event))} />}
          </Field>
          {!readOnly.value && <div class="row wrap presets">{PRESETS.map((each) => <Button key={each} pressed={parseDuration(each) === seconds} onClick={() => setText(each)}>{each}</Button>)}</div>}
        </div>
      )}
      {changed && (
        <Preview
          key={String(proposed)}
          name={name}
          load={() => previewTtl(name, proposed)}
          save={() => setDefault(name, proposed)}
          saved={`Time to live of ${name.coll}: ${ttlWords(proposed)}`}
          notSaved="Time to live was not changed"
          saveLabel="Save"
          onSaved={() => (go(withParams({ propose: null }), true), onChanged())}
          discardLabel="Discard"
          onDiscard={discard}
        >
          {(it) => (
            <>
              <Owners it={it}>
                {it.expiresAtOnce.documents > 0 && (
                  <Button kind="quiet" onClick={() => go(inContainer(name.db, name.coll, `query/${openTab(name, doomedQuery(proposed), "Would expire").id}`))}>See these documents</Button>
                )}
              </Owners>
              {proposed !== null && modeOf(present) === "off" && (
                <Notice>The system will automatically delete items based on the TTL value (in seconds) you provide, without needing a delete operation explicitly issued by a client application.</Notice>
              )}
            </>
          )}
        </Preview>
      )}
      {!changed && mode === "seconds" && present !== null && present > 0 && <p class="small faint">This is the present setting. Change it to see what another one would do; nothing happens until you save.</p>}
    </section>
  );
}

function Choice({ mode, value, onChoose, title, children }: { mode: Mode; value: Mode; onChoose: (mode: Mode) => void; title: string; children: preact.ComponentChildren }) {
  return (
    <label class={mode === value ? "ttl-mode chosen" : "ttl-mode"}>
      <input type="radio" name="ttl-mode" value={value} aria-label={title} aria-describedby={`ttl-${value}`} checked={mode === value} onChange={() => onChoose(value)} />
      <span><b>{title}</b><small id={`ttl-${value}`}>{children}</small></span>
    </label>
  );
}

async function setDefault(name: ContainerName, ttl: number | null): Promise<void> {
  const { value } = await readContainer(name);
  if (ttl === null) delete value.defaultTtl;
  else value.defaultTtl = ttl;
  await replaceContainer(name, value);
}

/** What would be gone at once, as a query. */
function doomedQuery(proposed: number | null): string {
  const nowSeconds = now.peek();
  const own = `(IS_INTEGER(c.ttl) AND c.ttl > 0 AND c._ts + c.ttl <= ${nowSeconds})`;
  if (proposed === null || proposed === -1) return `-- Documents whose own ttl has run out\nSELECT c.id, c._ts, c.ttl FROM c WHERE ${own}`;
  return `-- Documents that a default of ${proposed} seconds would expire at once\nSELECT c.id, c._ts, c.ttl FROM c\nWHERE (NOT IS_INTEGER(c.ttl) AND c._ts + ${proposed} <= ${nowSeconds})\n   OR ${own}`;
}

/** How the default was changed, the latest change first. */
export function Changes({ title, none, changes, mayRevert }: { title: string; none: string; changes: TtlChange[] | null; mayRevert?: (change: TtlChange) => boolean }) {
  return (
    <section class="card stack" aria-labelledby="history">
      <h2 id="history">{title}</h2>
      {changes?.length === 0 && <p class="faint">{none}</p>}
      <ol class="history">
        {changes?.map((change, n) => (
          <li key={n}>
            <span class="history-what"><b>{ttlWords(change.to)}</b> <span class="faint">was {ttlWords(change.from)}</span></span>
            <time class="faint small">{utc(change.at)}</time>
            {mayRevert?.(change) && <Button kind="quiet" label="Proposes the setting from before; you see what it does first" onClick={() => propose(change.from)}>Revert</Button>}
          </li>
        ))}
      </ol>
    </section>
  );
}

export function Upcoming({ forecast }: { forecast: Forecast }) {
  const [unit, setUnit] = choice("by", ["hour", "day"]);
  const amounts = unit === "hour" ? forecast.hourly.slice(0, 24) : forecast.daily.slice(0, 30);
  const sum = amounts.reduce((sum, each) => sum + each.documents, 0);
  const spec = useMemo((): ChartSpec => ({
    kind: "bars",
    x: amounts.map((_, n) => n),
    series: [{ label: "Documents", colour: "--amber", values: amounts.map((each) => each.documents) }],
    xLabel: (x) => `${x + 1}${unit === "hour" ? " h" : " d"}`,
    format: brief,
  }), [forecast, unit]);
  const span = unit === "hour" ? "24 hours" : "30 days";
  return (
    <section class="card stack" aria-labelledby="forecast">
      <div class="row wrap">
        <h2 id="forecast" class="grow">Forecast</h2>
        <Segmented label="Per" options={[{ value: "hour", text: "By hour" }, { value: "day", text: "By day" }]} value={unit} onChange={setUnit} />
      </div>
      <p class="small faint">{sum === 0 ? `Nothing expires within ${span}.` : `${plural(sum, "document")} will expire within ${span} if nothing is written.`}</p>
      <Chart key={unit} spec={spec} summary={`Documents that expire in each of the next ${span}: ${amounts.map((each) => each.documents).join(", ")}`} height={220} />
    </section>
  );
}

export function Purge({ forecast }: { forecast: Forecast }) {
  const { documents } = forecast.purgeBacklog;
  return (
    <section class="card stack" aria-labelledby="purge">
      <h2 id="purge">Purge</h2>
      <p class="small faint">Expired documents are invisible at once. Purge gives their space back.</p>
      <dl class="facts three">
        <div class="fact"><dt>Backlog</dt><dd data-testid="backlog">{count(documents)}<small>{bytes(forecast.purgeBacklog.bytes)}</small></dd></div>
        <div class="fact"><dt>Lag</dt><dd>{documents === 0 ? "0 s" : shortDuration(forecast.purgeLagSeconds)}<small>of the oldest</small></dd></div>
        <div class="fact"><dt>Purged</dt><dd>{brief(forecast.purged.documents)}<small>{bytes(forecast.purged.bytes)}</small></dd></div>
      </dl>
    </section>
  );
}
