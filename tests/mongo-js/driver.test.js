// MongoDB's driver for JavaScript: what it does differently from the one for Python, and the ways most used.

import { test } from "node:test";
import assert from "node:assert/strict";
import { GridFSBucket, Long, MongoClient, ObjectId } from "mongodb";
import { lockedKey, lockedUrl, refused, withCollection, withDatabase } from "./harness.js";

test("documents in and out", () =>
  withCollection(async (collection) => {
    const { insertedId } = await collection.insertOne({ a: 1, when: new Date(5), big: Long.fromString("9007199254740993") });
    assert.ok(insertedId instanceof ObjectId);
    assert.equal((await collection.findOne({ _id: insertedId }, { promoteLongs: false })).big.toString(), "9007199254740993");
    await collection.insertMany([{ _id: 1, a: 2 }, { _id: 2, a: 3 }]);
    assert.deepEqual(await collection.find({ a: { $gte: 2 } }).sort({ a: -1 }).project({ _id: 0 }).toArray(), [{ a: 3 }, { a: 2 }]);
    const updated = await collection.updateMany({ _id: { $in: [1, 2] } }, { $inc: { a: 10 } });
    assert.deepEqual([updated.matchedCount, updated.modifiedCount], [2, 2]);
    assert.deepEqual(await collection.findOneAndUpdate({ _id: 1 }, { $set: { b: 1 } }, { returnDocument: "after" }), { _id: 1, a: 12, b: 1 });
    assert.equal((await collection.deleteOne({ _id: 1 })).deletedCount, 1);
    assert.equal(await collection.countDocuments(), 2);
    await refused(11000, collection.insertOne({ _id: 2 }));
    await refused(9, collection.updateOne({}, { $nothing: { a: 1 } }));
  }));

test("a bulk that fails in the middle says where", () =>
  withCollection(async (collection) => {
    const operations = [1, 2, 1, 3].map((_id) => ({ insertOne: { document: { _id } } }));
    await assert.rejects(collection.bulkWrite(operations, { ordered: false }), (error) => {
      assert.equal(error.writeErrors.length, 1);
      assert.equal(error.writeErrors[0].index, 2);
      assert.equal(error.result.insertedCount, 3);
      return true;
    });
  }));

test("aggregation in batches", () =>
  withCollection(async (collection) => {
    await collection.insertMany(Array.from({ length: 1000 }, (_, n) => ({ _id: n, k: n % 7 })));
    const groups = await collection.aggregate([{ $group: { _id: "$k", n: { $sum: 1 } } }, { $sort: { _id: 1 } }], { batchSize: 2 }).toArray();
    assert.deepEqual(groups.map((group) => group.n), [143, 143, 143, 143, 143, 143, 142]);
    let seen = 0;
    for await (const document of collection.find({}, { batchSize: 100 })) {
      assert.equal(document._id, seen);
      seen += 1;
    }
    assert.equal(seen, 1000);
  }));

test("indexes", () =>
  withCollection(async (collection) => {
    await collection.createIndexes([{ key: { a: 1 }, unique: true }, { key: { b: -1, c: 1 }, name: "bc" }]);
    assert.deepEqual((await collection.indexes()).map((index) => index.name), ["_id_", "a_1", "bc"]);
    await collection.insertOne({ a: 1 });
    await refused(11000, collection.insertOne({ a: 1 }));
    await collection.dropIndex("bc");
    assert.equal(await collection.indexExists("bc"), false);
  }));

test("transactions", () =>
  withCollection(async (collection, client) => {
    await collection.insertMany([{ _id: "a", balance: 10 }, { _id: "b", balance: 0 }]);
    const move = (amount) =>
      client.withSession((session) =>
        session.withTransaction(async () => {
          await collection.updateOne({ _id: "a" }, { $inc: { balance: -amount } }, { session });
          await collection.updateOne({ _id: "b" }, { $inc: { balance: amount } }, { session });
          const { balance } = await collection.findOne({ _id: "a" }, { session });
          if (balance < 0) throw new Error("not enough");
        }),
      );
    await move(7);
    await assert.rejects(move(7), /not enough/);
    assert.deepEqual(await collection.find().sort({ _id: 1 }).toArray(), [{ _id: "a", balance: 3 }, { _id: "b", balance: 7 }]);
    // Ten at once want the same two documents: the driver tries again until each has had its turn.
    await Promise.all(Array.from({ length: 10 }, () => client.withSession((session) =>
      session.withTransaction(() => collection.updateOne({ _id: "a" }, { $inc: { balance: 1 } }, { session })))));
    assert.equal((await collection.findOne({ _id: "a" })).balance, 13);
  }));

test("change streams", () =>
  withCollection(async (collection) => {
    const stream = collection.watch([], { fullDocument: "updateLookup" });
    // The stream begins with its first look.
    assert.equal(await stream.tryNext(), null);
    await collection.insertOne({ _id: 1 });
    await collection.updateOne({ _id: 1 }, { $set: { a: 1 } });
    const insert = await stream.next();
    assert.deepEqual([insert.operationType, insert.fullDocument], ["insert", { _id: 1 }]);
    await stream.close();
    const resumed = collection.watch([], { resumeAfter: insert._id });
    const update = await resumed.next();
    assert.deepEqual([update.operationType, update.updateDescription.updatedFields], ["update", { a: 1 }]);
    await resumed.close();
  }));

test("files", () =>
  withDatabase(async (database) => {
    const bucket = new GridFSBucket(database, { chunkSizeBytes: 1000 });
    const content = Buffer.alloc(4500, "mayfly");
    const upload = bucket.openUploadStream("f");
    await new Promise((resolve, reject) => upload.on("finish", resolve).on("error", reject).end(content));
    const parts = [];
    for await (const part of bucket.openDownloadStreamByName("f")) parts.push(part);
    assert.ok(Buffer.concat(parts).equals(content));
    assert.equal(await database.collection("fs.chunks").countDocuments(), 5);
  }));

test("passwords", async () => {
  const connect = (password) => new MongoClient(lockedUrl, { auth: { username: "mayfly", password }, serverSelectionTimeoutMS: 5000 });
  const client = connect(lockedKey);
  assert.equal((await client.db("admin").command({ ping: 1 })).ok, 1);
  await client.db("admin").command({ listDatabases: 1 });
  await client.close();
  const stranger = connect("wrong");
  await refused(18, stranger.db("admin").command({ listDatabases: 1 }));
  await stranger.close();
});

test("compression", () =>
  withDatabase(async (database) => {
    const client = new MongoClient(process.env.MAYFLY_TEST_MONGO, { compressors: ["zlib"] });
    const collection = client.db(database.databaseName).collection("c");
    await collection.insertOne({ _id: 1, x: "x".repeat(100_000) });
    assert.equal((await collection.findOne()).x.length, 100_000);
    await client.close();
  }));
