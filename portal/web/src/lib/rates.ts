// From samples of counters to lines of a chart.

export interface Sample {
  unixSeconds: number;
  requests: number;
  refused: number;
  throttled: number;
  failed: number;
  charge: number;
  byDuration: number[];
  documents: number;
  documentBytes: number;
  expired: number;
  purged: number;
  backlog: number;
  lagSeconds: number;
  diskBytes: number;
  memoryBytes: number | null;
}

type Counter = "requests" | "refused" | "throttled" | "failed" | "charge" | "expired" | "purged";

/** Growth per second between neighbours. A restart, where counters begin anew, gives null. */
export function rate(samples: Sample[], counter: Counter): (number | null)[] {
  return samples.map((sample, n) => {
    const before = samples[n - 1];
    if (!before) return null;
    const seconds = sample.unixSeconds - before.unixSeconds;
    const grown = sample[counter] - before[counter];
    return seconds > 0 && grown >= 0 ? grown / seconds : null;
  });
}

/** The duration in ms that a share of requests stayed below, between neighbours; null where there were none. */
export function quantile(samples: Sample[], bounds: number[], share: number): (number | null)[] {
  return samples.map((sample, n) => {
    const before = samples[n - 1];
    if (!before) return null;
    const grown = sample.byDuration.map((count, bucket) => count - (before.byDuration[bucket] ?? 0));
    return inBuckets(grown, bounds, share);
  });
}

/** Within a bucket, requests are taken as evenly spread. */
export function inBuckets(counts: number[], bounds: number[], share: number): number | null {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all <= 0 || counts.some((count) => count < 0)) return null;
  let left = share * all;
  for (const [bucket, count] of counts.entries()) {
    if (left <= count && count > 0) {
      const low = bounds[bucket - 1] ?? 0;
      const high = bounds[bucket] ?? low;
      return (low + (high - low) * (left / count)) * 1000;
    }
    left -= count;
  }
  return (bounds.at(-1) ?? 0) * 1000;
}
