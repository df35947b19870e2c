// Charts, loaded when the first one is shown.

import { useEffect, useRef } from "preact/hooks";
import type { ChartHandle, ChartSpec } from "./uplot";
import { isDark } from "../state/prefs";

export type { ChartSpec };

/** A drawing with a text that says the same. */
export function Chart({ spec, summary, height = 180 }: { spec: ChartSpec; summary: string; height?: number }) {
  const host = useRef<HTMLDivElement>(null);
  const handle = useRef<ChartHandle | null>(null);
  const latest = useRef(spec);
  latest.current = spec;

  useEffect(() => {
    let gone = false;
    const seen = new ResizeObserver(([entry]) => entry && handle.current?.setWidth(entry.contentRect.width));
    void import("./uplot").then(({ createChart }) => {
      if (gone || !host.current) return;
      handle.current = createChart(host.current, latest.current, host.current.clientWidth, height);
      seen.observe(host.current);
    });
    return () => {
      gone = true;
      seen.disconnect();
      handle.current?.destroy();
      handle.current = null;
    };
  }, [isDark.value]);

  useEffect(() => handle.current?.setSpec(spec), [spec]);

  return (
    <figure class="chart">
      <div ref={host} class="chart-host" aria-hidden="true" />
      <figcaption class="visually-hidden">{summary}</figcaption>
    </figure>
  );
}
