// A client for each scheme, containers that clean up after themselves, and a clock that tests can move.
// Where the servers are stands in the environment; `cargo xtask test sdk` sets it.

import { readFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { Agent } from "node:https";
import { describe } from "node:test";
import assert from "node:assert/strict";
import { CosmosClient } from "@azure/cosmos";

const { MAYFLY_TEST_KEY: key, MAYFLY_TEST_HTTP: http, MAYFLY_TEST_HTTPS: https } = process.env;

const clients = {
  http: () => new CosmosClient({ endpoint: http, key }),
  https: () =>
    new CosmosClient({
      endpoint: https,
      key,
      agent: new Agent({ ca: readFileSync(process.env.MAYFLY_TEST_CA), keepAlive: true }),
    }),
};

/** Runs the tests of `body` once over each scheme, with a maker of containers. */
export function overBothSchemes(name, body) {
  for (const [scheme, connect] of Object.entries(clients)) {
    describe(`${name}, ${scheme}`, () => body(new Account(connect())));
  }
}

/** The server with files and the machine's own clock. */
export function onDisk() {
  return new Account(new CosmosClient({ endpoint: process.env.MAYFLY_TEST_DISK, key }));
}

class Account {
  constructor(client) {
    this.client = client;
  }

  /** Gives `use` a fresh database, and removes it afterwards. */
  async withDatabase(use) {
    const { database } = await this.client.databases.create({ id: `db-${randomUUID()}` });
    try {
      await use(database);
    } finally {
      await database.delete();
    }
  }

  /** Gives `use` a fresh container; what `definition` does not say has a default. */
  withContainer(definition, use) {
    return this.withDatabase(async (database) => {
      const { container } = await database.containers.create({
        id: "c",
        partitionKey: { paths: ["/pk"] },
        ...definition,
      });
      await use(container);
    });
  }
}

async function moveClock(change) {
  const answer = await fetch(`${http}_mayfly/clock`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify(change),
  });
  assert.equal(answer.status, 200);
}

/** Runs `use` while the clock of the server in memory stands still, but for what `use` advances it. */
export async function withClock(use) {
  await moveClock({ freeze: true });
  try {
    await use((seconds) => moveClock({ advanceSeconds: seconds }));
  } finally {
    await moveClock({ freeze: false });
  }
}

/** Asserts that a promise is refused with this status. */
export async function refused(status, promise) {
  await assert.rejects(promise, (error) => {
    assert.equal(error.code, status, `${error.code}: ${error.message}`);
    return true;
  });
}

/** Whether an item is there: the answers of a point read and of a list, which must agree. */
export async function there(container, id = "1", partition = "p") {
  const { statusCode } = await container.item(id, partition).read();
  assert.ok(statusCode === 200 || statusCode === 404, `${statusCode}`);
  const { resources } = await container.items.readAll().fetchAll();
  const listed = resources.some((item) => item.id === id);
  assert.equal(listed, statusCode === 200);
  return statusCode === 200;
}
