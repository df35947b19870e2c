// Time to live of containers: the three modes, the preview, the confirmation, and that what was said happens.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { axe, comesTo } from "./harness.js";

export function ttlTests({ server, database, container, open, done, rows }) {
  describe("time to live", () => {
    test("a container is made in the portal and gets each of the three modes", async () => {
      const page = await open("?dialog=new-container");
      await page.getByLabel("Database", { exact: true }).fill("shop");
      await page.getByLabel("Container id").fill("modes");
      await page.getByLabel("Partition key path").fill("/pk");
      await page.getByRole("button", { name: "Make container" }).click();
      await page.getByRole("heading", { name: "modes" }).waitFor();
      const ttl = async () => (await database().container("modes").read()).resource.defaultTtl;
      assert.equal(await ttl(), undefined);
      await page.getByRole("link", { name: "Time to Live" }).click();

      await page.getByRole("radio", { name: "On", exact: true }).check();
      await page.getByLabel("Time to live", { exact: true }).fill("1 h 30 min");
      await page.getByText("= 5,400 second(s)").waitFor();
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Now: On, 1 h 30 min").waitFor();
      assert.equal(await ttl(), 5400);

      await page.getByRole("radio", { name: "On (no default)" }).check();
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Now: On (no default)").waitFor();
      assert.equal(await ttl(), -1);

      await page.getByRole("radio", { name: "Off" }).check();
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Now: Off").waitFor();
      assert.equal(await ttl(), undefined);
      await page.locator(".history li").nth(2).waitFor();
      await comesTo(["Off", "On (no default)", "On, 1 h 30 min"], () => page.locator(".history b").allTextContents());
      await done(page);
    });

    test("what is not a time to live cannot be saved", async () => {
      await container("invalid");
      const page = await open("c/shop/invalid/ttl");
      await page.getByRole("radio", { name: "On", exact: true }).check();
      for (const text of ["", "0", "-5", "soon", "2147483648"]) {
        await page.getByLabel("Time to live", { exact: true }).fill(text);
        await comesTo(0, () => page.getByRole("button", { name: /^Save/ }).count(), text);
      }
      await page.getByLabel("Time to live", { exact: true }).fill("2147483647");
      await page.getByRole("button", { name: "Save", exact: true }).waitFor();
      await done(page);
    });

    test("the preview is right, has to be confirmed, and what it said happens", async () => {
      const documents = Array.from({ length: 20 }, (_, n) => ({ id: `old-${n}`, ...(n < 3 ? { ttl: -1 } : n < 7 ? { ttl: 7200 } : {}) }));
      const store = await container("preview", {}, documents);
      await server().advance(3600);
      for (let n = 0; n < 5; n++) await store.items.create({ id: `new-${n}`, pk: "a" });

      const page = await open("c/shop/preview/ttl?propose=1800");
      const cells = (bucket) => page.locator(`[data-bucket=${bucket}] .num`).first();
      await cells("expiresAtOnce").waitFor();
      // 13 old ones without a ttl; 5 new ones; 4 whose two hours are half over; 3 pinned.
      assert.equal(await cells("expiresAtOnce").textContent(), "13");
      assert.equal(await cells("expiresWithinHour").textContent(), "9");
      assert.equal(await cells("expiresWithinDay").textContent(), "0");
      assert.equal(await cells("neverExpires").textContent(), "3");
      assert.equal(await page.getByTestId("own-count").textContent(), "4");
      assert.equal(await page.getByTestId("pinned-count").textContent(), "3");
      await page.getByText("That is 52 % of the container").waitFor();
      assert.deepEqual(await axe(page), []);

      await page.getByRole("button", { name: /Save and expire 13 at once/ }).click();
      const confirm = page.getByRole("dialog");
      assert.equal(await confirm.getByRole("button", { name: "Save and let them expire" }).isDisabled(), true);
      await confirm.getByLabel("Type preview to confirm").fill("previe");
      assert.equal(await confirm.getByRole("button", { name: "Save and let them expire" }).isDisabled(), true);
      assert.equal((await store.read()).resource.defaultTtl, undefined, "nothing has happened yet");
      await confirm.getByLabel("Type preview to confirm").fill("preview");
      await confirm.getByRole("button", { name: "Save and let them expire" }).click();
      await page.getByText("Now: On, 30 min").waitFor();
      await page.getByText("12 documents", { exact: false }).first().waitFor();
      const { resources } = await store.items.readAll().fetchAll();
      assert.equal(resources.length, 12);

      // The clock goes on, and with it documents and counts.
      await server().advance(1800);
      await page.getByTestId("container-size").filter({ hasText: "7 documents" }).waitFor();
      await page.getByRole("link", { name: "Items", exact: true }).click();
      await rows(page).nth(6).waitFor();
      await comesTo(7, () => rows(page).count());
      await server().advance(3600);
      await page.getByTestId("container-size").filter({ hasText: "3 documents" }).waitFor();
      await comesTo(3, () => rows(page).count());
      await done(page);
    });

    test("the forecast says what goes when, and purge what it has done", async () => {
      const documents = Array.from({ length: 9 }, (_, n) => ({ id: `${n}`, ttl: n < 4 ? 1800 : n < 7 ? 90 * 60 : 3 * 86_400 }));
      await container("forecast", { defaultTtl: -1 }, documents);
      const page = await open("c/shop/forecast/ttl");
      const forecast = page.getByRole("region", { name: "Forecast" });
      await forecast.getByText("7 documents will expire within 24 hours").waitFor();
      await forecast.locator("figcaption").filter({ hasText: /: 4, 3, 0, 0/ }).waitFor({ state: "attached" });
      await forecast.locator("canvas").waitFor();
      await forecast.getByRole("button", { name: "By day" }).click();
      await forecast.getByText("9 documents will expire within 30 days").waitFor();
      await page.waitForURL(/by=day/);
      await forecast.locator("figcaption").filter({ hasText: /: 7, 0, 2, 0/ }).waitFor({ state: "attached" });
      const purge = page.getByRole("region", { name: "Purge" });
      const fact = (name) => purge.locator(".fact").filter({ hasText: name }).locator("dd");
      assert.match(await fact("Purged").textContent(), /^0/);
      await server().advance(1800);
      await fact("Purged").getByText(/^4/).waitFor();
      await fact("Backlog").getByText(/^0/).waitFor();
      await fact("Lag").getByText(/^0 s/).waitFor();
      await forecast.getByText("5 documents will expire within 30 days").waitFor();
      await done(page);
    });

    test("a change that expires a tenth or less is saved without typing", async () => {
      const store = await container("tenth", {}, [{ id: "old" }]);
      await server().advance(7200);
      for (let n = 0; n < 9; n++) await store.items.create({ id: `${n}`, pk: "a" });
      const page = await open("c/shop/tenth/ttl?propose=3600");
      await page.getByText("1 document (").waitFor();
      await page.getByText("That is 10 % of the container").waitFor();
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Now: On, 1 h").waitFor();
      assert.equal((await store.items.readAll().fetchAll()).resources.length, 9);
      await done(page);
    });

    test("a proposal can be reverted to from the history, after a look", async () => {
      const store = await container("revert", { defaultTtl: 60 });
      const { resource } = await store.read();
      await store.replace({ ...resource, defaultTtl: 3600 });
      const page = await open("c/shop/revert/ttl");
      await page.getByRole("button", { name: "Revert" }).click();
      await page.getByText("= 60 second(s)").waitFor();
      assert.match(page.url(), /propose=60/);
      assert.equal((await store.read()).resource.defaultTtl, 3600);
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Now: On, 1 min").waitFor();
      await done(page);
    });
  });
}
