// Users, their permissions, and what the tokens of these let their bearers do.

import { test } from "node:test";
import assert from "node:assert/strict";
import { CosmosClient, PermissionMode } from "@azure/cosmos";
import { overBothSchemes, refused } from "./harness.js";

/** A client that has nothing but tokens. Over http: what a token may do does not depend on the scheme. */
const bearer = (resourceTokens) => new CosmosClient({ endpoint: process.env.MAYFLY_TEST_HTTP, resourceTokens });

overBothSchemes("users and permissions", (account) => {
  const withUser = (name, use) =>
    test(name, () =>
      account.withContainer({}, async (container) => {
        const { user } = await container.database.users.create({ id: "ada" });
        await container.items.create({ id: "1", pk: "mine" });
        await container.items.create({ id: "2", pk: "other" });
        await use(container, user);
      }),
    );

  withUser("users are created, listed, renamed and deleted", async ({ database }, user) => {
    await refused(409, database.users.create({ id: "ada" }));
    await database.users.upsert({ id: "emmy" });
    const { resources } = await database.users.readAll().fetchAll();
    assert.deepEqual(resources.map(({ id }) => id).sort(), ["ada", "emmy"]);
    await user.replace({ id: "kurt" });
    assert.equal((await database.user("kurt").read()).resource.id, "kurt");
    await database.user("kurt").delete();
    await refused(404, database.user("kurt").read());
  });

  withUser("a token to read reads and writes nothing", async (container, user) => {
    const { resource } = await user.permissions.create({
      id: "read",
      permissionMode: PermissionMode.Read,
      resource: container.url,
    });
    assert.equal(resource.permissionMode, PermissionMode.Read);
    const theirs = bearer({ [container.url]: resource._token }).database(container.database.id).container("c");
    assert.equal((await theirs.item("1", "mine").read()).resource.id, "1");
    await refused(403, theirs.items.create({ id: "3", pk: "mine" }));
    await refused(403, theirs.item("1", "mine").delete());
  });

  withUser("a token to one partition reaches no other", async (container, user) => {
    const { resource } = await user.permissions.create({
      id: "all",
      permissionMode: PermissionMode.All,
      resource: container.url,
      resourcePartitionKey: ["mine"],
    });
    const theirs = bearer({ [container.url]: resource._token }).database(container.database.id).container("c");
    await theirs.items.create({ id: "3", pk: "mine" });
    assert.equal((await theirs.item("3", "mine").read()).resource.id, "3");
    await refused(403, theirs.item("2", "other").read());
    await refused(403, theirs.items.create({ id: "4", pk: "other" }));
  });

  withUser("a token of a permission that is not ours is refused", async (container) => {
    const theirs = bearer({ [container.url]: "type=resource&ver=1.0&sig=bm90aGluZw==;" });
    await assert.rejects(theirs.database(container.database.id).container("c").item("1", "mine").read(), ({ code }) =>
      [401, 403].includes(code),
    );
  });

  withUser("permissions are listed, replaced and deleted", async (container, user) => {
    const all = { id: "p", permissionMode: PermissionMode.All, resource: container.url };
    const { permission } = await user.permissions.create(all);
    await refused(409, user.permissions.create({ ...all, id: "q" }));
    await permission.replace({ ...all, permissionMode: PermissionMode.Read });
    const { resources } = await user.permissions.readAll().fetchAll();
    assert.deepEqual(
      resources.map(({ id, permissionMode }) => [id, permissionMode]),
      [["p", PermissionMode.Read]],
    );
    await permission.delete();
    await refused(404, permission.read());
  });
});
