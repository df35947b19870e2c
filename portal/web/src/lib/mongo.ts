// What the query editor of a collection takes: a filter, or a pipeline.

export const STAGES = ["$match", "$group", "$sort", "$project", "$limit", "$skip", "$unwind", "$lookup", "$addFields", "$set", "$unset", "$count", "$facet", "$bucket", "$sortByCount", "$replaceRoot", "$sample", "$merge", "$out"];
export const OPERATORS = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$type", "$regex", "$and", "$or", "$nor", "$not", "$elemMatch", "$all", "$size", "$expr", "$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$oid", "$date"];

export type MongoQuery = { kind: "find"; text: string } | { kind: "aggregate"; text: string };

/** Tells a filter from a pipeline; a text says what is wrong. */
export function readQuery(text: string): MongoQuery | string {
  const trimmed = text.trim();
  if (trimmed === "") return { kind: "find", text: "{}" };
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (Array.isArray(value)) {
    const wrong = value.findIndex((stage) => stage === null || typeof stage !== "object" || Array.isArray(stage) || Object.keys(stage as object).length !== 1);
    return wrong === -1 ? { kind: "aggregate", text: trimmed } : `Stage ${wrong + 1} is not an object with one field, such as { "$match": { … } }.`;
  }
  if (value === null || typeof value !== "object") return "A filter is an object { … }, a pipeline a list [ … ].";
  return { kind: "find", text: trimmed };
}

/** The command of a query, as text: the order of what was written is kept. */
export function commandOf(query: MongoQuery, collection: string, batch: number): string {
  const name = JSON.stringify(collection);
  return query.kind === "find" ? `{"find":${name},"filter":${query.text},"batchSize":${batch}}` : `{"aggregate":${name},"pipeline":${query.text},"cursor":{"batchSize":${batch}}}`;
}

export interface PlanStep {
  stage: string;
  index: string | null;
  keys: string | null;
}

interface Stage {
  stage?: string;
  indexName?: string;
  keyPattern?: unknown;
  inputStage?: Stage;
}

export interface MongoPlan {
  steps: PlanStep[];
  /** Stages that run on what the steps give. */
  pipeline: string[];
  returned: number | null;
  documents: number | null;
  keys: number | null;
  milliseconds: number | null;
}

/** The parts of an explanation that people look for, the first step first. */
export function planOf(answer: unknown): MongoPlan {
  const whole = answer as { stages?: Record<string, unknown>[]; queryPlanner?: { winningPlan: Stage }; executionStats?: Record<string, number> };
  const inner = (whole.stages?.[0]?.["$cursor"] ?? whole) as typeof whole;
  const steps: PlanStep[] = [];
  for (let stage: Stage | undefined = inner.queryPlanner?.winningPlan; stage; stage = stage.inputStage) {
    steps.unshift({ stage: stage.stage ?? "", index: stage.indexName ?? null, keys: stage.keyPattern === undefined ? null : JSON.stringify(stage.keyPattern) });
  }
  const stats = inner.executionStats;
  return {
    steps,
    pipeline: (whole.stages ?? []).slice(1).flatMap((stage) => Object.keys(stage)),
    returned: stats?.["nReturned"] ?? null,
    documents: stats?.["totalDocsExamined"] ?? null,
    keys: stats?.["totalKeysExamined"] ?? null,
    milliseconds: stats?.["executionTimeMillis"] ?? null,
  };
}
