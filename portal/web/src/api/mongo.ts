// MongoDB's commands, in Extended JSON. Documents that will be written back stay texts.

import type { MongoIndex } from "../lib/extended";
import type { Json } from "../lib/life";
import { textAt } from "../lib/rawjson";
import type { ContainerName } from "./cosmos";
import { type Answer, ApiError, administrationText } from "./http";

const run = (db: string, command: string, signal?: AbortSignal, keepalive?: boolean): Promise<Answer<string>> =>
  administrationText(`mongo/${encodeURIComponent(db)}`, command, signal, keepalive);

const quoted = JSON.stringify;

export interface Batch {
  documents: Json[];
  /** The cursor's number, as text: it is larger than a number of JavaScript; null at the end. */
  cursor: string | null;
  milliseconds: number;
}

interface CursorAnswer {
  cursor: { id: { $numberLong: string }; firstBatch?: Json[]; nextBatch?: Json[] };
}

function batchOf({ value, milliseconds }: Answer<string>): Batch {
  const { cursor } = JSON.parse(value) as CursorAnswer;
  const id = cursor.id.$numberLong;
  return { documents: cursor.firstBatch ?? cursor.nextBatch ?? [], cursor: id === "0" ? null : id, milliseconds };
}

/** Runs a command that opens a cursor. */
export const open = async (db: string, command: string, signal?: AbortSignal): Promise<Batch> => batchOf(await run(db, command, signal));

export const getMore = async ({ db, coll }: ContainerName, cursor: string, batch: number, signal?: AbortSignal): Promise<Batch> =>
  batchOf(await run(db, `{"getMore":{"$numberLong":${quoted(cursor)}},"collection":${quoted(coll)},"batchSize":${batch}}`, signal));

/** Lets go of a cursor that nobody will ask again. */
export function closeCursor({ db, coll }: ContainerName, cursor: string): void {
  run(db, `{"killCursors":${quoted(coll)},"cursors":[{"$numberLong":${quoted(cursor)}}]}`).catch(() => undefined);
}

export const explain = async (db: string, command: string): Promise<unknown> =>
  JSON.parse((await run(db, `{"explain":${command},"verbosity":"executionStats"}`)).value);

/** The text of the document with this id (a text of Extended JSON); null if it is gone. */
export async function readDocument({ db, coll }: ContainerName, id: string): Promise<string | null> {
  const { value } = await run(db, `{"find":${quoted(coll)},"filter":{"_id":${id}},"limit":1,"singleBatch":true}`);
  return textAt(value, "cursor", "firstBatch", "0");
}

interface WriteAnswer {
  n: number;
  writeErrors?: { code: number; errmsg: string }[];
}

/** How many documents a write found; a statement that failed is thrown. */
async function written(db: string, command: string, keepalive?: boolean): Promise<number> {
  const answer = await run(db, command, undefined, keepalive);
  const { n, writeErrors } = JSON.parse(answer.value) as WriteAnswer;
  const failed = writeErrors?.[0];
  if (failed) throw new ApiError(failed.code === 11000 ? 409 : 400, failed.code, answer.headers.get("x-ms-activity-id") ?? "", failed.errmsg);
  return n;
}

export const insertDocument = ({ db, coll }: ContainerName, document: string): Promise<number> =>
  written(db, `{"insert":${quoted(coll)},"documents":[${document}]}`);

/** Replaces a document if it still is what it was; the number is 0 if it is not. */
export const replaceDocument = ({ db, coll }: ContainerName, id: string, before: string | null, document: string): Promise<number> => {
  const unchanged = before === null ? "" : `,"$expr":{"$eq":["$$ROOT",{"$literal":${before}}]}`;
  return written(db, `{"update":${quoted(coll)},"updates":[{"q":{"_id":${id}${unchanged}},"u":${document}}]}`);
};

/** Writes a document that has an id, whether or not one with it is there. */
export const putDocument = ({ db, coll }: ContainerName, document: string): Promise<number> =>
  written(db, `{"update":${quoted(coll)},"updates":[{"q":{"_id":${textAt(document, "_id")}},"u":${document},"upsert":true}]}`);

/** Gives a document a `ttl` of its own, or takes it away. */
export const setOwnTtl = ({ db, coll }: ContainerName, id: string, ttl: number | null): Promise<number> =>
  written(db, `{"update":${quoted(coll)},"updates":[{"q":{"_id":${id}},"u":${ttl === null ? '{"$unset":{"ttl":""}}' : `{"$set":{"ttl":${ttl}}}`}}]}`);

export const deleteDocument = ({ db, coll }: ContainerName, id: string, keepalive = false): Promise<number> =>
  written(db, `{"delete":${quoted(coll)},"deletes":[{"q":{"_id":${id}},"limit":1}]}`, keepalive);

export const listIndexes = async ({ db, coll }: ContainerName): Promise<MongoIndex[]> =>
  (await open(db, `{"listIndexes":${quoted(coll)},"cursor":{"batchSize":100}}`)).documents as unknown as MongoIndex[];

/** `spec` is a text, for the order of an index's fields counts. */
export const createIndex = ({ db, coll }: ContainerName, spec: string): Promise<unknown> => run(db, `{"createIndexes":${quoted(coll)},"indexes":[${spec}]}`);

export const setExpireAfter = ({ db, coll }: ContainerName, name: string, seconds: number): Promise<unknown> =>
  run(db, `{"collMod":${quoted(coll)},"index":{"name":${quoted(name)},"expireAfterSeconds":${seconds}}}`);

export const dropIndex = ({ db, coll }: ContainerName, name: string): Promise<unknown> => run(db, `{"dropIndexes":${quoted(coll)},"index":${quoted(name)}}`);

/** A change stream makes a collection keep all versions and deletes from then on; the stream itself is let go. */
export async function keepVersions(name: ContainerName): Promise<void> {
  const { cursor } = await open(name.db, `{"aggregate":${quoted(name.coll)},"pipeline":[{"$changeStream":{}}],"cursor":{}}`);
  if (cursor !== null) closeCursor(name, cursor);
}
