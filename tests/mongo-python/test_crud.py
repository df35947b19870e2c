"""Documents in and out: every BSON type, filters, updates, bulk writes, cursors, and what is refused."""

import datetime
import re
import uuid

import bson
import pytest
from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.codec_options import CodecOptions
from bson.binary import UuidRepresentation
from pymongo import ASCENDING, DESCENDING, CursorType, DeleteOne, InsertOne, ReplaceOne, ReturnDocument, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, CursorNotFound, DuplicateKeyError, OperationFailure, WriteError

EVERY_TYPE = {
    "double": 1.5,
    "infinite": float("-inf"),
    "string": "Grüße \u0000 🐟",
    "document": {"nested": {"deeper": [1, {"x": None}]}},
    "array": [1, "two", [3.0]],
    "binary": Binary(b"\x00\x01", 128),
    "uuid": Binary.from_uuid(uuid.UUID(int=7)),
    "id": ObjectId("0123456789abcdef01234567"),
    "bool": True,
    "date": datetime.datetime(1969, 7, 20, 20, 17, 40, 123000),
    "null": None,
    "regex": Regex("^a.b$", "im"),
    "code": Code("function() {}"),
    "scope": Code("x", {"y": 1}),
    "int": 7,
    "timestamp": Timestamp(1700000000, 3),
    "long": Int64(2**53 + 1),
    "decimal": Decimal128("1.10"),
    "min": MinKey(),
    "max": MaxKey(),
    "reference": DBRef("other", 1),
}


def ids(cursor):
    return [document["_id"] for document in cursor]


def test_every_type_comes_back_as_it_was(collection):
    collection.insert_one({"_id": 1, **EVERY_TYPE})
    raw = collection.with_options(CodecOptions(uuid_representation=UuidRepresentation.UNSPECIFIED))
    assert raw.find_one({"_id": 1}) == {"_id": 1, **EVERY_TYPE}
    assert isinstance(raw.find_one()["long"], Int64)
    assert list(collection.find_one()) == ["_id", *EVERY_TYPE]


@pytest.mark.parametrize("id", [1, 1.5, "x", ObjectId(), None, True, {"a": 1, "b": 2}, b"\x01", Decimal128("2.5"), Int64(5)])
def test_an_id_may_be_almost_anything(collection, id):
    collection.insert_one({"_id": id})
    assert collection.count_documents({"_id": id}) == 1
    with pytest.raises(DuplicateKeyError, match=r"E11000 duplicate key error collection: .* index: _id_ dup key"):
        collection.insert_one({"_id": id})


def test_equal_numbers_are_one_id(collection):
    collection.insert_one({"_id": 1})
    for same in (1.0, Int64(1), Decimal128("1.0")):
        with pytest.raises(DuplicateKeyError):
            collection.insert_one({"_id": same})


@pytest.mark.parametrize("id", [[1], Regex("a"), {"$x": 1}])
def test_ids_that_are_refused(collection, id):
    with pytest.raises(WriteError):
        collection.insert_one({"_id": id})


def test_a_missing_id_is_made_and_comes_first(database):
    database.command({"insert": "c", "documents": [{"a": 1}]})
    [document] = database.c.find()
    assert list(document) == ["_id", "a"] and isinstance(document["_id"], ObjectId)


FILTERS = [
    ({}, [1, 2, 3, 4]),
    ({"a": 2}, [2, 4]),
    ({"a": {"$gt": 1}}, [2, 3, 4]),
    ({"a": {"$gte": 1, "$lt": 3}}, [1, 2, 4]),
    ({"a": {"$ne": 2}}, [1, 3]),
    ({"a": {"$in": [1, 3]}}, [1, 3]),
    ({"a": {"$nin": [1, 3]}}, [2, 4]),
    ({"a": {"$all": [2, 5]}}, [4]),
    ({"a": {"$size": 2}}, [4]),
    ({"a": {"$elemMatch": {"$gt": 4}}}, [4]),
    ({"a": {"$not": {"$gt": 2}}}, [1, 2]),
    ({"a": {"$mod": [2, 1]}}, [1, 3, 4]),
    ({"a": {"$type": "array"}}, [4]),
    ({"b": None}, [3, 4]),
    ({"b": {"$exists": False}}, [3]),
    ({"b.c": "x"}, [1, 2]),
    ({"b.c": {"$regex": "^X", "$options": "i"}}, [1, 2]),
    ({"b.c": re.compile("y")}, [2]),
    ({"$or": [{"a": 1}, {"a": 3}]}, [1, 3]),
    ({"$and": [{"a": {"$gt": 1}}, {"b": {"$exists": True}}]}, [2, 4]),
    ({"$nor": [{"a": 1}, {"a": 3}]}, [2, 4]),
    ({"$expr": {"$gt": ["$_id", "$a"]}}, []),
    ({"$expr": {"$eq": [{"$type": "$b"}, "missing"]}}, [3]),
    ({"$jsonSchema": {"required": ["b"], "properties": {"b": {"bsonType": "object"}}}}, [1]),
]


@pytest.mark.parametrize("filter,expected", FILTERS, ids=[str(filter) for filter, _ in FILTERS])
def test_filters(collection, filter, expected):
    collection.insert_many(
        [
            {"_id": 1, "a": 1, "b": {"c": "x"}},
            {"_id": 2, "a": 2, "b": [{"c": "x"}, {"c": "y"}]},
            {"_id": 3, "a": 3},
            {"_id": 4, "a": [2, 5], "b": None},
        ]
    )
    assert ids(collection.find(filter).sort("_id")) == expected
    assert collection.count_documents(filter) == len(expected)


def test_sort_skip_limit_and_projection(collection):
    collection.insert_many({"_id": n, "a": n % 3, "b": {"x": n, "y": -n}} for n in range(10))
    assert ids(collection.find().sort([("a", ASCENDING), ("_id", DESCENDING)])) == [9, 6, 3, 0, 7, 4, 1, 8, 5, 2]
    assert ids(collection.find().sort("_id", DESCENDING).skip(2).limit(3)) == [7, 6, 5]
    assert collection.find_one({"_id": 4}, {"b.y": 1}) == {"_id": 4, "b": {"y": -4}}
    assert collection.find_one({"_id": 4}, {"b.y": 0}) == {"_id": 4, "a": 1, "b": {"x": 4}}
    assert collection.find_one({"_id": 4}, {"_id": 0, "sum": {"$add": ["$a", "$b.x"]}}) == {"sum": 5}
    assert sorted(collection.distinct("a", {"_id": {"$lt": 2}})) == [0, 1]


def test_values_sort_by_type_and_then_by_value(collection):
    values = [MinKey(), None, -1, 0.5, Decimal128("0.75"), Int64(1), "", "a", {"a": 1}, [], b"", ObjectId(), False, True]
    values.append(datetime.datetime(2020, 1, 1))
    # An empty array sorts before null; what it holds decides otherwise.
    in_order = [MinKey(), [], *[value for value in values if value not in (MinKey(), [])]]
    collection.insert_many({"_id": n, "v": value} for n, value in reversed(list(enumerate(in_order))))
    assert ids(collection.find().sort("v")) == list(range(len(in_order)))


UPDATES = [
    ({"$set": {"a": 5, "x.y": 1}}, {"a": 5, "l": [1, 2, 3], "x": {"y": 1}}),
    ({"$unset": {"a": ""}}, {"l": [1, 2, 3]}),
    ({"$inc": {"a": 2}}, {"a": 3, "l": [1, 2, 3]}),
    ({"$mul": {"a": 2.5}}, {"a": 2.5, "l": [1, 2, 3]}),
    ({"$min": {"a": 0}}, {"a": 0, "l": [1, 2, 3]}),
    ({"$max": {"a": 9}}, {"a": 9, "l": [1, 2, 3]}),
    ({"$rename": {"a": "b"}}, {"l": [1, 2, 3], "b": 1}),
    ({"$push": {"l": 4}}, {"a": 1, "l": [1, 2, 3, 4]}),
    ({"$push": {"l": {"$each": [0], "$position": 0, "$slice": 2}}}, {"a": 1, "l": [0, 1]}),
    ({"$push": {"l": {"$each": [9, 0], "$sort": -1}}}, {"a": 1, "l": [9, 3, 2, 1, 0]}),
    ({"$addToSet": {"l": {"$each": [3, 4]}}}, {"a": 1, "l": [1, 2, 3, 4]}),
    ({"$pop": {"l": -1}}, {"a": 1, "l": [2, 3]}),
    ({"$pull": {"l": {"$gte": 2}}}, {"a": 1, "l": [1]}),
    ({"$pullAll": {"l": [1, 3]}}, {"a": 1, "l": [2]}),
    ({"$bit": {"a": {"or": 6}}}, {"a": 7, "l": [1, 2, 3]}),
    ({"$set": {"l.1": "x"}}, {"a": 1, "l": [1, "x", 3]}),
    ({"$inc": {"l.$[]": 1}}, {"a": 1, "l": [2, 3, 4]}),
    ([{"$set": {"sum": {"$sum": "$l"}}}, {"$unset": "l"}], {"a": 1, "sum": 6}),
    ([{"$project": {"a": 1}}], {"a": 1}),
    ([{"$replaceWith": {"b": "$a"}}], {"b": 1}),
    ({"a": "whole"}, {"a": "whole"}),
]


@pytest.mark.parametrize("update,expected", UPDATES, ids=[str(update) for update, _ in UPDATES])
def test_updates(collection, update, expected):
    collection.insert_one({"_id": 1, "a": 1, "l": [1, 2, 3]})
    is_replacement = isinstance(update, dict) and not next(iter(update)).startswith("$")
    change = collection.replace_one if is_replacement else collection.update_one
    assert (result := change({"_id": 1}, update)).matched_count == 1 and result.modified_count == 1
    assert collection.find_one() == {"_id": 1, **expected}
    assert list(collection.find_one()) == ["_id", *expected]


def test_positional_updates(collection):
    collection.insert_one({"_id": 1, "l": [{"k": 1, "v": 0}, {"k": 2, "v": 0}, {"k": 3, "v": 0}]})
    collection.update_one({"l.k": 2}, {"$set": {"l.$.v": 5}})
    collection.update_one({}, {"$set": {"l.$[e].v": 9}}, array_filters=[{"e.k": {"$gt": 2}}])
    assert [item["v"] for item in collection.find_one()["l"]] == [0, 5, 9]


def test_an_update_that_changes_nothing_modifies_nothing(collection):
    collection.insert_one({"_id": 1, "a": 1})
    result = collection.update_many({}, {"$set": {"a": 1}})
    assert (result.matched_count, result.modified_count) == (1, 0)


def test_upserts(collection):
    result = collection.update_one({"_id": 7, "k": {"$eq": "x"}}, {"$set": {"a": 1}, "$setOnInsert": {"b": 2}}, upsert=True)
    assert (result.matched_count, result.upserted_id) == (0, 7)
    assert collection.find_one() == {"_id": 7, "k": "x", "a": 1, "b": 2}
    result = collection.update_one({"_id": 7}, {"$set": {"a": 3}, "$setOnInsert": {"b": 9}}, upsert=True)
    assert (result.matched_count, result.upserted_id) == (1, None)
    assert collection.find_one() == {"_id": 7, "k": "x", "a": 3, "b": 2}
    made = collection.replace_one({"k": "none"}, {"new": True}, upsert=True).upserted_id
    assert collection.find_one({"_id": made}) == {"_id": made, "new": True}


REFUSED_UPDATES = [
    ({"$set": {"_id": 2}}, 66),
    ({"$set": {"a": 1, "a.b": 2}}, 40),
    ({"$inc": {"s": 1}}, 14),
    ({"$push": {"a": 1}}, 2),
    ({"$set": {"s.x": 1}}, 28),
    ({"$nothing": {"a": 1}}, 9),
    ({"$rename": {"a": "a"}}, 2),
]


@pytest.mark.parametrize("update,code", REFUSED_UPDATES, ids=[str(update) for update, _ in REFUSED_UPDATES])
def test_refused_updates_change_nothing(collection, update, code):
    collection.insert_one({"_id": 1, "a": 1, "s": "text"})
    with pytest.raises(WriteError) as refused:
        collection.update_one({}, update)
    assert refused.value.code == code
    assert collection.find_one() == {"_id": 1, "a": 1, "s": "text"}


def test_find_and_modify(collection):
    collection.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
    before = collection.find_one_and_update({"a": {"$gt": 0}}, {"$inc": {"a": 10}}, sort=[("a", DESCENDING)])
    assert before == {"_id": 2, "a": 2}
    after = collection.find_one_and_update({"_id": 2}, {"$inc": {"a": 1}}, return_document=ReturnDocument.AFTER)
    assert after == {"_id": 2, "a": 13}
    assert collection.find_one_and_replace({"_id": 1}, {"b": 1}, projection={"a": 1}) == {"_id": 1, "a": 1}
    assert collection.find_one_and_delete({"_id": 1}) == {"_id": 1, "b": 1}
    assert collection.find_one_and_delete({"_id": 1}) is None
    assert ids(collection.find()) == [2]


def test_bulk_writes(collection):
    requests = [
        InsertOne({"_id": 1}),
        InsertOne({"_id": 2}),
        UpdateOne({"_id": 1}, {"$set": {"a": 1}}),
        UpdateMany({}, {"$set": {"b": 1}}),
        ReplaceOne({"_id": 3}, {"c": 1}, upsert=True),
        DeleteOne({"_id": 2}),
    ]
    result = collection.bulk_write(requests)
    counts = (result.inserted_count, result.matched_count, result.modified_count, result.deleted_count)
    assert counts == (2, 3, 3, 1) and result.upserted_ids == {4: 3}
    assert list(collection.find()) == [{"_id": 1, "a": 1, "b": 1}, {"_id": 3, "c": 1}]


@pytest.mark.parametrize("ordered,left", [(True, [1, 2]), (False, [1, 2, 3])])
def test_a_failed_write_in_a_bulk(collection, ordered, left):
    with pytest.raises(BulkWriteError) as failed:
        collection.insert_many([{"_id": 1}, {"_id": 2}, {"_id": 1}, {"_id": 3}], ordered=ordered)
    details = failed.value.details
    assert details["nInserted"] == len(left)
    [error] = details["writeErrors"]
    assert (error["index"], error["code"], error["keyPattern"], error["keyValue"]) == (2, 11000, {"_id": 1}, {"_id": 1})
    assert ids(collection.find()) == left


def test_writes_to_several_collections_at_once(client, database):
    name = database.name
    result = client.bulk_write(
        [
            InsertOne(namespace=f"{name}.a", document={"_id": 1}),
            InsertOne(namespace=f"{name}.b", document={"_id": 1}),
            UpdateOne(namespace=f"{name}.a", filter={"_id": 1}, update={"$set": {"x": 1}}),
            DeleteOne(namespace=f"{name}.b", filter={"_id": 1}),
        ],
        verbose_results=True,
    )
    assert (result.inserted_count, result.modified_count, result.deleted_count) == (2, 1, 1)
    assert list(database.a.find()) == [{"_id": 1, "x": 1}] and database.b.count_documents({}) == 0


def test_many_documents_come_in_batches(collection):
    collection.insert_many({"_id": n, "pad": "x" * 1000} for n in range(3000))
    assert ids(collection.find(batch_size=7).limit(50)) == list(range(50))
    assert ids(collection.find({}, {"_id": 1})) == list(range(3000))
    assert collection.estimated_document_count() == 3000
    assert collection.delete_many({"_id": {"$gte": 10}}).deleted_count == 2990


def test_a_cursor_that_is_closed_is_gone(collection, database):
    collection.insert_many({"_id": n} for n in range(10))
    cursor = collection.find(batch_size=2)
    next(cursor)
    number = cursor.cursor_id
    cursor.close()
    with pytest.raises((CursorNotFound, OperationFailure)) as gone:
        database.command({"getMore": Int64(number), "collection": "c"})
    assert gone.value.code == 43


def test_collation(collection):
    collection.insert_many({"_id": n, "w": w} for n, w in enumerate(["b", "B", "a", "ä", "A"]))
    german = {"locale": "de", "strength": 2}
    assert ids(collection.find({"w": "B"}).collation(german)) == [0, 1]
    assert [d["w"].lower() for d in collection.find().collation(german).sort("w")] == ["a", "a", "ä", "b", "b"]


def test_a_document_that_is_too_large(collection):
    with pytest.raises((WriteError, OperationFailure, bson.errors.InvalidDocument, Exception)) as refused:
        collection.insert_one({"_id": 1, "x": "x" * (16 * 1024 * 1024)})
    assert "large" in str(refused.value).lower()
    assert collection.count_documents({}) == 0


def test_what_nobody_knows_is_refused(database):
    for command, code in [
        ({"noSuchCommand": 1}, 59),
        ({"find": "c", "noSuchOption": 1}, 40415),
        ({"find": "c", "filter": {"$noSuch": 1}}, 2),
        ({"aggregate": "c", "pipeline": [{"$noSuch": 1}], "cursor": {}}, 40324),
        ({"find": "c", "limit": -1}, 2),
        ({"find": "c", "readConcern": {"level": "noSuch"}}, 2),
        ({"find": "c", "readConcern": {"noSuch": 1}}, 40415),
        ({"update": "c", "updates": [{"q": {}, "u": [{"$noSuch": 1}]}]}, 40324),
        ({"aggregate": "c", "pipeline": []}, 9),
    ]:
        with pytest.raises(OperationFailure) as refused:
            database.command(command)
        assert refused.value.code == code, (command, refused.value)


def test_an_upsert_has_no_expression(collection):
    with pytest.raises(WriteError) as refused:
        collection.update_one({"$or": [{"$expr": True}]}, {"$set": {"a": 1}}, upsert=True)
    assert refused.value.code == 224


def test_a_tailable_cursor_skips_and_ends(database):
    capped = database.create_collection("capped", capped=True, size=10_000)
    capped.insert_many({"_id": n} for n in range(5))
    found = capped.find(cursor_type=CursorType.TAILABLE, skip=1, limit=2)
    assert [document["_id"] for document in found] == [1, 2] and not found.alive


def test_bulk_write_of_a_client_checks_the_types_of_its_operations(client, collection):
    """Drivers send the operations beside the command, where types are checked as inside of it."""
    namespace = collection.full_name
    inserts = [{"insert": 0, "document": {"_id": 1}}]
    answer = client.admin.command("bulkWrite", 1, ops=inserts, nsInfo=[{"ns": namespace}])
    assert answer["nInserted"] == 1
    refused = [
        ([{"update": 0, "filter": 5, "updateMods": {"$set": {"x": 1}}}], [{"ns": namespace}], 14),
        ([{"delete": 0, "filter": {}, "multi": 1}], [{"ns": namespace}], 14),
        ([{"delete": 0, "filter": {}, "bogus": 1}], [{"ns": namespace}], 40415),
        (inserts, [{"ns": namespace, "bogus": 1}], 40415),
        (inserts, [{}], 40414),
    ]
    for operations, namespaces, code in refused:
        with pytest.raises(OperationFailure) as failure:
            client.admin.command("bulkWrite", 1, ops=operations, nsInfo=namespaces)
        assert failure.value.code == code
    assert collection.count_documents({}) == 1


def test_references_are_looked_up_as_object_mappers_do(collection):
    """Beanie and Spring join over the `$id` of references, in a field and in arrays of them."""
    other = collection.database[collection.name + "_authors"]
    other.insert_many([{"_id": 7, "name": "a"}, {"_id": 8, "name": "b"}])
    reference = DBRef(other.name, 7)
    collection.insert_one({"_id": 1, "author": reference, "all": [reference, DBRef(other.name, 8)]})
    joined = [
        {"$lookup": {"from": other.name, "localField": "author.$id", "foreignField": "_id", "as": "one"}},
        {"$lookup": {"from": other.name, "localField": "all.$id", "foreignField": "_id", "as": "many"}},
        {"$project": {"one": "$one.name", "many": "$many.name"}},
    ]
    assert list(collection.aggregate(joined)) == [{"_id": 1, "one": ["a"], "many": ["a", "b"]}]
    assert collection.count_documents({"all": {"$elemMatch": {"$id": 8}}}) == 1
    assert collection.create_index("author.$id") == "author.$id_1"
    other.drop()


def test_a_box_finds_geojson_points_as_mongoengine_asks(collection):
    """MongoEngine's `geo_within_box` over a field of GeoJSON points, with and without its index."""
    collection.insert_many(
        [{"_id": i, "at": {"type": "Point", "coordinates": [i, i]}} for i in range(4)]
    )
    box = {"at": {"$geoWithin": {"$box": [[0.5, 0.5], [2.5, 2.5]]}}}
    assert [found["_id"] for found in collection.find(box).sort("_id")] == [1, 2]
    collection.create_index([("at", "2dsphere")])
    assert [found["_id"] for found in collection.find(box).sort("_id")] == [1, 2]


@pytest.mark.parametrize("ordered, stored, refused", [
    (False, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]),
    (True, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [10]),
])
def test_a_batch_over_a_unique_index(collection, ordered, stored, refused):
    collection.create_index("n", unique=True)
    collection.insert_many([{"_id": f"old{n}", "n": n} for n in range(11)])
    with pytest.raises(BulkWriteError) as failed:
        collection.insert_many([{"_id": place, "n": 20 - place} for place in range(21)], ordered=ordered)
    assert failed.value.details["nInserted"] == len(stored)
    assert [error["index"] for error in failed.value.details["writeErrors"]] == refused
    assert ids(collection.find({"_id": {"$type": "number"}}).sort("_id")) == stored


def test_a_merge_with_one_duplicate_stores_the_others(database, collection):
    collection.insert_many([{"_id": n, "n": n} for n in range(5)])
    database.target.create_index("n", unique=True)
    database.target.insert_one({"_id": 100, "n": 2})
    with pytest.raises(OperationFailure) as refused:
        collection.aggregate([{"$merge": "target"}])
    assert refused.value.code == 11000
    assert ids(database.target.find().sort("_id")) == [0, 1, 3, 4, 100]
    collection.aggregate([{"$match": {"n": 77}}, {"$merge": "nothing"}])
    assert "nothing" not in database.list_collection_names()
