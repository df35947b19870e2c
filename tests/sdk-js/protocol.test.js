// What the protocol promises around items: sessions, budgets, usage, policies, permissions.

import { test } from "node:test";
import assert from "node:assert/strict";
import { CosmosClient, PermissionMode } from "@azure/cosmos";
import { overBothSchemes, refused } from "./harness.js";

overBothSchemes("protocol", (account) => {
  // One from the future this SDK leaves out when it tries again, so only the nonsense is seen to be refused.
  test("session tokens are read", () =>
    account.withContainer({}, async (container) => {
      const { headers } = await container.items.create({ id: "1", pk: "p" });
      const read = (sessionToken) => container.item("1", "p").read({ sessionToken });
      assert.equal((await read(headers["x-ms-session-token"])).statusCode, 200);
      await refused(400, read("nonsense"));
    }));

  test("a container says how much it holds", () =>
    account.withContainer({}, async (container) => {
      await container.items.create({ id: "1", pk: "p" });
      const { headers } = await container.read({ populateQuotaInfo: true });
      assert.match(headers["x-ms-resource-usage"], /documentsCount=1;/);
    }));

  test("an etag spares a read", () =>
    account.withContainer({}, async (container) => {
      const { resource } = await container.items.create({ id: "1", pk: "p" });
      const accessCondition = { type: "IfNoneMatch", condition: resource._etag };
      const { statusCode } = await container.item("1", "p").read({ accessCondition });
      assert.equal(statusCode, 304);
    }));

  test("policies are refused with a reason", () =>
    account.withDatabase(async (database) => {
      const make = (members) =>
        database.containers.create({ id: "c", partitionKey: { paths: ["/pk"] }, ...members });
      await refused(400, make({ computedProperties: [{ name: "n", query: "SELECT c.a FROM c" }] }));
      await refused(400, make({ indexingPolicy: { spatialIndexes: [{ path: "/p/*", types: [] }] } }));
      await refused(400, make({ conflictResolutionPolicy: { mode: "Dice" } }));
    }));

  test("a token of a permission reaches its container only", () =>
    account.withDatabase(async (database) => {
      for (const id of ["mine", "other"]) {
        await database.containers.create({ id, partitionKey: { paths: ["/pk"] } });
      }
      const mine = database.container("mine");
      await mine.items.create({ id: "1", pk: "p" });
      const { user } = await database.users.create({ id: "u" });
      const { resource } = await user.permissions.create({
        id: "p",
        permissionMode: PermissionMode.Read,
        resource: mine.url,
      });
      const endpoint = process.env.MAYFLY_TEST_HTTP;
      const guest = new CosmosClient({ endpoint, resourceTokens: { [mine.url]: resource._token } });
      const theirs = guest.database(database.id).container("mine");
      assert.equal((await theirs.item("1", "p").read()).statusCode, 200);
      await refused(403, theirs.items.create({ id: "2", pk: "p" }));
    }));
});

test("a container is held to its request units", async () => {
  const endpoint = process.env.MAYFLY_TEST_LIMITED;
  const client = new CosmosClient({
    endpoint,
    key: process.env.MAYFLY_TEST_KEY,
    connectionPolicy: { retryOptions: { maxRetryAttemptCount: 0 } },
  });
  const move = (change) =>
    fetch(`${endpoint}_mayfly/clock`, {
      method: "POST",
      headers: { authorization: `Bearer ${process.env.MAYFLY_TEST_KEY}` },
      body: JSON.stringify(change),
    });
  await move({ freeze: true });
  const { database } = await client.databases.create({ id: `db-${process.pid}` });
  try {
    const { container } = await database.containers.create(
      { id: "c", partitionKey: { paths: ["/pk"] } },
      { offerThroughput: 400 },
    );
    let spent = 0;
    const spend = async () => {
      for (let n = 0; n < 1000; n++) {
        spent += (await container.items.create({ id: `${n}`, pk: "p" })).requestCharge;
      }
    };
    await assert.rejects(spend, (error) => error.code === 429 && error.substatus === 3200);
    assert.ok(spent >= 400 && spent < 410, `${spent}`);
  } finally {
    await database.delete();
    await move({ freeze: false });
  }
});
