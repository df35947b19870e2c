// What a query cost, page by page, and the rows of the statistics in the order people know.

import { bytes, count, decimals } from "./format";

export interface Stats {
  charge: number;
  milliseconds: number;
  roundTrips: number;
  activityId: string;
  /** Sums of the query metrics, by their name in the header. */
  metrics: Record<string, number>;
}

export const newStats = (): Stats => ({ charge: 0, milliseconds: 0, roundTrips: 0, activityId: "", metrics: {} });

/** Reads `name=value;name=value`. */
export function parseMetrics(header: string | null): Record<string, number> {
  const metrics: Record<string, number> = {};
  for (const pair of (header ?? "").split(";")) {
    const [name, value] = pair.split("=");
    if (name && value !== undefined && !Number.isNaN(Number(value))) metrics[name] = Number(value);
  }
  return metrics;
}

export function addPage(stats: Stats, headers: Headers, milliseconds: number): Stats {
  const page = parseMetrics(headers.get("x-ms-documentdb-query-metrics"));
  const metrics = { ...stats.metrics };
  for (const [name, value] of Object.entries(page)) metrics[name] = (metrics[name] ?? 0) + value;
  return {
    charge: stats.charge + Number(headers.get("x-ms-request-charge") ?? 0),
    milliseconds: stats.milliseconds + milliseconds,
    roundTrips: stats.roundTrips + 1,
    activityId: headers.get("x-ms-activity-id") ?? "",
    metrics,
  };
}

export function statRows(stats: Stats, rows: number): [name: string, value: string][] {
  const metric = (name: string): number => stats.metrics[name] ?? 0;
  const ms = (name: string): string => `${decimals(metric(name))} ms`;
  // The share of looked-at documents that the index had right, as the header tells it per page.
  const hits = Math.round(metric("retrievedDocumentCount") * Math.min(1, metric("indexUtilizationRatio") / Math.max(1, stats.roundTrips)));
  return [
    ["Request Charge", `${decimals(stats.charge)} RUs`],
    ["Showing Results", rows === 0 ? "0" : `1 - ${count(rows)}`],
    ["Retrieved document count", count(metric("retrievedDocumentCount"))],
    ["Retrieved document size", bytes(metric("retrievedDocumentSize"))],
    ["Output document count", count(metric("outputDocumentCount"))],
    ["Output document size", bytes(metric("outputDocumentSize"))],
    ["Index hit document count", count(hits)],
    ["Index lookup time", ms("indexLookupTimeInMs")],
    ["Document load time", ms("documentLoadTimeInMs")],
    ["Query engine execution time", ms("VMExecutionTimeInMs")],
    ["System function execution time", ms("systemFunctionExecuteTimeInMs")],
    ["User defined function execution time", ms("userFunctionExecuteTimeInMs")],
    ["Document write time", ms("writeOutputTimeInMs")],
    ["Round Trips", count(stats.roundTrips)],
    ["Activity id", stats.activityId],
  ];
}
