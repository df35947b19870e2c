// uPlot, set up as lines over time or as bars.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Series {
  label: string;
  /** A name of the style sheet: `--accent`. */
  colour: string;
  values: (number | null)[];
}

export interface ChartSpec {
  kind: "lines" | "bars";
  /** Unix seconds for lines; 0, 1, 2 … for bars. */
  x: number[];
  series: Series[];
  /** The name of a bar. */
  xLabel?: (x: number) => string;
  format: (value: number) => string;
}

export interface ChartHandle {
  setSpec(spec: ChartSpec): void;
  setWidth(width: number): void;
  destroy(): void;
}

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function createChart(host: HTMLElement, first: ChartSpec, width: number, height: number): ChartHandle {
  let spec = first;
  const font = "11px system-ui, sans-serif";
  const axis: uPlot.Axis = {
    stroke: () => colour("--faint"),
    grid: { stroke: () => colour("--line"), width: 1 },
    ticks: { show: false },
    font,
  };
  const data = (): uPlot.AlignedData => [spec.x, ...spec.series.map((series) => series.values)] as uPlot.AlignedData;
  const bars = uPlot.paths.bars?.({ size: [0.8, 60], radius: 0.15 });
  const plot = new uPlot(
    {
      width: Math.max(width, 60),
      height,
      padding: [12, 8, 0, 0],
      cursor: { y: false, drag: { x: false, y: false } },
      legend: { show: spec.kind === "lines" },
      scales: {
        x: spec.kind === "lines" ? { time: true } : { time: false, range: (_u, min, max) => [min - 0.6, max + 0.6] },
        y: { range: (_u, _min, max) => [0, niceTop(max)] },
      },
      axes: [
        spec.kind === "lines"
          ? { ...axis, space: 60, size: 26, values: (_u, splits) => splits.map(timeOfDay) }
          : { ...axis, size: 26, grid: { show: false }, values: (_u, splits) => splits.map((x) => (Number.isInteger(x) && x in spec.x ? (spec.xLabel?.(x) ?? "") : "")) },
        { ...axis, size: 58, values: (_u, splits) => splits.map((value) => spec.format(value)) },
      ],
      series: [
        spec.kind === "lines"
          ? { value: (_u, x) => (x === null ? "" : timeOfDay(x)) }
          : { label: "", value: (_u, x) => (x === null ? "" : (spec.xLabel?.(x) ?? "")) },
        ...spec.series.map((series): uPlot.Series => ({
          label: series.label,
          stroke: () => colour(series.colour),
          width: spec.kind === "lines" ? 1.5 : 0,
          points: { show: false },
          ...(spec.kind === "bars" && bars ? { paths: bars, fill: () => colour(series.colour) } : {}),
          value: (_u, value: number | null | undefined) => (value == null ? "–" : spec.format(value)),
        })),
      ],
    },
    data(),
    host,
  );
  // Without a pointer the legend has the latest values.
  const showLatest = (): void => {
    if (spec.kind === "lines" && (plot.cursor.left ?? -1) < 0) plot.setLegend({ idx: spec.x.length - 1 });
  };
  plot.over.addEventListener("mouseleave", () => setTimeout(showLatest));
  showLatest();
  return {
    setSpec(next) {
      spec = next;
      plot.setData(data());
      showLatest();
    },
    setWidth(next) {
      if (Math.abs(next - plot.width) > 1 && next > 60) plot.setSize({ width: next, height });
    },
    destroy: () => plot.destroy(),
  };
}

const timeOfDay = (unixSeconds: number): string => new Date(unixSeconds * 1000).toLocaleTimeString("en-GB");

/** A little air above the highest value; a chart of nothing goes to one. */
function niceTop(max: number | null): number {
  return max === null || max <= 0 ? 1 : max * 1.1;
}
