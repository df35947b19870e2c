// What is typed and not saved: it outlives everything but its document, its session and its tab.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SHOTS, axe, comesTo } from "./harness.js";

const LABEL = "The item as JSON";

export function draftTests({ server, container, open, done, rows, editor, write }) {
  /** Opens an item and changes its text. */
  const edited = async (coll, text, id = "x") => {
    const page = await open(`c/shop/${coll}/items?item=${id}&pk=%5B%22a%22%5D`);
    page.on("dialog", (dialog) => void dialog.accept());
    await page.getByText(/^etag/).waitFor();
    await write(page, LABEL, text);
    await page.getByText("Draft, not saved.").waitFor();
    return page;
  };
  /** By its id, in front of which a mark may stand. */
  const row = (page, id) => rows(page).filter({ has: page.getByRole("gridcell", { name: new RegExp(`^(Unsaved draft )?${id}$`) }) });
  const shows = (page, text) => editor(page, LABEL).getByText(text).waitFor();
  const keptIn = (page) => page.evaluate(() => Object.keys(sessionStorage).filter((name) => name.startsWith("mayfly.draft.")).length);

  describe("drafts", () => {
    test("an edit outlives a click on another row, another page and a reload, and is marked", async () => {
      const store = await container("drafts", {}, [{ id: "x", n: 1 }, { id: "y", n: 2 }]);
      const page = await edited("drafts", '{"id": "x", "pk": "a", "n": "typed"}');
      await row(page, "y").click();
      await shows(page, "2");
      await page.getByRole("img", { name: "Unsaved draft" }).waitFor();
      await comesTo(1, () => page.getByRole("img", { name: "Unsaved draft" }).count());
      await page.screenshot({ path: `${SHOTS}draft-marked.png` });
      assert.deepEqual(await axe(page), []);
      await page.getByRole("link", { name: "Query", exact: true }).first().click();
      await page.getByRole("link", { name: "Items", exact: true }).first().click();
      await rows(page).nth(1).waitFor();
      await page.reload();
      await page.getByRole("img", { name: "Unsaved draft" }).waitFor();
      await row(page, "x").click();
      await shows(page, '"typed"');
      await page.reload();
      await shows(page, '"typed"');
      assert.equal((await store.item("x", "a").read()).resource.n, 1, "nothing was saved behind one's back");
      await page.keyboard.press("ControlOrMeta+s");
      await page.getByText("Saved “x”").waitFor();
      assert.equal((await store.item("x", "a").read()).resource.n, "typed");
      await comesTo(0, () => page.getByRole("img", { name: "Unsaved draft" }).count());
      assert.equal(await keptIn(page), 0);
      await done(page);
    });

    test("closing asks: save, keep the draft, discard", async () => {
      const store = await container("draft-close", {}, [{ id: "x", n: 1 }]);
      const page = await edited("draft-close", '{"id": "x", "pk": "a", "n": "typed"}');
      const dialog = page.getByRole("dialog", { name: "Your changes are not saved" });
      const close = () => page.getByRole("button", { name: "Close the item" }).click();
      await close();
      await dialog.waitFor();
      await page.screenshot({ path: `${SHOTS}draft-close.png` });
      assert.deepEqual(await axe(page), []);
      await dialog.getByRole("button", { name: "Keep draft" }).click();
      await comesTo(0, () => editor(page, LABEL).count());
      await row(page, "x").click();
      await shows(page, '"typed"');
      await close();
      await dialog.getByRole("button", { name: "Discard" }).click();
      await row(page, "x").click();
      await shows(page, "1");
      assert.equal(await keptIn(page), 0);
      await write(page, LABEL, '{"id": "x", "pk": "a", "n": "saved"}');
      await close();
      await dialog.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved “x”").waitFor();
      assert.equal((await store.item("x", "a").read()).resource.n, "saved");
      // Nothing to ask about.
      await close();
      await comesTo(0, () => editor(page, LABEL).count());
      await done(page);
    });

    test("a button about its life leaves what was typed, and saving does not undo the button", async () => {
      const store = await container("draft-ttl", { defaultTtl: 3600 }, [{ id: "x", n: 1 }]);
      const page = await edited("draft-ttl", '{"id": "x", "pk": "a", "n": "typed"}');
      const read = async () => (await store.item("x", "a").read()).resource;
      await page.getByRole("button", { name: "Restart countdown" }).click();
      await page.getByText("The countdown starts again. Your changes are not saved yet").waitFor();
      await shows(page, '"typed"');
      await page.getByRole("button", { name: "Never expire" }).click();
      await page.getByText("Pinned: it never expires. Your changes are not saved yet").waitFor();
      await shows(page, '"typed"');
      await shows(page, "-1");
      assert.equal((await read()).n, 1);
      await page.keyboard.press("ControlOrMeta+s");
      await page.getByText("Saved “x”").waitFor();
      assert.deepEqual([(await read()).n, (await read()).ttl], ["typed", -1]);

      // A text that is not JSON just now cannot be put together with the button's change: saving it asks.
      await write(page, LABEL, '{"id": "x", "pk": "a", "n": ');
      await page.getByRole("button", { name: "Use default" }).click();
      await page.getByText("This item has changed since you began").waitFor();
      await page.keyboard.insertText('"later"}');
      await page.keyboard.press("ControlOrMeta+s");
      const dialog = page.getByRole("dialog", { name: "Somebody else changed this item" });
      await dialog.getByRole("button", { name: "Overwrite with yours" }).click();
      await page.getByText("Saved “x”").nth(1).waitFor();
      assert.deepEqual([(await read()).n, (await read()).ttl], ["later", undefined]);
      await done(page);
    });

    test("a draft of an item that was changed meanwhile says so, and overwrites nothing", async () => {
      const store = await container("draft-stale", {}, [{ id: "x", n: 1 }]);
      const page = await edited("draft-stale", '{"id": "x", "pk": "a", "n": "mine"}');
      await store.item("x", "a").replace({ id: "x", pk: "a", n: "theirs" });
      await page.reload();
      await page.getByText("This item has changed since you began").waitFor();
      await page.screenshot({ path: `${SHOTS}draft-stale.png` });
      await shows(page, '"mine"');
      await page.keyboard.press("ControlOrMeta+s");
      const dialog = page.getByRole("dialog", { name: "Somebody else changed this item" });
      await dialog.locator(".diff-line.theirs").filter({ hasText: '"theirs"' }).waitFor();
      assert.equal((await store.item("x", "a").read()).resource.n, "theirs");
      await dialog.getByRole("button", { name: "Take theirs" }).click();
      await shows(page, '"theirs"');
      assert.equal(await keptIn(page), 0);
      await done(page);
    });

    test("a draft does not outlive its item: open, elsewhere, or over a reload", async () => {
      await container("draft-life", { defaultTtl: 3600 }, [{ id: "x", n: 1 }, { id: "y" }, { id: "z", ttl: -1 }]);
      const page = await edited("draft-life", '{"id": "x", "pk": "a", "n": "secret"}');
      await comesTo(1, () => keptIn(page));
      await server().advance(3600);
      await page.getByText(/“x” expired at .* Your draft of it is gone with it/).waitFor();
      await page.getByText("This item is gone").waitFor();
      await page.screenshot({ path: `${SHOTS}draft-expired.png` });
      assert.equal(await keptIn(page), 0);
      assert.ok(!(await page.content()).includes("secret"));

      const other = await container("draft-life-2", { defaultTtl: 3600 }, [{ id: "x" }, { id: "z", ttl: -1 }]);
      await page.goto(`${server().endpoint}_explorer/#/c/shop/draft-life-2/items?item=x&pk=%5B%22a%22%5D`);
      await page.getByText(/^etag/).waitFor();
      await write(page, LABEL, '{"id": "x", "pk": "a", "n": "deleted"}');
      await page.getByText("Draft, not saved.").waitFor();
      await row(page, "z").click();
      await other.item("x", "a").delete();
      await page.reload();
      await page.goto(`${server().endpoint}_explorer/#/c/shop/draft-life-2/items?item=x&pk=%5B%22a%22%5D`);
      await page.getByText("“x” was deleted, or has expired. Your draft of it is gone with it.").waitFor();
      assert.equal(await keptIn(page), 0);
      await done(page);
    });

    test("signing out asks, and takes drafts along; leaving the page asks too", async () => {
      await container("draft-out", {}, [{ id: "x", n: 1 }]);
      const page = await edited("draft-out", '{"id": "x", "pk": "a", "n": "typed"}');
      const asked = new Promise((heard) => page.once("dialog", (dialog) => heard(dialog.type())));
      await page.reload();
      assert.equal(await asked, "beforeunload");
      await shows(page, '"typed"');
      await page.getByRole("button", { name: "Sign out" }).click();
      const dialog = page.getByRole("dialog", { name: "1 draft not saved" });
      assert.deepEqual(await axe(page), []);
      await dialog.getByRole("button", { name: "Stay" }).click();
      await shows(page, '"typed"');
      await page.getByRole("button", { name: "Sign out" }).click();
      await dialog.getByRole("button", { name: "Discard and sign out" }).click();
      await page.getByRole("button", { name: "Sign in" }).waitFor();
      assert.equal(await keptIn(page), 0);
      await done(page);
    });

    test("a new item, an indexing policy and a query are kept like an item", async () => {
      await container("draft-new", {}, []);
      const page = await open("c/shop/draft-new/items?new=1");
      page.on("dialog", (dialog) => void dialog.accept());
      await write(page, LABEL, '{"id": "half", "pk": ');
      await page.getByText("Draft, not saved.").waitFor();
      await page.goto(`${server().endpoint}_explorer/#/c/shop/draft-new/settings/indexing`);
      await editor(page, "Indexing policy").getByText("consistent").waitFor();
      await write(page, "Indexing policy", '{"indexingMode": "none", "typed');
      await page.getByRole("link", { name: "Items", exact: true }).first().click();
      await page.reload();
      await page.goto(`${server().endpoint}_explorer/#/c/shop/draft-new/items?new=1`);
      await shows(page, '"half"');
      await page.goto(`${server().endpoint}_explorer/#/c/shop/draft-new/settings/indexing`);
      await editor(page, "Indexing policy").getByText("typed").waitFor();
      await page.getByRole("button", { name: "Discard" }).click();
      await editor(page, "Indexing policy").getByText("consistent").waitFor();
      await done(page);
    });

    test("a document of a collection has drafts too", async () => {
      const client = server();
      await client.admin("mongo/shop", { insert: "draft-docs", documents: [{ _id: 1, n: 1 }, { _id: 2, n: 2 }] });
      const page = await open("c/shop/draft-docs/items?item=1");
      page.on("dialog", (dialog) => void dialog.accept());
      await shows(page, "n");
      await write(page, LABEL, '{"_id": 1, "n": "typed"}');
      await page.getByText("Draft, not saved.").waitFor();
      await row(page, "2").click();
      await page.getByRole("img", { name: "Unsaved draft" }).waitFor();
      await client.admin("mongo/shop", { update: "draft-docs", updates: [{ q: { _id: 1 }, u: { $set: { n: "theirs" } } }] });
      await page.reload();
      await row(page, "1").click();
      await page.getByText("This item has changed since you began").waitFor();
      await shows(page, '"typed"');
      await page.keyboard.press("ControlOrMeta+s");
      const dialog = page.getByRole("dialog", { name: "Somebody else changed this item" });
      await dialog.getByRole("button", { name: "Overwrite with yours" }).click();
      await page.getByText("Saved “1”").waitFor();
      assert.equal(await keptIn(page), 0);
      await done(page);
    });
  });
}
