// The portal in a real browser against a real server: what people do with it, and what must never go wrong.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { collectionTests } from "./collections.js";
import { KEY, READ_ONLY_KEY, axe, newPage, startBrowser, startServer } from "./harness.js";
import { homeTests } from "./home.js";
import { queryTests } from "./queries.js";
import { loadSample, takeScreens } from "./screens.mjs";

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
    for (const name of ["New item", "Save", "Never expire", "Delete this item", "New container"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
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

describe("time to live", () => {
  test("a container is made in the portal and gets each of the three modes", async () => {
    const page = await open("?dialog=new-container");
    await page.getByLabel("Database", { exact: true }).fill("shop");
    await page.getByLabel("Container id").fill("modes");
    await page.getByLabel("Partition key path").fill("/pk");
    await page.getByRole("button", { name: "Make container" }).click();
    await page.getByRole("heading", { name: "modes" }).waitFor();
    const ttl = async () => (await database.container("modes").read()).resource.defaultTtl;
    assert.equal(await ttl(), undefined);
    await page.getByRole("link", { name: "Time to Live" }).click();

    await page.getByRole("radio", { name: "On", exact: true }).check();
    await page.getByLabel("Time to live", { exact: true }).fill("1 h 30 min");
    await page.getByText("= 5,400 second(s)").waitFor();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Now: On, 1 h 30 min").waitFor();
    assert.equal(await ttl(), 5400);

    await page.getByRole("radio", { name: "On (no default)" }).check();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Now: On (no default)").waitFor();
    assert.equal(await ttl(), -1);

    await page.getByRole("radio", { name: "Off" }).check();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Now: Off").waitFor();
    assert.equal(await ttl(), undefined);
    await page.locator(".history li").nth(2).waitFor();
    assert.deepEqual(await page.locator(".history b").allTextContents(), ["Off", "On (no default)", "On, 1 h 30 min"]);
    await done(page);
  });

  test("what is not a time to live cannot be saved", async () => {
    await container("invalid");
    const page = await open("c/shop/invalid/ttl");
    await page.getByRole("radio", { name: "On", exact: true }).check();
    for (const text of ["", "0", "-5", "soon", "2147483648"]) {
      await page.getByLabel("Time to live", { exact: true }).fill(text);
      assert.equal(await page.getByRole("button", { name: /^Save/ }).count(), 0, text);
    }
    await page.getByLabel("Time to live", { exact: true }).fill("2147483647");
    await page.getByRole("button", { name: "Save", exact: true }).waitFor();
    await done(page);
  });

  test("the preview is right, has to be confirmed, and what it said happens", async () => {
    const documents = Array.from({ length: 20 }, (_, n) => ({ id: `old-${n}`, ...(n < 3 ? { ttl: -1 } : n < 7 ? { ttl: 7200 } : {}) }));
    const store = await container("preview", {}, documents);
    await server.advance(3600);
    for (let n = 0; n < 5; n++) await store.items.create({ id: `new-${n}`, pk: "a" });

    const page = await open("c/shop/preview/ttl?propose=1800");
    const cells = (bucket) => page.locator(`[data-bucket=${bucket}] .num`).first();
    await cells("expiresAtOnce").waitFor();
    // 13 old ones without a ttl; 5 new ones; 4 whose two hours are half over; 3 pinned.
    assert.equal(await cells("expiresAtOnce").textContent(), "13");
    assert.equal(await cells("expiresWithinHour").textContent(), "9");
    assert.equal(await cells("expiresWithinDay").textContent(), "0");
    assert.equal(await cells("neverExpires").textContent(), "3");
    assert.equal(await page.getByTestId("own-count").textContent(), "4");
    assert.equal(await page.getByTestId("pinned-count").textContent(), "3");
    await page.getByText("That is 52 % of the container").waitFor();
    assert.deepEqual(await axe(page), []);

    await page.getByRole("button", { name: /Save and expire 13 at once/ }).click();
    const confirm = page.getByRole("dialog");
    assert.equal(await confirm.getByRole("button", { name: "Save and let them expire" }).isDisabled(), true);
    await confirm.getByLabel("Type preview to confirm").fill("previe");
    assert.equal(await confirm.getByRole("button", { name: "Save and let them expire" }).isDisabled(), true);
    assert.equal((await store.read()).resource.defaultTtl, undefined, "nothing has happened yet");
    await confirm.getByLabel("Type preview to confirm").fill("preview");
    await confirm.getByRole("button", { name: "Save and let them expire" }).click();
    await page.getByText("Now: On, 30 min").waitFor();
    await page.getByText("12 documents", { exact: false }).first().waitFor();
    const { resources } = await store.items.readAll().fetchAll();
    assert.equal(resources.length, 12);

    // The clock goes on, and with it documents and counts.
    await server.advance(1800);
    await page.getByTestId("container-size").filter({ hasText: "7 documents" }).waitFor();
    await page.getByRole("link", { name: "Items", exact: true }).click();
    await rows(page).nth(6).waitFor();
    assert.equal(await rows(page).count(), 7);
    await server.advance(3600);
    await page.getByTestId("container-size").filter({ hasText: "3 documents" }).waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 3);
    await done(page);
  });

  test("the forecast says what goes when, and purge what it has done", async () => {
    const documents = Array.from({ length: 9 }, (_, n) => ({ id: `${n}`, ttl: n < 4 ? 1800 : n < 7 ? 90 * 60 : 3 * 86_400 }));
    await container("forecast", { defaultTtl: -1 }, documents);
    const page = await open("c/shop/forecast/ttl");
    const forecast = page.getByRole("region", { name: "Forecast" });
    await forecast.getByText("7 documents will expire within 24 hours").waitFor();
    assert.match(await forecast.locator("figcaption").textContent(), /: 4, 3, 0, 0/);
    await forecast.locator("canvas").waitFor();
    await forecast.getByRole("button", { name: "By day" }).click();
    await forecast.getByText("9 documents will expire within 30 days").waitFor();
    await page.waitForURL(/by=day/);
    assert.match(await forecast.locator("figcaption").textContent(), /: 7, 0, 2, 0/);
    const purge = page.getByRole("region", { name: "Purge" });
    const fact = (name) => purge.locator(".fact").filter({ hasText: name }).locator("dd");
    assert.match(await fact("Purged").textContent(), /^0/);
    await server.advance(1800);
    await fact("Purged").getByText(/^4/).waitFor();
    assert.match(await fact("Backlog").textContent(), /^0/);
    assert.match(await fact("Lag").textContent(), /^0 s/);
    await forecast.getByText("5 documents will expire within 30 days").waitFor();
    await done(page);
  });

  test("a change that expires a tenth or less is saved without typing", async () => {
    const store = await container("tenth", {}, [{ id: "old" }]);
    await server.advance(7200);
    for (let n = 0; n < 9; n++) await store.items.create({ id: `${n}`, pk: "a" });
    const page = await open("c/shop/tenth/ttl?propose=3600");
    await page.getByText("1 document (").waitFor();
    await page.getByText("That is 10 % of the container").waitFor();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Now: On, 1 h").waitFor();
    assert.equal((await store.items.readAll().fetchAll()).resources.length, 9);
    await done(page);
  });

  test("a proposal can be reverted to from the history, after a look", async () => {
    const store = await container("revert", { defaultTtl: 60 });
    const { resource } = await store.read();
    await store.replace({ ...resource, defaultTtl: 3600 });
    const page = await open("c/shop/revert/ttl");
    await page.getByRole("button", { name: "Revert" }).click();
    await page.getByText("= 60 second(s)").waitFor();
    assert.match(page.url(), /propose=60/);
    assert.equal((await store.read()).resource.defaultTtl, 3600);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Now: On, 1 min").waitFor();
    await done(page);
  });
});

describe("items", () => {
  test("the life of an item is explained, and changed by buttons", async () => {
    const store = await container("life", { defaultTtl: 3600 }, [{ id: "x" }]);
    const read = async () => (await store.item("x", "a").read()).resource;
    const first = await read();
    await server.advance(600);
    const page = await open("c/shop/life/items?item=x&pk=%5B%22a%22%5D");
    await page.getByText(`_ts ${first._ts}`).waitFor();
    await page.getByText("It has no ttl of its own, so the container's default counts.").waitFor();
    await page.getByText(/^(49|50) min/).first().waitFor();

    await page.getByRole("button", { name: "Restart countdown" }).click();
    await page.getByText("The countdown starts again").waitFor();
    await page.getByText(/^(59 min|1 h).* left$/).waitFor();
    assert.ok((await read())._ts >= first._ts + 600);

    await page.getByRole("button", { name: "Never expire" }).click();
    await page.getByText("Pinned:").first().waitFor();
    assert.equal((await read()).ttl, -1);

    await page.getByRole("button", { name: "Expire in…" }).click();
    await page.getByLabel("How long from now").fill("2 d");
    await page.getByRole("button", { name: "Set it" }).click();
    await page.getByText("Its own ttl counts").waitFor();
    assert.equal((await read()).ttl, 172_800);

    await page.getByRole("button", { name: "Use default" }).click();
    await page.getByText("the container's default counts.").first().waitFor();
    assert.equal((await read()).ttl, undefined);
    assert.deepEqual(await axe(page), []);

    // Its time comes while it is being looked at.
    await server.advance(3600);
    await page.getByTestId("container-size").filter({ hasText: "0 documents" }).waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 0);
    await page.reload();
    await page.getByText("This item is gone").waitFor();
    await done(page);
  });

  test("an item is made, edited, and a conflict is shown and settled", async () => {
    const store = await container("edit");
    const page = await open("c/shop/edit/items");
    await page.getByText("No items").waitFor();
    await page.keyboard.press("Alt+n");
    await page.keyboard.press("i");
    await write(page, "The item as JSON", '{"id": "1", "pk": "zoë", "n": 1}');
    await page.getByRole("button", { name: "Make it" }).click();
    await page.getByText("Made “1”").waitFor();
    await page.getByRole("gridcell", { name: "zoë" }).waitFor();

    await page.getByText(/^etag/).waitFor();
    await write(page, "The item as JSON", '{"id": "1", "pk": "zoë", "n": "mine"}');
    await store.item("1", "zoë").replace({ id: "1", pk: "zoë", n: "theirs" });
    await page.keyboard.press("ControlOrMeta+s");
    const dialog = page.getByRole("dialog", { name: "Somebody else changed this item" });
    await dialog.locator(".diff-line.mine").filter({ hasText: '"mine"' }).waitFor();
    await dialog.locator(".diff-line.theirs").filter({ hasText: '"theirs"' }).waitFor();
    assert.deepEqual(await axe(page), []);
    assert.equal((await store.item("1", "zoë").read()).resource.n, "theirs", "nothing was overwritten");
    await dialog.getByRole("button", { name: "Overwrite with yours" }).click();
    await page.getByText("Saved “1”").waitFor();
    assert.equal((await store.item("1", "zoë").read()).resource.n, "mine");

    await store.item("1", "zoë").replace({ id: "1", pk: "zoë", n: "theirs again" });
    await write(page, "The item as JSON", '{"id": "1", "pk": "zoë", "n": "mine again"}');
    await page.keyboard.press("ControlOrMeta+s");
    await dialog.getByRole("button", { name: "Take theirs" }).click();
    await editor(page, "The item as JSON").getByText('"theirs again"').waitFor();
    assert.equal((await store.item("1", "zoë").read()).resource.n, "theirs again");

    await write(page, "The item as JSON", '{"id": "1", "pk": "zoë", "n": }');
    assert.equal(await page.getByRole("button", { name: "Save", exact: true }).isDisabled(), true);
    await done(page);
  });

  test("a deletion can be undone, and without that is carried out", async () => {
    const store = await container("delete", {}, Array.from({ length: 6 }, (_, n) => ({ id: `${n}` })));
    const page = await open("c/shop/delete/items");
    await rows(page).nth(5).waitFor();
    const select = (id) => rows(page).filter({ has: page.getByRole("gridcell", { name: id, exact: true }) }).getByRole("checkbox").click();
    await select("1");
    await select("3");
    await page.getByText("2 items selected").waitFor();
    await page.keyboard.press("Alt+d");
    await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 4);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 6);
    assert.equal((await store.items.readAll().fetchAll()).resources.length, 6);

    await select("2");
    await page.getByRole("button", { name: "Delete the selected items" }).click();
    await page.getByText("Deleted 1 item from delete").waitFor({ timeout: 20_000 });
    assert.deepEqual((await store.items.readAll().fetchAll()).resources.map((each) => each.id).sort(), ["0", "1", "3", "4", "5"]);

    // Whoever leaves meant it.
    await select("4");
    await page.getByText("1 item selected").waitFor();
    await page.keyboard.press("Alt+d");
    await page.getByRole("button", { name: "Undo" }).waitFor();
    await page.goto(`${server.endpoint}alive`);
    for (let n = 0; n < 50 && (await store.items.readAll().fetchAll()).resources.length > 4; n++) await new Promise((done) => setTimeout(done, 100));
    assert.deepEqual((await store.items.readAll().fetchAll()).resources.map((each) => each.id).sort(), ["0", "1", "3", "5"]);
    await done(page);
  });

  test("a filter works, its errors are said in place, and it is in the address", async () => {
    await container("filter", {}, [{ id: "1", n: 1 }, { id: "2", n: 2 }, { id: "3", n: 3 }]);
    const page = await open("c/shop/filter/items");
    await rows(page).nth(2).waitFor();
    await page.keyboard.press("ControlOrMeta+Shift+f");
    await page.keyboard.insertText("c.n >= 2");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 2);
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 2);
    await page.getByRole("combobox", { name: "Filter" }).fill("c.n >=");
    await page.keyboard.press("Enter");
    await page.getByText("The filter is not right.").waitFor();
    await page.goBack();
    await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 2);
    await done(page);
  });

  test("columns are chosen and kept, rows are sorted, and the selected ones are taken along", async () => {
    await container("columns", { defaultTtl: 600 }, [{ id: "1", ttl: 50, deep: { n: 5 } }, { id: "2", ttl: 40, deep: { n: 7 } }, { id: "3", ttl: -1, deep: { n: 6 } }]);
    const page = await open("c/shop/columns/items");
    await rows(page).nth(2).waitFor();
    await page.getByRole("button", { name: "Choose columns" }).click();
    await page.getByRole("textbox", { name: "Another path" }).fill("/other");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    assert.deepEqual(await axe(page), []);
    await page.keyboard.press("Escape");
    const titles = () => page.getByRole("columnheader").allTextContents();
    assert.deepEqual((await titles()).filter(Boolean), ["id", "/pk", "/deep/n", "/other", "Last write", "Expires in"]);
    const order = async () => (await rows(page).allTextContents()).map((text) => text[0]).join("");
    await page.getByRole("button", { name: "Expires in" }).click();
    await page.waitForURL(/sort=expires/);
    assert.equal(await order(), "213");
    await page.getByRole("button", { name: "/deep/n" }).click();
    await page.getByRole("button", { name: /^\/deep\/n/ }).click();
    await page.waitForURL(/sort=-/);
    await page.reload();
    await rows(page).nth(2).waitFor();
    assert.equal(await order(), "231");
    assert.ok((await titles()).includes("/other"), "kept over a reload");
    await rows(page).nth(0).getByRole("checkbox").click();
    await rows(page).nth(1).getByRole("checkbox").click();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
    const { readFileSync } = await import("node:fs");
    assert.equal(readFileSync(await file.path(), "utf8").trim().split("\r\n").length, 3);
    const [json] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "JSON" }).click()]);
    assert.deepEqual(JSON.parse(readFileSync(await json.path(), "utf8")).map((each) => each.id), ["2", "3"]);
    await done(page);
  });

  test("items come from a file, with an account of those that did not get in", async () => {
    const store = await container("upload", {}, [{ id: "1", n: "old" }]);
    const page = await open("c/shop/upload/items");
    await rows(page).first().waitFor();
    const lines = ['{"id":"1","pk":"a","n":"new"}', '{"id":"2","pk":"b","big":12345678901234567}', '{"id":"3","pk":"a","ttl":5}'];
    const file = (text) => page.getByLabel("File", { exact: true }).setInputFiles({ name: "items.ndjson", mimeType: "application/x-ndjson", buffer: Buffer.from(text) });
    await page.getByRole("button", { name: "Upload items from a file" }).click();
    await file('{"id":"1"}\n{oops');
    await page.getByText(/^Line 2: /).waitFor();
    assert.equal(await page.getByRole("button", { name: "Upload", exact: true }).isDisabled(), true);
    await file(lines.join("\n"));
    await page.getByRole("button", { name: "Upload 3 items" }).click();
    await page.getByText("2 of 3 written, 1 refused").waitFor();
    await page.getByText(/Item 1: .*Status 409/).waitFor();
    assert.deepEqual(await axe(page), []);
    await page.getByRole("button", { name: "Close", exact: true }).last().click();
    await rows(page).nth(2).waitFor();
    assert.equal((await store.item("1", "a").read()).resource.n, "old");
    await page.getByRole("button", { name: "Upload items from a file" }).click();
    await page.getByLabel("Replace items that are there").check();
    await file(`[${lines.join(",")}]`);
    await page.getByRole("button", { name: "Upload 3 items" }).click();
    await page.getByText("3 of 3 written").waitFor();
    assert.equal((await store.item("1", "a").read()).resource.n, "new");
    await done(page);
  });

  test("the grid is worked by keyboard", async () => {
    await container("keys", {}, Array.from({ length: 30 }, (_, n) => ({ id: String(n).padStart(2, "0") })));
    const page = await open("c/shop/keys/items");
    await rows(page).nth(5).waitFor();
    await page.getByRole("grid").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press(" ");
    await page.keyboard.press("Shift+ArrowDown");
    await page.getByText("2 items selected").waitFor();
    await page.keyboard.press("ControlOrMeta+a");
    await page.getByText("30 items selected").waitFor();
    await page.keyboard.press("Home");
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: "Item 00" }).waitFor();
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
  assert.equal(await page.locator(".feed-entry").count(), 1);
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
  assert.equal(await page.getByRole("button", { name: "Save" }).isDisabled(), true);
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
  assert.equal(await page.getByRole("button", { name: "Delete", exact: true }).isDisabled(), true);
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
  await page.waitForTimeout(300);
  assert.ok((await server.admin("clock")).unixSeconds >= before + 172_800);
  await page.getByRole("button", { name: "Freeze" }).click();
  await page.getByText("frozen").first().waitFor();
  await page.getByRole("button", { name: "Let it run" }).click();
  await page.getByRole("link", { name: "Metrics" }).click();
  await page.locator(".chart-host canvas").nth(7).waitFor();
  const charts = ["Requests per second", "Duration", "Request units per second", "Refused per second", "Expirations per second", "Purge backlog", "Purge lag", "Storage and memory"];
  for (const name of charts) await page.getByRole("region", { name, exact: true }).waitFor();
  await page.getByRole("button", { name: "15 min" }).click();
  await page.waitForURL(/minutes=15/);
  assert.match(await page.getByRole("region", { name: "Requests per second" }).locator("figcaption").textContent(), /Requests \d/);
  await done(page);
});

test("a server whose request units are used up is waited for", async () => {
  const limited = await startServer("--throttle");
  try {
    const { database } = await limited.client.databases.create({ id: "shop" });
    const { container: store } = await database.containers.create({ id: "few", partitionKey: { paths: ["/pk"] }, throughput: 400 });
    const page = await newPage(browser, { key: KEY });
    // While the clock stands still no request units come back; it goes on when the first request has been refused.
    await limited.admin("clock", { freeze: true });
    let refused = 0;
    page.on("response", (response) => response.status() === 429 && refused++ === 0 && limited.admin("clock", { freeze: false }));
    await page.goto(`${limited.endpoint}_explorer/#/c/shop/few/items`);
    await page.getByRole("button", { name: "Upload items from a file" }).click();
    const items = Array.from({ length: 120 }, (_, n) => ({ id: `${n}`, pk: "a", list: Array.from({ length: 20 }, (_, k) => k) }));
    await page.getByLabel("File", { exact: true }).setInputFiles({ name: "items.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(items)) });
    await page.getByRole("button", { name: "Upload 120 items" }).click();
    await page.getByText("120 of 120 written").waitFor({ timeout: 60_000 });
    assert.ok(refused > 0, "some were refused at first");
    assert.equal((await store.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll()).resources[0], 120);
    await done(page);
  } finally {
    await limited.stop();
  }
});

test("behind a path of a proxy everything works", async () => {
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
    await page.getByRole("link", { name: /^filter/ }).click();
    await rows(page).nth(2).waitFor();
    await done(page);
  } finally {
    proxy.close();
  }
});

test("a small screen has a drawer, and nothing sticks out", async () => {
  const page = await open("", { width: 360, height: 740 });
  await page.getByRole("button", { name: "Databases" }).click();
  await page.getByRole("link", { name: /^filter/ }).click();
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
