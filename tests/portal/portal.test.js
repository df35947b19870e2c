// The portal in a real browser against a real server: what people do with it, and what must never go wrong.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { collectionTests } from "./collections.js";
import { KEY, READ_ONLY_KEY, axe, comesTo, newPage, startBrowser, startServer } from "./harness.js";
import { draftTests } from "./drafts.js";
import { homeTests } from "./home.js";
import { itemTests } from "./items.js";
import { queryTests } from "./queries.js";
import { loadSample, takeScreens } from "./screens.mjs";
import { ttlTests } from "./ttl.js";

let server, browser, database;

before(async () => {
  server = await startServer();
  browser = await startBrowser();
  ({ database } = await server.client.databases.createIfNotExists({ id: "shop" }));
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

/** A container with documents of its own for a test. */
async function container(id, options = {}, documents = []) {
  const { container } = await database.containers.create({ id, partitionKey: { paths: ["/pk"] }, ...options });
  for (const document of documents) await container.items.create({ pk: "a", ...document });
  return container;
}

async function open(path, options = {}) {
  const page = await newPage(browser, { key: KEY, ...options });
  await page.goto(`${server.endpoint}_explorer/#/${path}`);
  return page;
}

/** The test is over; the browser must have had nothing to complain about. */
async function done(page) {
  assert.deepEqual(page.complaints, []);
  await page.context().close();
}

/** The same token with another end, signed with the account's key as the server does. */
function tokenUntil(token, seconds) {
  const payload = JSON.stringify({ ...JSON.parse(Buffer.from(token.split(";")[1], "base64url")), exp: seconds });
  const signature = createHmac("sha256", Buffer.from(KEY, "base64")).update(`mayfly resource token\n${payload}`).digest("base64");
  return `type=resource&ver=1.0&sig=${signature};${Buffer.from(payload).toString("base64url")};`;
}

const rows = (page) => page.locator(".grid-row");
const editor = (page, label) => page.getByRole("textbox", { name: label });

/** Replaces the text of an editor, as a person would. */
async function write(page, label, text) {
  // Not by a click: completions of what was written before may lie over it.
  await editor(page, label).focus();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("Delete");
  // Inserted at once: typing would meet automatic brackets.
  await page.keyboard.insertText(text);
}

describe("signing in", () => {
  test("a browser is led to the portal, an SDK is not", async () => {
    const html = await fetch(server.endpoint, { headers: { accept: "text/html" }, redirect: "manual" });
    assert.equal(html.status, 302);
    assert.equal(html.headers.get("location"), "_explorer/");
    assert.equal((await fetch(server.endpoint)).status, 401, "the account document needs a signature");
    const page = await newPage(browser);
    await page.goto(server.endpoint);
    await page.getByRole("heading", { name: "Mayfly" }).waitFor();
    assert.match(page.url(), /\/_explorer\/$/);
    assert.deepEqual(await axe(page), []);
    await done(page);
  });

  test("a wrong key is refused, the right one is kept for the tab only", async () => {
    const page = await newPage(browser);
    await page.goto(`${server.endpoint}_explorer/`);
    await page.getByLabel("Account key", { exact: true }).fill("d3Jvbmc=");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("This is not a key of this account").waitFor();
    await page.getByLabel("Account key", { exact: true }).fill(KEY);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Home" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Home" }).waitFor();
    assert.equal(await page.evaluate(() => JSON.stringify({ ...localStorage }).includes("C2y6yDjf5")), false);
    const other = await page.context().newPage();
    await other.goto(`${server.endpoint}_explorer/`);
    await other.getByRole("button", { name: "Sign in" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Sign in" }).waitFor();
    await done(page);
  });

  test("a read-only key shows, and offers no change", async () => {
    await container("readonly", { defaultTtl: 60 }, [{ id: "1" }]);
    const page = await open("c/shop/readonly/items?item=1&pk=%5B%22a%22%5D", { key: READ_ONLY_KEY });
    await page.getByText("Read-only").waitFor();
    await page.getByText("left").first().waitFor();
    for (const name of ["New item", "Save", "Never expire", "Delete this item", "New container", "Upload items from a file", "Delete the selected items"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
    await page.goto(`${server.endpoint}_explorer/#/c/shop/readonly/ttl`);
    await page.getByRole("radio", { name: "Off" }).waitFor();
    assert.equal(await page.getByRole("radio", { name: "Off" }).isDisabled(), true);
    await done(page);
  });

  test("a token leads to its container; when it has expired, one signs in again", async () => {
    await container("tokens", {}, [{ id: "mine" }]);
    await database.users.create({ id: "ada" });
    const permissions = database.user("ada").permissions;
    const { resource } = await permissions.create({ id: "p", permissionMode: "read", resource: "dbs/shop/colls/tokens" });
    const page = await newPage(browser);
    await page.goto(`${server.endpoint}_explorer/`);
    await page.getByRole("button", { name: "Resource token" }).click();
    await page.getByLabel("Resource token", { exact: true }).fill("nonsense");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("This is not a resource token").waitFor();
    await page.getByLabel("Resource token", { exact: true }).fill(resource._token);
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Open tokens" }).click();
    await page.getByRole("gridcell", { name: "mine" }).waitFor();
    assert.equal(await page.getByRole("link", { name: "Time to Live" }).count(), 0);
    // Its time is over: the same grant as the server would have signed it, over by a second.
    const expired = tokenUntil(resource._token, Math.floor(Date.now() / 1000) - 1);
    const refused = await fetch(`${server.endpoint}dbs/shop/colls/tokens`, { headers: { authorization: encodeURIComponent(expired), "x-ms-date": new Date().toUTCString(), "x-ms-version": "2020-07-15" } });
    assert.equal(refused.status, 403, "known, and over");
    await page.evaluate((token) => {
      const session = JSON.parse(sessionStorage.getItem("mayfly.session"));
      sessionStorage.setItem("mayfly.session", JSON.stringify({ ...session, token }));
    }, expired);
    await page.reload();
    await page.getByText("You were signed out").waitFor();
    await done(page);
  });
});

test("the change feed shows writes, deletes and expiries as they happen, and pauses", async () => {
  const store = await container("feed", { defaultTtl: 100, changeFeedPolicy: { retentionDuration: 60 } });
  const { resource } = await store.read();
  assert.ok(resource.changeFeedPolicy, "the SDK passes the policy on");
  const page = await open("c/shop/feed/feed?kind=all");
  await page.getByText("Waiting for changes").waitFor();
  await page.waitForResponse((response) => response.url().endsWith("/docs") && response.status() === 304);
  await store.items.create({ id: "one", pk: "a" });
  await page.locator(".op.create").waitFor();
  await store.item("one", "a").replace({ id: "one", pk: "a", n: 2 });
  await page.locator(".op.replace").waitFor();
  await store.items.create({ id: "two", pk: "a" });
  await store.item("two", "a").delete();
  await page.locator(".op.delete").waitFor();
  await server.advance(100);
  await page.locator(".op.expire").waitFor();
  await page.getByRole("combobox", { name: "Operation" }).selectOption("expire");
  await comesTo(1, () => page.locator(".feed-entry").count());
  await page.locator(".feed-row").click();
  await page.getByText('"timeToLiveExpired": true').waitFor();
  assert.deepEqual(await axe(page), []);
  await page.getByRole("combobox", { name: "Operation" }).selectOption("");
  await page.getByRole("button", { name: "Pause" }).click();
  await store.items.create({ id: "unseen", pk: "a" });
  await page.waitForTimeout(1500);
  assert.equal(await page.getByText("unseen").count(), 0);
  await page.getByRole("button", { name: "Go on" }).click();
  await page.getByText("unseen").waitFor();
  await done(page);
});

test("an indexing policy is checked here, then set, and its index built", async () => {
  const store = await container("indexing", {}, Array.from({ length: 20 }, (_, n) => ({ id: `${n}`, n })));
  const page = await open("c/shop/indexing/settings/indexing");
  await page.getByText("Index complete").waitFor();
  await write(page, "Indexing policy", '{"indexingMode": "consistent", "includedPaths": [{"path": "/n/?"}]}');
  await page.getByText("The root path /* has to be included or excluded.").waitFor();
  await comesTo(true, () => page.getByRole("button", { name: "Save" }).isDisabled());
  await write(page, "Indexing policy", '{"indexingMode": "consistent", "includedPaths": [{"path": "/n/?"}], "excludedPaths": [{"path": "/*"}]}');
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The indexing policy is set").waitFor();
  await page.getByText("Index complete").waitFor();
  assert.deepEqual((await store.read()).resource.indexingPolicy.includedPaths, [{ path: "/n/?" }]);
  await done(page);
});

test("the building of an index is shown until it is whole", async () => {
  const store = await container("building");
  const fields = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`f${n}`, n]));
  for (let from = 0; from < 300; from += 100) {
    const { code } = await store.items.batch(Array.from({ length: 100 }, (_, n) => ({ operationType: "Create", resourceBody: { id: `${from + n}`, pk: "a", ...fields } })), "a");
    assert.equal(code, 200);
  }
  const page = await open("c/shop/building/settings/indexing");
  await page.getByText("Index complete").waitFor();
  await write(page, "Indexing policy", '{"indexingMode": "consistent", "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/f1/?"}]}');
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText(/^Building: \d+ %$/).waitFor();
  await page.getByRole("progressbar", { name: "Index building" }).waitFor();
  await page.getByText("Index complete").waitFor();
  await done(page);
});

test("throughput is read and set", async () => {
  await container("scale", {});
  const page = await open("c/shop/scale/settings/scale");
  await page.getByLabel("Manual (RU/s)").fill("450");
  await page.getByText("From 400, in steps of 100.").waitFor();
  await page.getByLabel("Manual (RU/s)").fill("1200");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Throughput: 1200 RU/s").waitFor();
  const { resource } = await database.container("scale").readOffer();
  assert.equal(resource.content.offerThroughput, 1200);
  await done(page);
});

test("deleting a container names it and its documents, and takes the name to go on", async () => {
  await container("doomed", {}, [{ id: "1" }, { id: "2" }]);
  const page = await open("c/shop/doomed/items");
  await page.getByRole("link", { name: /^doomed/ }).hover();
  await page.getByRole("button", { name: "Delete container doomed" }).click();
  await page.getByText("2 documents").last().waitFor();
  await comesTo(true, () => page.getByRole("button", { name: "Delete", exact: true }).isDisabled());
  await page.getByLabel("Type doomed to confirm").fill("doomed");
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("Deleted container doomed").waitFor();
  await page.getByRole("heading", { name: "Home" }).waitFor();
  await done(page);
});

test("the clock is moved from the home page, and metrics are drawn", async () => {
  const page = await open("");
  const before = (await server.admin("clock")).unixSeconds;
  await page.getByLabel("How far").fill("2 d");
  await page.getByRole("button", { name: "Advance by 2 d" }).click();
  await comesTo(true, async () => (await server.admin("clock")).unixSeconds >= before + 172_800);
  await page.getByRole("button", { name: "Freeze" }).click();
  await page.getByText("frozen").first().waitFor();
  await page.getByRole("button", { name: "Let it run" }).click();
  await page.getByRole("link", { name: "Metrics" }).click();
  await page.locator(".chart-host canvas").nth(7).waitFor();
  const charts = ["Requests per second", "Duration", "Request units per second", "Refused per second", "Expirations per second", "Purge backlog", "Purge lag", "Storage and memory"];
  for (const name of charts) await page.getByRole("region", { name, exact: true }).waitFor();
  await page.getByRole("button", { name: "15 min" }).click();
  await page.waitForURL(/minutes=15/);
  await page.getByRole("region", { name: "Requests per second" }).locator("figcaption").filter({ hasText: /Requests \d/ }).waitFor({ state: "attached" });
  await done(page);
});

test("a server whose request units are used up is waited for", async () => {
  const limited = await startServer("--throttle");
  try {
    const { database } = await limited.client.databases.create({ id: "shop" });
    const { container: store } = await database.containers.create({ id: "few", partitionKey: { paths: ["/pk"] }, throughput: 400 });
    const page = await newPage(browser, { key: KEY });
    // While the clock stands still no request units come back; it goes on when each of the six writers has been refused more
    // often than SDKs let themselves be.
    await limited.admin("clock", { freeze: true });
    let refused = 0;
    page.on("response", (response) => response.status() === 429 && ++refused === 66 && limited.admin("clock", { freeze: false }));
    await page.goto(`${limited.endpoint}_explorer/#/c/shop/few/items`);
    await page.getByRole("button", { name: "Upload items from a file" }).click();
    const items = Array.from({ length: 120 }, (_, n) => ({ id: `${n}`, pk: "a", list: Array.from({ length: 20 }, (_, k) => k) }));
    await page.getByLabel("File", { exact: true }).setInputFiles({ name: "items.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(items)) });
    await page.getByRole("button", { name: "Upload 120 items" }).click();
    await page.getByText("120 of 120 written").waitFor({ timeout: 60_000 });
    assert.ok(refused >= 66, "each was refused at first");
    assert.equal((await store.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll()).resources[0], 120);
    await done(page);
  } finally {
    await limited.stop();
  }
});

test("behind a path of a proxy everything works", async () => {
  await container("proxied", {}, [{ id: "1" }, { id: "2" }, { id: "3" }]);
  const { createServer, request } = await import("node:http");
  const proxy = createServer((ask, answer) => {
    if (!ask.url.startsWith("/deep/down/")) return answer.writeHead(404).end();
    const through = request(new URL(ask.url.slice("/deep/down/".length), server.endpoint), { method: ask.method, headers: ask.headers }, (back) => {
      answer.writeHead(back.statusCode, back.headers);
      back.pipe(answer);
    });
    ask.pipe(through);
  });
  await new Promise((listening) => proxy.listen(0, listening));
  try {
    const page = await newPage(browser, { key: KEY });
    await page.goto(`http://localhost:${proxy.address().port}/deep/down/`);
    await page.waitForURL(/\/deep\/down\/_explorer\//);
    await page.getByRole("heading", { name: "Home" }).waitFor();
    await page.getByRole("link", { name: /^proxied/ }).click();
    await rows(page).nth(2).waitFor();
    await done(page);
  } finally {
    proxy.close();
  }
});

test("a small screen has a drawer, and nothing sticks out", async () => {
  await container("tiny", {}, [{ id: "1" }]);
  const page = await open("", { width: 360, height: 740 });
  await page.getByRole("button", { name: "Databases" }).click();
  await page.getByRole("link", { name: /^tiny/ }).click();
  await rows(page).first().click();
  await page.getByRole("button", { name: "Close the item" }).click();
  await rows(page).first().waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
  await done(page);
});

test("nothing is loaded from elsewhere, and the policy forbids it", async () => {
  const response = await fetch(`${server.endpoint}_explorer/`);
  const policy = response.headers.get("content-security-policy");
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /unsafe/);
  const html = await response.text();
  assert.doesNotMatch(html, /<style|\son\w+=|\sstyle=|javascript:/i);
  assert.deepEqual(html.match(/<script[^>]*>[^<]/g), null, "scripts are files");
  await container("offline");
  const page = await newPage(browser, { key: KEY });
  const elsewhere = [];
  page.on("request", (request) => !request.url().startsWith(server.endpoint) && elsewhere.push(request.url()));
  await page.goto(`${server.endpoint}_explorer/#/c/shop/offline/query`);
  await editor(page, "Query").waitFor();
  assert.deepEqual(elsewhere, []);
  await done(page);
});

const tools = { server: () => server, database: () => database, container, open, done, rows, editor, write };
homeTests(tools);
ttlTests(tools);
draftTests(tools);
itemTests(tools);
queryTests(tools);
collectionTests(tools);

test("the sample is what it says", async () => {
  await loadSample(server, browser);
  const sample = server.client.database("sample");
  const count = async (name) => (await sample.container(name).items.query("SELECT VALUE COUNT(1) FROM c").fetchAll()).resources[0];
  assert.deepEqual([await count("carts"), await count("products")], [120, 40]);
  assert.equal((await sample.container("carts").read()).resource.defaultTtl, 3600);
});

test("every page is without serious faults for those who need help, light and dark, from 360 px to 4K", async () => {
  assert.deepEqual(await takeScreens(server, browser), []);
});
