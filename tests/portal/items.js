// Items of containers: the grid, the panel with an item's life, conflicts, deleting with a way back, files.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { axe, comesTo } from "./harness.js";

export function itemTests({ server, container, open, done, rows, editor, write }) {
  describe("items", () => {
    test("the life of an item is explained, and changed by buttons", async () => {
      const store = await container("life", { defaultTtl: 3600 }, [{ id: "x" }]);
      const read = async () => (await store.item("x", "a").read()).resource;
      const first = await read();
      await server().advance(600);
      const page = await open("c/shop/life/items?item=x&pk=%5B%22a%22%5D");
      await page.getByText(`_ts ${first._ts}`).waitFor();
      await page.getByText("It has no ttl of its own, so the container's default counts.").waitFor();
      await page.getByText(/^(49|50) min/).first().waitFor();

      await page.getByRole("button", { name: "Restart countdown" }).click();
      await page.getByText("The countdown starts again").waitFor();
      await page.getByText(/^(59 min|1 h).* left$/).waitFor();
      assert.ok((await read())._ts >= first._ts + 600);

      await page.getByRole("button", { name: "Never expire" }).click();
      await page.getByText("Pinned:").first().waitFor();
      assert.equal((await read()).ttl, -1);

      await page.getByRole("button", { name: "Expire in…" }).click();
      await page.getByLabel("How long from now").fill("2 d");
      await page.getByRole("button", { name: "Set it" }).click();
      await page.getByText("Its own ttl counts").waitFor();
      assert.equal((await read()).ttl, 172_800);

      await page.getByRole("button", { name: "Use default" }).click();
      await page.getByText("the container's default counts.").first().waitFor();
      assert.equal((await read()).ttl, undefined);
      assert.deepEqual(await axe(page), []);

      // Its time comes while it is being looked at.
      await server().advance(3600);
      await page.getByTestId("container-size").filter({ hasText: "0 documents" }).waitFor();
      await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 0);
      await page.reload();
      await page.getByText("This item is gone").waitFor();
      await done(page);
    });

    test("an item is made, edited, and a conflict is shown and settled", async () => {
      const store = await container("edit");
      const page = await open("c/shop/edit/items");
      await page.getByText("No items").waitFor();
      await page.keyboard.press("Alt+n");
      await page.keyboard.press("i");
      await write(page, "The item as JSON", '{"id": "1", "pk": "zoë", "n": 1}');
      await page.getByRole("button", { name: "Make it" }).click();
      await page.getByText("Made “1”").waitFor();
      await page.getByRole("gridcell", { name: "zoë" }).waitFor();

      await page.getByText(/^etag/).waitFor();
      await write(page, "The item as JSON", '{"id": "1", "pk": "zoë", "n": "mine"}');
      await store.item("1", "zoë").replace({ id: "1", pk: "zoë", n: "theirs" });
      await page.keyboard.press("ControlOrMeta+s");
      const dialog = page.getByRole("dialog", { name: "Somebody else changed this item" });
      await dialog.locator(".diff-line.mine").filter({ hasText: '"mine"' }).waitFor();
      await dialog.locator(".diff-line.theirs").filter({ hasText: '"theirs"' }).waitFor();
      assert.deepEqual(await axe(page), []);
      assert.equal((await store.item("1", "zoë").read()).resource.n, "theirs", "nothing was overwritten");
      await dialog.getByRole("button", { name: "Overwrite with yours" }).click();
      await page.getByText("Saved “1”").waitFor();
      assert.equal((await store.item("1", "zoë").read()).resource.n, "mine");

      await store.item("1", "zoë").replace({ id: "1", pk: "zoë", n: "theirs again" });
      await write(page, "The item as JSON", '{"id": "1", "pk": "zoë", "n": "mine again"}');
      await page.keyboard.press("ControlOrMeta+s");
      await dialog.getByRole("button", { name: "Take theirs" }).click();
      await editor(page, "The item as JSON").getByText('"theirs again"').waitFor();
      assert.equal((await store.item("1", "zoë").read()).resource.n, "theirs again");

      await write(page, "The item as JSON", '{"id": "1", "pk": "zoë", "n": }');
      await comesTo(true, () => page.getByRole("button", { name: "Save", exact: true }).isDisabled());
      await done(page);
    });

    test("a deletion can be undone, and without that is carried out", async () => {
      const store = await container("delete", {}, Array.from({ length: 6 }, (_, n) => ({ id: `${n}` })));
      const page = await open("c/shop/delete/items");
      await rows(page).nth(5).waitFor();
      const select = (id) => rows(page).filter({ has: page.getByRole("gridcell", { name: id, exact: true }) }).getByRole("checkbox").click();
      await select("1");
      await select("3");
      await page.getByText("2 items selected").waitFor();
      await page.keyboard.press("Alt+d");
      await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 4);
      await page.getByRole("button", { name: "Undo" }).click();
      await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 6);
      assert.equal((await store.items.readAll().fetchAll()).resources.length, 6);

      await select("2");
      await page.getByRole("button", { name: "Delete the selected items" }).click();
      await page.getByText("Deleted 1 item from delete").waitFor({ timeout: 20_000 });
      assert.deepEqual((await store.items.readAll().fetchAll()).resources.map((each) => each.id).sort(), ["0", "1", "3", "4", "5"]);

      // Whoever leaves meant it.
      await select("4");
      await page.getByText("1 item selected").waitFor();
      await page.keyboard.press("Alt+d");
      await page.getByRole("button", { name: "Undo" }).waitFor();
      await page.goto(`${server().endpoint}alive`);
      for (let n = 0; n < 50 && (await store.items.readAll().fetchAll()).resources.length > 4; n++) await new Promise((done) => setTimeout(done, 100));
      assert.deepEqual((await store.items.readAll().fetchAll()).resources.map((each) => each.id).sort(), ["0", "1", "3", "5"]);
      await done(page);
    });

    test("a filter works, its errors are said in place, and it is in the address", async () => {
      await container("filter", {}, [{ id: "1", n: 1 }, { id: "2", n: 2 }, { id: "3", n: 3 }]);
      const page = await open("c/shop/filter/items");
      await rows(page).nth(2).waitFor();
      await page.keyboard.press("ControlOrMeta+Shift+f");
      await page.keyboard.insertText("c.n >= 2");
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 2);
      await page.reload();
      await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 2);
      await page.getByRole("combobox", { name: "Filter" }).fill("c.n >=");
      await page.keyboard.press("Enter");
      await page.getByText("The filter is not right.").waitFor();
      await page.goBack();
      await page.waitForFunction(() => document.querySelectorAll(".grid-row").length === 2);
      await done(page);
    });

    test("columns are chosen and kept, rows are sorted, and the selected ones are taken along", async () => {
      await container("columns", { defaultTtl: 600 }, [{ id: "1", ttl: 50, deep: { n: 5 } }, { id: "2", ttl: 40, deep: { n: 7 } }, { id: "3", ttl: -1, deep: { n: 6 } }]);
      const page = await open("c/shop/columns/items");
      await rows(page).nth(2).waitFor();
      await page.getByRole("button", { name: "Choose columns" }).click();
      await page.getByRole("textbox", { name: "Another path" }).fill("/other");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      assert.deepEqual(await axe(page), []);
      await page.keyboard.press("Escape");
      const titles = () => page.getByRole("columnheader").allTextContents();
      await comesTo(["id", "/pk", "/deep/n", "/other", "Last write", "Expires in"], async () => (await titles()).filter(Boolean));
      const order = async () => (await rows(page).allTextContents()).map((text) => text[0]).join("");
      await page.getByRole("button", { name: "Expires in" }).click();
      await page.waitForURL(/sort=expires/);
      await comesTo("213", order);
      await page.getByRole("button", { name: "/deep/n" }).click();
      await page.getByRole("button", { name: /^\/deep\/n/ }).click();
      await page.waitForURL(/sort=-/);
      await page.reload();
      await rows(page).nth(2).waitFor();
      await comesTo("231", order);
      assert.ok((await titles()).includes("/other"), "kept over a reload");
      await rows(page).nth(0).getByRole("checkbox").click();
      await rows(page).nth(1).getByRole("checkbox").click();
      const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
      assert.equal(readFileSync(await file.path(), "utf8").trim().split("\r\n").length, 3);
      const [json] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "JSON" }).click()]);
      assert.deepEqual(JSON.parse(readFileSync(await json.path(), "utf8")).map((each) => each.id), ["2", "3"]);
      await done(page);
    });

    test("items come from a file, with an account of those that did not get in", async () => {
      const store = await container("upload", {}, [{ id: "1", n: "old" }]);
      const page = await open("c/shop/upload/items");
      await rows(page).first().waitFor();
      const lines = ['{"id":"1","pk":"a","n":"new"}', '{"id":"2","pk":"b","big":12345678901234567}', '{"id":"3","pk":"a","ttl":5}'];
      const file = (text) => page.getByLabel("File", { exact: true }).setInputFiles({ name: "items.ndjson", mimeType: "application/x-ndjson", buffer: Buffer.from(text) });
      await page.getByRole("button", { name: "Upload items from a file" }).click();
      await file('{"id":"1"}\n{oops');
      await page.getByText(/^Line 2: /).waitFor();
      await comesTo(true, () => page.getByRole("button", { name: "Upload", exact: true }).isDisabled());
      await file(lines.join("\n"));
      await page.getByRole("button", { name: "Upload 3 items" }).click();
      await page.getByText("2 of 3 written, 1 refused").waitFor();
      await page.getByText(/Item 1: .*Status 409/).waitFor();
      assert.deepEqual(await axe(page), []);
      await page.getByRole("button", { name: "Close", exact: true }).last().click();
      await rows(page).nth(2).waitFor();
      assert.equal((await store.item("1", "a").read()).resource.n, "old");
      await page.getByRole("button", { name: "Upload items from a file" }).click();
      await page.getByLabel("Replace items that are there").check();
      await file(`[${lines.join(",")}]`);
      await page.getByRole("button", { name: "Upload 3 items" }).click();
      await page.getByText("3 of 3 written").waitFor();
      assert.equal((await store.item("1", "a").read()).resource.n, "new");
      await done(page);
    });

    test("the grid is worked by keyboard", async () => {
      await container("keys", {}, Array.from({ length: 30 }, (_, n) => ({ id: String(n).padStart(2, "0") })));
      const page = await open("c/shop/keys/items");
      await rows(page).nth(5).waitFor();
      await page.getByRole("grid").focus();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press(" ");
      await page.keyboard.press("Shift+ArrowDown");
      await page.getByText("2 items selected").waitFor();
      await page.keyboard.press("ControlOrMeta+a");
      await page.getByText("30 items selected").waitFor();
      await page.keyboard.press("Home");
      await page.keyboard.press("Enter");
      await page.getByRole("region", { name: "Item 00" }).waitFor();
      await done(page);
    });
  });
}
