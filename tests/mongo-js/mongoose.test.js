// mongoose: schemas with indexes and lives, population, middleware and sessions, as applications use it.

import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import mongoose from "mongoose";
import { freshName, refused, url, withClock } from "./harness.js";

const { Schema } = mongoose;
const connection = mongoose.createConnection(url, { dbName: freshName() });

const Author = connection.model("Author", new Schema({ name: { type: String, unique: true, required: true }, born: Date }));
const Book = connection.model(
  "Book",
  new Schema(
    { title: { type: String, index: true }, author: { type: Schema.Types.ObjectId, ref: "Author" }, tags: [String], pages: Number },
    { timestamps: true },
  ),
);
const Session = connection.model("Session", new Schema({ user: String, seen: { type: Date, expires: 60 } }));

before(async () => {
  await connection.asPromise();
  await Promise.all([Author.init(), Book.init(), Session.init()]);
});

after(async () => {
  await connection.dropDatabase();
  await connection.close();
});

test("documents, validation, population", async () => {
  const ada = await Author.create({ name: "Ada" });
  await Book.create([{ title: "Notes", author: ada, tags: ["x"], pages: 60 }, { title: "Letters", author: ada._id, pages: 200 }]);
  const notes = await Book.findOne({ title: "Notes" }).populate("author");
  assert.equal(notes.author.name, "Ada");
  assert.ok(notes.createdAt instanceof Date);
  notes.tags.push("y");
  notes.pages += 1;
  await notes.save();
  assert.deepEqual((await Book.findById(notes._id).lean()).tags, ["x", "y"]);
  await assert.rejects(Author.create({}), /`name` is required/);
  await refused(11000, Author.create({ name: "Ada" }));
  assert.equal(await Book.countDocuments({ pages: { $gt: 100 } }), 1);
  const [{ sum }] = await Book.aggregate([{ $group: { _id: null, sum: { $sum: "$pages" } } }]);
  assert.equal(sum, 261);
});

test("two that save the same version", async () => {
  const book = await Book.create({ title: "Versions", tags: ["a", "b"] });
  const other = await Book.findById(book._id);
  book.tags = ["c"];
  await book.save();
  other.tags.set(1, "z");
  await assert.rejects(other.save(), { name: "VersionError" });
});

test("indexes of a schema", async () => {
  const [, seen] = await Session.listIndexes();
  assert.deepEqual([seen.key, seen.expireAfterSeconds], [{ seen: 1 }, 60]);
  assert.deepEqual(await Book.diffIndexes(), { toDrop: [], toCreate: [] });
});

test("a schema's `expires`", () =>
  withClock(async (advance) => {
    const now = await advance(0);
    await Session.create({ user: "ada", seen: new Date(Math.floor(now) * 1000) });
    await advance(59);
    assert.equal(await Session.countDocuments(), 1);
    await advance(1);
    assert.equal(await Session.countDocuments(), 0);
  }));

test("sessions", async () => {
  await assert.rejects(
    connection.transaction(async (session) => {
      await Author.create([{ name: "Bob" }], { session });
      throw new Error("no");
    }),
    /no/,
  );
  assert.equal(await Author.findOne({ name: "Bob" }), null);
  await connection.transaction((session) => Author.create([{ name: "Eve" }], { session }));
  assert.equal((await Author.findOne({ name: "Eve" })).name, "Eve");
});
