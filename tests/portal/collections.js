// Collections of MongoDB in the portal: made by commands, looked at and changed in the browser.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { READ_ONLY_KEY, axe, comesTo } from "./harness.js";

/** The tests, with the tools of the suite: the server is there only when they run. */
export function collectionTests({ server, open, done, rows, write }) {
  const run = (command) => server().admin("mongo/shop", command);
  const insert = (coll, documents) => run({ insert: coll, documents });
  const count = async (coll) => (await run({ count: coll })).n;
  const clock = async () => (await server().admin("clock")).unixSeconds;
  const date = (seconds) => ({ $date: { $numberLong: String(Math.floor(seconds) * 1000) } });
  /** Looks until it is so; the test's own time is the limit. */
  const until = async (isSo) => {
    while (!(await isSo())) await new Promise((next) => setTimeout(next, 100));
  };
  const size = (page) => page.getByTestId("container-size");

  describe("collections", () => {
    test("the tree tells a collection from a container", async () => {
      await insert("badge", [{ _id: 1 }]);
      const page = await open("c/shop/badge/items");
      const leaf = page.getByRole("navigation", { name: "Databases and containers" }).getByRole("link", { name: /badge/ });
      await leaf.getByText("mongo").waitFor();
      await page.getByRole("link", { name: "Indexes" }).waitFor();
      assert.equal(await page.getByRole("link", { name: "Scale & Settings" }).count(), 0);
      await done(page);
    });

    test("a TTL index is made in the portal, and what it said happens", async () => {
      const now = await clock();
      const documents = Array.from({ length: 10 }, (_, n) => ({ _id: n, at: date(n < 3 ? now - 7200 : now) }));
      await insert("sessions", [...documents, { _id: "undated" }, { _id: "list", at: [date(now + 86_400), date(now - 1800)] }]);
      const page = await open("c/shop/sessions/ttl");
      await page.getByText("None: nothing expires").waitFor();
      await page.getByLabel("Field", { exact: true }).fill("at");
      await page.getByLabel("expireAfterSeconds").fill("1 h");
      const cells = (bucket) => page.locator(`[data-bucket=${bucket}] .num`).first();
      await cells("expiresAtOnce").waitFor();
      assert.deepEqual(await Promise.all(["expiresAtOnce", "expiresWithinHour", "expiresLater", "neverExpires"].map((each) => cells(each).textContent())), ["3", "8", "0", "1"]);
      assert.deepEqual(await axe(page), []);
      assert.equal(await count("sessions"), 12, "looking changes nothing");
      await page.getByRole("button", { name: /Save and expire 3 at once/ }).click();
      await page.getByLabel("Type sessions to confirm").fill("sessions");
      await page.getByRole("button", { name: "Save and let them expire" }).click();
      await page.getByRole("cell", { name: "1 h after the date" }).waitFor();
      await size(page).getByText("9 documents").waitFor();
      assert.equal(await count("sessions"), 9);

      await page.getByRole("link", { name: "Items", exact: true }).click();
      await page.getByRole("columnheader", { name: "Expires in" }).waitFor();
      await page.getByRole("gridcell", { name: "undated" }).waitFor();
      await comesTo(9, () => rows(page).count());
      await server().advance(3600);
      await size(page).getByText("1 document", { exact: false }).waitFor();
      await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 1);
      await page.getByRole("gridcell", { name: "undated" }).waitFor();
      assert.equal(await count("sessions"), 1);
      await done(page);
    });

    test("a TTL index is changed and dropped", async () => {
      await insert("changed", [{ _id: 1 }]);
      await run({ createIndexes: "changed", indexes: [{ key: { at: 1 }, name: "at_1", expireAfterSeconds: 60 }] });
      const page = await open("c/shop/changed/ttl");
      await page.getByRole("button", { name: "Change", exact: true }).click();
      await page.getByRole("heading", { name: "Change at_1" }).waitFor();
      await page.getByLabel("expireAfterSeconds").fill("2 h");
      await page.getByText("Nothing expires at once").waitFor();
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByRole("cell", { name: "2 h after the date" }).waitFor();
      const ttl = async () => (await run({ listIndexes: "changed" })).cursor.firstBatch.find((each) => each.name === "at_1")?.expireAfterSeconds;
      assert.equal(await ttl(), 7200);
      await page.getByRole("button", { name: "Drop at_1" }).click();
      await page.getByRole("button", { name: "Drop the index" }).click();
      await page.getByText("None: nothing expires").waitFor();
      assert.equal(await ttl(), undefined);
      await done(page);
    });

    test("an index on the last write turns on each document's own ttl", async () => {
      await insert("own", [{ _id: "short", ttl: 60 }, { _id: "pinned", ttl: -1 }, { _id: "plain" }]);
      const page = await open("c/shop/own/ttl");
      await page.getByLabel("Field", { exact: true }).fill("_ts");
      await page.getByLabel("expireAfterSeconds").fill("-1");
      await page.getByText("On without a default").waitFor();
      await page.getByRole("button", { name: "Make TTL index" }).click();
      await page.getByText("On, no default").waitFor();
      // Each says exactly when it goes, though MongoDB does not show when it was written.
      const read = async (id) => (await server().admin("ttl/shop/own/documents", { ids: [id] })).documents[0];
      await page.goto(`${server().endpoint}_explorer/#/c/shop/own/items?item=${encodeURIComponent('"short"')}`);
      await page.getByText(/^(\d+ s|1 min) left$/).waitFor();
      const { lastWrite, expiresAt } = await read("short");
      assert.equal(expiresAt, lastWrite + 60);
      await page.getByText("Its own ttl counts, from its last write.").waitFor();
      await page.getByText(/^last write .* \+ ttl 60 = /).waitFor();
      const row = (id) => rows(page).filter({ has: page.getByRole("gridcell", { name: id, exact: true }) });
      assert.match(await row("short").textContent(), /(\d+ s|1 min)$/);
      assert.match(await row("pinned").textContent(), /pinned$/);
      assert.match(await row("plain").textContent(), /never$/);
      assert.deepEqual(await axe(page), []);
      await page.getByRole("button", { name: "Expire in…" }).click();
      await page.getByLabel("How long from now").fill("90");
      await page.getByRole("button", { name: "Set it" }).click();
      await page.getByText("Expires in 1 min 30 s").waitFor();
      assert.equal((await read("short")).ownTtl, 90);
      await page.getByRole("button", { name: "Never expire" }).click();
      await page.getByText("Pinned: its last write does not count").waitFor();
      assert.equal((await read("short")).expiresAt, null);
      await page.getByRole("button", { name: "Use default" }).click();
      await page.getByText("counts again").waitFor();
      assert.equal((await read("short")).ownTtl, null);
      await page.getByRole("button", { name: "Expire in…" }).click();
      await page.getByLabel("How long from now").fill("60");
      await page.getByRole("button", { name: "Set it" }).click();
      await page.getByText("Its own ttl counts, from its last write.").waitFor();

      await server().advance(61);
      await size(page).getByText("2 documents").waitFor();
      await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 2);
      assert.equal(await count("own"), 2);
      await page.goto(`${server().endpoint}_explorer/#/c/shop/own/ttl`);
      await page.getByRole("region", { name: "Changes of the default" }).getByText("was Off").waitFor();
      await done(page);
    });

    test("a partial TTL index says exactly which documents it takes", async () => {
      const now = await clock();
      await insert("partial", [{ _id: "open", open: true, at: date(now) }, { _id: "closed", open: false, at: date(now) }]);
      await run({ createIndexes: "partial", indexes: [{ key: { at: 1 }, name: "at_1", expireAfterSeconds: 3600, partialFilterExpression: { open: true } }] });
      const page = await open("c/shop/partial/items?item=%22open%22");
      await page.getByText("The TTL index at_1 counts from the date in at").waitFor();
      await page.getByText(/^at .* \+ expireAfterSeconds 3600 = /).waitFor();
      const row = (id) => rows(page).filter({ has: page.getByRole("gridcell", { name: id, exact: true }) });
      assert.match(await row("open").textContent(), /59 min \d+ s$|1 h$/);
      assert.match(await row("closed").textContent(), /never$/);
      const badge = page.getByRole("navigation", { name: "Databases and containers" }).getByRole("link", { name: /^partial/ });
      await badge.getByText("Dates", { exact: true }).waitFor();
      // Another length is looked at by the same filter, in one look.
      await page.goto(`${server().endpoint}_explorer/#/c/shop/partial/ttl`);
      await page.getByRole("button", { name: "Change", exact: true }).click();
      const looks = [];
      page.on("request", (request) => request.url().includes("seconds=60") && looks.push(request.url()));
      await page.getByLabel("expireAfterSeconds").fill("60");
      await page.getByText("Nothing expires at once").waitFor();
      await page.getByText("1 document of 2 will expire over time.").waitFor();
      assert.equal(looks.length, 1);
      await done(page);
    });

    test("the change feed of a collection shows writes, and with all versions deletes and expiries", async () => {
      await insert("changes", [{ _id: "before" }]);
      const page = await open("c/shop/changes/feed?from=beginning");
      await page.locator(".feed-row").filter({ hasText: "before" }).waitFor();
      await insert("changes", [{ _id: "after", n: 5 }]);
      await page.locator(".feed-row").filter({ hasText: "after" }).click();
      await page.getByText('"n": 5').waitFor();
      await page.getByRole("button", { name: "All versions & deletes" }).click();
      await page.getByText("Only latest versions are kept").waitFor();
      await page.getByRole("button", { name: "Keep them from now on" }).click();
      await page.getByText("Waiting for changes").waitFor();
      await page.waitForResponse((response) => response.url().endsWith("/docs") && response.status() === 304);
      await run({ createIndexes: "changes", indexes: [{ key: { _ts: 1 }, name: "ttl", expireAfterSeconds: -1 }] });
      await insert("changes", [{ _id: "short", ttl: 60 }]);
      await page.locator(".op.create").waitFor();
      await run({ update: "changes", updates: [{ q: { _id: "after" }, u: { $set: { n: 6 } } }] });
      await page.locator(".op.replace").waitFor();
      await run({ delete: "changes", deletes: [{ q: { _id: "after" }, limit: 1 }] });
      await page.locator(".op.delete").waitFor();
      await server().advance(60);
      await page.locator(".op.expire").waitFor();
      assert.match(await page.locator(".feed-entry").first().textContent(), /^TTL expiredshort/);
      assert.deepEqual(await axe(page), []);
      await done(page);
    });

    test("queries are filters or pipelines, with their plan", async () => {
      await insert("queried", Array.from({ length: 30 }, (_, n) => ({ _id: n, user: n % 3 === 0 ? "ada" : "grace", total: n })));
      await run({ createIndexes: "queried", indexes: [{ key: { user: 1 }, name: "by_user" }] });
      const page = await open("c/shop/queried/query");
      await page.getByRole("textbox", { name: "Filter or pipeline" }).waitFor();
      await write(page, "Filter or pipeline", '{ "user": "ada" }');
      await page.keyboard.press("Shift+Enter");
      await page.getByText("10 documents from queried").waitFor();
      await comesTo(10, () => rows(page).count());
      await page.getByRole("button", { name: "Plan" }).click();
      await page.getByText("by_user").waitFor();
      await page.getByText("10 documents and 10 keys looked at for 10 documents").waitFor();
      assert.deepEqual(await axe(page), []);
      await page.getByRole("button", { name: "Table" }).click();
      await write(page, "Filter or pipeline", '[{ "$group": { "_id": "$user", "n": { "$sum": 1 } } }, { "$sort": { "_id": 1 } }]');
      await page.getByRole("button", { name: "Run" }).click();
      await page.getByText("2 documents from queried").waitFor();
      await page.getByRole("gridcell", { name: "grace" }).waitFor();
      await write(page, "Filter or pipeline", '{ "total": { "$oops": 1 } }');
      await page.getByRole("button", { name: "Run" }).click();
      await page.getByText(/unknown operator: \$oops/).waitFor();
      await write(page, "Filter or pipeline", '{ "total": ');
      await page.getByRole("button", { name: "Run" }).click();
      await page.getByText("This is not JSON").waitFor();
      await page.reload();
      await page.getByRole("textbox", { name: "Filter or pipeline" }).getByText('"total"').waitFor();
      await done(page);
    });

    test("documents are filtered, edited, made and deleted, and keep their types", { timeout: 300_000 }, async () => {
      await insert("edited", [{ _id: { $oid: "507f1f77bcf86cd799439011" }, z: { $numberLong: "5" }, a: { $numberDouble: "1.0" }, 1: "first" }, { _id: 2, user: "ada" }]);
      const page = await open("c/shop/edited/items");
      await page.getByRole("gridcell", { name: "507f1f77bcf86cd799439011" }).waitFor();
      await page.getByLabel("Filter", { exact: true }).fill('{ "user": "ada" }');
      await page.keyboard.press("Enter");
      await page.getByText("1 loaded").waitFor();
      await page.getByLabel("Filter", { exact: true }).fill('{ "user": ');
      await page.keyboard.press("Enter");
      await page.getByText("The filter is not right.").waitFor();
      await page.getByRole("button", { name: "Clear the filter" }).click();
      await page.getByText("2 loaded").waitFor();

      await page.getByRole("gridcell", { name: "507f1f77bcf86cd799439011" }).click();
      const text = page.getByRole("textbox", { name: "The item as JSON" });
      await text.getByText("$numberLong").waitFor();
      assert.deepEqual(await axe(page), []);
      await write(page, "The item as JSON", '{ "_id": {"$oid":"507f1f77bcf86cd799439011"}, "z": {"$numberLong":"6"}, "1": "first", "a": {"$numberDouble":"1.0"} }');
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Saved “507f1f77bcf86cd799439011”").waitFor();
      const stored = (await run({ find: "edited", filter: { z: 6 } })).cursor.firstBatch[0];
      assert.deepEqual(stored, { _id: { $oid: "507f1f77bcf86cd799439011" }, z: { $numberLong: "6" }, 1: "first", a: { $numberDouble: "1.0" } });

      // Somebody else is faster.
      await run({ update: "edited", updates: [{ q: { z: 6 }, u: { $set: { by: "grace" } } }] });
      await write(page, "The item as JSON", '{ "_id": {"$oid":"507f1f77bcf86cd799439011"}, "by": "me" }');
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByRole("heading", { name: "Somebody else changed this item" }).waitFor();
      await page.getByRole("button", { name: "Overwrite with yours" }).click();
      await page.getByRole("button", { name: "Discard" }).waitFor({ state: "detached" });
      assert.equal((await run({ count: "edited", query: { by: "me" } })).n, 1);

      await page.getByRole("button", { name: "New item" }).click();
      await text.getByText("name").waitFor();
      await write(page, "The item as JSON", '{ "_id": "mine", "user": "me" }');
      await page.getByRole("button", { name: "Make it" }).click();
      await page.getByRole("heading", { name: "mine" }).waitFor();
      assert.equal(await count("edited"), 3);
      await page.getByRole("button", { name: "Delete this item" }).click();
      await page.getByText("Deleting “mine” from edited").waitFor();
      // Carried out when the time to undo is over.
      await until(async () => (await count("edited")) === 2);
      await done(page);
    });

    test("documents come from a file, and keep their types", async () => {
      await insert("filed", [{ _id: 1, n: "old" }]);
      const page = await open("c/shop/filed/items");
      await rows(page).first().waitFor();
      await page.getByRole("button", { name: "Upload items from a file" }).click();
      await page.getByLabel("Replace items that are there").check();
      const text = '[{"_id":1,"n":{"$numberLong":"7"}},{"at":{"$date":"2026-01-02T03:04:05Z"}}]';
      await page.getByLabel("File", { exact: true }).setInputFiles({ name: "items.json", mimeType: "application/json", buffer: Buffer.from(text) });
      await page.getByRole("button", { name: "Upload 2 items" }).click();
      await page.getByText("2 of 2 written").waitFor();
      const found = (await run({ find: "filed", sort: { _id: 1 }, projection: { _id: 0 } })).cursor.firstBatch;
      assert.deepEqual(found, [{ n: { $numberLong: "7" } }, { at: { $date: "2026-01-02T03:04:05Z" } }]);
      await done(page);
    });

    test("indexes are made and dropped", async () => {
      await insert("indexed", [{ _id: 1 }]);
      const page = await open("c/shop/indexed/indexes");
      await page.getByRole("cell", { name: "_id_", exact: true }).waitFor();
      await page.getByLabel("Key", { exact: true }).fill('{ "b": 1, "a": -1 }');
      await page.getByLabel("Unique").check();
      await page.getByRole("button", { name: "Make index" }).click();
      await page.getByRole("cell", { name: "b_1_a_-1", exact: true }).waitFor();
      await page.getByText("unique", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Drop b_1_a_-1" }).click();
      await page.getByRole("button", { name: "Drop the index" }).click();
      await page.getByText("Dropped b_1_a_-1").waitFor();
      assert.equal((await run({ listIndexes: "indexed" })).cursor.firstBatch.length, 1);
      await done(page);
    });

    test("a read-only key shows collections, and offers no change", async () => {
      await insert("looked", [{ _id: 1, at: date(await clock()) }]);
      await run({ createIndexes: "looked", indexes: [{ key: { at: 1 }, name: "at_1", expireAfterSeconds: 86_400 }] });
      const page = await open("c/shop/looked/items?item=1", { key: READ_ONLY_KEY });
      await page.getByText("left").first().waitFor();
      for (const name of ["New item", "Save", "Delete this item"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
      await page.goto(`${server().endpoint}_explorer/#/c/shop/looked/ttl`);
      await page.getByRole("cell", { name: "1 d after the date" }).waitFor();
      for (const name of ["Change", "Drop at_1", "Make TTL index"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
      await done(page);
    });
  });
}
