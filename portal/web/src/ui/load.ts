// Loading something for a component: value, error, and asking again.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Loaded<T> {
  value: T | null;
  error: unknown;
  loading: boolean;
  /** How long the last answer took. */
  milliseconds: number;
  reload: () => void;
}

/** Loads when `keys` change and on `reload`; answers that come too late are dropped. */
export function useLoad<T>(load: () => Promise<T>, keys: unknown[]): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({ value: null, error: null, loading: true, milliseconds: 0 });
  const turn = useRef(0);
  const reload = useCallback(() => {
    const mine = ++turn.current;
    const started = performance.now();
    setState((state) => ({ ...state, loading: true }));
    load().then(
      (value) => mine === turn.current && setState({ value, error: null, loading: false, milliseconds: performance.now() - started }),
      (error: unknown) => mine === turn.current && setState((state) => ({ ...state, error, loading: false })),
    );
  }, keys);
  useEffect(() => {
    setState({ value: null, error: null, loading: true, milliseconds: 0 });
    reload();
    return () => void turn.current++;
  }, [reload]);
  return { ...state, reload };
}

/** Runs something every so often while the page is looked at. */
export function useEvery(milliseconds: number, run: () => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && latest.current(), milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds]);
}

/** Loads again every few seconds; what takes the server long is asked less often. */
export function useFresh(loaded: Loaded<unknown>): void {
  useEvery(Math.max(5_000, Math.ceil(loaded.milliseconds / 250) * 5_000), loaded.reload);
}
