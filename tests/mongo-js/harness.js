// A client, databases that clean up after themselves, and a clock that tests can move.
// Where the servers are stands in the environment; `cargo xtask test mongo` sets it.

import { randomUUID } from "node:crypto";
import assert from "node:assert/strict";
import { MongoClient } from "mongodb";

export const { MAYFLY_TEST_MONGO: url, MAYFLY_TEST_MONGO_LOCKED: lockedUrl, MAYFLY_TEST_MONGO_LOCKED_KEY: lockedKey } =
  process.env;
const { MAYFLY_TEST_KEY: key, MAYFLY_TEST_HTTP: http } = process.env;

/** A name that nobody else uses. */
export function freshName() {
  return `db-${randomUUID()}`;
}

/** Gives `use` a client and a fresh database, and removes the database afterwards. */
export async function withDatabase(use) {
  const client = new MongoClient(url);
  const database = client.db(freshName());
  try {
    await use(database, client);
  } finally {
    await database.dropDatabase();
    await client.close();
  }
}

/** Gives `use` a fresh collection. */
export function withCollection(use) {
  return withDatabase(async (database, client) => use(await database.createCollection("c"), client));
}

async function moveClock(change) {
  const answer = await fetch(`${http}_mayfly/clock`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify(change),
  });
  assert.equal(answer.status, 200);
  return answer.json();
}

/** Runs `use` while the clock stands still, but for what `use` advances it; `advance(0)` tells the time in seconds. */
export async function withClock(use) {
  await moveClock({ freeze: true });
  try {
    await use(async (seconds) => (await moveClock({ advanceSeconds: seconds })).unixSeconds);
  } finally {
    await moveClock({ freeze: false });
  }
}

/** Asserts that a promise is refused with this code. */
export async function refused(code, promise) {
  await assert.rejects(promise, (error) => {
    assert.equal(error.code, code, `${error.code}: ${error.message}`);
    return true;
  });
}
