"""Filters: every operator of the query language but those for places."""

from bson import SON

import values

TYPES = ["double", "string", "object", "array", "binData", "objectId", "bool", "date", "null", "regex", "javascript", "int",
         "timestamp", "long", "decimal", "minKey", "maxKey", "number", 1, 2, 3, 4, 16, 18, -1, 127]


def mostly(random, good, bad):
    """One of the good ones, and now and then one that is refused. A command has many parts: if each were wrong as often as not, none would pass."""
    return random.choice(bad if random.random() < 0.06 else good)


def filter(random, depth=2, is_top=True):
    made = SON()
    if is_top and depth == 2 and random.random() < 0.02:
        made["$text"] = SON({"$search": random.choice(["a", "ab", "a b", '"ab"', "-a b", "A é", "", "x y z"])}, **random.choice([{}, {"$caseSensitive": True}]))
    for _ in range(random.choice([0, 1, 1, 1, 2, 2, 3])):
        if depth and random.random() < 0.25:
            made.update(logic(random, depth - 1, is_top))
        else:
            made[values.path(random)] = condition(random, depth)
    return made


def logic(random, depth, is_top):
    # Elsewhere these two are refused, or end MongoDB 8.2.0.
    name = random.choice(["$and", "$or", "$nor"] + (["$expr", "$jsonSchema"] if is_top else []))
    if name == "$expr":
        import expressions

        return {name: expressions.expression(random, 2)}
    if name == "$jsonSchema":
        return {name: schema(random, 1)}
    return {name: [filter(random, depth, is_top) for _ in range(random.choice([1, 2, 2, 3]))]}


def condition(random, depth=2):
    kind = random.randrange(10)
    if kind < 3:
        return values.value(random, 1)
    made = SON()
    for _ in range(random.choice([1, 1, 1, 2])):
        name, argument = operator(random, depth)
        made[name] = argument
    return made


def operator(random, depth):
    kind = random.randrange(20)
    if kind < 7:
        return random.choice(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), values.value(random, 1)
    if kind < 9:
        return random.choice(["$in", "$nin"]), [values.value(random, 1) for _ in range(random.randrange(4))]
    if kind == 9:
        return "$exists", random.choice([True, False, 1, 0, None])
    if kind == 10:
        kinds = random.sample(mostly(random, [TYPES], [["nothing", 99, 20.5]]), random.choice([1, 1, 2]))
        return "$type", kinds[0] if len(kinds) == 1 else kinds
    if kind == 11:
        return "$size", mostly(random, [0, 1, 2, 3, 1.0], [-1, 1.5, "1"])
    if kind == 12:
        if random.random() < 0.3:
            return "$all", [{"$elemMatch": filter(random, 0, False)}]
        return "$all", [values.value(random, 1) for _ in range(random.choice([1, 2]))]
    if kind < 15:
        inner = filter(random, max(depth - 1, 0), False) if random.random() < 0.5 else SON([operator(random, 0)])
        return "$elemMatch", inner
    if kind == 15:
        return "$not", values.regex(random) if random.random() < 0.2 else SON([operator(random, max(depth - 1, 0))])
    if kind == 16:
        return "$mod", mostly(random, [[2, 0], [2, 1], [3, -1], [2.5, 0], [-2, -1]], [[0, 1], [2], [2, 0, 0], ["a", 1], [4, float("nan")]])
    if kind == 17:
        return "$regex", mostly(random, [values.regex(random), "^a", "B", "(?i)a"], ["["])
    if kind == 18:
        names = ["$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear"]
        return random.choice(names), mostly(random, [0, 1, 5, [0], [0, 2], b"\x05", [63, 64]], [-1, 1.5, "x"])
    return mostly(random, ["$eq", "$in"], ["$comment"]), [values.scalar(random)]


def schema(random, depth):
    made = SON()
    for _ in range(random.choice([1, 2, 2])):
        name = random.choice(["bsonType", "required", "properties", "minimum", "maximum", "minLength", "pattern", "enum", "type",
                              "items", "minItems", "uniqueItems", "additionalProperties", "not", "anyOf", "multipleOf", "maxProperties"])
        if name in ("bsonType", "type"):
            made[name] = random.choice(["object", "string", "int", "number", "array", ["null", "string"], "integer", "boolean"])
        elif name == "required":
            made[name] = random.sample(values.FIELDS, random.choice([0, 1, 2]))
        elif name in ("properties", "additionalProperties"):
            if name == "additionalProperties" or not depth:
                made[name] = random.choice([True, False]) if name == "additionalProperties" else {}
            else:
                made[name] = {field: schema(random, depth - 1) for field in random.sample(values.FIELDS, 1)}
        elif name in ("minimum", "maximum", "multipleOf"):
            made[name] = values.number(random)
        elif name in ("minLength", "minItems", "maxProperties"):
            made[name] = mostly(random, [0, 1, 2], [-1, 1.5])
        elif name == "pattern":
            made[name] = random.choice(["^a", "b"])
        elif name == "enum":
            made[name] = [values.scalar(random) for _ in range(random.randrange(3))]
        elif name == "uniqueItems":
            made[name] = random.choice([True, False])
        elif not depth:
            continue
        elif name == "items" or name == "not":
            made[name] = schema(random, depth - 1)
        else:
            made[name] = [schema(random, depth - 1)]
    return made


def projection(random):
    made = SON()
    keep = random.choice([0, 1, True, False])
    for _ in range(random.choice([1, 1, 2, 3])):
        path = values.path(random)
        kind = random.randrange(12)
        if kind < 8:
            made[path] = keep if random.random() < 0.97 else 1 - int(keep)
        elif kind == 8:
            made[path] = {"$slice": mostly(random, [1, -1, 2, [1, 1], [-2, 1], 0], [[0, 0], "x"])}
        elif kind == 9:
            made[random.choice(["a", "b", "l"])] = {"$elemMatch": filter(random, 0)}
        elif kind == 10:
            made[path] = random.choice(["$n", "text", 2.5, {"$add": ["$n", 1]}, {"x": "$s"}, {"$literal": 1}])
        elif keep:
            made[random.choice(["a", "b", "l", "a.b"]) + ".$"] = 1
    if random.random() < 0.2:
        made["_id"] = random.choice([0, 1])
    return made


def sort(random):
    made = SON()
    for _ in range(random.choice([1, 1, 2])):
        made[values.path(random)] = random.choice([1, -1])
    # What has equal keys comes in no particular order, unless something else decides.
    made["_id"] = random.choice([1, -1])
    return made


def collation(random):
    made = SON(locale=random.choice(["en", "de", "simple", "fr", "sv"]))
    if made["locale"] != "simple":
        made["strength"] = random.choice([1, 2, 3])
        if random.random() < 0.3:
            made["numericOrdering"] = True
        if random.random() < 0.2:
            made["caseLevel"] = True
        if random.random() < 0.2:
            made["caseFirst"] = random.choice(["upper", "lower", "off"])
        if random.random() < 0.1:
            made["alternate"] = "shifted"
    return made


def projection_of_stage(random):
    """A `$project` has neither `.$` nor `$elemMatch`, and `$slice` means something else."""
    made = SON((path, keep) for path, keep in projection(random).items() if not path.endswith(".$"))
    return SON((path, 1 if isinstance(keep, dict) else keep) for path, keep in made.items())
