// Time to live as the driver for JavaScript sends it: its numbers are int32 or double, and its dates have milliseconds.

import { test } from "node:test";
import assert from "node:assert/strict";
import { Double, Int32, Long } from "mongodb";
import { refused, withClock, withCollection } from "./harness.js";

const lives = [
  ["nothing", undefined, 10],
  ["a number", 5, 5],
  ["int32", new Int32(5), 5],
  ["double", new Double(5), 5],
  ["int64", Long.fromNumber(5), 5],
  ["a fraction", 20.5, 10],
  ["too large", 2147483649, 10],
  ["text", "5", 10],
  ["null", null, 10],
  ["pinned", -1, null],
];

for (const [name, ttl, life] of lives) {
  test(`ttl in a collection with a default: ${name}`, () =>
    withClock((advance) =>
      withCollection(async (collection) => {
        await collection.createIndex({ _ts: 1 }, { expireAfterSeconds: 10 });
        await collection.insertOne(ttl === undefined ? { _id: 1 } : { _id: 1, ttl });
        await advance(life === null ? 86_400 : life - 1);
        assert.equal(await collection.countDocuments(), 1);
        if (life !== null) {
          await advance(1);
          assert.equal(await collection.countDocuments(), 0);
          assert.equal(await collection.findOne(), null);
        }
      }),
    ));
}

test("dates with milliseconds expire to the millisecond, not before", () =>
  withClock((advance) =>
    withCollection(async (collection) => {
      await collection.createIndex({ at: 1 }, { expireAfterSeconds: 0 });
      const now = Math.ceil(await advance(0));
      await advance(now - (await advance(0)));
      await collection.insertOne({ _id: 1, at: new Date(now * 1000 + 1500) });
      await advance(1.4);
      assert.equal(await collection.countDocuments(), 1);
      await advance(0.7);
      assert.equal(await collection.countDocuments(), 0);
    }),
  ));

test("what is expired does not come back when the rule goes", () =>
  withClock((advance) =>
    withCollection(async (collection) => {
      await collection.createIndex({ _ts: 1 }, { expireAfterSeconds: 10 });
      await collection.insertMany([{ _id: 1 }, { _id: 2, ttl: 100 }]);
      await advance(10);
      await collection.dropIndex("_ts_1");
      assert.deepEqual(await collection.distinct("_id"), [2]);
      await refused(27, collection.dropIndex("_ts_1"));
    }),
  ));
