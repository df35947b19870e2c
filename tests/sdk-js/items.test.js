// Items one at a time, and the containers they live in.

import { test } from "node:test";
import assert from "node:assert/strict";
import { overBothSchemes, refused } from "./harness.js";

const item = (properties = {}) => ({ id: "1", pk: "p", ...properties });

overBothSchemes("items", (account) => {
  const inContainer = (name, definition, use) => test(name, () => account.withContainer(definition, use));

  inContainer("what is written is read", {}, async (container) => {
    const values = { text: "grüße 🦋", numbers: [0, -1, 2.5, 1e300], nothing: null, nested: { a: [{ b: true }] } };
    const { resource: created, statusCode } = await container.items.create(item(values));
    assert.equal(statusCode, 201);
    const { resource: found, etag } = await container.item("1", "p").read();
    for (const [name, value] of Object.entries(values)) assert.deepEqual(found[name], value);
    assert.equal(found._etag, created._etag);
    assert.equal(etag, created._etag);
  });

  inContainer("creating twice is refused, reading nothing is not an error", {}, async (container) => {
    await container.items.create(item());
    await refused(409, container.items.create(item()));
    assert.equal((await container.item("2", "p").read()).statusCode, 404);
    await refused(404, container.item("2", "p").replace({ ...item(), id: "2" }));
    await refused(404, container.item("2", "p").delete());
  });

  inContainer("replace, upsert, patch, delete", {}, async (container) => {
    const document = container.item("1", "p");
    assert.equal((await container.items.upsert(item({ n: 1 }))).statusCode, 201);
    assert.equal((await container.items.upsert(item({ n: 2 }))).statusCode, 200);
    assert.equal((await document.replace(item({ n: 3, list: [1, 3] }))).statusCode, 200);
    const { resource } = await document.patch([
      { op: "incr", path: "/n", value: 39 },
      { op: "add", path: "/list/1", value: 2 },
      { op: "set", path: "/deep", value: { yes: true } },
      { op: "remove", path: "/list/0" },
    ]);
    assert.deepEqual([resource.n, resource.list, resource.deep], [42, [2, 3], { yes: true }]);
    assert.equal((await document.delete()).statusCode, 204);
    assert.equal((await document.read()).statusCode, 404);
  });

  inContainer("an id may have a question mark", {}, async (container) => {
    await container.items.create(item({ id: "a?b=c" }));
    const document = container.item("a?b=c", "p");
    assert.equal((await document.read()).resource.id, "a?b=c");
    assert.equal((await document.replace(item({ id: "a?b=c", n: 1 }))).statusCode, 200);
    assert.equal((await document.delete()).statusCode, 204);
  });

  inContainer("a stale etag is refused", {}, async (container) => {
    const document = container.item("1", "p");
    const { etag: stale } = await container.items.create(item({ n: 1 }));
    await document.replace(item({ n: 2 }));
    const accessCondition = { type: "IfMatch", condition: stale };
    await refused(412, document.replace(item({ n: 3 }), { accessCondition }));
    await refused(412, document.delete({ accessCondition }));
    await refused(412, document.patch([{ op: "incr", path: "/n", value: 1 }], { accessCondition }));
    assert.equal((await document.read()).resource.n, 2);
  });

  inContainer("read all goes through all pages", {}, async (container) => {
    for (let n = 0; n < 25; n++) await container.items.create({ id: `${n}`, pk: `${n % 3}` });
    const pages = container.items.readAll({ maxItemCount: 10 });
    const ids = new Set();
    while (pages.hasMoreResults()) {
      const { resources = [] } = await pages.fetchNext();
      assert.ok(resources.length <= 10);
      resources.forEach(({ id }) => ids.add(id));
    }
    assert.equal(ids.size, 25);
  });

  const unique = { uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } };
  inContainer("unique keys are unique in a partition", unique, async (container) => {
    await container.items.create(item({ email: "a" }));
    await refused(409, container.items.create({ ...item({ email: "a" }), id: "2" }));
    await container.items.create({ id: "2", pk: "other", email: "a" });
  });

  const hierarchical = { partitionKey: { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 } };
  inContainer("hierarchical keys", hierarchical, async (container) => {
    await container.items.create({ id: "1", tenant: "t", user: "u", n: 1 });
    assert.equal((await container.item("1", ["t", "u"]).read()).resource.n, 1);
    assert.equal((await container.item("1", ["t", "other"]).read()).statusCode, 404);
  });

  test("databases and containers", () =>
    account.withDatabase(async (database) => {
      await refused(409, account.client.databases.create({ id: database.id }));
      await database.containers.create({ id: "a", partitionKey: { paths: ["/pk"] }, defaultTtl: 60 });
      await refused(409, database.containers.create({ id: "a", partitionKey: { paths: ["/pk"] } }));
      assert.equal((await database.container("a").read()).resource.defaultTtl, 60);
      const { resources } = await database.containers.readAll().fetchAll();
      assert.deepEqual(
        resources.map(({ id }) => id),
        ["a"],
      );
      await database.container("a").delete();
      await refused(404, database.container("a").read());
    }));
});
