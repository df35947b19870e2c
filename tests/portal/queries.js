// Queries in SQL: running, stopping, keeping and taking away what they give.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { axe, comesTo } from "./harness.js";

export function queryTests({ server, container, open, done, rows, editor, write }) {
  describe("queries", () => {
    test("run, page, count, complain at the right place, and survive a reload", async () => {
      await container("query", {}, Array.from({ length: 12 }, (_, n) => ({ id: `${n}`, n, name: n % 2 ? "odd" : "even" })));
      const page = await open("c/shop/query/query");
      await editor(page, "Query").waitFor();
      await write(page, "Query", "SELECT c.id, c.n FROM c WHERE c.n < @max ORDER BY c.n;\nSELECT VALUE COUNT(1) FROM c");
      await page.getByRole("group", { name: "Parameters" }).getByRole("textbox").fill("5");
      await page.getByRole("button", { name: "Run" }).click();
      await page.getByText(/^1 row from query/).waitFor();
      await page.getByRole("gridcell", { name: "12" }).waitFor();

      // The statement at the cursor.
      await editor(page, "Query").focus();
      await page.keyboard.press("ControlOrMeta+Home");
      await page.keyboard.press("Shift+Enter");
      await page.getByText(/^5 rows from query/).waitFor();
      await page.getByRole("button", { name: "Query Stats" }).click();
      const names = () => page.locator(".stats tbody td:first-child").allTextContents();
      await comesTo(15, async () => (await names()).length);
      assert.deepEqual((await names()).slice(0, 4), ["Request Charge", "Showing Results", "Retrieved document count", "Retrieved document size"]);
      await page.getByRole("button", { name: "Plan" }).click();
      await page.getByText("Reads the index at /n").waitFor();
      await page.getByRole("button", { name: "JSON" }).first().click();
      await page.getByText('"n"').first().waitFor();

      const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
      assert.equal(readFileSync(await file.path(), "utf8").split("\r\n")[0], "id,n");

      // Another tab, then a reload: both texts are there.
      await page.keyboard.press("ControlOrMeta+j");
      await page.waitForURL(/query\/2/);
      // The address changes before the editor does.
      await editor(page, "Query").filter({ hasText: "SELECT * FROM c" }).waitFor();
      await write(page, "Query", "SELECT FROM");
      await page.keyboard.press("Shift+Enter");
      await page.getByText("The query was refused").waitFor();
      await page.getByText(/activity [0-9a-f-]{36}/).waitFor();
      await page.reload();
      await page.getByText("SELECT FROM").first().waitFor();
      await page.keyboard.press("Control+Alt+BracketLeft");
      await page.waitForURL(/query\/1/);
      await page.getByText("@max").first().waitFor();
      await page.keyboard.press("Control+Alt+KeyW");
      await page.waitForURL(/query\/2/);
      assert.deepEqual(await axe(page), []);
      await done(page);
    });

    test("what is selected is run, and completion knows the properties", async () => {
      await container("select", {}, [{ id: "1", colour: "red" }]);
      const page = await open("c/shop/select/query");
      await editor(page, "Query").waitFor();
      await write(page, "Query", "SELECT VALUE 1 SELECT VALUE 2");
      await page.keyboard.press("Home");
      for (let n = 0; n < "SELECT VALUE 1".length; n++) await page.keyboard.press("Shift+ArrowRight");
      await page.keyboard.press("Shift+Enter");
      await page.getByText(/^1 row from select/).waitFor();
      await write(page, "Query", "SELECT c");
      await page.keyboard.press("End");
      await page.keyboard.type(".col");
      await page.getByRole("option", { name: "colour" }).waitFor();
      await done(page);
    });

    test("a query that takes long is stopped, and leaves nothing behind", async () => {
      await container("slow", {}, [{ id: "1" }]);
      const page = await open("c/shop/slow/query");
      await editor(page, "Query").waitFor();
      // A network that holds what it was given until it is told.
      let letGo;
      const held = new Promise((done) => (letGo = done));
      await page.route("**/docs", async (route) => {
        if (route.request().headers()["x-ms-documentdb-isquery"]) await held;
        await route.continue().catch(() => undefined);
      });
      await page.keyboard.press("Shift+Enter");
      await page.getByRole("button", { name: "Cancel" }).waitFor();
      await page.getByText(/^Running… \d+ s$/).waitFor();
      const failed = page.waitForEvent("requestfailed");
      await page.keyboard.press("Escape");
      await failed;
      await page.getByRole("button", { name: "Run" }).waitFor();
      await page.getByText("Nothing run yet").waitFor();
      await page.keyboard.press("F5");
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("button", { name: "Run" }).waitFor();
      letGo();
      await page.keyboard.press("F5");
      await page.getByText(/^1 row from slow/).waitFor();
      await done(page);
    });

    test("a query is saved, opened in another tab after a reload, and forgotten", async () => {
      await container("saved");
      const page = await open("c/shop/saved/query");
      await editor(page, "Query").waitFor();
      await write(page, "Query", "SELECT VALUE 42");
      await page.keyboard.press("ControlOrMeta+s");
      await page.getByLabel("Name", { exact: true }).fill("The answer");
      await page.keyboard.press("Enter");
      await page.getByText("Saved “The answer” in this browser").waitFor();
      await page.reload();
      await editor(page, "Query").waitFor();
      await page.keyboard.press("ControlOrMeta+j");
      await page.waitForURL(/query\/2/);
      await editor(page, "Query").filter({ hasText: "SELECT * FROM c" }).waitFor();
      await page.getByRole("combobox", { name: "Open a saved query" }).selectOption("The answer");
      await editor(page, "Query").getByText("42").waitFor();
      await page.getByRole("button", { name: "Save the query" }).click();
      await page.getByRole("button", { name: "Forget The answer" }).click();
      await page.getByRole("button", { name: "Cancel" }).click();
      await comesTo(0, () => page.getByRole("combobox", { name: "Open a saved query" }).count());
      await done(page);
    });

    test("results stay with their container, and a row leads to its item there", async () => {
      await container("mine", {}, [{ id: "x", of: "mine" }]);
      await container("other", {}, [{ id: "x", of: "other" }]);
      const page = await open("c/shop/mine/query");
      await editor(page, "Query").waitFor();
      await page.keyboard.press("Shift+Enter");
      await page.getByText(/^1 row from mine/).waitFor();
      // The same key on the other container makes a tab of its own, with no results of this one.
      await page.getByRole("link", { name: /^other/ }).first().click();
      await page.getByRole("link", { name: "Query", exact: true }).click();
      await page.getByText("Nothing run yet").waitFor();
      await comesTo(0, () => page.getByRole("gridcell", { name: "mine" }).count());
      await page.keyboard.press("Shift+Enter");
      await page.getByText(/^1 row from other/).waitFor();
      // Back: what was found there is still there, and is edited there.
      await page.getByRole("navigation", { name: "Query tabs" }).getByRole("link", { name: /^mine/ }).click();
      await page.getByText(/^1 row from mine/).waitFor();
      await page.getByRole("gridcell", { name: "mine" }).click();
      await page.getByRole("link", { name: "Open the item" }).click();
      await page.waitForURL(/c\/shop\/mine\/items\?item=x/);
      await page.getByRole("textbox", { name: "The item as JSON" }).getByText('"mine"').waitFor();
      // A row that is not a whole item leads nowhere.
      await page.goto(`${server().endpoint}_explorer/#/c/shop/mine/query/1`);
      await write(page, "Query", "SELECT c.id, c.pk FROM c");
      await page.keyboard.press("Shift+Enter");
      await page.getByText(/^1 row from mine/).waitFor();
      await page.getByRole("columnheader", { name: "of" }).waitFor({ state: "detached" });
      await rows(page).first().click();
      await page.getByRole("heading", { name: "Row 1" }).waitFor();
      await comesTo(0, () => page.getByRole("link", { name: "Open the item" }).count());
      await done(page);
    });

    test("rows are downloaded as JSON, and the view stands in the address", async () => {
      await container("files", {}, [{ id: "1", list: [1, { a: "é" }] }]);
      const page = await open("c/shop/files/query");
      await editor(page, "Query").waitFor();
      await write(page, "Query", "SELECT c.id, c.list FROM c");
      await page.keyboard.press("Shift+Enter");
      await page.getByText(/^1 row from files/).waitFor();
      const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "JSON" }).last().click()]);
      assert.deepEqual(JSON.parse(readFileSync(await file.path(), "utf8")), [{ id: "1", list: [1, { a: "é" }] }]);
      await page.getByRole("button", { name: "Query Stats" }).click();
      await page.waitForURL(/view=stats/);
      await page.reload();
      await comesTo("true", () => page.getByRole("button", { name: "Query Stats" }).getAttribute("aria-pressed"));
      await done(page);
    });
  });
}
