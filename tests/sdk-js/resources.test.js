// Throughput, scripts, patches and definitions: what surrounds the items.

import { test } from "node:test";
import assert from "node:assert/strict";
import { overBothSchemes, refused } from "./harness.js";

overBothSchemes("resources", (account) => {
  const inContainer = (name, definition, use) => test(name, () => account.withContainer(definition, use));

  inContainer("throughput is read and changed", { throughput: 500 }, async (container) => {
    const { resource, offer } = await container.readOffer();
    assert.equal(resource.content.offerThroughput, 500);
    await offer.replace({ ...resource, content: { ...resource.content, offerThroughput: 900 } });
    assert.equal((await container.readOffer()).resource.content.offerThroughput, 900);
  });

  inContainer("throughput that scales by itself", { maxThroughput: 4000 }, async (container) => {
    const { resource } = await container.readOffer();
    assert.equal(resource.content.offerAutopilotSettings.maxThroughput, 4000);
  });

  const KINDS = [
    ["storedProcedures", "storedProcedure", {}],
    ["triggers", "trigger", { triggerType: "Pre", triggerOperation: "All" }],
    ["userDefinedFunctions", "userDefinedFunction", {}],
  ];
  for (const [many, one, more] of KINDS) {
    inContainer(`${many} are kept`, {}, async ({ scripts }) => {
      const script = { id: "s", body: "function () { return 1; }", ...more };
      const { resource } = await scripts[many].create(script);
      assert.equal(resource.body, script.body);
      await refused(409, scripts[many].create(script));
      await scripts[one]("s").replace({ ...script, body: "function () { return 2; }" });
      const { resources } = await scripts[many].readAll().fetchAll();
      assert.deepEqual(
        resources.map(({ id, body }) => [id, body]),
        [["s", "function () { return 2; }"]],
      );
      const query = { query: "SELECT * FROM s WHERE s.id = @id", parameters: [{ name: "@id", value: "s" }] };
      assert.equal((await scripts[many].query(query).fetchAll()).resources.length, 1);
      await scripts[one]("s").delete();
      await refused(404, scripts[one]("s").read());
    });
  }

  inContainer("all patch operations, and their conditions", {}, async (container) => {
    await container.items.create({ id: "1", pk: "p", n: 1, from: "here", list: [1, 2], old: true });
    const document = container.item("1", "p");
    const { resource } = await document.patch([
      { op: "add", path: "/added", value: { a: 1 } },
      { op: "set", path: "/set", value: null },
      { op: "replace", path: "/old", value: false },
      { op: "incr", path: "/n", value: 0.5 },
      { op: "remove", path: "/list/0" },
      { op: "move", from: "/from", path: "/to" },
    ]);
    const { added, set, old, n, list, to } = resource;
    assert.deepEqual({ added, set, old, n, list, to }, { added: { a: 1 }, set: null, old: false, n: 1.5, list: [2], to: "here" });
    assert.ok(!("from" in resource));
    const operations = [{ op: "incr", path: "/n", value: 1 }];
    await refused(412, document.patch({ condition: "FROM c WHERE c.n > 100", operations }));
    assert.equal((await document.patch({ condition: "FROM c WHERE c.n < 100", operations })).resource.n, 2.5);
    await refused(400, document.patch([{ op: "replace", path: "/missing", value: 1 }]));
    await refused(400, document.patch([{ op: "incr", path: "/to", value: 1 }]));
    await refused(400, document.patch(Array(11).fill(operations[0])));
  });

  inContainer("a partition is deleted as a whole", {}, async (container) => {
    for (const [id, pk] of [["1", "a"], ["2", "a"], ["3", "b"]]) await container.items.create({ id, pk });
    await container.deleteAllItemsForPartitionKey("a");
    const { resources } = await container.items.readAll().fetchAll();
    assert.deepEqual(
      resources.map(({ id }) => id),
      ["3"],
    );
  });

  const policy = { indexingMode: "consistent", includedPaths: [{ path: "/a/?" }], excludedPaths: [{ path: "/*" }] };
  inContainer("definitions are read back and replaced", { indexingPolicy: policy }, async (container) => {
    const { resource } = await container.read();
    assert.deepEqual(
      resource.indexingPolicy.includedPaths.map(({ path }) => path),
      ["/a/?"],
    );
    await container.replace({ ...resource, defaultTtl: 60 });
    assert.equal((await container.read()).resource.defaultTtl, 60);
    await refused(400, container.replace({ ...resource, partitionKey: { paths: ["/other"] } }));
    const query = { query: "SELECT * FROM r WHERE r.id = @id", parameters: [{ name: "@id", value: "c" }] };
    assert.equal((await container.database.containers.query(query).fetchAll()).resources.length, 1);
  });

  test("the account says who it is", async () => {
    const { resource } = await account.client.getDatabaseAccount();
    assert.equal(resource.consistencyPolicy, "Session");
    assert.equal(resource.writableLocations.length, 1);
  });
});
