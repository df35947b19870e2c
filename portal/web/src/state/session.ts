// Who is signed in. Kept in session storage only: it ends with the tab.

import { computed, signal } from "@preact/signals";
import { fromBase64 } from "../lib/hmac";

export type Credential =
  | { kind: "key"; key: string; readOnly: boolean }
  | { kind: "token"; token: string; link: string; readOnly: boolean; partitionKey: string | null; expiresAt: number };

const PLACE = "mayfly.session";

function kept(): Credential | null {
  try {
    return JSON.parse(sessionStorage.getItem(PLACE) ?? "null") as Credential | null;
  } catch {
    return null;
  }
}

export const credential = signal<Credential | null>(kept());
export const readOnly = computed(() => credential.value?.readOnly ?? true);
export const isAdministrator = computed(() => credential.value?.kind === "key");

/** Why the last session ended, for the sign-in page. */
export const endReason = signal<string | null>(null);

export function startSession(who: Credential): void {
  sessionStorage.setItem(PLACE, JSON.stringify(who));
  endReason.value = null;
  credential.value = who;
}

export function endSession(reason: string | null): void {
  sessionStorage.removeItem(PLACE);
  endReason.value = reason;
  credential.value = null;
}

/** Reads what a resource token says about itself. The server checks it; this only tells where it leads. */
export function readToken(text: string): Credential | string {
  const token = text.trim().includes("%") ? decodeURIComponent(text.trim()) : text.trim();
  const payload = /^type=resource&ver=1\.0&sig=[^;]+;([^;]+);?/.exec(token)?.[1];
  if (!payload) return "This is not a resource token: it begins with type=resource&ver=1.0&sig=";
  try {
    const json = new TextDecoder().decode(fromBase64(payload.replaceAll("-", "+").replaceAll("_", "/")));
    const said = JSON.parse(json) as { mode: string; link: string; pk: string | null; exp: number };
    return { kind: "token", token, link: said.link, readOnly: said.mode !== "All", partitionKey: said.pk, expiresAt: said.exp };
  } catch {
    return "This token was not made by Mayfly, or is not whole.";
  }
}
