import { describe, expect, test } from "vitest";
import { dateOf, numberOf, shown, ttlIndexes } from "../src/lib/extended";
import { explainFate, fateWord } from "../src/lib/fate";
import { commandOf, planOf, readQuery } from "../src/lib/mongo";
import { indented, newObjectId, parts, textAt, withId } from "../src/lib/rawjson";

describe("JSON as text", () => {
  test("is cut as it was written", () => {
    const text = '{ "b": 1.0, "1": [ {"x": "}]\\"," }, 2 ], "a": {"$numberLong": "9007199254740993"},"e":[] }';
    expect(parts(text)).toEqual([["b", "1.0"], ["1", '[ {"x": "}]\\"," }, 2 ]'], ["a", '{"$numberLong": "9007199254740993"}'], ["e", "[]"]]);
    expect(textAt(text, "1", "0", "x")).toBe('"}]\\","');
    expect(textAt(text, "none", "0")).toBeNull();
    expect(parts("{}")).toEqual([]);
    expect(parts('["a"]')).toEqual([["0", '"a"']]);
  });

  test("is indented without being changed", () => {
    const text = '{"_id":{"$oid":"5"},"2":{"z":1.0,"a":[1,{"b":null}],"o":{},"l":[]},"1":true}';
    expect(indented(text)).toBe('{\n  "_id": {"$oid":"5"},\n  "2": {\n    "z": 1.0,\n    "a": [\n      1,\n      {\n        "b": null\n      }\n    ],\n    "o": {},\n    "l": []\n  },\n  "1": true\n}');
    expect(indented(indented(text))).toBe(indented(text));
  });
});

describe("a document without an id", () => {
  test("gets one in front", () => {
    expect(newObjectId(255, Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 255]))).toBe("000000ff01020304050607ff");
    expect(withId(' { "a": 1 }', "x")).toBe('{"_id":{"$oid":"x"}, "a": 1 }');
    expect(withId("{ }", "x")).toBe('{"_id":{"$oid":"x"} }');
    expect(withId('{"a":1,"_id":null}', "x")).toBe('{"a":1,"_id":null}');
  });
});

describe("Extended JSON", () => {
  test("is shown in plain words", () => {
    expect(shown({ $oid: "abc" })).toBe("abc");
    expect(shown({ $date: "2026-01-02T03:04:05Z" })).toBe("2026-01-02T03:04:05.000Z");
    expect(shown({ a: { $numberLong: "5" }, b: [{ $numberDouble: "1.5" }] })).toEqual({ a: 5, b: [1.5] });
    expect(shown({ $numberLong: "9007199254740993" })).toBe("9007199254740993");
    expect(shown({ $numberDouble: "NaN" })).toBe("NaN");
    expect(shown({ $gt: 5 })).toEqual({ $gt: 5 });
    expect(shown(undefined)).toBeUndefined();
  });

  test("dates and numbers are told from other things", () => {
    expect(dateOf({ $date: { $numberLong: "-5" } })).toBe(-5);
    expect(dateOf({ $date: "soon" })).toBeNull();
    expect(dateOf("2026-01-01")).toBeNull();
    expect(numberOf({ $numberLong: "60" })).toBe(60);
    expect(numberOf("60")).toBeNull();
  });
});

describe("the fate of a document", () => {
  const indexes = ttlIndexes([
    { name: "_id_", key: { _id: 1 } },
    { name: "at_1", key: { at: 1 }, expireAfterSeconds: 60 },
    { name: "own", key: { _ts: 1 }, expireAfterSeconds: { $numberLong: "3600" } },
  ]);
  const fate = { lastWrite: 1000, ownTtl: null, expiresAt: null, index: null };

  test("is explained by the rule that decides, with its sum", () => {
    expect(indexes.map((index) => index.seconds)).toEqual([60, 3600]);
    expect(explainFate({ ...fate, expiresAt: 560.5, index: "at_1" }, indexes).sum).toEqual({ base: "at", at: 500.5, rule: "expireAfterSeconds", seconds: 60 });
    expect(explainFate({ ...fate, expiresAt: 4600 }, indexes).sum).toEqual({ base: "last write", at: 1000, rule: "expireAfterSeconds", seconds: 3600 });
    expect(explainFate({ ...fate, ownTtl: 5, expiresAt: 1005 }, indexes).sum).toEqual({ base: "last write", at: 1000, rule: "ttl", seconds: 5 });
  });

  test("may be never, and pinned only where a ttl counts", () => {
    expect(fateWord({ ...fate, ownTtl: -1 }, indexes)).toBe("pinned");
    expect(fateWord({ ...fate, ownTtl: -1 }, indexes.slice(0, 1))).toBe("never");
    expect(explainFate(fate, indexes)).toMatchObject({ sum: null });
  });
});

describe("queries of collections", () => {
  test("are filters or pipelines", () => {
    expect(readQuery("")).toEqual({ kind: "find", text: "{}" });
    expect(readQuery(' {"b":1,"1":2} ')).toEqual({ kind: "find", text: '{"b":1,"1":2}' });
    expect(readQuery('[{"$match":{}}]')).toMatchObject({ kind: "aggregate" });
    for (const wrong of ["{", "5", '"text"', "null", '[{"$match":{},"$sort":{}}]', "[5]"]) expect(typeof readQuery(wrong)).toBe("string");
  });

  test("become commands in the order they were written", () => {
    const query = readQuery('{"b":1,"1":2}');
    expect(typeof query === "string" ? query : commandOf(query, 'a"b', 5)).toBe('{"find":"a\\"b","filter":{"b":1,"1":2},"batchSize":5}');
  });

  test("have plans that read from the first step on", () => {
    const cursor = { queryPlanner: { winningPlan: { stage: "FETCH", inputStage: { stage: "IXSCAN", indexName: "a_1", keyPattern: { a: 1 } } } }, executionStats: { nReturned: 2, totalDocsExamined: 3, totalKeysExamined: 3, executionTimeMillis: 0 } };
    const plan = planOf({ stages: [{ $cursor: cursor }, { $match: {} }, { $group: {} }] });
    expect(plan.steps.map((each) => each.stage)).toEqual(["IXSCAN", "FETCH"]);
    expect(plan.steps[0]).toMatchObject({ index: "a_1", keys: '{"a":1}' });
    expect(plan).toMatchObject({ pipeline: ["$match", "$group"], returned: 2, documents: 3 });
    expect(planOf(cursor).pipeline).toEqual([]);
    expect(planOf({ queryPlanner: { winningPlan: { stage: "COLLSCAN" } } })).toMatchObject({ returned: null, steps: [{ stage: "COLLSCAN", index: null }] });
  });
});
