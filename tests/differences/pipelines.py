"""Aggregation pipelines.

Where MongoDB promises no order, a stage that makes one follows: after `$group` a sort by `_id`, after `$addToSet` a sorted array.
"""

from bson import SON

import expressions
import filters
import values

ACCUMULATORS = ["$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$count", "$stdDevPop", "$stdDevSamp", "$mergeObjects",
                "$firstN", "$lastN", "$maxN", "$minN", "$top", "$bottomN", "$addToSet", "$median", "$percentile", "$concatArrays"]


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
        return {name: SON(input=expressions.expression(random, 1), n=filters.mostly(random, [1, 2, 3], [0]))}
    if name in ("$top", "$bottomN"):
        made = SON(sortBy=SON([(values.path(random), random.choice([1, -1])), ("_id", 1)]), output=random.choice(["$_id", ["$_id", "$a"]]))
        if name == "$bottomN":
            made["n"] = 2
        return {name: made}
    if name == "$median":
        return {name: SON(input="$n", method="approximate")}
    if name == "$percentile":
        return {name: SON(input="$n", p=filters.mostly(random, [[0.5], [0, 0.25, 1]], [[1.5]]), method="approximate")}
    kind = "n" if name in ("$sum", "$avg", "$stdDevPop", "$stdDevSamp") else "o" if name == "$mergeObjects" else "l" if name == "$concatArrays" else "x"
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
    edges = filters.mostly(random, [[-5, 0, 5, 20], [0, 3], [0, 1.5, 4], ["", "a", "b"]], [[3, 1], [0], [0, "a"]])
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
    made = SON()
    if random.random() < 0.9:
        made["sortBy"] = random.choice([{"n": 1}, {"_id": 1}, {"t": 1}, {"a": 1}, {"missing": 1}, SON([("n", -1), ("_id", 1)])])
    if random.random() < 0.4:
        made["partitionBy"] = random.choice(["$s", {"$mod": ["$_id", 2]}, "$a", {"x": "$s"}])
    # Of documents with the same sort key either may come first; where that shows, the key tells all apart.
    sort = made.get("sortBy", {})
    made["output"] = {random.choice(["w", "w", "a", "b.w"]): window_call(random, "_id" in sort)}
    if random.random() < 0.2:
        made["output"]["x"] = window_call(random, "_id" in sort)
    return [{"$setWindowFields": made}, {"$sort": {"_id": 1}}]


def window_call(random, is_told_apart):
    any_order = ["$sum", "$avg", "$min", "$max", "$count", "$rank", "$denseRank", "$stdDevPop", "$stdDevSamp", "$covariancePop", "$covarianceSamp",
                 "$minN", "$maxN", "$median", "$percentile", "$minMaxScaler", "$topN", "$bottom"]
    in_order = ["$push", "$first", "$last", "$documentNumber", "$shift", "$expMovingAvg", "$linearFill", "$locf", "$derivative", "$integral", "$firstN",
                "$lastN"]
    name = random.choice(any_order + in_order if is_told_apart else any_order)
    field = random.choice(["$n", "$n", "$_id", "$a", "$t", "$missing", {"$add": ["$n", 0.5]}, {"$toDecimal": "$n"}, {"$toLong": "$n"}])
    if name in ("$count", "$rank", "$denseRank", "$documentNumber"):
        call = {name: {}}
    elif name == "$shift":
        call = {name: SON(output=field, by=filters.mostly(random, [1, -1, 0], [1.5]), **({"default": random.choice(["none", None, 5])} if random.random() < 0.6 else {}))}
    elif name == "$expMovingAvg":
        call = {name: filters.mostly(random, [{"input": field, "N": 2}, {"input": field, "alpha": 0.5}], [{"input": field, "alpha": 2}])}
    elif name in ("$derivative", "$integral"):
        call = {name: SON(input=field, **({"unit": random.choice(["hour", "day", "week", "month"])} if random.random() < 0.3 else {}))}
    elif name.startswith("$covariance"):
        call = {name: [field, "$_id"]}
    elif name in ("$firstN", "$lastN", "$minN", "$maxN"):
        call = {name: SON(input=field, n=random.choice([1, 2]))}
    elif name in ("$topN", "$bottom"):
        call = {name: SON(sortBy=SON([("n", 1), ("_id", 1)]), output=field, **({"n": 2} if name == "$topN" else {}))}
    elif name in ("$median", "$percentile"):
        call = {name: SON(input=field, method="approximate", **({"p": [0.1, 0.9]} if name == "$percentile" else {}))}
    elif name == "$minMaxScaler":
        call = {name: SON(input=field, **filters.mostly(random, [{}, {"min": 1, "max": 5}], [{"min": 5, "max": 1}]))}
    else:
        call = {name: field}
    takes_window = name not in ("$rank", "$denseRank", "$documentNumber", "$shift", "$expMovingAvg", "$linearFill", "$locf")
    if random.random() < (0.75 if takes_window else 0.03):
        documents = [["unbounded", "current"], [-1, 1], ["current", "unbounded"], [-2, -1], [1, 2], [0, 0], ["unbounded", "unbounded"], [1, -1]]
        ranges = [{"range": [-2, 2]}, {"range": ["current", 1]}, {"range": [-1.5, "unbounded"]}, {"range": ["unbounded", "current"]},
                  {"range": [-1, 1], "unit": "year"}, {"range": [-5, "current"], "unit": "day"}]
        # A window of documents goes by their places.
        call["window"] = {"documents": random.choice(documents)} if is_told_apart and random.random() < 0.6 else random.choice(ranges)
    return call


def lookup(random):
    made = SON([("from", random.choice(["c", "d", "d", "v", "nothing"]))])
    kind = random.randrange(5)
    if kind < 3:
        made["localField"], made["foreignField"] = values.path(random), values.path(random)
    if kind > 1:
        made["let"] = {"v": "$" + values.path(random)}
        condition = random.choice([{"$expr": {"$eq": ["$$v", "$n"]}}, {"$expr": {"$gt": ["$$v", "$" + values.path(random)]}}, filters.filter(random, 1)])
        inner = [{"$match": condition}, {"$sort": {"_id": 1}}]
        if random.random() < 0.4:
            inner += random.choice(SIMPLE)(random)
        made["pipeline"] = inner + [{"$project": random.choice([{"_id": 1}, {"v": "$$v", "n": 1}])}]
    made["as"] = random.choice(["j", "a", "b.j"])
    stages = [{"$lookup": made}]
    if random.random() < 0.2:
        stages.append({"$unwind": SON(path="$" + made["as"], preserveNullAndEmptyArrays=random.choice([True, False]))})
        return stages + [{"$sort": SON([("_id", 1), (made["as"] + "._id", 1)])}]
    # Found documents come in no particular order.
    return stages + [{"$set": {made["as"]: {"$sortArray": SON(input="$" + made["as"], sortBy={"_id": 1})}}}]


def graph_lookup(random):
    made = SON([("from", random.choice(["c", "d"])), ("startWith", random.choice(["$n", "$l", "$a", "$_id", [1, 2]])),
                ("connectFromField", random.choice(["n", "l", "a", "a.b", "_id"])), ("connectToField", random.choice(["_id", "n", "l", "a"])), ("as", "g")])
    if random.random() < 0.5:
        made["maxDepth"] = random.choice([0, 1, 2])
    if random.random() < 0.5:
        made["depthField"] = "depth"
    if random.random() < 0.3:
        made["restrictSearchWithMatch"] = filters.filter(random, 1)
    return [{"$graphLookup": made}, {"$set": {"g": {"$sortArray": SON(input="$g", sortBy={"_id": 1})}}}]


def facet(random):
    inside = SIMPLE + SIMPLE + [window, lookup, union, bucket_auto]
    return [{"$facet": SON((name, sum((random.choice(inside)(random) for _ in range(random.choice([1, 2]))), [])) for name in ["x", "y"])}]


def union(random):
    source = random.choice(["c", "d", "v", "nothing"])
    if random.random() < 0.3:
        made = source
    else:
        made = SON(coll=source, pipeline=[{"$match": filters.filter(random, 1)}, {"$sort": {"_id": 1}}] + random.choice(SIMPLE)(random))
    stages = [{"$unionWith": made}]
    if random.random() < 0.5:
        stages += random.choice(SIMPLE)(random)
    return stages


def bucket_auto(random):
    made = SON(groupBy=random.choice(["$n", "$_id", "$s", "$a"]), buckets=filters.mostly(random, [1, 2, 3, 4], [0]))
    if random.random() < 0.4:
        made["output"] = SON(count={"$sum": 1}, p=random.choice([{"$sum": "$n"}, {"$min": "$s"}, {"$max": "$a"}]))
    return [{"$bucketAuto": made}]


def sort_then(random):
    """A sort and what becomes of it together with what follows."""
    stages = [{"$sort": filters.sort(random)}]
    if random.random() < 0.5:
        stages.append({"$skip": random.choice([0, 1, 3])})
    stages.append({"$limit": random.choice([1, 2, 4])})
    return stages


def densify(random):
    made = SON(field=filters.mostly(random, ["n"], ["x.y", "s"]), range=SON(step=filters.mostly(random, [1, 2, 0.5], [0]), bounds=filters.mostly(random, ["full", [0, 4], [1.5, 3]], ["partition", [3, 1]])))
    if random.random() < 0.1:
        made["range"]["unit"] = "day"
    if random.random() < 0.3:
        made["partitionByFields"] = random.choice([["s"], ["s", "b.a"], ["a"]])
    return [{"$densify": made}, {"$sort": SON([("n", 1), ("s", 1), ("_id", 1)])}]


def fill(random):
    made = SON()
    if random.random() < 0.9:
        made["sortBy"] = random.choice([{"_id": 1}, {"_id": 1}, {"_id": -1}, {"s": 1, "_id": 1}])
    if random.random() < 0.3:
        made.update(random.choice([{"partitionByFields": ["s"]}, {"partitionBy": {"$mod": ["$_id", 2]}}, {"partitionBy": {"s": "$s"}}]))
    methods = [{"method": "locf"}, {"method": "linear"}, {"value": "$n"}, {"value": expressions.expression(random, 1)}, {"method": "none"}]
    made["output"] = {random.choice(["f", "f", "a", "x.y"]): random.choice(methods)}
    return [{"$set": {"f": {"$cond": [{"$gt": ["$n", random.choice([1, 4])]}, random.choice([None, "$$REMOVE"]), random.choice(["$n", {"$toDecimal": "$n"}])]}}},
            {"$fill": made}, {"$sort": {"_id": 1}}]


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
    lambda r: [{"$unset": filters.mostly(r, ["a", ["b", "a.b"], "a.0"], [["a", "a.b"]])}],
    lambda r: [{"$replaceRoot": {"newRoot": filters.mostly(r, ["$$ROOT", {"x": "$a", "_id": "$_id"}, {"$mergeObjects": ["$$ROOT", {"a": "$n"}]}], ["$a"])}}],
    group,
    bucket,
]
STAGES = SIMPLE + SIMPLE + [
    window, window, window, lookup, lookup, graph_lookup, facet, facet, densify, fill, union, bucket_auto, sort_then,
    lambda r: [{"$sortByCount": r.choice(["$a", "$n", {"$mod": ["$n", 2]}])}, {"$sort": SON([("count", -1), ("_id", 1)])}],
    lambda r: [{"$redact": {"$cond": [expressions.expression(r, 1, "b"), "$$KEEP", r.choice(["$$PRUNE", "$$DESCEND"])]}}],
]
