// One request: signed, sent, and either its answer or an error that says everything.

import { fromBase64, hmac, toBase64 } from "../lib/hmac";
import { noteServerDate } from "../state/clock";
import { type Credential, credential, endSession } from "../state/session";

/** An answer of the server that is not what was asked for. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly substatus: number,
    readonly activityId: string,
    message: string,
    /** Milliseconds after which it may be asked again. */
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

export interface Answer<T> {
  value: T;
  headers: Headers;
  status: number;
  milliseconds: number;
}

/** The server's root, wherever the portal was put. */
export const base = new URL("..", document.baseURI).href;

interface Ask {
  verb: string;
  path: string;
  headers: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
  keepalive?: boolean;
}

const encoder = new TextEncoder();

/** The authorization header of a request to a resource. */
function authorization(who: Credential, verb: string, type: string, link: string, date: string): string {
  if (who.kind === "token") return encodeURIComponent(who.token);
  const payload = `${verb.toLowerCase()}\n${type}\n${link}\n${date.toLowerCase()}\n\n`;
  const signature = toBase64(hmac(fromBase64(who.key), encoder.encode(payload)));
  return encodeURIComponent(`type=master&ver=1.0&sig=${signature}`);
}

export interface ResourceAsk {
  verb: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `dbs/a/colls/b`, names as they are. */
  link: string;
  /** The kind below the link, for feeds: `docs`. */
  feed?: string;
  headers?: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
  keepalive?: boolean;
}

/** A request of the Cosmos protocol. */
export function resource<T>(ask: ResourceAsk): Promise<Answer<T>> {
  const who = credential.value;
  if (!who) return Promise.reject(new ApiError(401, 0, "", "You are signed out."));
  const date = new Date().toUTCString();
  const names = ask.link === "" ? [] : ask.link.split("/");
  // An item's id may hold anything but slashes, so the link splits safely.
  const path = [...names.map(encodeURIComponent), ...(ask.feed === undefined ? [] : [ask.feed])].join("/");
  const type = ask.feed ?? names[names.length - 2] ?? "";
  return send<T>({
    verb: ask.verb,
    path,
    headers: {
      authorization: authorization(who, ask.verb, type, ask.link, date),
      "x-ms-date": date,
      "x-ms-version": "2020-07-15",
      ...(ask.body === undefined ? {} : { "content-type": "application/json" }),
      ...ask.headers,
    },
    ...(ask.body === undefined ? {} : { body: ask.body }),
    ...(ask.signal ? { signal: ask.signal } : {}),
    ...(ask.keepalive ? { keepalive: true } : {}),
  });
}

/** A request to `/_mayfly/`. */
export function administration<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<Answer<T>> {
  const who = credential.value;
  if (who?.kind !== "key") return Promise.reject(new ApiError(401, 0, "", "This needs an account key."));
  return send<T>({
    verb: body === undefined ? "GET" : "POST",
    path: `_mayfly/${path}`,
    headers: { authorization: `Bearer ${who.key}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  });
}

/** The same with texts in and out, for what JavaScript's objects do not keep. */
export function administrationText(path: string, body: string, signal?: AbortSignal, keepalive?: boolean): Promise<Answer<string>> {
  const who = credential.value;
  if (who?.kind !== "key") return Promise.reject(new ApiError(401, 0, "", "This needs an account key."));
  return sendText({
    verb: "POST",
    path: `_mayfly/${path}`,
    headers: { authorization: `Bearer ${who.key}` },
    body,
    ...(signal ? { signal } : {}),
    ...(keepalive ? { keepalive: true } : {}),
  });
}

/** How the service begins when a token was good and its time is over; other 403s are about what it does not reach. */
const TOKEN_IS_OVER = "The authorization token is not valid at the current time";

async function send<T>(ask: Ask): Promise<Answer<T>> {
  const answer = await sendText(ask);
  return { ...answer, value: (answer.value === "" ? null : JSON.parse(answer.value)) as T };
}

/** How long a request is sent again, in all, that came when the request units of the second were used up. */
const PATIENCE_MS = 60_000;

async function sendText(ask: Ask): Promise<Answer<string>> {
  const given = performance.now() + PATIENCE_MS;
  for (let turn = 0; ; turn++) {
    try {
      return await sendOnce(ask);
    } catch (error) {
      // A page that is being closed has no time to wait.
      const waits = error instanceof ApiError && error.status === 429 && performance.now() < given && !ask.keepalive;
      if (!waits) throw error;
      await rest((error.retryAfter ?? 1_000) + extra(turn), ask.signal);
    }
  }
}

/**
 * What to wait beyond what the server says, in milliseconds. Those who are told the same moment would come together, one
 * would be let in and the others told again: by chance, and further apart each time, all of them get in.
 */
function extra(turn: number): number {
  return Math.random() * Math.min(10 * 2 ** turn, 1_000);
}

/** Waits, unless nobody waits for it any more. */
function rest(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((done, failed) => {
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", () => (clearTimeout(timer), failed(new DOMException("Aborted", "AbortError"))), { once: true });
  });
}

async function sendOnce(ask: Ask): Promise<Answer<string>> {
  const started = performance.now();
  const activityId = randomId();
  let response: Response;
  try {
    response = await fetch(base + ask.path, {
      method: ask.verb,
      headers: { "x-ms-activity-id": activityId, ...ask.headers },
      cache: "no-store",
      credentials: "omit",
      ...(ask.body === undefined ? {} : { body: ask.body }),
      ...(ask.signal ? { signal: ask.signal } : {}),
      ...(ask.keepalive ? { keepalive: true } : {}),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, 0, activityId, "The server does not answer. Is it running?");
  }
  const text = response.status === 304 || response.status === 204 ? "" : await response.text();
  noteServerDate(response.headers.get("date"));
  if (!response.ok && response.status !== 304) {
    const error = refusal(response, text, activityId);
    // An ended token or a changed key: whatever is asked next would fail too.
    const isOver = error.status === 401 || (error.status === 403 && error.message.startsWith(TOKEN_IS_OVER));
    if (isOver && credential.value) endSession(error.message);
    throw error;
  }
  return { value: text, headers: response.headers, status: response.status, milliseconds: performance.now() - started };
}

function refusal(response: Response, text: string, activityId: string): ApiError {
  let message = response.statusText;
  try {
    const body = JSON.parse(text) as { message?: string; errmsg?: string; codeName?: string };
    // The service appends the activity id to its message; it is shown beside it.
    if (body.message) message = body.message.split(/\r?\nActivityId/)[0] ?? body.message;
    // MongoDB's shape.
    else if (body.errmsg) message = `${body.errmsg} (${body.codeName ?? ""})`;
  } catch {
    if (text !== "") message = text.slice(0, 400);
  }
  const substatus = Number(response.headers.get("x-ms-substatus") ?? 0);
  const wait = response.headers.get("x-ms-retry-after-ms");
  return new ApiError(response.status, substatus, response.headers.get("x-ms-activity-id") ?? activityId, message, wait === null ? null : Number(wait));
}

/** `crypto.randomUUID` is not there over plain HTTP from another machine. */
function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
