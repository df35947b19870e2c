// Short messages at the edge: what was done, what failed, what can still be undone.

import { signal } from "@preact/signals";
import { ApiError } from "../api/http";

export interface Toast {
  id: number;
  tone: "good" | "bad" | "plain";
  text: string;
  detail?: string;
  action?: { label: string; run: () => void };
  /** When it goes by itself, for the bar that shows it. */
  lasts: number;
}

export const toasts = signal<Toast[]>([]);
let last = 0;

export function toast(message: Omit<Toast, "id" | "lasts"> & { lasts?: number }): number {
  const id = ++last;
  const lasts = message.lasts ?? (message.tone === "bad" ? 12_000 : 5_000);
  toasts.value = [...toasts.value.slice(-3), { ...message, id, lasts }];
  setTimeout(() => dismiss(id), lasts);
  return id;
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

/** Status, substatus and activity id, as support wants them. */
export function errorDetail(error: unknown): string {
  if (!(error instanceof ApiError) || error.status === 0) return "";
  return `Status ${error.status}${error.substatus ? `/${error.substatus}` : ""} · activity ${error.activityId}`;
}

export function failed(what: string, error: unknown): void {
  if (error instanceof DOMException && error.name === "AbortError") return;
  const message = error instanceof Error ? error.message : String(error);
  toast({ tone: "bad", text: `${what}: ${message}`, detail: errorDetail(error) });
}
