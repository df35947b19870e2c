// The server's time, ticking here. Countdowns are against it, not against the browser's clock.

import { signal } from "@preact/signals";
import type { ClockState } from "../api/admin";

/** The server's time in seconds, moved on once a second. */
export const now = signal(Math.floor(Date.now() / 1000));
export const clock = signal<ClockState | null>(null);
/** Whether the server has said what time it is; before that, `now` is a guess of the browser's. */
export const heard = signal(false);

let told = { at: performance.now(), seconds: Date.now() / 1000 };

export function tellClock(state: ClockState): void {
  told = { at: performance.now(), seconds: state.unixSeconds };
  clock.value = state;
  heard.value = true;
  tick();
}

/** Without administration, the date of any answer has to do. */
export function noteServerDate(date: string | null): void {
  if (clock.value || !date) return;
  const seconds = Date.parse(date) / 1000;
  if (!Number.isNaN(seconds) && Math.abs(seconds - serverSeconds()) > 1.5) {
    told = { at: performance.now(), seconds };
    tick();
  }
  if (!Number.isNaN(seconds)) heard.value = true;
}

/** A clock that is this far behind was set back, or the data was moved ahead; a second or two follow every crash. */
const STANDS_STILL_MIN = 3;

/** Whether the server's time does not go on by itself. */
export const standsStill = (state: ClockState | null): boolean => (state?.standsStillSeconds ?? 0) >= STANDS_STILL_MIN;

export function serverSeconds(): number {
  return clock.value?.frozen || standsStill(clock.value) ? told.seconds : told.seconds + (performance.now() - told.at) / 1000;
}

function tick(): void {
  now.value = Math.floor(serverSeconds());
}

setInterval(tick, 1000);
