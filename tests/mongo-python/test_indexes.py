"""Indexes: kept, unique where they say so, used by queries, and never a different answer."""

import pytest
from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.errors import DuplicateKeyError, OperationFailure


def plan_of(cursor):
    """The names of the stages of the winning plan, from the top."""
    stage, names = cursor.explain()["queryPlanner"]["winningPlan"], []
    while stage:
        names.append(stage["stage"])
        stage = stage.get("inputStage")
    return names


def test_creating_listing_dropping(database):
    collection = database.c
    reply = database.command({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]})
    told = (reply["createdCollectionAutomatically"], reply["numIndexesBefore"], reply["numIndexesAfter"])
    assert told == (True, 1, 2)
    assert collection.create_index([("a", ASCENDING)]) == "a_1"
    assert collection.create_indexes([IndexModel([("b", DESCENDING), ("c", ASCENDING)]), IndexModel("d", name="dd", sparse=True)]) == ["b_-1_c_1", "dd"]
    described = {index.pop("name"): index for index in collection.list_indexes()}
    assert list(described) == ["_id_", "a_1", "b_-1_c_1", "dd"]
    assert dict(described["b_-1_c_1"]["key"]) == {"b": -1, "c": 1}
    assert described["dd"]["sparse"] is True
    with pytest.raises(OperationFailure) as conflict:
        collection.create_index("a", unique=True)
    assert conflict.value.code in (85, 86)
    collection.drop_index("a_1")
    with pytest.raises(OperationFailure) as gone:
        collection.drop_index("a_1")
    assert gone.value.code == 27
    collection.drop_indexes()
    assert list(collection.index_information()) == ["_id_"]


def test_unique(collection):
    collection.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
    collection.create_index("a", unique=True)
    with pytest.raises(DuplicateKeyError, match=r"index: a_1 dup key: \{ a: 1.0 \}"):
        collection.insert_one({"_id": 3, "a": 1.0})
    with pytest.raises(DuplicateKeyError):
        collection.update_one({"_id": 2}, {"$set": {"a": 1}})
    collection.insert_one({"_id": 4})
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"_id": 5, "a": None})
    collection.delete_one({"_id": 1})
    collection.insert_one({"_id": 3, "a": 1})


def test_a_unique_index_is_not_made_over_duplicates(collection):
    collection.insert_many([{"a": 1}, {"a": 1}])
    with pytest.raises(DuplicateKeyError):
        collection.create_index("a", unique=True)
    assert list(collection.index_information()) == ["_id_"]


def test_partial_and_sparse_unique(collection):
    collection.create_index("a", unique=True, partialFilterExpression={"live": True})
    collection.create_index("b", unique=True, sparse=True)
    collection.insert_many([{"a": 1, "live": True, "b": 1}, {"a": 1, "live": False}, {"a": 1}])
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"a": 1, "live": True})
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"b": 1})


QUERIES = [
    {"a": 3},
    {"a": {"$gt": 2, "$lte": 4}},
    {"a": {"$in": [1, 5, 77]}},
    {"a": {"$ne": 3}},
    {"a": None},
    {"a": {"$exists": True}},
    {"l": 2},
    {"l": {"$elemMatch": {"$gt": 1, "$lt": 3}}},
    {"l": {"$gt": 1, "$lt": 1}},
    {"a": 3, "s": {"$regex": "^s1"}},
    {"s": {"$gte": "s1", "$lt": "s2"}},
    {"$or": [{"a": 1}, {"s": "s3"}]},
]


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_an_index_changes_no_answer(collection, query):
    collection.insert_many({"_id": n, "a": n % 6, "s": f"s{n}", "l": [n % 3, n % 4]} for n in range(40))
    collection.insert_many([{"_id": 100, "a": None}, {"_id": 101}, {"_id": 102, "a": [1, 5]}, {"_id": 103, "a": "3"}, {"_id": 104, "a": 3.0}])
    without = list(collection.find(query).sort("_id"))
    for keys in ([("a", 1)], [("s", -1)], [("l", 1)], [("a", 1), ("s", 1)]):
        collection.create_index(keys)
    assert list(collection.find(query).sort("_id")) == without
    assert collection.count_documents(query) == len(without)
    for name in ("a_1", "s_-1", "l_1", "a_1_s_1", "_id_"):
        assert sorted(d["_id"] for d in collection.find(query).hint(name)) == [d["_id"] for d in without]


def test_queries_use_indexes(collection):
    collection.insert_many({"_id": n, "a": n, "b": n} for n in range(50))
    assert plan_of(collection.find({"a": 7}))[-1] == "COLLSCAN"
    collection.create_index("a")
    assert "IXSCAN" in plan_of(collection.find({"a": 7}))
    assert "IXSCAN" in plan_of(collection.find({"a": {"$gt": 7}, "b": 1}))
    assert plan_of(collection.find({"b": 7}))[-1] == "COLLSCAN"


def test_a_hint_that_names_no_index(collection):
    collection.insert_one({"_id": 1})
    with pytest.raises(OperationFailure) as refused:
        list(collection.find().hint("nothing"))
    assert refused.value.code == 2


def test_a_sparse_index_by_hint_leaves_out_what_it_does_not_hold(collection):
    collection.insert_many([{"_id": 1, "a": 1}, {"_id": 2}, {"_id": 3, "a": None}])
    collection.create_index("a", sparse=True)
    assert [d["_id"] for d in collection.find().sort("_id")] == [1, 2, 3]
    assert sorted(d["_id"] for d in collection.find().hint("a_1")) == [1, 3]
    assert collection.count_documents({}, hint="a_1") == 2


def test_too_many_and_wrong_indexes(collection):
    for key, options, code in [
        ({"a": 0}, {}, 67),
        ({"": 1}, {}, 67),
        ({"a": "nothing"}, {}, 67),
        ({"a": 1}, {"nothing": 1}, 197),
        ({"a": 1, "b": 1}, {"expireAfterSeconds": 5}, 67),
        ({"_id": 1}, {"expireAfterSeconds": 5}, None),
        ({"a": 1}, {"expireAfterSeconds": -1}, 67),
        ({"a": 1}, {"expireAfterSeconds": "x"}, None),
    ]:
        with pytest.raises(OperationFailure) as refused:
            collection.database.command({"createIndexes": "c", "indexes": [{"key": key, "name": "n", **options}]})
        assert code is None or refused.value.code == code, (key, options, refused.value)
    assert list(collection.index_information()) == ["_id_"]
