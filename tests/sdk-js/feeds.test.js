// Change feeds of both modes, feed ranges, and containers of several partition key ranges.

import { test } from "node:test";
import assert from "node:assert/strict";
import { ChangeFeedMode, ChangeFeedPolicy, ChangeFeedRetentionTimeSpan, ChangeFeedStartFrom, StatusCodes } from "@azure/cosmos";
import { overBothSchemes, withClock } from "./harness.js";

const numbers = (count) => [...Array(count).keys()];

/** Reads a feed until it is drained; gives the rows and the last continuation. */
async function drained(container, options) {
  const feed = container.items.getChangeFeedIterator(options);
  const rows = [];
  for (;;) {
    const page = await feed.readNext();
    if (page.statusCode === StatusCodes.NotModified) return { rows, continuation: page.continuationToken };
    assert.ok(page.result.length <= (options.maxItemCount ?? Infinity));
    rows.push(...page.result);
  }
}

const ids = ({ rows }) => rows.map(({ id }) => id);

overBothSchemes("feeds", (account) => {
  const inContainer = (name, definition, use) => test(name, () => account.withContainer(definition, use));
  const several = { throughput: 11_000 };

  inContainer("from the beginning, a continuation, a time and now", {}, (container) =>
    withClock(async (advance) => {
      const from = (changeFeedStartFrom) => drained(container, { changeFeedStartFrom, maxItemCount: 2 });
      for (const n of numbers(5)) await container.items.create({ id: `${n}`, pk: "p" });
      const first = await from(ChangeFeedStartFrom.Beginning());
      assert.deepEqual(ids(first), ["0", "1", "2", "3", "4"]);
      await advance(10);
      const { resource } = await container.items.upsert({ id: "2", pk: "p" });
      assert.deepEqual(ids(await from(ChangeFeedStartFrom.Continuation(first.continuation))), ["2"]);
      assert.deepEqual(ids(await from(ChangeFeedStartFrom.Time(new Date((resource._ts - 5) * 1000)))), ["2"]);
      assert.deepEqual(ids(await from(ChangeFeedStartFrom.Now())), []);
    }),
  );

  inContainer("of one partition", {}, async (container) => {
    for (const n of numbers(6)) await container.items.create({ id: `${n}`, pk: `${n % 2}` });
    assert.deepEqual(ids(await drained(container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning("1") })), [
      "1",
      "3",
      "5",
    ]);
  });

  const logged = { changeFeedPolicy: new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(10)) };
  inContainer("all versions and deletes", { ...logged, defaultTtl: -1 }, (container) =>
    withClock(async (advance) => {
      const options = {
        changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes,
        changeFeedStartFrom: ChangeFeedStartFrom.Now(),
      };
      const feed = container.items.getChangeFeedIterator(options);
      assert.equal((await feed.readNext()).statusCode, StatusCodes.NotModified);
      await container.items.create({ id: "1", pk: "p", n: 1 });
      await container.items.upsert({ id: "1", pk: "p", n: 2 });
      await container.item("1", "p").delete();
      await container.items.create({ id: "brief", pk: "p", ttl: 5 });
      await advance(6);
      const seen = [];
      // Purge writes the expiry down in its own time; it is at work all the while.
      for (let tries = 0; tries < 200 && seen.length < 5; tries++) {
        const { result = [] } = await feed.readNext();
        seen.push(...result.map(({ metadata, current }) => [metadata.operationType, current?.n, metadata.timeToLiveExpired]));
      }
      assert.deepEqual(
        seen.map(([kind]) => kind),
        ["create", "replace", "delete", "create", "delete"],
      );
      assert.deepEqual([seen[0][1], seen[1][1]], [1, 2]);
      assert.equal(seen[4][2], true);
      assert.ok(!seen[2][2]);
    }),
  );

  inContainer("all versions of one partition show no other", logged, async (container) => {
    const feed = container.items.getChangeFeedIterator({
      changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes,
      changeFeedStartFrom: ChangeFeedStartFrom.Now("1"),
    });
    assert.equal((await feed.readNext()).statusCode, StatusCodes.NotModified);
    for (const n of numbers(6)) await container.items.create({ id: `${n}`, pk: `${n % 2}` });
    const { result } = await feed.readNext();
    assert.deepEqual(
      result.map(({ current }) => current.id),
      ["1", "3", "5"],
    );
  });

  inContainer("feed ranges split a container without gap or overlap", several, async (container) => {
    for (const n of numbers(60)) await container.items.create({ id: `${n}`, pk: `${n}` });
    const ranges = await container.getFeedRanges();
    assert.equal(ranges.length, 2);
    const parts = [];
    for (const range of ranges) {
      const part = await drained(container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning(range), maxItemCount: 7 });
      assert.ok(part.rows.length > 0 && part.rows.length < 60);
      parts.push(...ids(part));
    }
    assert.deepEqual(
      parts.map(Number).sort((a, b) => a - b),
      numbers(60),
    );
    const whole = await drained(container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
    assert.equal(whole.rows.length, 60);
  });

  inContainer("queries and bulk go over all ranges", several, async (container) => {
    const operations = numbers(120).map((n) => ({
      operationType: "Create",
      partitionKey: `${n}`,
      resourceBody: { id: `${n}`, pk: `${n}`, n },
    }));
    const results = await container.items.executeBulkOperations(operations);
    assert.ok(results.every(({ response }) => response?.statusCode === 201));
    const rows = async (query, options) => (await container.items.query(query, options).fetchAll()).resources;
    assert.equal((await rows("SELECT * FROM c", { maxItemCount: 13 })).length, 120);
    assert.equal((await rows("SELECT * FROM c WHERE c.n >= 20 AND c.n < 45")).length, 25);
    assert.deepEqual(await rows("SELECT VALUE c.n FROM c WHERE c.n = 77", { partitionKey: "77" }), [77]);
  });
});
