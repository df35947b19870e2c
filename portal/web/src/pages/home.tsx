// Home: how to reach this server, how it is, and something to begin with.

import { useState } from "preact/hooks";
import { moveClock, serverInfo } from "../api/admin";
import { createContainer, createDatabase, createItem } from "../api/cosmos";
import { ApiError } from "../api/http";
import { exactDuration, parseDuration, shortDuration } from "../lib/duration";
import { bytes, count, plural, utc } from "../lib/format";
import { databases, refreshCatalog } from "../state/catalog";
import { clock, now, standsStill, tellClock } from "../state/clock";
import { href, inContainer, go, withParams } from "../state/route";
import { credential, readOnly } from "../state/session";
import { failed, toast } from "../state/toasts";
import { Button, Failure, Notice, inputValue } from "../ui/controls";
import { useEvery, useLoad } from "../ui/load";
import { Connect, ConnectMongo } from "./connect";

export function Home() {
  const who = credential.value;
  if (who?.kind === "token") {
    const [, db = "", , coll = ""] = who.link.split("/");
    return (
      <div class="page stack">
        <h1>Welcome</h1>
        <div class="card stack">
          <p>Your token leads to the container <b>{coll}</b> of database <b>{db}</b>{who.readOnly ? ", to read" : ""}. It ends at {utc(who.expiresAt)}.</p>
          <div><a class="button primary" href={inContainer(db, coll, "items")}>Open {coll}</a></div>
        </div>
      </div>
    );
  }
  const empty = databases.value?.length === 0;
  return (
    <div class="page stack">
      <div class="row wrap">
        <h1 class="grow">Home</h1>
        {!readOnly.value && <Button icon="plus" kind={empty ? "plain" : "primary"} onClick={() => go(withParams({ dialog: "new-container" }))}>New container</Button>}
      </div>
      {empty && !readOnly.value && <Begin />}
      <Health />
      <div class="columns">
        <div class="stack">
          <Connect keyText={who?.key ?? ""} />
          <ConnectMongo keyText={who?.key ?? ""} />
        </div>
        <div class="stack">
          <ServerClock />
          {!empty && <Largest />}
          {!empty && !readOnly.value && !databases.value?.some((db) => db.name === SAMPLE) && <Begin />}
        </div>
      </div>
    </div>
  );
}

function Health() {
  const info = useLoad(serverInfo, []);
  useEvery(5_000, info.reload);
  const documents = (databases.value ?? []).flatMap((db) => db.containers).reduce((sum, each) => sum + each.live.documents, 0);
  if (info.error && !info.value) return <Failure error={info.error} />;
  const it = info.value;
  const facts: [string, string, string | undefined][] = it
    ? [
        ["Status", it.writesRefused ? "Disk nearly full" : "Healthy", it.writesRefused ? "Writes are refused until purge has made room" : `up ${shortDuration(it.uptimeSeconds)}`],
        ["Version", it.version, `${it.store} store`],
        ["Documents", count(documents), plural((databases.value ?? []).flatMap((db) => db.containers).length, "container")],
        ["Memory", it.memoryBytes === null ? "–" : bytes(it.memoryBytes), "of the process"],
        ["Disk", bytes(it.diskBytes), it.diskFreeBytes === null ? undefined : `${bytes(it.diskFreeBytes)} free`],
      ]
    : ["Status", "Version", "Documents", "Memory", "Disk"].map((name) => [name, "…", undefined]);
  return (
    <dl class="facts">
      {facts.map(([name, value, more]) => (
        <div key={name} class={name === "Status" && it?.writesRefused ? "fact bad" : "fact"}>
          <dt>{name}</dt>
          <dd>{value}<small>{more ?? "\u00a0"}</small></dd>
        </div>
      ))}
    </dl>
  );
}

function ServerClock() {
  const [step, setStep] = useState("1 h");
  const state = clock.value;
  const seconds = parseDuration(step);
  const move = async (change: Parameters<typeof moveClock>[0]): Promise<void> => {
    try {
      const moved = await moveClock(change);
      tellClock(moved);
      if (moved.warning) toast({ tone: "plain", text: moved.warning, lasts: 12_000 });
      await refreshCatalog();
    } catch (error) {
      failed("The clock did not move", error);
    }
  };
  return (
    <section class="card stack" aria-labelledby="clock">
      <h2 id="clock">Server clock</h2>
      <div class="big-clock mono">{utc(now.value)}</div>
      {state && standsStill(state) && (
        <Notice tone="warn" title="Time stands still">
          The time of this data is {shortDuration(state.standsStillSeconds)} ahead of the machine's clock. Nothing expires until that has caught up; with{" "}
          <code>--dev-clock</code> time goes on at once.
        </Notice>
      )}
      {state?.adjustable ? (
        <>
          <p class="small faint">This server was started with <code>--dev-clock</code>: its time can be moved forward, to see things expire without waiting.</p>
          {!readOnly.value && (
            <form class="row wrap" onSubmit={(event) => (event.preventDefault(), seconds !== null && void move({ advanceSeconds: seconds }))}>
              <input class="input mono short" aria-label="How far" value={step} aria-invalid={seconds === null ? true : undefined} onInput={(event) => setStep(inputValue(event))} />
              <Button submit disabled={seconds === null || seconds <= 0}>Advance{seconds !== null && seconds > 0 ? ` by ${exactDuration(seconds)}` : ""}</Button>
              <Button icon={state.frozen ? "play" : "pause"} onClick={() => void move({ freeze: !state.frozen })}>{state.frozen ? "Let it run" : "Freeze"}</Button>
            </form>
          )}
        </>
      ) : (
        <p class="small faint">Expiry is decided by this clock, to the second.</p>
      )}
    </section>
  );
}

function Largest() {
  const all = (databases.value ?? []).flatMap((db) => db.containers.map((container) => ({ db: db.name, ...container })));
  const largest = all.sort((a, b) => b.live.documents - a.live.documents).slice(0, 5);
  if (largest.length === 0) return null;
  return (
    <section class="card stack" aria-labelledby="largest">
      <h2 id="largest">Largest containers</h2>
      <table class="plain-table">
        <thead><tr><th>Container</th><th class="num">Documents</th><th class="num">Size</th></tr></thead>
        <tbody>
          {largest.map((container) => (
            <tr key={`${container.db}/${container.name}`}>
              <td><a href={href(["c", container.db, container.name, "items"])}>{container.db} / {container.name}</a></td>
              <td class="num">{count(container.live.documents)}</td>
              <td class="num">{bytes(container.live.bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const SAMPLE = "sample";

function Begin() {
  const [busy, setBusy] = useState(false);
  const [made, setMade] = useState(0);
  const load = async (): Promise<void> => {
    setBusy(true);
    try {
      await sample(setMade);
      await refreshCatalog();
      toast({ tone: "good", text: "The sample is there: carts that expire in an hour, products that stay" });
      go(inContainer(SAMPLE, "carts", "items"));
    } catch (error) {
      failed("The sample could not be made", error);
      setBusy(false);
    }
  };
  return (
    <section class="card stack begin" aria-labelledby="begin">
      <h2 id="begin">{databases.value?.length === 0 ? "Nothing here yet" : "Sample data"}</h2>
      <p>A small shop: 120 carts that live for an hour, some pinned, some shorter, and 40 products that stay. Enough to try every page.</p>
      <div class="row"><Button kind={databases.value?.length === 0 ? "primary" : "plain"} busy={busy} onClick={() => void load()}>{busy ? `Making ${made} of 160…` : "Load sample data"}</Button></div>
    </section>
  );
}

async function sample(progress: (made: number) => void): Promise<void> {
  const unless409 = async (work: Promise<unknown>): Promise<void> => {
    try {
      await work;
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 409)) throw error;
    }
  };
  await unless409(createDatabase(SAMPLE));
  await unless409(createContainer(SAMPLE, { id: "carts", partitionKey: { paths: ["/user"], version: 2 }, defaultTtl: 3600, changeFeedPolicy: { retentionDuration: 1440 } }));
  await unless409(createContainer(SAMPLE, { id: "products", partitionKey: { paths: ["/category"], version: 2 } }));
  const users = ["ada", "grace", "linus", "barbara", "edsger", "margaret"];
  const goods = ["lamp", "desk", "rug", "chair", "shelf", "clock", "vase", "mirror"];
  let made = 0;
  const put = async (coll: string, body: Parameters<typeof createItem>[1], path: string): Promise<void> => {
    await unless409(createItem({ db: SAMPLE, coll }, body, [path]));
    progress(++made);
  };
  for (let n = 0; n < 120; n += 6) {
    await Promise.all(
      Array.from({ length: 6 }, (_, k) => {
        const i = n + k;
        const own = i % 12 === 3 ? { ttl: -1 } : i % 7 === 2 ? { ttl: 60 * (1 + (i % 30)) } : {};
        const items = Array.from({ length: 1 + (i % 3) }, (_, j) => ({ sku: goods[(i + j) % goods.length]!, quantity: 1 + ((i * j) % 3) }));
        return put("carts", { id: `cart-${String(i + 1).padStart(3, "0")}`, user: users[i % users.length]!, items, total: Math.round(1999 + i * 373.7) / 100, paid: i % 4 === 0, ...own }, "/user");
      }),
    );
  }
  for (let n = 0; n < 40; n += 8) {
    await Promise.all(
      Array.from({ length: 8 }, (_, k) => {
        const i = n + k;
        return put("products", { id: `product-${i + 1}`, category: ["light", "furniture", "textile", "decor"][i % 4]!, name: `${goods[i % goods.length]} ${i + 1}`, price: Math.round(990 + i * 431) / 100, stock: (i * 7) % 50 }, "/category");
      }),
    );
  }
}
