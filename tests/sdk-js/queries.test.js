// Queries, and what they give when items expire.

import { test } from "node:test";
import assert from "node:assert/strict";
import { overBothSchemes, refused, withClock } from "./harness.js";

const PEOPLE = [
  ["Ada", 36, "London"],
  ["Alan", 41, "London"],
  ["Emmy", 53, "Göttingen"],
  ["Kurt", 71, "Wien"],
];

async function rows(container, query, options) {
  const { resources } = await container.items.query(query, options).fetchAll();
  return resources;
}

overBothSchemes("queries", (account) => {
  const amongPeople = (name, use) =>
    test(name, () =>
      account.withContainer({}, async (container) => {
        for (const [name, age, pk] of PEOPLE) await container.items.create({ id: name, name, age, pk });
        await use(container);
      }),
    );

  amongPeople("filters, parameters, order", async (people) => {
    assert.equal((await rows(people, "SELECT * FROM c")).length, 4);
    const query = "SELECT VALUE c.name FROM c WHERE c.age > @age ORDER BY c.age DESC";
    const parameters = [{ name: "@age", value: 40 }];
    assert.deepEqual(await rows(people, { query, parameters }), ["Kurt", "Emmy", "Alan"]);
    assert.deepEqual(await rows(people, { query, parameters }, { partitionKey: "London" }), ["Alan"]);
  });

  amongPeople("a null parameter is null", async (people) => {
    await people.items.create({ id: "Nobody", name: null, pk: "" });
    const query = (operator) => `SELECT VALUE c.id FROM c WHERE c.name ${operator} @name ORDER BY c.id`;
    const parameters = [{ name: "@name", value: null }];
    assert.deepEqual(await rows(people, { query: query("="), parameters }), ["Nobody"]);
    assert.deepEqual(await rows(people, { query: query("!="), parameters }), ["Ada", "Alan", "Emmy", "Kurt"]);
  });

  amongPeople("aggregates", async (people) => {
    assert.deepEqual(await rows(people, "SELECT VALUE COUNT(1) FROM c"), [4]);
    assert.deepEqual(await rows(people, "SELECT VALUE AVG(c.age) FROM c WHERE c.pk = 'London'"), [38.5]);
    const groups = await rows(people, "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk");
    assert.deepEqual(new Map(groups.map(({ pk, n }) => [pk, n])).get("London"), 2);
  });

  amongPeople("pages", async (people) => {
    const pages = people.items.query("SELECT VALUE c.age FROM c ORDER BY c.age", { maxItemCount: 3 });
    const ages = [];
    while (pages.hasMoreResults()) ages.push(...((await pages.fetchNext()).resources ?? []));
    assert.deepEqual(ages, [36, 41, 53, 71]);
  });

  amongPeople("what is no query is refused", (people) => refused(400, rows(people, "SELECT FROM WHERE")));

  test("rows and counts leave out what has expired", () =>
    account.withContainer({ defaultTtl: 10 }, (container) =>
      withClock(async (advance) => {
        for (let n = 0; n < 6; n++) {
          await container.items.create({ id: `${n}`, pk: "p", n, ...(n % 2 ? { ttl: 5 } : {}) });
        }
        const both = async () => [
          await rows(container, "SELECT VALUE c.n FROM c ORDER BY c.n"),
          await rows(container, "SELECT VALUE COUNT(1) FROM c"),
        ];
        await advance(4);
        assert.deepEqual(await both(), [[0, 1, 2, 3, 4, 5], [6]]);
        await advance(1);
        assert.deepEqual(await both(), [[0, 2, 4], [3]]);
        await advance(5);
        assert.deepEqual(await both(), [[], [0]]);
      }),
    ));
});
