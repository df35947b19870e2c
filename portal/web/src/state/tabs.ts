// Query tabs and saved queries. Kept in this browser, texts only: results are never stored.

import { effect, signal } from "@preact/signals";
import type { ContainerName } from "../api/cosmos";
import { containerOf } from "./catalog";
import { keep, kept } from "./prefs";

export interface QueryTab extends ContainerName {
  id: string;
  title: string;
  text: string;
  /** Values of parameters as JSON texts, by name. */
  parameters: Record<string, string>;
}

export interface SavedQuery {
  name: string;
  text: string;
}

export const tabs = signal<QueryTab[]>(kept("tabs", []));
export const saved = signal<SavedQuery[]>(kept("saved", []));
effect(() => keep("tabs", tabs.value));
effect(() => keep("saved", saved.value));

export function openTab(name: ContainerName, text = containerOf(name)?.isCollection ? "{}" : "SELECT * FROM c", title?: string): QueryTab {
  const taken = new Set(tabs.value.map((tab) => tab.id));
  let number = 1;
  while (taken.has(String(number))) number++;
  const tab = { ...name, id: String(number), title: title ?? `Query ${number}`, text, parameters: {} };
  tabs.value = [...tabs.value, tab];
  return tab;
}

export function changeTab(id: string, change: Partial<QueryTab>): void {
  tabs.value = tabs.value.map((tab) => (tab.id === id ? { ...tab, ...change } : tab));
}

export function closeTab(id: string): QueryTab | null {
  const at = tabs.value.findIndex((tab) => tab.id === id);
  tabs.value = tabs.value.filter((tab) => tab.id !== id);
  return tabs.value[Math.min(at, tabs.value.length - 1)] ?? null;
}
