// What the server is doing, drawn as it happens.

import { useMemo, useRef, useState } from "preact/hooks";
import { readSamples } from "../api/admin";
import { brief, bytes, count, decimals } from "../lib/format";
import { shortDuration } from "../lib/duration";
import { type Sample, quantile, rate } from "../lib/rates";
import { choice } from "../state/route";
import { Chart, type ChartSpec } from "../ui/chart";
import { Button, Failure, Segmented } from "../ui/controls";
import { useEvery, useLoad } from "../ui/load";

type Line = { label: string; colour: string; values: (number | null)[] };

const SPANS = [{ value: "5", text: "5 min" }, { value: "15", text: "15 min" }, { value: "30", text: "30 min" }] as const;

export function Metrics() {
  const [minutes, setMinutes] = choice("minutes", ["5", "15", "30"]);
  const [paused, setPaused] = useState(false);
  const kept = useRef<Sample[]>([]);
  const loaded = useLoad(async () => {
    const { samples, durationBounds } = await readSamples(kept.current.at(-1)?.unixSeconds ?? 0);
    kept.current = [...kept.current, ...samples].slice(-900);
    return { samples: kept.current, bounds: durationBounds };
  }, []);
  useEvery(2_000, () => !paused && loaded.reload());
  const all = loaded.value?.samples ?? [];
  const samples = useMemo(() => all.filter((sample) => sample.unixSeconds > (all.at(-1)?.unixSeconds ?? 0) - Number(minutes) * 60), [all, minutes]);
  const bounds = loaded.value?.bounds ?? [];

  const charts: { title: string; lines: Line[]; format: (value: number) => string; query: string }[] = [
    { title: "Requests per second", format: (v) => brief(Math.round(v * 10) / 10), query: "sum(rate(mayfly_requests_total[1m]))", lines: [line("Requests", "--accent", rate(samples, "requests"))] },
    { title: "Duration", format: (v) => `${decimals(v, v < 10 ? 1 : 0)} ms`, query: "histogram_quantile(0.99, sum by (le) (rate(mayfly_request_duration_seconds_bucket[1m])))", lines: [line("p50", "--accent", quantile(samples, bounds, 0.5)), line("p99", "--amber", quantile(samples, bounds, 0.99))] },
    { title: "Request units per second", format: brief, query: "rate(mayfly_request_units_total[1m])", lines: [line("RU/s", "--violet", rate(samples, "charge"))] },
    { title: "Refused per second", format: (v) => brief(Math.round(v * 10) / 10), query: "rate(mayfly_throttled_total[1m])", lines: [line("429", "--amber", rate(samples, "throttled")), line("4xx", "--violet", rate(samples, "refused")), line("5xx", "--red", rate(samples, "failed"))] },
    { title: "Expirations per second", format: (v) => brief(Math.round(v * 10) / 10), query: "sum(rate(mayfly_ttl_expired_total[1m]))", lines: [line("Expired", "--amber", rate(samples, "expired")), line("Purged", "--accent", rate(samples, "purged"))] },
    { title: "Purge backlog", format: brief, query: "sum(mayfly_ttl_backlog)", lines: [line("Documents", "--amber", samples.map((each) => each.backlog))] },
    { title: "Purge lag", format: shortDuration, query: "max(mayfly_ttl_lag_seconds)", lines: [line("Lag", "--amber", samples.map((each) => each.lagSeconds))] },
    { title: "Storage and memory", format: bytes, query: "mayfly_store_disk_bytes", lines: [line("Disk", "--accent", samples.map((each) => each.diskBytes)), line("Memory", "--violet", samples.map((each) => each.memoryBytes))] },
  ];
  const last = all.at(-1);
  return (
    <div class="page stack">
      <div class="row wrap">
        <h1 class="grow">Metrics</h1>
        <Segmented label="Span" options={[...SPANS]} value={minutes} onChange={setMinutes} />
        <Button icon={paused ? "play" : "pause"} pressed={paused} onClick={() => setPaused(!paused)}>{paused ? "Go on" : "Pause"}</Button>
      </div>
      {loaded.error ? <Failure error={loaded.error} /> : null}
      {last && (
        <dl class="facts">
          <div class="fact"><dt>Documents</dt><dd>{count(last.documents)}<small>{bytes(last.documentBytes)}</small></dd></div>
          <div class="fact"><dt>Requests</dt><dd>{brief(last.requests)}<small>since the start</small></dd></div>
          <div class="fact"><dt>Expired</dt><dd>{brief(last.expired)}<small>in all</small></dd></div>
          <div class="fact"><dt>Backlog</dt><dd>{brief(last.backlog)}<small>to be purged</small></dd></div>
          <div class="fact"><dt>Disk</dt><dd>{bytes(last.diskBytes)}<small>{last.memoryBytes === null ? "" : `${bytes(last.memoryBytes)} memory`}</small></dd></div>
        </dl>
      )}
      <div class="chart-grid">
        {charts.map((chart) => <Panel key={chart.title} samples={samples} {...chart} />)}
      </div>
    </div>
  );
}

const line = (label: string, colour: string, values: (number | null)[]): Line => ({ label, colour, values });

function Panel({ title, lines, format, query, samples }: { title: string; lines: Line[]; format: (value: number) => string; query: string; samples: Sample[] }) {
  const spec: ChartSpec = { kind: "lines", x: samples.map((each) => each.unixSeconds), series: lines, format };
  const latest = lines.map((each) => `${each.label} ${each.values.at(-1) == null ? "none" : format(each.values.at(-1)!)}`).join(", ");
  return (
    <section class="card chart-card" aria-label={title}>
      <h2>{title}</h2>
      <Chart spec={spec} summary={`${title}: ${latest}`} height={170} />
      <code class="promql" title="The same for Prometheus">{query}</code>
    </section>
  );
}
