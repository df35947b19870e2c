// Rows page by page: one page at a time, the next one when it is asked for.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Page<Row> {
  rows: Row[];
  /** Where it goes on; null at the end. */
  next: string | null;
}

export interface Pages<Row> {
  rows: Row[];
  setRows: (change: (rows: Row[]) => Row[]) => void;
  error: unknown;
  /** Nothing has come yet. */
  first: boolean;
  done: boolean;
  more: () => void;
}

/** Begins anew when `keys` change. `letGo` is told of a place that nobody will go on from. */
export function usePages<Row>(fetch: (next: string | null, signal: AbortSignal) => Promise<Page<Row>>, keys: unknown[], letGo?: (next: string) => void): Pages<Row> {
  const [rows, setRows] = useState<Row[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [done, setDone] = useState(false);
  const [first, setFirst] = useState(true);
  const fresh = () => ({ next: null as string | null, ended: false, busy: false, stop: new AbortController() });
  const state = useRef(fresh());

  const more = useCallback(() => {
    const mine = state.current;
    if (mine.busy || mine.ended || mine.stop.signal.aborted) return;
    mine.busy = true;
    void fetch(mine.next, mine.stop.signal).then(
      (page) => {
        if (mine.stop.signal.aborted) return;
        mine.busy = false;
        mine.next = page.next;
        mine.ended = page.next === null;
        setRows((rows) => (page.rows.length === 0 ? rows : rows.concat(page.rows)));
        setDone(mine.ended);
        setFirst(false);
        // A page may be empty and yet not the last.
        if (page.rows.length === 0 && !mine.ended) more();
      },
      (error: unknown) => {
        if (mine.stop.signal.aborted) return;
        mine.busy = false;
        mine.ended = true;
        setError(error);
        setDone(true);
        setFirst(false);
      },
    );
  }, keys);

  useEffect(() => {
    // The grid may have asked already, in the name of what was shown before.
    state.current.stop.abort();
    const mine = (state.current = fresh());
    setRows([]);
    setError(null);
    setDone(false);
    setFirst(true);
    more();
    return () => {
      mine.stop.abort();
      if (mine.next !== null) letGo?.(mine.next);
    };
  }, [more]);

  return { rows, setRows, error, first, done, more };
}
