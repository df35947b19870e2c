// What `mayfly check` must find sound: the task that runs these tests checks the data directory when the server has ended.
// The database stays there for it.

import { test } from "node:test";
import assert from "node:assert/strict";
import { MongoClient } from "mongodb";
import { freshName, url } from "./harness.js";

test("indexes whose entries are computed, left behind with their documents", async () => {
  const client = new MongoClient(url);
  const collection = client.db(freshName()).collection("c");
  try {
    await collection.createIndex({ text: "text" });
    await collection.createIndex({ at: "2dsphere" });
    await collection.createIndex({ "$**": 1 });
    await collection.createIndex({ n: 1 }, { partialFilterExpression: { n: { $gt: 10 } } });
    const documents = Array.from({ length: 60 }, (_, n) => ({ _id: n, n, text: `some words ${n}`, at: [n, n], deep: { list: [n, { n }] } }));
    await collection.insertMany(documents);
    await collection.updateMany({ n: { $lt: 20 } }, { $set: { text: "changed", n: 50 }, $unset: { at: 1 } });
    await collection.deleteMany({ _id: { $gte: 40 } });
    assert.equal(await collection.countDocuments({ $text: { $search: "changed" } }), 20);
    assert.equal(await collection.countDocuments({ "deep.list.n": { $gt: 29 } }), 10);
  } finally {
    await client.close();
  }
});
