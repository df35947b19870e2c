"""Pipelines: each stage does what it says, alone and after others."""

import datetime

import pytest
from pymongo.errors import OperationFailure


@pytest.fixture
def sales(collection):
    rows = [("ada", "lamp", 2, 10), ("ada", "desk", 1, 200), ("bob", "lamp", 1, 10), ("eve", "rug", 3, 50)]
    day = datetime.datetime(2026, 1, 1)
    collection.insert_many(
        {"_id": n, "who": who, "what": what, "n": count, "price": price, "tags": [what[0], "x"], "at": day + datetime.timedelta(days=n)}
        for n, (who, what, count, price) in enumerate(rows)
    )
    return collection


STAGES = [
    ([{"$match": {"who": "ada"}}, {"$count": "n"}], [{"n": 2}]),
    (
        [{"$group": {"_id": "$who", "sum": {"$sum": {"$multiply": ["$n", "$price"]}}}}, {"$sort": {"sum": -1, "_id": 1}}],
        [{"_id": "ada", "sum": 220}, {"_id": "eve", "sum": 150}, {"_id": "bob", "sum": 10}],
    ),
    ([{"$group": {"_id": None, "most": {"$max": "$price"}, "all": {"$addToSet": "$who"}}}, {"$project": {"_id": 0, "most": 1, "k": {"$size": "$all"}}}], [{"most": 200, "k": 3}]),
    ([{"$unwind": "$tags"}, {"$sortByCount": "$tags"}, {"$limit": 2}], [{"_id": "x", "count": 4}, {"_id": "l", "count": 2}]),
    ([{"$project": {"_id": 1, "w": {"$toUpper": "$who"}}}, {"$skip": 3}], [{"_id": 3, "w": "EVE"}]),
    ([{"$match": {"_id": 0}}, {"$set": {"d": {"$dateToString": {"date": "$at", "format": "%Y-%m-%d"}}}}, {"$unset": ["tags", "at", "who", "what"]}], [{"_id": 0, "n": 2, "price": 10, "d": "2026-01-01"}]),
    ([{"$match": {"_id": 1}}, {"$replaceRoot": {"newRoot": {"k": "$what"}}}], [{"k": "desk"}]),
    ([{"$bucket": {"groupBy": "$price", "boundaries": [0, 20, 100], "default": "more"}}], [{"_id": 0, "count": 2}, {"_id": 20, "count": 1}, {"_id": "more", "count": 1}]),
    ([{"$facet": {"a": [{"$match": {"who": "ada"}}, {"$count": "n"}], "b": [{"$limit": 1}, {"$project": {"_id": 1}}]}}], [{"a": [{"n": 2}], "b": [{"_id": 0}]}]),
    (
        [{"$setWindowFields": {"partitionBy": "$who", "sortBy": {"_id": 1}, "output": {"run": {"$sum": "$n", "window": {"documents": ["unbounded", "current"]}}}}}, {"$sort": {"_id": 1}}, {"$project": {"run": 1}}],
        [{"_id": 0, "run": 2}, {"_id": 1, "run": 3}, {"_id": 2, "run": 1}, {"_id": 3, "run": 3}],
    ),
    ([{"$match": {"$expr": {"$gt": ["$n", 2]}}}, {"$project": {"_id": 1}}], [{"_id": 3}]),
    ([{"$limit": 1}, {"$project": {"_id": 0, "v": {"$cond": [{"$in": ["x", "$tags"]}, {"$filter": {"input": "$tags", "cond": {"$ne": ["$$this", "x"]}}}, 0]}}}], [{"v": ["l"]}]),
    ([{"$redact": {"$cond": [{"$eq": ["$who", "bob"]}, "$$KEEP", "$$PRUNE"]}}, {"$project": {"_id": 1}}], [{"_id": 2}]),
]


@pytest.mark.parametrize("pipeline,expected", STAGES, ids=["+".join(next(iter(stage)) for stage in p) for p, _ in STAGES])
def test_stages(sales, pipeline, expected):
    assert list(sales.aggregate(pipeline)) == expected


def test_lookup(database, sales):
    database.people.insert_many([{"_id": "ada", "city": "London"}, {"_id": "bob", "city": "Bonn"}])
    joined = sales.aggregate(
        [
            {"$lookup": {"from": "people", "localField": "who", "foreignField": "_id", "as": "p"}},
            {"$unwind": {"path": "$p", "preserveNullAndEmptyArrays": True}},
            {"$sort": {"_id": 1}},
            {"$project": {"city": "$p.city"}},
        ]
    )
    assert list(joined) == [{"_id": 0, "city": "London"}, {"_id": 1, "city": "London"}, {"_id": 2, "city": "Bonn"}, {"_id": 3}]
    piped = sales.aggregate(
        [
            {"$match": {"_id": 0}},
            {"$lookup": {"from": "people", "let": {"w": "$who"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$_id", "$$w"]}}}, {"$project": {"_id": 0}}], "as": "p"}},
            {"$project": {"p": 1}},
        ]
    )
    assert list(piped) == [{"_id": 0, "p": [{"city": "London"}]}]


def test_graph_lookup_and_union(database):
    database.parts.insert_many([{"_id": 1, "in": 2}, {"_id": 2, "in": 3}, {"_id": 3}])
    [found] = database.parts.aggregate(
        [
            {"$match": {"_id": 1}},
            {"$graphLookup": {"from": "parts", "startWith": "$in", "connectFromField": "in", "connectToField": "_id", "as": "up"}},
        ]
    )
    assert sorted(part["_id"] for part in found["up"]) == [2, 3]
    union = database.parts.aggregate([{"$unionWith": {"coll": "parts", "pipeline": [{"$match": {"_id": 3}}]}}, {"$count": "n"}])
    assert list(union) == [{"n": 4}]


def test_out_and_merge(database, sales):
    sales.aggregate([{"$group": {"_id": "$who", "n": {"$sum": 1}}}, {"$out": "counts"}])
    assert {d["_id"]: d["n"] for d in database.counts.find()} == {"ada": 2, "bob": 1, "eve": 1}
    sales.aggregate([{"$match": {"who": "bob"}}, {"$project": {"_id": "$who", "n": {"$literal": 9}}}, {"$merge": "counts"}])
    assert {d["_id"]: d["n"] for d in database.counts.find()} == {"ada": 2, "bob": 9, "eve": 1}


def test_views(database, sales):
    database.create_collection("cheap", viewOn="c", pipeline=[{"$match": {"price": {"$lt": 20}}}, {"$project": {"who": 1}}])
    assert list(database.cheap.find().sort("_id")) == [{"_id": 0, "who": "ada"}, {"_id": 2, "who": "bob"}]
    assert database.cheap.count_documents({"who": "bob"}) == 1
    with pytest.raises(OperationFailure):
        database.cheap.insert_one({"_id": 9})


@pytest.mark.parametrize(
    "pipeline,code",
    [
        ([{"$group": {"n": {"$sum": 1}}}], 15955),
        ([{"$limit": 0}], 15958),
        ([{"$project": {"a": 1, "b": 0}}], 31254),
        ([{"$out": "x"}, {"$limit": 1}], 40601),
        ([{"$project": {"a": "$$nobody"}}], 17276),
        ([{"$match": {}, "$limit": 1}], 40323),
    ],
)
def test_refused_pipelines(sales, pipeline, code):
    with pytest.raises(OperationFailure) as refused:
        list(sales.aggregate(pipeline))
    assert refused.value.code == code
