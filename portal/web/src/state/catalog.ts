// Databases and containers with what they hold, kept fresh while the page is looked at.

import { effect, signal } from "@preact/signals";
import { type ContainerOverview, type DatabaseOverview, readClock, readOverview } from "../api/admin";
import { type ContainerName, readContainer } from "../api/cosmos";
import { ApiError } from "../api/http";
import { tellClock } from "./clock";
import { credential } from "./session";

export const databases = signal<DatabaseOverview[] | null>(null);
export const catalogError = signal<Error | null>(null);

const EVERY_MS = 4_000;
let running: Promise<void> | null = null;

/** Looks again. Calls at the same time share one look. */
export function refreshCatalog(): Promise<void> {
  running ??= look().finally(() => (running = null));
  return running;
}

async function look(): Promise<void> {
  const who = credential.value;
  if (!who) return;
  try {
    if (who.kind === "token") {
      databases.value ??= await ofToken(who.link);
    } else {
      const [overview, clock] = await Promise.all([readOverview(), readClock()]);
      tellClock(clock);
      databases.value = overview.databases;
    }
    catalogError.value = null;
  } catch (error) {
    if (error instanceof ApiError) catalogError.value = error;
    else throw error;
  }
}

/** A token leads to one container, whose size it does not tell. */
async function ofToken(link: string): Promise<DatabaseOverview[]> {
  const [, db = "", , coll = ""] = link.split("/");
  const { value } = await readContainer({ db, coll });
  const nothing = { documents: 0, bytes: 0 };
  const container = {
    name: coll,
    isCollection: false,
    partitionKey: value.partitionKey.paths,
    defaultTtl: value.defaultTtl ?? null,
    ttlIndexes: 0,
    live: nothing,
    purgeBacklog: nothing,
    purgeLagSeconds: 0,
  };
  return [{ name: db, containers: [container] }];
}

effect(() => {
  if (credential.value) void refreshCatalog();
  else databases.value = null;
});
setInterval(() => {
  if (credential.value && !document.hidden) void refreshCatalog();
}, EVERY_MS);
document.addEventListener("visibilitychange", () => {
  if (credential.value && !document.hidden) void refreshCatalog();
});

export function containerOf(name: ContainerName): ContainerOverview | null {
  const database = databases.value?.find((each) => each.name === name.db);
  return database?.containers.find((each) => each.name === name.coll) ?? null;
}
