// What the portal asks of `/_mayfly/`.

import type { Sample } from "../lib/rates";
import type { Fate } from "../lib/fate";
import { administration, administrationText } from "./http";
import type { ContainerName, Parameter } from "./cosmos";

export interface Amount {
  documents: number;
  bytes: number;
}

export interface ServerInfo {
  version: string;
  store: string;
  uptimeSeconds: number;
  access: "readWrite" | "readOnly";
  writesRefused: boolean;
  /** Where MongoDB's protocol is spoken, and who signs in there. */
  mongo: { port: number; user: string | null } | null;
  memoryBytes: number | null;
  diskBytes: number;
  diskFreeBytes: number | null;
}

export interface ContainerOverview {
  name: string;
  /** Made through MongoDB's protocol, and follows its rules. */
  isCollection: boolean;
  partitionKey: string[];
  defaultTtl: number | null;
  /** How many indexes take documents by a date of theirs. */
  ttlIndexes: number;
  live: Amount;
  purgeBacklog: Amount;
  purgeLagSeconds: number;
}

export interface DatabaseOverview {
  name: string;
  containers: ContainerOverview[];
}

export interface Forecast {
  unixSeconds: number;
  presentDefault: number | null;
  proposedDefault: number | null;
  live: Amount;
  expiresAtOnce: Amount;
  expiresWithinHour: Amount;
  expiresWithinDay: Amount;
  expiresWithin30Days: Amount;
  expiresLater: Amount;
  neverExpires: Amount;
  pinned: Amount;
  ownTtl: Amount;
  hourly: Amount[];
  daily: Amount[];
  purged: Amount;
  purgeBacklog: Amount;
  purgeLagSeconds: number;
}

export interface TtlChange {
  at: number;
  from: number | null;
  to: number | null;
}

export interface ClockState {
  unixSeconds: number;
  adjustable: boolean;
  frozen: boolean;
  /** How long a clock that is behind needs to catch up; time stands still meanwhile. */
  standsStillSeconds: number;
  /** What moving it has done that cannot be undone. */
  warning?: string;
}

export interface Explanation {
  readsDocuments: boolean;
  scope: "partition" | "partitionPrefix" | "container";
  access: "index" | "scan";
  conditions: { path: string; test: string; indexed: boolean; used: boolean }[];
  streams: boolean;
  orderBy: { text: string; descending: boolean }[];
  groupBy: string[];
  aggregates: number;
  distinct: boolean;
  offset: number | null;
  limit: number | null;
}

const place = ({ db, coll }: ContainerName): string => `${encodeURIComponent(db)}/${encodeURIComponent(coll)}`;

export const serverInfo = async (): Promise<ServerInfo> => (await administration<ServerInfo>("server")).value;

export const readOverview = async (): Promise<{ databases: DatabaseOverview[] }> =>
  (await administration<{ databases: DatabaseOverview[] }>("overview")).value;

export const readClock = async (): Promise<ClockState> => (await administration<ClockState>("clock")).value;

export const moveClock = async (change: { advanceSeconds: number } | { freeze: boolean }): Promise<ClockState> =>
  (await administration<ClockState>("clock", change)).value;

export const previewTtl = async (name: ContainerName, proposed: number | null, signal?: AbortSignal): Promise<Forecast> =>
  (await administration<Forecast>(`ttl/${place(name)}?default=${proposed ?? "off"}`, undefined, signal)).value;

/** What a TTL index would do: a new one on a field, or one that is there with another length. */
export const previewTtlIndex = async (name: ContainerName, proposal: { field: string } | { index: string }, seconds: number): Promise<Forecast> => {
  const what = "field" in proposal ? `field=${encodeURIComponent(proposal.field)}` : `index=${encodeURIComponent(proposal.index)}`;
  return (await administration<Forecast>(`ttl/${place(name)}?${what}&seconds=${seconds}`)).value;
};

/** When documents of a collection go, by their ids as texts of Extended JSON; null for those that are gone. */
export const readFates = async (name: ContainerName, ids: string[], signal?: AbortSignal): Promise<(Fate | null)[]> => {
  const { value } = await administrationText(`ttl/${place(name)}/documents`, `{"ids":[${ids.join(",")}]}`, signal);
  return (JSON.parse(value) as { documents: (Fate | null)[] }).documents;
};

export const forecastTtl = async (name: ContainerName): Promise<Forecast> => (await administration<Forecast>(`ttl/${place(name)}`)).value;

export const ttlHistory = async (name: ContainerName): Promise<TtlChange[]> =>
  (await administration<{ changes: TtlChange[] }>(`ttl/${place(name)}/history`)).value.changes;

export const readSamples = async (since: number): Promise<{ secondsPerSample: number; durationBounds: number[]; samples: Sample[] }> =>
  (await administration<{ secondsPerSample: number; durationBounds: number[]; samples: Sample[] }>(`metrics?since=${since}`)).value;

export const explainQuery = async (name: ContainerName, query: string, parameters: Parameter[]): Promise<Explanation> =>
  (await administration<Explanation>(`explain/${place(name)}`, { query, parameters })).value;
