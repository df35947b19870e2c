"""Updates: operators, replacements, pipelines, array filters."""

from bson import SON

import expressions
import filters
import values

OPERATORS = ["$set", "$set", "$unset", "$inc", "$mul", "$min", "$max", "$rename", "$setOnInsert", "$push", "$push", "$addToSet",
             "$pop", "$pull", "$pull", "$pullAll", "$bit"]


def target(random):
    path = random.choice(values.PATHS[:8] + ["n", "s", "l", "l", "new", "new.x", "l.0", "l.5", "_id"])
    kind = random.randrange(14)
    if kind < 4:
        # Every element, those of a filter, or the one that was found; itself or a field of it, or in an array in an array.
        element = [".$[]", ".$[e]", ".$[e]", ".$"][kind]
        return path + element + random.choice(["", "", ".a", ".b.c", ".$[]", ".$[f]", ".0"])
    return path


def update(random):
    """Gives the update and, where it names elements, the array filters."""
    kind = random.randrange(12)
    if kind == 0:
        made = values.subdocument(random, 2)
        if random.random() < 0.3:
            made["_id"] = random.choice([0, 1, 2])
        return made, None
    if kind < 3:
        return pipeline(random), None
    made = SON()
    for _ in range(random.choice([1, 1, 2, 2, 3])):
        name = random.choice(OPERATORS)
        made.setdefault(name, SON())
        made[name][target(random)] = argument(random, name)
    array_filters = [array_filter(random, name) for name in ("e", "f") if f"$[{name}]" in str(made) or random.random() < 0.01]
    return made, array_filters or None


def array_filter(random, name):
    kind = random.randrange(8)
    if kind == 0:
        return {random.choice(["$or", "$and", "$nor"]): [{name: filters.condition(random, 0)}, {name + ".a": filters.condition(random, 0)}]}
    if kind == 1:
        return SON([(name + ".a", filters.condition(random, 0)), (name + ".b", filters.condition(random, 0))])
    return {random.choice([name, name, name + ".a"]): filters.condition(random, 0)}


def argument(random, name):
    if random.random() < 0.06:
        return values.value(random, 1)
    if name in ("$inc", "$mul"):
        return values.number(random)
    if name == "$rename":
        return random.choice(["new", "b", "c.x", "n", "_id", "a"])
    if name == "$unset":
        return ""
    if name == "$pop":
        return filters.mostly(random, [1, -1, 1.0], [2, 0])
    if name == "$pull":
        return filters.condition(random, 1) if random.random() < 0.6 else filters.filter(random, 0)
    if name == "$pullAll":
        return [values.scalar(random) for _ in range(random.randrange(4))]
    if name == "$bit":
        return {filters.mostly(random, ["and", "or", "xor"], ["nor"]): filters.mostly(random, [1, 5, -1], [2.5])}
    if name in ("$push", "$addToSet") and random.random() < 0.6:
        made = SON([("$each", [values.value(random, 1) for _ in range(random.randrange(4))])])
        if name == "$push":
            if random.random() < 0.4:
                made["$slice"] = filters.mostly(random, [0, 1, 2, -1, -2], [1.5])
            if random.random() < 0.4:
                made["$sort"] = filters.mostly(random, [1, -1, {"a": 1}, {"b": -1}], [2])
            if random.random() < 0.4:
                made["$position"] = random.choice([0, 1, -1, 10])
        return made
    return values.value(random, 2)


def pipeline(random):
    stages = []
    for _ in range(random.choice([1, 1, 2])):
        kind = random.randrange(6)
        if kind < 4:
            names = random.sample(["a", "b.x", "n", "new", "_id", "l"], random.choice([1, 2]))
            stages.append({random.choice(["$set", "$addFields"]): SON((name, expressions.expression(random, 2)) for name in names if name != "_id" or random.random() < 0.2)
                           or {"a": 1}})
        elif kind == 4:
            stages.append({"$unset": random.choice(["a", ["a", "b.a"], "n"])})
        else:
            stages.append({"$replaceWith": random.choice([{"n": "$n"}, {"$mergeObjects": ["$$ROOT", {"x": 1}]}, "$a", {"v": "$$v"}])})
        if random.random() < 0.1:
            stages.append({"$project": filters.projection_of_stage(random)})
    return stages
