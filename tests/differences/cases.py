"""Cases: documents, indexes and one command; how they run on a server, and what of the answer counts."""

import json
import re

from bson import SON, ObjectId, json_util
from pymongo.errors import OperationFailure

import expressions
import filters
import pipelines
import updates
import values

EXACT = json_util.JSONOptions(json_mode=json_util.JSONMode.CANONICAL, datetime_representation=json_util.DatetimeRepresentation.NUMBERLONG)
WRITES = {"update", "findAndModify", "delete", "insert"}
# A view of the collection, so that each command on it is a pipeline.
VIEW = [{"$match": {"n": {"$gte": -1}}}, {"$set": {"w": {"$add": ["$n", 1]}}}]


def reads(random):
    kind = random.randrange(12)
    source = "v" if random.random() < 0.1 else "c"
    if kind < 5:
        made = SON(find=source, filter=filters.filter(random), sort=filters.sort(random), batchSize=1000)
        if random.random() < 0.4:
            made["projection"] = filters.projection(random)
        if random.random() < 0.3:
            made["skip"] = random.choice([0, 1, 3])
        if random.random() < 0.3:
            made["limit"] = random.choice([0, 1, 3])
        return with_options(random, made)
    if kind == 5:
        return with_options(random, SON(distinct=source, key=values.path(random), query=filters.filter(random, 1)))
    if kind == 6:
        made = SON(count=source, query=filters.filter(random))
        if random.random() < 0.3:
            made["limit"] = random.choice([0, 1, 3, -2])
        if random.random() < 0.3:
            made["skip"] = random.choice([0, 1, 3])
        return with_options(random, made)
    stages = [{"$sort": {"_id": 1}}]
    if kind < 9:
        stages.append({"$project": {"x": expressions.expression(random, 3)}})
    else:
        stages += pipelines.pipeline(random)
        if random.random() < 0.3:
            # What filters first may find its documents through an index.
            stages = [{"$match": filters.filter(random)}] + stages
    return with_options(random, SON(aggregate=source, pipeline=stages, cursor={"batchSize": 1000}))


def with_options(random, made):
    """What many commands take: how texts compare, which index is used, variables."""
    kind = random.randrange(20)
    if kind < 2:
        made["collation"] = filters.collation(random)
    elif kind == 2 and next(iter(made.values())) == "c":
        made["hint"] = random.choice(["_id_", {"_id": 1}, {"$natural": 1}, "i", {"a": 1}])
    elif kind == 3 and "find" in made:
        made["filter"] = {"$and": [made["filter"], {"$expr": {"$eq": ["$n", "$$given"]}}]}
        made["let"] = {"given": values.number(random)}
    return made


def written_elsewhere(random):
    """A pipeline whose results go into the other collection."""
    stages = [{"$sort": {"_id": 1}}] + sum((random.choice(pipelines.SIMPLE)(random) for _ in range(random.choice([0, 1]))), [])
    if random.random() < 0.3:
        return SON(aggregate="c", pipeline=stages + [{"$out": "d"}], cursor={})
    made = SON(into="d")
    if random.random() < 0.3:
        made["on"] = random.choice(["_id", ["_id"], "n", []])
    made["whenMatched"] = random.choice(["replace", "keepExisting", "merge", "fail", [{"$set": {"m": "$$new.a"}}], [{"$unset": "a"}]])
    made["whenNotMatched"] = random.choice(["insert", "discard", "fail"])
    return SON(aggregate="c", pipeline=stages + [{"$merge": made}], cursor={})


def batch_over_unique(random):
    """A batch of which some statements break a unique index; each of few values, so that there are many of them."""
    def made(place):
        return SON(_id=random.choice([place + 100, place + 100, random.randrange(4)]), u=random.randrange(12), w=random.randrange(9))

    ordered = random.random() < 0.5
    if random.random() < 0.6:
        return SON(insert="c", documents=[made(place) for place in range(random.choice([2, 5, 20]))], ordered=ordered)
    changes = []
    for place in range(random.choice([1, 3, 8])):
        one = random.choice([{"$set": {"u": random.randrange(12)}}, {"$inc": {"w": 1}}, {"u": random.randrange(12), "w": random.randrange(9)}])
        many = not isinstance(one.get("u"), int) and random.random() < 0.2
        query = {} if many else {"_id": random.choice([0, 1, 2, 3, 100 + place])}
        changes.append(SON(q=query, u=one, multi=many, upsert=not many and random.random() < 0.3))
    return SON(update="c", updates=changes, ordered=ordered)


def writes(random):
    kind = random.randrange(11)
    query = filters.filter(random, 1) if random.random() < 0.5 else {"_id": random.choice([0, 1, 2, 3, 99])}
    if kind == 10:
        return written_elsewhere(random)
    if kind < 6:
        made = []
        for _ in range(random.choice([1, 1, 1, 2])):
            change, array_filters = updates.update(random)
            one = SON(q=query, u=change, multi=random.random() < 0.3, upsert=random.random() < 0.25)
            if array_filters:
                one["arrayFilters"] = array_filters
            if isinstance(change, list) and random.random() < 0.2:
                one["c"] = {"v": values.value(random, 1)}
            if random.random() < 0.05:
                one["collation"] = filters.collation(random)
            if random.random() < 0.05 and not one["multi"]:
                one["sort"] = filters.sort(random)
            made.append(one)
        return SON(update="c", updates=made, ordered=random.random() < 0.7)
    if kind < 8:
        made = SON(findAndModify="c", query=query, sort=filters.sort(random))
        if random.random() < 0.05:
            made["collation"] = filters.collation(random)
        if random.random() < 0.2:
            made["remove"] = True
            return made
        made["update"], array_filters = updates.update(random)
        if array_filters:
            made["arrayFilters"] = array_filters
        made["new"] = random.random() < 0.5
        made["upsert"] = random.random() < 0.25
        if random.random() < 0.3:
            made["fields"] = filters.projection(random)
        return made
    if kind == 8:
        one = SON(q=query, limit=random.choice([0, 1]))
        if random.random() < 0.1:
            one["collation"] = filters.collation(random)
        return SON(delete="c", deletes=[one])
    documents = [values.subdocument(random, 2) for _ in range(2)]
    for document in documents:
        document["_id"] = random.choice([1, 50, 51, 1.0, "x", None, [1], {"a": 1}, {"$a": 1}, values.scalar(random)])
    return SON(insert="c", documents=documents, ordered=random.random() < 0.5)


def documents(random):
    return [values.document(random, place) for place in range(random.choice([1, 4, 8, 12]))]


def others(random):
    """The documents of the other collection, for what joins and unites."""
    return [values.document(random, place) for place in range(random.choice([0, 3, 6]))]


def unique_documents(random):
    """Documents with different values in each of the unique indexes."""
    us, ws = random.sample(range(12), 4), random.sample(range(9), 4)
    return [SON(_id=place, u=us[place], w=ws[place]) for place in range(4)]


UNIQUE = [SON(key={"u": 1}, name="u", unique=True), SON(key={"w": -1}, name="w", unique=True, sparse=True)]


def indexes(random):
    kind = random.randrange(8)
    if kind < 3:
        return []
    if kind == 6:
        # All paths, those below one, or those of a projection.
        projection = random.choice([{}, {}, {"wildcardProjection": {"a": 1}}, {"wildcardProjection": {"a.b": 0, "n": 0}}])
        return [SON(key={random.choice(["$**", "a.$**"]) if not projection else "$**": 1}, name="i", **projection)]
    if kind == 7:
        # No language: which words are too common to be searched for is not the same.
        return [SON(key={"s": "text", "a": "text"}, name="i", default_language="none", weights={"s": random.choice([1, 3])})]
    made = SON((path, random.choice([1, -1])) for path in random.sample(["a", "b", "n", "a.b", "s"], random.choice([1, 1, 2])))
    more = {} if kind < 5 else random.choice([{"sparse": True}, {"partialFilterExpression": {"n": {"$gt": 1}}}])
    return [SON(key=made, name="i", **more)]


class Server:
    """One of the two."""

    def __init__(self, client, database):
        self.database = client.get_database(database)
        self.has_indexes = True
        self.others = None
        client.drop_database(database)
        self.database.command(SON(create="v", viewOn="c", pipeline=VIEW))

    def prepare(self, case):
        others = case.get("others", [])
        if self.others != others:
            self.database.drop_collection("d")
            self.database.command("create", "d")
            if others:
                self.database.command(SON(insert="d", documents=others))
            self.others = others
        # A new collection takes longer than an empty one.
        if self.has_indexes or case["indexes"]:
            self.database.drop_collection("c")
            self.database.command("create", "c")
        else:
            self.database["c"].delete_many({})
        self.has_indexes = bool(case["indexes"])
        if case["documents"]:
            self.database.command(SON(insert="c", documents=case["documents"]))
        if case["indexes"]:
            try:
                self.database.command(SON(createIndexes="c", indexes=case["indexes"]))
            except OperationFailure as refused:
                return {"createIndexes": refused.code}
        return None

    def answer(self, command):
        """What counts of an answer, and the message of a refusal, which does not."""
        elsewhere = any(stage in str(command.get("pipeline")) for stage in ("$merge'", "$out'"))
        if elsewhere:
            self.others = None
        try:
            # The driver adds to what it sends.
            reply = self.database.command(SON(command), codec_options=self.database.codec_options)
        except OperationFailure as refused:
            return {"error": refused.code}, str(refused.details.get("errmsg"))
        except Exception as broken:  # The driver cannot send it, or the server went away: a difference, if only one does.
            return {"broken": type(broken).__name__}, str(broken)
        kept = SON()
        message = ""
        for name, value in sorted(reply.items()):
            if name == "cursor":
                kept["documents"] = value["firstBatch"]
            elif name == "writeErrors":
                kept[name] = [(error["index"], error["code"]) for error in value]
                message = "; ".join(error.get("errmsg", "") for error in value)
            elif name in ("n", "nModified", "upserted", "value", "values", "lastErrorObject"):
                kept[name] = value
        if next(iter(command)) in WRITES:
            kept["left"] = list(self.database["c"].find().sort("_id", 1))
            if any(one.get("upsert") for one in command.get("updates", [command])):
                # What comes from the filter of an upsert comes in no particular order.
                kept = SON((name, by_name(value) if name in ("left", "value") else value) for name, value in kept.items())
        if elsewhere:
            kept["left"] = list(self.database["d"].find().sort("_id", 1))
        return kept, message


def without_order(text, of_lists=False):
    """An answer whose documents have their fields in no order, and whose lists have none either if that is asked for."""

    def unordered(value):
        if isinstance(value, dict) and "array" in value:
            items = [unordered(item) for item in value["array"]]
            return {"array": sorted(items, key=json.dumps) if of_lists else items}
        if isinstance(value, list):
            return sorted(([name, unordered(inner)] for name, inner in value), key=json.dumps)
        return value

    return unordered(json.loads(text))


def by_name(value):
    """A document with its fields sorted."""
    if isinstance(value, list):
        return [by_name(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return SON((name, by_name(value[name])) for name in sorted(value))


def shown(answer, is_ordered):
    """An answer as a text: equal texts are equal answers. Identifiers that the server made are all the same."""
    if not is_ordered:
        for name in ("documents", "values"):
            if name in answer:
                answer[name] = sorted(answer[name], key=lambda item: as_text(item))
    return as_text(answer)


def code_of(text):
    """The code of an answer that is a refusal."""
    found = re.match(r'\[\["(?:error|broken)", ("?\w+"?)\]\]$', text) or re.search(r'\["writeErrors", \{"array": \[\{"array": \[\d+, (\d+)\]', text)
    return found and found.group(1)


def as_text(value):
    return json.dumps(normal(value), ensure_ascii=False)


def normal(value):
    if isinstance(value, dict):
        return [[name, normal(inner)] for name, inner in value.items()]
    if isinstance(value, (list, tuple)):
        return {"array": [normal(inner) for inner in value]}
    if isinstance(value, ObjectId) and value not in values.IDS:
        return "made"
    if isinstance(value, float) and value == value and abs(value) not in (0.0, float("inf")):
        # The last digit depends on the order of additions.
        return "double %.14g" % value
    return json_util.default(value, EXACT) if not isinstance(value, (str, bool, int, type(None))) or type(value).__name__ == "Int64" else value
