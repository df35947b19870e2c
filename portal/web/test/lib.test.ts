import { describe, expect, it } from "vitest";
import { columnsOf, toCsv } from "../src/lib/csv";
import { diffLines } from "../src/lib/diff";
import { ascii, at, commonPaths, partitionKeyHeader, withoutSystem } from "../src/lib/document";
import { exactDuration, parseDuration, shortDuration, ttlBadge, ttlWords } from "../src/lib/duration";
import { brief, bytes, percent, utc } from "../src/lib/format";
import { lifeOf } from "../src/lib/life";
import { type Sample, inBuckets, quantile, rate } from "../src/lib/rates";
import { filterQuery, parameterNames, problemOf, propertyOf, statementAt, statements } from "../src/lib/sql";
import { addPage, newStats, parseMetrics, statRows } from "../src/lib/stats";
import { itemsIn } from "../src/lib/upload";

describe("durations", () => {
  it("are read as people write them", () => {
    const cases: [string, number | null][] = [
      ["90", 90], ["7d", 604_800], ["7 d", 604_800], ["1 h 30 min", 5_400], ["1h30m", 5_400], ["2 weeks", 1_209_600], ["1.5 h", 5_400], ["1 y", 31_536_000],
      ["", null], ["abc", null], ["7 x", null], ["-5", null], ["1 h x", null], ["h", null],
    ];
    for (const [text, seconds] of cases) expect(parseDuration(text), text).toBe(seconds);
  });

  it("come back as they were", () => {
    for (const seconds of [1, 59, 60, 61, 3_600, 3_661, 86_400, 90_061, 31_536_000, 2_147_483_647]) expect(parseDuration(exactDuration(seconds).replaceAll(",", ""))).toBe(seconds);
  });

  it("are short where there is little room", () => {
    expect([0, 59, 61, 3_600, 90_000, 31_536_000].map(shortDuration)).toEqual(["0 s", "59 s", "1 min 1 s", "1 h", "1 d 1 h", "1 y"]);
    expect([null, -1, 604_800].map((ttl) => ttlBadge(ttl, 0))).toEqual(["Off", "On", "7 d"]);
    expect(ttlBadge(null, 1)).toBe("Dates");
    expect([null, -1, 60].map(ttlWords)).toEqual(["Off", "On (no default)", "On, 1 min"]);
  });
});

describe("life", () => {
  const item = (ttl?: number | string) => ({ _ts: 100, ...(ttl === undefined ? {} : { ttl }) });
  it("follows the table of the rule", () => {
    const cases: [ReturnType<typeof item>, number | null, number | null][] = [
      [item(), null, null], [item(), -1, null], [item(), 10, 110],
      [item(-1), null, null], [item(-1), -1, null], [item(-1), 10, null],
      [item(5), null, null], [item(5), -1, 105], [item(5), 10, 105],
      // What is no valid ttl was stored while time to live was off; the default counts.
      [item("x"), 10, 110], [item(0), 10, 110], [item(2.5), 10, 110],
    ];
    for (const [each, ttl, deadline] of cases) expect(lifeOf(each, ttl).deadline, JSON.stringify([each, ttl])).toBe(deadline);
  });
});

describe("documents", () => {
  it("give the partition key header in ASCII", () => {
    expect(partitionKeyHeader({ id: "1", user: "zoë" }, ["/user"])).toBe('["zo\\u00eb"]');
    expect(partitionKeyHeader({ a: { b: 5 }, c: null }, ["/a/b", "/c", "/missing"])).toBe("[5,null,{}]");
    expect(ascii('"😀"')).toBe('"\\ud83d\\ude00"');
  });
  it("are looked into by path", () => {
    expect(at({ a: { b: [1] } }, "/a/b")).toEqual([1]);
    expect(at({ a: [1] }, "/a/b")).toBeUndefined();
    expect(commonPaths([{ id: "1", a: { b: 1 }, _ts: 5 }, { id: "2" }])).toEqual(["/id", "/a/b"]);
    expect(withoutSystem({ id: "1", _ts: 1, _etag: "x", _mine: 2 })).toEqual({ id: "1", _mine: 2 });
  });
});

describe("CSV", () => {
  it("quotes what has to be quoted, and no formula runs", () => {
    expect(toCsv([{ a: 'x "y"', b: "1,2" }, { a: "=1+1", c: -5 }])).toBe('a,b,c\r\n"x ""y""","1,2",\r\n\'=1+1,,-5\r\n');
    expect(columnsOf([1, { a: 1 }])).toEqual(["value", "a"]);
    expect(toCsv([5, "x"])).toBe("value\r\n5\r\nx\r\n");
  });
});

describe("differences", () => {
  const kinds = (mine: string, theirs: string) => diffLines(mine, theirs).map((line) => `${line.kind[0]}${line.text}`);
  it("keep what is common", () => {
    expect(kinds("a\nb\nc", "a\nx\nc")).toEqual(["sa", "tx", "mb", "sc"]);
    expect(kinds("a", "a")).toEqual(["sa"]);
    expect(kinds("a\nb", "a\nb\nc")).toEqual(["sa", "sb", "tc"]);
    expect(kinds("x\na\ny\nb", "a\nb")).toEqual(["mx", "sa", "my", "sb"]);
  });
  it("do not choke on long texts", () => {
    const long = Array.from({ length: 5_000 }, (_, n) => `line ${n}`).join("\n");
    expect(diffLines(`x\n${long}`, `${long}\ny`).length).toBeGreaterThan(5_000);
  });
});

describe("queries", () => {
  it("are found at the cursor", () => {
    const text = 'SELECT 1;\nSELECT ";" -- ;\n;\nSELECT 3';
    expect(statements(text)).toEqual(["SELECT 1", 'SELECT ";" -- ;', "SELECT 3"]);
    expect(statementAt(text, 0)).toBe("SELECT 1");
    expect(statementAt(text, 14)).toBe('SELECT ";" -- ;');
    expect(statementAt(text, text.length)).toBe("SELECT 3");
    expect(statementAt("SELECT 1;", 9)).toBe("SELECT 1");
    expect(statementAt("; SELECT 2", 0)).toBe("SELECT 2");
  });
  it("name their parameters", () => {
    expect(parameterNames('SELECT @a, "@no", @b -- @c\n, @a')).toEqual(["@a", "@b"]);
  });
  it("come from filters", () => {
    expect(filterQuery("")).toBe("SELECT * FROM c");
    expect(filterQuery("c.a = 1;")).toBe("SELECT * FROM c WHERE c.a = 1");
    expect(filterQuery("WHERE c.a = 1")).toBe("SELECT * FROM c WHERE c.a = 1");
    expect(filterQuery("order by c.a")).toBe("SELECT * FROM c order by c.a");
  });
  it("say where they are wrong", () => {
    expect(problemOf('Message: {"errors":[{"severity":"Error","location":{"start":7,"end":9},"code":"SC1001","message":"Syntax error"}]}')).toEqual({ message: "Syntax error", start: 7, end: 9 });
    expect(problemOf("Message: no JSON").message).toBe("no JSON");
  });
  it("write odd names with brackets", () => {
    expect(propertyOf("/a/b c")).toBe('.a["b c"]');
  });
});

describe("statistics", () => {
  it("add up over pages and keep Azure's order", () => {
    const headers = new Headers({ "x-ms-request-charge": "2.5", "x-ms-documentdb-query-metrics": "retrievedDocumentCount=10;indexUtilizationRatio=0.50;VMExecutionTimeInMs=1.25", "x-ms-activity-id": "id" });
    const stats = addPage(addPage(newStats(), headers, 5), headers, 5);
    expect(stats).toMatchObject({ charge: 5, roundTrips: 2, milliseconds: 10 });
    const rows = Object.fromEntries(statRows(stats, 8));
    expect(rows).toMatchObject({ "Request Charge": "5.00 RUs", "Showing Results": "1 - 8", "Retrieved document count": "20", "Index hit document count": "10", "Round Trips": "2", "Query engine execution time": "2.50 ms" });
    expect(Object.keys(rows)).toHaveLength(15);
    expect(parseMetrics("a=1;b=x;;c=2")).toEqual({ a: 1, c: 2 });
  });
});

describe("charts", () => {
  const sample = (unixSeconds: number, requests: number, byDuration: number[] = [0, 0]): Sample => ({ unixSeconds, requests, byDuration }) as unknown as Sample;
  it("draw growth per second, with a gap at a restart", () => {
    expect(rate([sample(0, 0), sample(2, 10), sample(4, 3), sample(6, 3)], "requests")).toEqual([null, 5, null, 0]);
  });
  it("find quantiles in buckets", () => {
    expect(inBuckets([10, 0], [0.01], 0.5)).toBe(5);
    expect(inBuckets([5, 5, 0], [0.01, 0.02], 1)).toBe(20);
    expect(inBuckets([0, 0], [0.01], 0.5)).toBeNull();
    expect(quantile([sample(0, 0, [0, 0]), sample(2, 4, [4, 0])], [0.01], 0.5)).toEqual([null, 5]);
  });
});

describe("numbers", () => {
  it("are short and honest", () => {
    expect([0, 1023, 1536, 5 * 1024 ** 3].map(bytes)).toEqual(["0 B", "1023 B", "1.5 KB", "5.0 GB"]);
    expect([9_999, 12_345].map(brief)).toEqual(["9,999", "12.3K"]);
    expect([0, 0.0001, 0.05, 0.5, 1].map(percent)).toEqual(["0 %", "< 0.1 %", "5.0 %", "50 %", "100 %"]);
    expect(utc(0)).toBe("1970-01-01 00:00:00 UTC");
    expect(utc(1e15)).toBe("beyond the calendar");
  });
});

describe("a file of items", () => {
  it("is a list, one item, or one per line, each as it was written", () => {
    expect(itemsIn('\ufeff[ {"id":"1","n":1.0}, {"id":"2","n":12345678901234567890} ]')).toEqual(['{"id":"1","n":1.0}', '{"id":"2","n":12345678901234567890}']);
    expect(itemsIn('{\n  "id": "1"\n}')).toEqual(['{\n  "id": "1"\n}']);
    expect(itemsIn('{"id":"1"}\r\n\n{"id":"2"}\n')).toEqual(['{"id":"1"}', '{"id":"2"}']);
    expect(itemsIn("[]")).toEqual([]);
  });

  it("says where it is wrong", () => {
    expect(itemsIn(" ")).toBe("The file is empty.");
    expect(itemsIn("5")).toBe("The file holds neither items nor a list of them.");
    expect(itemsIn("[{}, 5]")).toBe("Number 2 of the list is not an object.");
    expect(itemsIn('{"id":"1"}\n{"id":')).toMatch(/^Line 2: /);
    expect(itemsIn('{"id":"1"}\n[]')).toBe("Line 2 is not an object.");
    expect(itemsIn('[\n{"id":1},\n')).not.toMatch(/^Line/);
  });
});
