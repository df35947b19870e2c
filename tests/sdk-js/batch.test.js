// Several operations in one request, and what changed since the last look.

import { test } from "node:test";
import assert from "node:assert/strict";
import { BulkOperationType, ChangeFeedStartFrom } from "@azure/cosmos";
import { overBothSchemes, withClock } from "./harness.js";

const item = (id, properties = {}) => ({ id, pk: "p", ...properties });
const create = (id) => ({ operationType: BulkOperationType.Create, resourceBody: item(id) });

overBothSchemes("batches and feeds", (account) => {
  const inContainer = (name, definition, use) => test(name, () => account.withContainer(definition, use));

  inContainer("a batch does everything", {}, async (container) => {
    await container.items.create(item("old", { n: 1 }));
    const { result } = await container.items.batch(
      [
        create("new"),
        { operationType: BulkOperationType.Upsert, resourceBody: item("old", { n: 2 }) },
        {
          operationType: BulkOperationType.Patch,
          id: "old",
          resourceBody: { operations: [{ op: "incr", path: "/n", value: 40 }] },
        },
        { operationType: BulkOperationType.Read, id: "old" },
        { operationType: BulkOperationType.Delete, id: "new" },
      ],
      "p",
    );
    assert.deepEqual(
      result.map(({ statusCode }) => statusCode),
      [201, 200, 200, 200, 204],
    );
    assert.equal(result[3].resourceBody.n, 42);
    assert.equal((await container.item("new", "p").read()).statusCode, 404);
  });

  inContainer("a batch is whole or not at all", {}, async (container) => {
    await container.items.create(item("taken"));
    const { result, code } = await container.items.batch([create("new"), create("taken"), create("never")], "p");
    assert.equal(code, 207);
    assert.deepEqual(
      result.map(({ statusCode }) => statusCode),
      [424, 409, 424],
    );
    assert.equal((await container.item("new", "p").read()).statusCode, 404);
  });

  inContainer("bulk operations stand alone", {}, async (container) => {
    await container.items.create(item("taken"));
    const operations = ["a", "taken", "b"].map((id) => ({ ...create(id), partitionKey: "p" }));
    const results = await container.items.executeBulkOperations(operations);
    assert.deepEqual(
      results.map(({ response, error }) => response?.statusCode ?? error.code),
      [201, 409, 201],
    );
  });

  inContainer("the change feed shows each item once and no expired one", { defaultTtl: 10 }, (container) =>
    withClock(async (advance) => {
      await container.items.create(item("first"));
      await container.items.create(item("brief", { ttl: 2 }));
      await container.items.create(item("second", { n: 1 }));
      await container.items.upsert(item("second", { n: 2 }));
      await advance(2);
      const feed = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
      const { result } = await feed.readNext();
      assert.deepEqual(
        result.map(({ id, n }) => [id, n]),
        [
          ["first", undefined],
          ["second", 2],
        ],
      );
      assert.equal((await feed.readNext()).statusCode, 304);
    }),
  );
});
