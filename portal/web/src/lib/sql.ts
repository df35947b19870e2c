// The query text as the editor needs it: words, statements, completion, and where a refusal points to.

export const KEYWORDS = [
  "SELECT", "VALUE", "DISTINCT", "TOP", "FROM", "IN", "JOIN", "WHERE", "GROUP", "BY", "ORDER", "RANK", "ASC", "DESC", "OFFSET",
  "LIMIT", "AS", "AND", "OR", "NOT", "BETWEEN", "LIKE", "ESCAPE", "EXISTS", "ARRAY", "UNDEFINED", "NULL", "TRUE", "FALSE", "UDF",
];

export const FUNCTIONS = (
  "ABS ACOS ARRAY_AVG ARRAY_CONCAT ARRAY_CONTAINS ARRAY_CONTAINS_ALL ARRAY_CONTAINS_ANY ARRAY_LENGTH ARRAY_MAX ARRAY_MEDIAN ARRAY_MIN " +
  "ARRAY_SLICE ARRAY_SUM ASIN ATAN ATN2 AVG CEILING CHOOSE CONCAT CONTAINS COS COT COUNT COUNTIF DATETIMEADD DATETIMEBIN DATETIMEDIFF " +
  "DATETIMEFORMAT DATETIMEFROMPARTS DATETIMEPART DATETIMETOTICKS DATETIMETOTIMESTAMP DEGREES DOCUMENTID ENDSWITH EXP FLOOR FULLTEXTCONTAINS " +
  "FULLTEXTCONTAINSALL FULLTEXTCONTAINSANY FULLTEXTSCORE GETCURRENTDATETIME GETCURRENTTICKS GETCURRENTTIMESTAMP IIF INDEX_OF INTADD " +
  "INTBITAND INTBITNOT INTBITOR INTBITXOR INTDIV INTMOD INTMUL INTSUB IS_ARRAY IS_BOOL IS_DEFINED IS_FINITE_NUMBER IS_INTEGER IS_NULL " +
  "IS_NUMBER IS_OBJECT IS_PRIMITIVE IS_STRING LEFT LENGTH LOG LOG10 LOWER LTRIM MAX MIN NUMBERBIN OBJECTTOARRAY PI POWER RADIANS RAND " +
  "REGEXMATCH REPLACE REPLICATE REVERSE RIGHT ROUND RRF RTRIM SETINTERSECT SETUNION SIGN SIN SQRT SQUARE ST_AREA ST_DISTANCE " +
  "ST_INTERSECTS ST_ISVALID ST_WITHIN STARTSWITH STRINGEQUALS STRINGJOIN STRINGSPLIT STRINGTOARRAY STRINGTOBOOLEAN STRINGTONULL " +
  "STRINGTONUMBER STRINGTOOBJECT SUBSTRING SUM TAN TICKSTODATETIME TIMESTAMPTODATETIME TOSTRING TRIM TRUNC UPPER VECTORDISTANCE"
).split(" ");

/** The statement around a place, or before it: statements end with a semicolon outside of texts and comments. */
export function statementAt(text: string, position: number): string {
  let start = 0;
  let before = "";
  for (const end of [...statementEnds(text), text.length]) {
    const statement = text.slice(start, end).trim();
    if (statement !== "") before = statement;
    if (position <= end && before !== "") return before;
    start = end + 1;
  }
  return before;
}

/** All statements that are not empty. */
export function statements(text: string): string[] {
  let start = 0;
  const found: string[] = [];
  for (const end of [...statementEnds(text), text.length]) {
    found.push(text.slice(start, end).trim());
    start = end + 1;
  }
  return found.filter((statement) => statement !== "");
}

function statementEnds(text: string): number[] {
  const ends: number[] = [];
  for (const match of text.matchAll(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|--[^\n]*|;/g)) {
    if (match[0] === ";") ends.push(match.index);
  }
  return ends;
}

/** `@names` of a text, each once. */
export function parameterNames(text: string): string[] {
  const names = new Set<string>();
  for (const match of text.matchAll(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|--[^\n]*|@[A-Za-z_]\w*/g)) {
    if (match[0].startsWith("@")) names.add(match[0]);
  }
  return [...names];
}

/** What a filter bar means: `WHERE …`, `ORDER BY …`, a bare condition, or nothing. */
export function filterQuery(filter: string): string {
  const text = filter.trim().replace(/;+$/, "");
  if (text === "") return "SELECT * FROM c";
  if (/^select\b/i.test(text)) return text;
  return /^(where|order\s+by|join)\b/i.test(text) ? `SELECT * FROM c ${text}` : `SELECT * FROM c WHERE ${text}`;
}

export interface SqlProblem {
  message: string;
  start: number | null;
  end: number | null;
}

/** Reads the refusal of a query: `Message: {"errors":[{"message":…,"location":{"start":…,"end":…}}]}`. */
export function problemOf(message: string): SqlProblem {
  const json = /\{.*\}/s.exec(message)?.[0];
  if (json) {
    try {
      const parsed = JSON.parse(json) as { errors?: { message?: string; location?: { start?: number; end?: number } }[] };
      const error = parsed.errors?.[0];
      if (error?.message) return { message: error.message, start: error.location?.start ?? null, end: error.location?.end ?? null };
    } catch {
      // Not the form we know: the text itself has to do.
    }
  }
  return { message: message.replace(/^Message:\s*/, ""), start: null, end: null };
}

/** How an identifier is written after `c`: `.name`, or `["odd name"]`. */
export function propertyOf(path: string): string {
  const names = path.split("/").slice(1);
  return names.map((name) => (/^[A-Za-z_]\w*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`)).join("");
}
