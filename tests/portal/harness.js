// A real server on the embedded store with a clock that can be moved, and a real browser in front of it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import { CosmosClient } from "@azure/cosmos";
import { chromium } from "playwright-core";

export const KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
export const READ_ONLY_KEY = Buffer.from("this key may only read").toString("base64");
export const SHOTS = new URL("./shots/", import.meta.url).pathname;
mkdirSync(SHOTS, { recursive: true });

const BINARY = process.env.MAYFLY_BINARY ?? new URL("../../target/debug/mayfly", import.meta.url).pathname;
// A machine that is busy with other things needs more patience, not other tests.
const PATIENCE_MS = Number(process.env.PORTAL_PATIENCE_MS ?? 15_000);
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const axeSource = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** A port that nobody listens on; with 0 the server would not speak MongoDB's protocol at all. */
async function freePort() {
  const probe = createServer().listen(0);
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}

/** Starts a server; `stop` ends it and takes its data away. */
export async function startServer(...flags) {
  const data = mkdtempSync(join(tmpdir(), "mayfly-portal-"));
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("MAYFLY_")));
  const child = spawn(
    BINARY,
    ["--port", process.env.PORTAL_PORT ?? "0", "--mongo-port", String(await freePort()), "--data-dir", data, "--dev-clock", "--readonly-key", READ_ONLY_KEY, "--log-level", "warn", ...flags],
    { stdio: ["ignore", "pipe", "inherit"], env: environment },
  );
  const port = await new Promise((found, failed) => {
    let port = null;
    createInterface({ input: child.stdout }).on("line", (line) => {
      port ??= /http:\/\/localhost:(\d+)/.exec(line)?.[1] ?? null;
      if (line.startsWith("Started")) found(Number(port));
    });
    child.once("exit", (code) => failed(new Error(`the server ended with ${code}`)));
  });
  const endpoint = `http://localhost:${port}/`;
  const client = new CosmosClient({ endpoint, key: KEY, connectionPolicy: { enableEndpointDiscovery: false } });
  const admin = async (path, body) => {
    const response = await fetch(`${endpoint}_mayfly/${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${KEY}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  return {
    endpoint,
    client,
    admin,
    advance: (seconds) => admin("clock", { advanceSeconds: seconds }),
    stop: async () => {
      child.kill("SIGTERM");
      await new Promise((done) => child.once("exit", done));
      rmSync(data, { recursive: true, force: true });
    },
  };
}

export async function startBrowser() {
  return chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--disable-gpu"] });
}

/** A page of its own. Anything the browser complains about fails the test that asks. */
export async function newPage(browser, { width = 1280, height = 800, dark = false, key } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", locale: "en-GB" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    // A refused request is logged by the browser itself; tests cause them on purpose.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) complaints.push(message.text());
  });
  page.complaints = complaints;
  if (key) {
    await context.addInitScript((session) => {
      if (!sessionStorage.getItem("mayfly.session")) sessionStorage.setItem("mayfly.session", session);
    }, JSON.stringify({ kind: "key", key, readOnly: key === READ_ONLY_KEY }));
  }
  return page;
}

/**
 * Asserts what a page comes to show. Playwright waits for elements by itself, but not in `count`, `allTextContents` and
 * their like, and a page draws a moment after the click or the key.
 */
export async function comesTo(expected, read, message) {
  const end = Date.now() + PATIENCE_MS;
  while (!isDeepStrictEqual(await read(), expected) && Date.now() < end) await new Promise((next) => setTimeout(next, 20));
  assert.deepEqual(await read(), expected, message);
}

/** Serious and critical findings of axe, as texts. */
export async function axe(page) {
  // Evaluated by the test, not loaded by the page: the page's own policy stays as strict as it is.
  const { readFileSync } = await import("node:fs");
  await page.evaluate(readFileSync(axeSource, "utf8") + "; undefined");
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.filter((each) => each.impact === "serious" || each.impact === "critical").map((each) => `${each.id}: ${each.nodes.map((node) => `${node.target} ${node.any.map((a) => a.message).join("; ")}`).join(" | ")}`);
  });
  return found;
}
