"""Aggregation pipelines.

Where MongoDB promises no order, a stage that makes one follows: after `$group` a sort by `_id`, after `$addToSet` a sorted array.
"""

from bson import SON

import expressions
import filters
import values

ACCUMULATORS = ["$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$count", "$stdDevPop", "$stdDevSamp", "$mergeObjects",
                "$firstN", "$lastN", "$maxN", "$minN", "$top", "$bottomN", "$addToSet", "$median", "$percentile"]


def pipeline(random):
    stages = []
    for _ in range(random.choice([1, 1, 2, 2, 3, 4])):
        stages += random.choice(STAGES)(random)
    return stages


def accumulator(random):
    name = random.choice(ACCUMULATORS)
    if name == "$count":
        return {name: {}}
    if name in ("$firstN", "$lastN", "$maxN", "$minN"):
        return {name: SON(input=expressions.expression(random, 1), n=random.choice([1, 2, 3, 0]))}
    if name in ("$top", "$bottomN"):
        made = SON(sortBy=SON([(values.path(random), random.choice([1, -1])), ("_id", 1)]), output=random.choice(["$_id", ["$_id", "$a"]]))
        if name == "$bottomN":
            made["n"] = 2
        return {name: made}
    if name == "$median":
        return {name: SON(input="$n", method="approximate")}
    if name == "$percentile":
        return {name: SON(input="$n", p=random.choice([[0.5], [0, 0.25, 1], [1.5]]), method="approximate")}
    kind = "n" if name in ("$sum", "$avg", "$stdDevPop", "$stdDevSamp") else "o" if name == "$mergeObjects" else "x"
    return {name: expressions.expression(random, 1, kind)}


def computed(random):
    names = random.sample(["a", "b.x", "n", "new", "c"], random.choice([1, 2]))
    return SON((name, expressions.expression(random, 2)) for name in names)


def group(random):
    key = random.choice([None, "$a", "$n", "$s", "$b.a", {"x": "$a", "y": "$n"}, {"$mod": ["$n", 3]}, expressions.expression(random, 1)])
    made = SON([("_id", key)])
    for name in random.sample(["p", "q", "r"], random.choice([0, 1, 2])):
        made[name] = accumulator(random)
    stages = [{"$group": made}]
    for name, call in made.items():
        if isinstance(call, dict) and "$addToSet" in call:
            stages.append({"$set": {name: {"$sortArray": SON(input="$" + name, sortBy=1)}}})
    return stages + [{"$sort": {"_id": 1}}]


def bucket(random):
    edges = random.choice([[-5, 0, 5, 20], [0, 3], [0, 1.5, 4], [3, 1], [0], [0, "a"]])
    made = SON(groupBy=random.choice(["$n", "$a", "$s"]), boundaries=edges)
    if random.random() < 0.7:
        made["default"] = random.choice(["other", 100, -100, 1])
    if random.random() < 0.5:
        made["output"] = {"p": accumulator_in_order(random)}
    return [{"$bucket": made}]


def accumulator_in_order(random):
    while True:
        made = accumulator(random)
        if "$addToSet" not in made:
            return made


def window(random):
    bounds = random.choice([{"documents": ["unbounded", "current"]}, {"documents": [-1, 1]}, {"range": [-2, 2]}, {"documents": ["current", "unbounded"]}, {}])
    name = random.choice(["$sum", "$avg", "$min", "$max", "$count", "$push", "$first", "$last", "$rank", "$denseRank", "$documentNumber",
                          "$shift", "$expMovingAvg", "$linearFill", "$locf", "$stdDevPop", "$derivative", "$integral", "$covariancePop"])
    sort = random.choice([{"n": 1}, {"_id": 1}, {"n": -1, "_id": 1}])
    if name in ("$count", "$rank", "$denseRank", "$documentNumber"):
        call = {name: {}}
    elif name == "$shift":
        call = {name: SON(output="$n", by=random.choice([1, -1]), default="none")}
    elif name == "$expMovingAvg":
        call = {name: random.choice([{"input": "$n", "N": 2}, {"input": "$n", "alpha": 0.5}])}
    elif name in ("$derivative", "$integral"):
        call = {name: {"input": "$n"}}
    elif name == "$covariancePop":
        call = {name: ["$n", "$_id"]}
    else:
        call = {name: random.choice(["$n", "$n", "$a"])}
    if name not in ("$rank", "$denseRank", "$documentNumber", "$shift", "$expMovingAvg", "$linearFill", "$locf") and bounds:
        call["window"] = bounds
    made = SON(sortBy=sort, output={"w": call})
    if random.random() < 0.4:
        made["partitionBy"] = random.choice(["$s", {"$mod": ["$_id", 2]}])
    return [{"$setWindowFields": made}, {"$sort": {"_id": 1}}]


def lookup(random):
    if random.random() < 0.5:
        made = SON([("from", "c"), ("localField", values.path(random)), ("foreignField", values.path(random)), ("as", random.choice(["j", "a", "b.j"]))])
    else:
        made = SON([("from", "c"), ("let", {"v": "$" + values.path(random)}),
                    ("pipeline", [{"$match": {"$expr": {"$eq": ["$$v", "$n"]}}}, {"$sort": {"_id": 1}}, {"$project": {"_id": 1}}]), ("as", "j")])
    stages = [{"$lookup": made}]
    # Found documents come in no particular order.
    return stages + [{"$set": {made["as"]: {"$sortArray": SON(input="$" + made["as"], sortBy={"_id": 1})}}}]


def graph_lookup(random):
    made = SON([("from", "c"), ("startWith", "$n"), ("connectFromField", "n"), ("connectToField", random.choice(["_id", "n"])), ("as", "g")])
    if random.random() < 0.5:
        made["maxDepth"] = random.choice([0, 1, 2])
    if random.random() < 0.5:
        made["depthField"] = "depth"
    return [{"$graphLookup": made}, {"$set": {"g": {"$sortArray": SON(input="$g", sortBy={"_id": 1})}}}]


def facet(random):
    return [{"$facet": SON((name, sum((random.choice(SIMPLE)(random) for _ in range(random.choice([1, 2]))), [])) for name in ["x", "y"])}]


def densify(random):
    made = SON(field="n", range=SON(step=random.choice([1, 2, 0.5, 0]), bounds=random.choice(["full", [0, 4], "partition", [3, 1]])))
    if random.random() < 0.3:
        made["partitionByFields"] = ["s"]
    return [{"$densify": made}, {"$sort": SON([("n", 1), ("s", 1), ("_id", 1)])}]


def fill(random):
    method = random.choice([{"method": "locf"}, {"method": "linear"}, {"value": "$n"}])
    return [{"$set": {"f": {"$cond": [{"$gt": ["$n", random.choice([1, 4])]}, None, "$n"]}}},
            {"$fill": SON(sortBy={"_id": 1}, output={"f": method})}, {"$sort": {"_id": 1}}]


def unwind(random):
    path = "$" + random.choice(["a", "b", "l", "a.b", "c"])
    if random.random() < 0.5:
        return [{"$unwind": path}]
    made = SON(path=path, preserveNullAndEmptyArrays=random.choice([True, False]))
    if random.random() < 0.5:
        made["includeArrayIndex"] = random.choice(["i", "a.i", "n"])
    return [{"$unwind": made}]


SIMPLE = [
    lambda r: [{"$match": filters.filter(r)}],
    lambda r: [{"$project": r.choice([filters.projection_of_stage(r), computed(r)])}],
    lambda r: [{r.choice(["$set", "$addFields"]): computed(r)}],
    lambda r: [{"$sort": filters.sort(r)}],
    lambda r: [{"$sort": {"_id": 1}}, {"$limit": r.choice([1, 3, 5])}],
    lambda r: [{"$sort": {"_id": 1}}, {"$skip": r.choice([0, 2, 100])}],
    unwind,
    lambda r: [{"$count": r.choice(["n", "count"])}],
    lambda r: [{"$unset": r.choice(["a", ["b", "a.b"], "a.0", ["a", "a.b"]])}],
    lambda r: [{"$replaceRoot": {"newRoot": r.choice(["$a", "$$ROOT", {"x": "$a", "_id": "$_id"}, {"$mergeObjects": ["$a", {"_id": "$_id"}]}])}}],
    group,
    bucket,
]
STAGES = SIMPLE + SIMPLE + [
    window, lookup, graph_lookup, facet, densify, fill,
    lambda r: [{"$sortByCount": r.choice(["$a", "$n", {"$mod": ["$n", 2]}])}, {"$sort": SON([("count", -1), ("_id", 1)])}],
    lambda r: [{"$bucketAuto": SON(groupBy="$n", buckets=r.choice([1, 2, 3, 0]))}],
    lambda r: [{"$unionWith": SON(coll="c", pipeline=[{"$match": filters.filter(r, 1)}, {"$sort": {"_id": 1}}])}],
    lambda r: [{"$redact": {"$cond": [expressions.expression(r, 1, "b"), "$$KEEP", r.choice(["$$PRUNE", "$$DESCEND"])]}}],
]
