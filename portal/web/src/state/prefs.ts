// What a person chose about looks, kept in this browser.

import { effect, signal } from "@preact/signals";

export function kept<T>(name: string, fallback: T): T {
  try {
    const text = localStorage.getItem(`mayfly.${name}`);
    return text === null ? fallback : (JSON.parse(text) as T);
  } catch {
    return fallback;
  }
}

export function keep(name: string, value: unknown): void {
  try {
    localStorage.setItem(`mayfly.${name}`, JSON.stringify(value));
  } catch {
    // A full or forbidden storage costs the memory of a choice, nothing else.
  }
}

export type Theme = "system" | "light" | "dark";
export const theme = signal<Theme>(kept("theme", "system"));

const dark = matchMedia("(prefers-color-scheme: dark)");
export const isDark = signal(false);

function apply(): void {
  isDark.value = theme.value === "dark" || (theme.value === "system" && dark.matches);
  document.documentElement.dataset["theme"] = isDark.value ? "dark" : "light";
}

effect(() => {
  keep("theme", theme.value);
  apply();
});
dark.addEventListener("change", apply);
