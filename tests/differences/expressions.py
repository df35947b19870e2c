"""Aggregation expressions: a table of operators with the kinds of their operands.

Mostly operands are of the kind an operator wants, so that it answers; now and then of any other, so that it refuses.
"""

from bson import SON

import values

UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "+05:30", "-0300", "GMT"]

# n number, s text, d date, l list, o object, b boolean, i small integer, x anything
OPERATORS = {
    "$abs": "n", "$add": "n*", "$ceil": "n", "$divide": "nn", "$exp": "n", "$floor": "n", "$ln": "n", "$log": "nn", "$log10": "n",
    "$mod": "nn", "$multiply": "n*", "$pow": "nn", "$sqrt": "n", "$subtract": "nn", "$round": "ni", "$trunc": "ni",
    "$sin": "n", "$cos": "n", "$tan": "n", "$asin": "n", "$acos": "n", "$atan": "n", "$atan2": "nn", "$sinh": "n", "$tanh": "n",
    "$degreesToRadians": "n", "$radiansToDegrees": "n", "$bitAnd": "i*", "$bitOr": "i*", "$bitXor": "i*", "$bitNot": "i",
    "$arrayElemAt": "li", "$concatArrays": "l*", "$first": "l", "$last": "l", "$in": "xl", "$indexOfArray": "lx", "$isArray": "x",
    "$objectToArray": "o", "$arrayToObject": "l", "$reverseArray": "l", "$size": "l", "$slice": "li", "$range": "ii",
    "$allElementsTrue": "L", "$anyElementTrue": "L", "$setDifference": "ll", "$setEquals": "ll",
    "$setIsSubset": "ll", "$and": "x*", "$or": "x*", "$not": "x",
    "$cmp": "xx", "$eq": "xx", "$ne": "xx", "$gt": "xx", "$gte": "xx", "$lt": "xx", "$lte": "xx", "$ifNull": "xx",
    "$dayOfMonth": "d", "$dayOfWeek": "d", "$dayOfYear": "d", "$hour": "d", "$isoDayOfWeek": "d", "$isoWeek": "d", "$isoWeekYear": "d",
    "$millisecond": "d", "$minute": "d", "$month": "d", "$second": "d", "$week": "d", "$year": "d",
    "$concat": "s*", "$indexOfBytes": "ss", "$indexOfCP": "ss", "$split": "ss", "$strLenBytes": "s", "$strLenCP": "s",
    "$strcasecmp": "ss", "$substrBytes": "sii", "$substrCP": "sii", "$toLower": "s", "$toUpper": "s",
    "$isNumber": "x", "$toBool": "x", "$toDate": "x", "$toDecimal": "x", "$toDouble": "x", "$toInt": "x", "$toLong": "x",
    "$toObjectId": "x", "$toString": "x", "$type": "x", "$mergeObjects": "o*", "$binarySize": "x", "$bsonSize": "o",
    "$avg": "n*", "$max": "x*", "$min": "x*", "$sum": "n*", "$stdDevPop": "n*", "$literal": "!", "$tsSecond": "x",
    "$cond": "xxx", "$asinh": "n", "$acosh": "n", "$atanh": "n", "$cosh": "n", "$sigmoid": "n", "$stdDevSamp": "n*", "$tsIncrement": "x",
    "$toUUID": "s", "$substr": "sii", "$indexOfArray ": "lxii", "$indexOfCP ": "ssii", "$indexOfBytes ": "ssii", "$slice ": "lii", "$range ": "iii",
    "$ifNull ": "xxx", "$toArray": "x", "$toObject": "x",
}


def expression(random, depth=2, kind="x"):
    """An expression; at depth 0 a field or a constant."""
    if random.random() < 0.03:
        kind = random.choice("nsdlobx")
    if depth <= 0 or random.random() < 0.25:
        return leaf(random, kind)
    if random.random() < 0.3:
        return special(random, depth)
    fitting = BY_RESULT.get(kind, ALL)
    name = random.choice(fitting if random.random() < 0.93 else ALL)
    # A space tells two forms of an operator apart.
    return {name.strip(): operands(random, OPERATORS[name], depth)}


def operands(random, wanted, depth):
    if wanted == "!":
        return values.value(random, 1)
    if wanted == "L":
        return [expression(random, depth - 1, "l")]
    if wanted.endswith("*"):
        return [expression(random, depth - 1, wanted[0]) for _ in range(random.choice([0, 1, 2, 2, 3]))]
    made = [expression(random, depth - 1, kind) for kind in wanted]
    if random.random() < 0.02:
        made.append(1)
    return made[0] if len(made) == 1 and random.random() < 0.7 and not isinstance(made[0], list) else made


def leaf(random, kind):
    if random.random() < 0.6:
        return {"n": "$n", "i": "$n", "s": "$s", "d": "$t", "l": "$l", "o": "$$ROOT"}[kind] if random.random() < 0.9 \
            and kind in "nisdlo" else "$" + values.path(random)
    if kind == "n":
        return values.number(random)
    if kind == "i":
        return random.choice([0, 1, 2, -1, 3])
    if kind == "s":
        return values.text(random)
    if kind == "d":
        return values.date(random)
    if kind == "l":
        return {"$literal": values.array(random)}
    if kind == "o":
        return {"$literal": values.subdocument(random)}
    return {"$literal": values.scalar(random)}


def special(random, depth):
    """Operators whose operands have names."""
    sub = lambda kind="x": expression(random, depth - 1, kind)  # noqa: E731
    make = random.choice(SPECIAL)
    return make(random, sub)


def element(random):
    return random.choice(["$$this", "$$this.a", {"$add": ["$$this", 1]}, {"$gt": ["$$this", 1]}, {"$type": "$$this"}, "$n"])


SPECIAL = [
    lambda r, sub: {"$switch": SON(branches=[SON(case=sub("b"), then=sub())], default=sub())},
    lambda r, sub: {"$let": SON(vars={"v": sub()}, **{"in": r.choice(["$$v", {"$eq": ["$$v", sub()]}, "$$v.a"])})},
    lambda r, sub: {"$map": SON(input=sub("l"), **{"in": element(r)})},
    lambda r, sub: {"$filter": SON(input=sub("l"), cond=element(r))},
    lambda r, sub: {"$reduce": SON(input=sub("l"), initialValue=sub("n"), **{"in": r.choice([{"$add": ["$$value", "$$this"]}, "$$this"])})},
    lambda r, sub: {"$sortArray": SON(input=sub("l"), sortBy=r.choice([1, -1, {"a": 1}, {"b": -1}]))},
    lambda r, sub: {"$sortArray": SON(input={r.choice(["$setUnion", "$setIntersection"]): [sub("l"), sub("l")]}, sortBy=1)},
    lambda r, sub: {"$zip": SON(inputs=[sub("l"), sub("l")], useLongestLength=r.choice([True, False]))},
    lambda r, sub: {r.choice(["$firstN", "$lastN", "$maxN", "$minN"]): SON(input=sub("l"), n=r.choice([1, 2, 0, sub("i")]))},
    lambda r, sub: {"$convert": SON(input=sub(), to=r.choice(["int", "long", "double", "decimal", "string", "bool", "date", "objectId", 16, "x"]),
                                    onNull="null", **({"onError": "bad"} if r.random() < 0.5 else {}))},
    lambda r, sub: {r.choice(["$dateAdd", "$dateSubtract"]): SON(startDate=sub("d"), unit=r.choice(UNITS), amount=r.choice([1, -1, 40, sub("i")]),
                                                                **zone(r))},
    lambda r, sub: {"$dateDiff": SON(startDate=sub("d"), endDate=sub("d"), unit=r.choice(UNITS), **zone(r))},
    lambda r, sub: {"$dateTrunc": SON(date=sub("d"), unit=r.choice(UNITS), binSize=r.choice([1, 2, 7]), **zone(r))},
    lambda r, sub: {"$dateToParts": SON(date=sub("d"), **zone(r), **({"iso8601": True} if r.random() < 0.4 else {}))},
    lambda r, sub: {"$dateFromParts": SON(year=r.choice([2020, 1969, sub("i")]), month=r.choice([2, 14, -1]), day=r.choice([1, 31]), **zone(r))},
    lambda r, sub: {"$dateFromString": SON(dateString=sub("s"), onError="bad", **zone(r))},
    lambda r, sub: {"$dateToString": SON(date=sub("d"), format=r.choice(["%Y-%m-%dT%H:%M:%S.%LZ", "%G-%V-%u", "%j %U %w %z %Z", "%d/%m %%", "%q"]), **zone(r))},
    lambda r, sub: {r.choice(["$ltrim", "$rtrim", "$trim"]): SON(input=sub("s"), **({"chars": r.choice(["a", "a ", ""])} if r.random() < 0.5 else {}))},
    lambda r, sub: {r.choice(["$regexFind", "$regexFindAll", "$regexMatch"]): SON(input=sub("s"), regex=r.choice(["a", "(a)(b)?", "^a", "[", "é", values.regex(r)]))},
    lambda r, sub: {r.choice(["$replaceOne", "$replaceAll"]): SON(input=sub("s"), find=sub("s"), replacement=r.choice(["", "zz"]))},
    lambda r, sub: {"$getField": r.choice([SON(field=r.choice(["a", "b", "a.b", {"$literal": "$a"}, sub("s")]), input=sub("o")), "a", "a.b"])},
    lambda r, sub: {"$unsetField": SON(field=r.choice(["a", "z", "a.b"]), input=sub("o"))},
    lambda r, sub: {"$setField": SON(field=r.choice(["a", "z"]), input=sub("o"), value="$$REMOVE")},
    lambda r, sub: {"$cond": SON([("if", sub("b")), ("then", sub()), ("else", r.choice([sub(), "$$REMOVE"]))])},
    lambda r, sub: {"$switch": SON(branches=[SON(case=sub("b"), then=sub()), SON(case=sub("b"), then=sub())])},
    lambda r, sub: {"$map": SON([("input", sub("l")), ("as", "e"), ("in", r.choice(["$$e", {"$add": ["$$e", "$n"]}, ["$$e", "$_id"], {"k": "$$e"}]))])},
    lambda r, sub: {"$filter": SON([("input", sub("l")), ("as", "e"), ("cond", r.choice([{"$gt": ["$$e", "$n"]}, {"$ne": ["$$e", None]}])), ("limit", r.choice([1, 2, None, 0]))])},
    lambda r, sub: {"$reduce": SON([("input", sub("l")), ("initialValue", []), ("in", {"$concatArrays": ["$$value", ["$$this"]]})])},
    lambda r, sub: {"$zip": SON(inputs=[sub("l"), sub("l")], useLongestLength=True, defaults=[sub(), 0])},
    lambda r, sub: {r.choice(["$median", "$percentile"]): SON(input=r.choice([sub("l"), [sub("n"), sub("n")]]), method="approximate", **r.choice([{}, {"p": [0.5, 0.9]}]))},
    lambda r, sub: {"$convert": SON(input=sub(), to=r.choice(["binData", {"type": "binData", "subtype": 4}, "array", "object", "string", {"type": "string"}, "undefined"]),
                                    **r.choice([{}, {"format": r.choice(["base64", "hex", "utf8", "uuid", "auto", "base64url"])}, {"onError": "bad"}]))},
    lambda r, sub: {"$dateFromParts": SON(isoWeekYear=r.choice([2020, 1969]), isoWeek=r.choice([1, 53, 60]), isoDayOfWeek=r.choice([1, 7, 0]), hour=r.choice([0, 25]), **zone(r))},
    lambda r, sub: {"$dateFromString": SON(dateString=r.choice([sub("s"), "2020-03-01", "12/31/2023 10:20", "2020-W05-2"]), format=r.choice(["%Y-%m-%d", "%m/%d/%Y %H:%M", "%G-W%V-%u", "%q"]), onNull="null", **zone(r))},
    lambda r, sub: {"$dateTrunc": SON(date=sub("d"), unit="week", startOfWeek=r.choice(["mon", "sunday", "fri", "x"]), **zone(r))},
    lambda r, sub: {"$dateDiff": SON(startDate=sub("d"), endDate=sub("d"), unit="week", startOfWeek=r.choice(["mon", "sunday", "fri"]), **zone(r))},
    lambda r, sub: {"$dateToString": SON(date=sub("d"), **r.choice([{}, {"onNull": "null"}]), **zone(r))},
    lambda r, sub: {r.choice(["$year", "$hour", "$dayOfWeek", "$week"]): SON(date=sub("d"), **zone(r))},
    lambda r, sub: {r.choice(["$regexFind", "$regexFindAll", "$regexMatch"]): SON(input=sub("s"), regex=r.choice(["A", "^B", "a.c"]), options=r.choice(["i", "im", "sx", "q", ""]))},
    lambda r, sub: {r.choice(["$setUnion", "$setIntersection"]): [sub("l")]},
    lambda r, sub: {"$getField": SON(field=r.choice(["a", "b", "a.b"]), input=sub("o"))},
    lambda r, sub: {"$setField": SON(field=r.choice(["a", "z"]), input=sub("o"), value=sub())},
    lambda r, sub: SON([("x", sub()), ("y", sub())]),
    lambda r, sub: [sub(), sub()],
]


def zone(random):
    return {"timezone": random.choice(["nowhere"] if random.random() < 0.03 else ZONES)} if random.random() < 0.4 else {}


def operators_that_give(kind):
    number = [name for name in OPERATORS if OPERATORS[name][0] in "ni" and name not in ("$range", "$range ")]
    number += ["$size", "$strLenCP", "$indexOfArray", "$toInt", "$toLong", "$toDouble", "$toDecimal", "$hour", "$year", "$cmp"]
    return {
        "n": number,
        "i": ["$size", "$strLenCP", "$cmp", "$hour", "$toInt", "$floor", "$indexOfCP"],
        "s": ["$concat", "$toLower", "$toUpper", "$substrCP", "$toString", "$type", "$substrBytes"],
        "d": ["$toDate", "$add", "$subtract", "$max", "$ifNull"],
        "l": ["$concatArrays", "$reverseArray", "$slice", "$split", "$range", "$objectToArray"],
        "o": ["$mergeObjects", "$arrayToObject", "$literal"],
        "b": ["$and", "$or", "$not", "$eq", "$gt", "$lt", "$in", "$isNumber", "$setEquals", "$toBool"],
    }[kind]


ALL = list(OPERATORS)
BY_RESULT = {kind: operators_that_give(kind) for kind in "nisdlob"}
