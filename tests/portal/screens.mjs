// Pictures of every page, light and dark, large and small, in `shots/`: to be looked at. Each is also checked by axe.

import { KEY, SHOTS, axe, newPage, startBrowser, startServer } from "./harness.js";

/** Pages by name; `prepare` brings one into the state worth seeing. */
export const SCREENS = [
  ["home", "#/"],
  ["items", "#/c/sample/carts/items"],
  ["item", "#/c/sample/carts/items?item=cart-002&pk=%5B%22grace%22%5D"],
  ["upload", "#/c/sample/carts/items", async (page) => page.getByRole("button", { name: "Upload items from a file" }).click()],
  ["columns", "#/c/sample/carts/items?sort=expires", async (page) => page.getByRole("button", { name: "Choose columns" }).click()],
  ["ttl", "#/c/sample/carts/ttl"],
  ["ttl-preview", "#/c/sample/carts/ttl?propose=600"],
  ["scale", "#/c/sample/carts/settings/scale"],
  ["indexing", "#/c/sample/carts/settings/indexing"],
  ["policies", "#/c/sample/carts/settings/policies"],
  ["query", "#/c/sample/carts/query/1", async (page) => {
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText(/rows? .*from carts/).waitFor();
  }],
  ["query-plan", "#/c/sample/carts/query/1", async (page) => page.getByRole("button", { name: "Plan" }).click()],
  ["feed", "#/c/sample/carts/feed?from=beginning"],
  ["collection-items", "#/c/sample/sessions/items"],
  ["collection-item", "#/c/sample/sessions/items?item=2"],
  ["collection-query", "#/c/sample/sessions/query/2", async (page) => {
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText(/documents? from sessions/).waitFor();
  }],
  ["collection-plan", "#/c/sample/sessions/query/2", async (page) => {
    await page.getByRole("button", { name: "Plan" }).click();
    await page.getByText("looked at for").waitFor();
  }],
  ["collection-ttl", "#/c/sample/sessions/ttl", async (page) => {
    await page.getByLabel("Field", { exact: true }).fill("seen");
    await page.getByLabel("expireAfterSeconds").fill("30 min");
    await page.getByRole("region", { name: "Preview" }).waitFor();
  }],
  ["collection-indexes", "#/c/sample/sessions/indexes"],
  ["collection-feed", "#/c/sample/sessions/feed?from=beginning"],
  ["metrics", "#/metrics"],
  ["new-container", "#/?dialog=new-container"],
  ["shortcuts", "#/?dialog=shortcuts"],
];

export async function takeScreens(server, browser, only) {
  const problems = [];
  for (const [look, options] of [["light", {}], ["dark", { dark: true }], ["small", { width: 360, height: 740 }], ["wide", { width: 2560, height: 1440 }]]) {
    const page = await newPage(browser, { ...options, key: KEY });
    await page.addInitScript(() => {
      if (!localStorage.getItem("mayfly.tabs")) {
        localStorage.setItem("mayfly.tabs", JSON.stringify([{ id: "1", db: "sample", coll: "carts", title: "Dear carts", text: 'SELECT c.id, c.user, c.total, c.paid\nFROM c\nWHERE c.total > @least AND c.user = "ada"\nORDER BY c.total DESC', parameters: { "@least": "50" } }, { id: "2", db: "sample", coll: "sessions", title: "By user", text: '[\n  { "$match": { "user": { "$in": ["ada", "grace"] } } },\n  { "$group": { "_id": "$user", "sessions": { "$sum": 1 } } }\n]', parameters: {} }]));
      }
    });
    for (const [name, hash, prepare] of SCREENS) {
      if (only && !only.includes(name)) continue;
      // A dialog of the page before would stay: its address is the same.
      await page.keyboard.press("Escape");
      await page.goto(`${server.endpoint}_explorer/${hash}`);
      await page.waitForLoadState("networkidle").catch(() => undefined);
      await prepare?.(page);
      await page.waitForTimeout(name === "metrics" ? 2500 : 300);
      await page.screenshot({ path: `${SHOTS}${name}-${look}.png` });
      if (look === "light" || look === "dark") for (const each of await axe(page)) problems.push(`${name} ${look}: ${each}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) problems.push(`${name} ${look}: ${wide} px wider than the window`);
    }
    problems.push(...page.complaints.map((each) => `${look}: ${each}`));
    await page.context().close();
  }
  return problems;
}

/** The sample of the home page, with some life behind it. */
export async function loadSample(server, browser) {
  const page = await newPage(browser, { key: KEY });
  await page.goto(`${server.endpoint}_explorer/`);
  await page.getByRole("button", { name: "Load sample data" }).click();
  await page.getByRole("grid").waitFor();
  await page.context().close();
  const { unixSeconds } = await server.admin("clock");
  const users = ["ada", "grace", "linus", "barbara"];
  const date = (seconds) => ({ $date: { $numberLong: String(Math.floor(seconds) * 1000) } });
  const sessions = Array.from({ length: 40 }, (_, n) => ({ _id: n, user: users[n % 4], at: date(unixSeconds + n * 600), seen: date(unixSeconds - n * 120), visits: n * 3 }));
  await server.admin("mongo/sample", { insert: "sessions", documents: sessions });
  await server.admin("mongo/sample", { createIndexes: "sessions", indexes: [{ key: { at: 1 }, name: "at_1", expireAfterSeconds: 3600 }, { key: { user: 1, visits: -1 }, name: "user_1_visits_-1" }] });
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const server = await startServer();
  const browser = await startBrowser();
  try {
    await loadSample(server, browser);
    await server.advance(900);
    const carts = server.client.database("sample").container("carts");
    for (let n = 0; n < 30; n++) await carts.items.upsert({ id: `late-${n}`, user: "ada", total: n * 3 });
    const login = await newPage(browser);
    await login.goto(server.endpoint);
    await login.waitForTimeout(300);
    await login.screenshot({ path: `${SHOTS}signin-light.png` });
    const problems = await takeScreens(server, browser, process.argv.slice(2).length ? process.argv.slice(2) : undefined);
    console.log(problems.length === 0 ? "no problems" : problems.join("\n"));
  } finally {
    await browser.close();
    await server.stop();
  }
}
