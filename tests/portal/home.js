// The way in: how to reach the server, the tree, and making and deleting what is in it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { KEY, axe, comesTo } from "./harness.js";

export function homeTests({ server, database, container, open, done }) {
  describe("home and tree", () => {
    test("home tells how to connect, and copies it", async () => {
      const page = await open("");
      await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      const connect = page.getByRole("region", { name: "Connect", exact: true });
      await connect.getByText(server().endpoint, { exact: true }).waitFor();
      assert.equal(await page.getByText(KEY).count(), 0, "the key is shown only when asked for");
      const copied = async (name) => {
        await page.evaluate(() => navigator.clipboard.writeText(""));
        await page.getByRole("button", { name, exact: true }).click();
        await page.waitForFunction(async () => (await navigator.clipboard.readText()) !== "");
        return page.evaluate(() => navigator.clipboard.readText());
      };
      assert.equal(await copied("Copy the connection string"), `AccountEndpoint=${server().endpoint};AccountKey=${KEY};`);
      const { port } = (await server().admin("server")).mongo;
      assert.match(await copied("Copy the MongoDB connection string"), new RegExp(`^mongodb://.*localhost:${port}/`));
      for (const [language, part] of [["Python", "azure.cosmos"], ["JavaScript", "@azure/cosmos"], [".NET", "Microsoft.Azure.Cosmos"], ["Java", "CosmosClientBuilder"], ["curl", "_mayfly/ttl"]]) {
        await connect.getByRole("button", { name: language, exact: true }).click();
        await connect.getByLabel("Code", { exact: true }).getByText(part).waitFor();
      }
      await connect.getByRole("button", { name: "Show the key" }).click();
      await connect.getByText(KEY, { exact: true }).waitFor();

      const [file] = await Promise.all([page.waitForEvent("download"), connect.getByRole("link", { name: "Download" }).click()]);
      assert.match(readFileSync(await file.path(), "utf8"), /^-----BEGIN CERTIFICATE-----/);
      const { version } = await server().admin("server");
      for (const text of ["Healthy", version, "of the process", "free"]) await page.locator(".facts").getByText(text).waitFor();
      await done(page);
    });

    test("the tree counts what lives, and says how long", async () => {
      await container("counted", { defaultTtl: 60 }, [{ id: "1" }, { id: "2" }, { id: "stays", ttl: -1 }]);
      const page = await open("");
      const leaf = page.getByRole("link", { name: /^counted/ });
      await leaf.getByText("3", { exact: true }).waitFor();
      await leaf.getByText("1 min", { exact: true }).waitFor();
      assert.match(await leaf.getAttribute("title"), /^3 documents, \d+ B\. Time to live: On, 1 min$/);
      await server().advance(60);
      await leaf.getByText("1", { exact: true }).waitFor();
      await page.getByRole("button", { name: "shop", exact: true }).click();
      await leaf.waitFor({ state: "detached" });
      await done(page);
    });

    test("a container is made with everything the dialog offers, and shows it", async () => {
      const page = await open("");
      await page.getByText("Healthy").waitFor();
      await page.keyboard.press("Alt+n");
      await page.keyboard.press("c");
      await page.getByLabel("Database", { exact: true }).fill("shop");
      await page.getByLabel("Container id").fill("whole");
      await page.getByLabel("Partition key path", { exact: true }).fill("/tenant");
      await page.getByRole("button", { name: "Add a level" }).click();
      await page.getByLabel("Partition key path, level 2").fill("/user");
      await page.getByRole("button", { name: "Add a level" }).click();
      await page.getByLabel("Partition key path, level 3").fill("/session");
      await page.getByRole("radio", { name: "On", exact: true }).check();
      await page.getByLabel("Time to live", { exact: true }).fill("7 d");
      await page.getByLabel("Indexing", { exact: true }).selectOption({ index: 1 });
      await page.getByText("More", { exact: true }).click();
      await page.getByLabel("Unique keys").fill("/email\n/first, /last");
      assert.deepEqual(await axe(page), []);
      await page.getByRole("button", { name: "Make container" }).click();
      await page.getByRole("heading", { name: "whole" }).waitFor();
      const { resource } = await database().container("whole").read();
      assert.deepEqual(resource.partitionKey.paths, ["/tenant", "/user", "/session"]);
      assert.equal(resource.defaultTtl, 604_800);
      assert.deepEqual(resource.uniqueKeyPolicy.uniqueKeys.map((key) => key.paths), [["/email"], ["/first", "/last"]]);
      assert.deepEqual(resource.indexingPolicy.excludedPaths[0], { path: "/*" });
      await page.goto(`${server().endpoint}_explorer/#/c/shop/whole/settings/policies`);
      for (const path of ["/tenant", "/user", "/session", "/email", "/first, /last"]) await page.getByText(path, { exact: true }).waitFor();
      await page.getByText("conflictResolutionPolicy").waitFor();
      await done(page);
    });

    test("a database is made, and deleted by its name", async () => {
      const page = await open("");
      await page.getByText("Healthy").waitFor();
      await page.keyboard.press("Alt+n");
      await page.keyboard.press("d");
      await page.getByLabel("Database id").fill("passing");
      await page.getByRole("button", { name: "Make it" }).click();
      await page.getByText("Made database passing").waitFor();
      await server().client.database("passing").containers.create({ id: "c", partitionKey: { paths: ["/pk"] } });
      await server().client.database("passing").container("c").items.create({ id: "1", pk: "a" });
      await page.getByRole("button", { name: "passing", exact: true }).hover();
      await page.getByRole("link", { name: /^c 1/ }).waitFor();
      await page.getByRole("button", { name: "Delete database passing" }).click();
      await page.getByRole("dialog").getByText("1 document").first().waitFor();
      await comesTo(true, () => page.getByRole("button", { name: "Delete", exact: true }).isDisabled());
      await page.getByLabel("Type passing to confirm").fill("passing");
      await page.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByText("Deleted database passing").waitFor();
      const { resources } = await server().client.databases.readAll().fetchAll();
      assert.equal(resources.some((each) => each.id === "passing"), false);
      await done(page);
    });

    test("a key lists the keys, as they are in Azure's Data Explorer", async () => {
      const page = await open("");
      await page.getByText("Healthy").waitFor();
      await page.keyboard.press("?");
      const keys = page.getByRole("dialog", { name: "Keyboard" }).locator("kbd");
      const azure = ["Shift + Enter, F5", "Esc", "Ctrl + S", "Ctrl + J", "Alt + N, then I", "Alt + N, then Q", "Alt + N, then C", "Alt + N, then D", "Alt + D", "Ctrl + Shift + F", "Ctrl + Alt + [ or ]", "Ctrl + Alt + W"];
      await comesTo(azure, async () => (await keys.allTextContents()).slice(0, azure.length));
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await done(page);
    });

    test("an address that leads nowhere says so, and leads home", async () => {
      const page = await open("c/shop/nowhere/items");
      await page.getByText("There is no container nowhere").waitFor();
      await page.getByRole("link", { name: "Go home" }).click();
      await page.getByRole("heading", { name: "Home" }).waitFor();
      await done(page);
    });
  });
}
