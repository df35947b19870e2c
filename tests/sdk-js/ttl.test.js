// Time to live: the rule, its boundaries, and what happens when it changes. Nothing here sleeps but the last test.

import { test } from "node:test";
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { onDisk, overBothSchemes, refused, there, withClock } from "./harness.js";

const MAX = 2147483647;
const OFF = undefined;
const YEARS = 100 * 365 * 86400;

// What an item with some `ttl` (or none) does in a container with some default: its life in seconds, or for ever.
const MATRIX = [
  [OFF, OFF, Infinity],
  [OFF, -1, Infinity],
  [OFF, 5, Infinity],
  [-1, OFF, Infinity],
  [-1, -1, Infinity],
  [-1, 5, 5],
  [10, OFF, 10],
  [10, -1, Infinity],
  [10, 5, 5],
  [10, 20, 20],
];

const item = (id = "1", ttl = OFF) => (ttl === OFF ? { id, pk: "p" } : { id, pk: "p", ttl });

/** Replaces the container's definition with one that has this default. */
async function setDefault(container, defaultTtl) {
  const { resource } = await container.read();
  await container.replace({ ...resource, defaultTtl });
}

overBothSchemes("time to live", (account) => {
  const timed = (name, definition, use) =>
    test(name, () => account.withContainer(definition, (container) => withClock((advance) => use(container, advance))));

  for (const [defaultTtl, own, life] of MATRIX) {
    timed(`default ${defaultTtl}, own ${own}: ${life} seconds`, { defaultTtl }, async (container, advance) => {
      await container.items.create(item("1", own));
      await advance(Number.isFinite(life) ? life - 1 : YEARS);
      assert.ok(await there(container));
      if (Number.isFinite(life)) {
        await advance(1);
        assert.ok(!(await there(container)));
      }
    });
  }

  timed("invalid values are refused, also where nothing expires", { defaultTtl: -1 }, async (container) => {
    const invalid = [0, -10, null, 2.5, "x", MAX + 1];
    for (const ttl of invalid) await refused(400, container.items.create({ ...item(), ttl }));
    await setDefault(container, OFF);
    for (const ttl of invalid) await refused(400, container.items.upsert({ ...item(), ttl }));
    await container.items.upsert({ ...item(), ttl: MAX });
  });

  test("invalid defaults are refused", async () => {
    for (const defaultTtl of [0, -10, 2.5, "x", MAX + 1]) {
      await refused(
        400,
        account.withContainer({ defaultTtl }, () => assert.fail()),
      );
    }
    // Null is a way to say nothing.
    await account.withContainer({ defaultTtl: null }, async (container) => {
      assert.ok(!("defaultTtl" in (await container.read()).resource));
    });
  });

  timed("every write starts the countdown anew", { defaultTtl: 10 }, async (container, advance) => {
    await container.items.create(item());
    await advance(9);
    await container.item("1", "p").replace(item());
    await advance(9);
    await container.item("1", "p").patch([{ op: "set", path: "/n", value: 1 }]);
    await advance(9);
    assert.ok(await there(container));
    await advance(1);
    assert.ok(!(await there(container)));
    assert.equal((await container.items.create(item())).statusCode, 201);
  });

  for (const next of [OFF, -1, 1000]) {
    timed(`expiry is final when the default becomes ${next}`, { defaultTtl: 10 }, async (container, advance) => {
      await container.items.create(item("default"));
      await container.items.create(item("own", 10));
      await container.items.create(item("later", 500));
      await advance(10);
      await setDefault(container, next);
      assert.ok(!(await there(container, "default")));
      assert.ok(!(await there(container, "own")));
      assert.ok(await there(container, "later"));
    });
  }

  timed("a new default holds for items that are there", {}, async (container, advance) => {
    await container.items.create(item());
    await container.items.create(item("pinned", -1));
    await advance(100);
    await setDefault(container, 101);
    assert.ok(await there(container));
    await advance(1);
    assert.ok(!(await there(container)));
    assert.ok(await there(container, "pinned"));
  });
});

test("in real time and on disk", () =>
  onDisk().withContainer({ defaultTtl: 2 }, async (container) => {
    const { resource } = await container.items.create(item());
    const deadline = (resource._ts + 2) * 1000;
    let visible;
    while (Date.now() < deadline + 500) {
      const before = Date.now();
      visible = (await container.item("1", "p").read()).statusCode === 200;
      // An answer that cannot have been given on the other side of the deadline must be the right one.
      if (Date.now() < deadline) assert.ok(visible);
      if (before >= deadline) assert.ok(!visible);
      await sleep(50);
    }
    assert.equal(visible, false);
    assert.equal((await container.items.create(item())).statusCode, 201);
  }));
