"""Searches by an index: words, places and all paths, and nothing of it after its document has expired."""

import datetime

import pytest
from pymongo import GEO2D, GEOSPHERE, TEXT, WriteConcern
from pymongo.errors import OperationFailure, WriteError

SCORE = {"$meta": "textScore"}


def point(longitude, latitude):
    return {"type": "Point", "coordinates": [longitude, latitude]}


def plan_of(cursor):
    """The names of the stages of the winning plan, from the top."""
    stages, names = [cursor.explain()["queryPlanner"]["winningPlan"]], []
    while stages:
        stage = stages.pop()
        names.append(stage["stage"])
        stages.extend(stage.get("inputStages", []))
        stages.extend([stage["inputStage"]] if "inputStage" in stage else [])
    return names


def ids(documents):
    return [document["_id"] for document in documents]


def refused(code, action):
    with pytest.raises(OperationFailure) as failure:
        action()
    assert failure.value.code == code, failure.value


@pytest.fixture
def articles(collection):
    collection.insert_many(
        [
            {"_id": 1, "title": "The quick brown fox", "body": "jumps over lazy dogs"},
            {"_id": 2, "title": "Dogs", "body": "Dogs sleep; a dog barks"},
            {"_id": 3, "title": "Café", "body": "coffee and cake"},
        ]
    )
    collection.create_index([("title", TEXT), ("body", TEXT)], weights={"title": 5}, name="words")
    return collection


def test_words(articles):
    def find(search, **options):
        return sorted(ids(articles.find({"$text": {"$search": search, **options}})))

    assert find("dog") == [1, 2]
    assert find("cafe fox") == [1, 3]
    assert find('"lazy dogs"') == [1]
    assert find("dog -fox") == [2]
    assert find("the") == []
    assert find("Dogs", **{"$caseSensitive": True}) == [2]
    assert find("cafe", **{"$diacriticSensitive": True}) == []
    assert articles.count_documents({"$text": {"$search": "dog"}}) == 2
    assert articles.distinct("title", {"$text": {"$search": "coffee"}}) == ["Café"]
    assert plan_of(articles.find({"$text": {"$search": "dog"}}))[0] == "TEXT_MATCH"
    described = articles.index_information()["words"]
    assert dict(described["weights"]) == {"body": 1, "title": 5} and described["default_language"] == "english"


def test_the_best_come_first(articles):
    found = list(articles.find({"$text": {"$search": "dog"}}, {"score": SCORE}).sort([("score", SCORE)]))
    assert ids(found) == [2, 1] and found[0]["score"] > found[1]["score"] > 0
    stages = [{"$match": {"$text": {"$search": "dog"}}}, {"$project": {"title": 1}}, {"$sort": {"score": SCORE}}]
    assert ids(articles.aggregate(stages)) == [2, 1]
    grouped = list(articles.aggregate([stages[0], {"$group": {"_id": None, "best": {"$max": SCORE}, "all": {"$push": "$$ROOT"}}}]))
    assert grouped[0]["best"] == found[0]["score"]
    assert sorted(grouped[0]["all"], key=lambda one: one["_id"]) == list(articles.find({"_id": {"$lt": 3}}).sort("_id"))


def test_what_a_text_search_cannot_be(articles):
    search = {"$text": {"$search": "dog"}}
    refused(27, lambda: list(articles.database.other.find(search)))
    refused(4, lambda: list(articles.find({"$text": {}})))
    refused(2, lambda: list(articles.find({"$nor": [search]})))
    refused(2, lambda: list(articles.find({"$and": [search, search]})))
    refused(2, lambda: list(articles.find(search).hint("words")))
    refused(40218, lambda: list(articles.find({}, {"score": SCORE})))
    refused(17313, lambda: list(articles.aggregate([{"$limit": 1}, {"$match": search}])))
    refused(85, lambda: articles.create_index([("other", TEXT)]))
    with pytest.raises(WriteError) as failure:
        articles.insert_one({"title": "x", "language": "klingon"})
    assert failure.value.code == 17262


def test_writes_by_words(articles):
    assert articles.update_many({"$text": {"$search": "dog"}}, {"$set": {"seen": True}}).modified_count == 2
    assert articles.find_one_and_delete({"$text": {"$search": "coffee"}})["_id"] == 3
    articles.update_one({"_id": 1}, {"$set": {"title": "cats", "body": ""}})
    assert ids(articles.find({"$text": {"$search": "dog"}})) == [2]
    assert ids(articles.find({"$text": {"$search": "cat"}})) == [1]


@pytest.fixture
def places(collection):
    collection.insert_many(
        [
            {"_id": "berlin", "at": point(13.4, 52.5), "kind": "city"},
            {"_id": "paris", "at": point(2.35, 48.85), "kind": "city"},
            {"_id": "suva", "at": point(178.4, -18.1), "kind": "city"},
            {"_id": "apia", "at": point(-171.8, -13.8), "kind": "city"},
            {"_id": "seine", "at": {"type": "LineString", "coordinates": [[4.7, 47.5], [2.35, 48.85], [0.1, 49.4]]}},
            {"_id": "nowhere"},
        ]
    )
    collection.create_index([("at", GEOSPHERE)])
    return collection


def test_near(places):
    near = {"at": {"$near": {"$geometry": point(2.0, 48.0)}}}
    assert ids(places.find(near))[:3] == ["seine", "paris", "berlin"]
    near["at"]["$near"]["$maxDistance"] = 200_000
    assert sorted(ids(places.find(near))) == ["paris", "seine"]
    assert ids(places.find(near).limit(1).skip(1)) == ["paris"]
    assert "GEO_NEAR_2DSPHERE" in plan_of(places.find(near))
    across = {"at": {"$nearSphere": {"$geometry": point(-179.9, -17), "$maxDistance": 1_500_000}}}
    assert ids(places.find(across)) == ["suva", "apia"]
    refused(5626500, lambda: places.count_documents(near))
    places.drop_indexes()
    refused(291, lambda: list(places.find(near)))


def test_within_and_crossing(places):
    france = {"type": "Polygon", "coordinates": [[[-5, 42], [8, 42], [8, 51], [-5, 51], [-5, 42]]]}
    within, crossing = {"at": {"$geoWithin": {"$geometry": france}}}, {"at": {"$geoIntersects": {"$geometry": france}}}
    assert sorted(ids(places.find(within))) == ["paris", "seine"]
    assert "IXSCAN" in plan_of(places.find(within))
    assert places.count_documents({**crossing, "kind": "city"}) == 1
    assert ids(places.find({"at": {"$geoWithin": {"$centerSphere": [[13, 52], 0.02]}}})) == ["berlin"]
    with pytest.raises(WriteError) as failure:
        places.insert_one({"at": "somewhere"})
    assert failure.value.code == 16755


def test_geo_near(places):
    stages = [
        {"$geoNear": {"near": point(13.4, 52.5), "distanceField": "far", "maxDistance": 2_000_000, "query": {"kind": "city"}}},
        {"$project": {"far": {"$round": [{"$divide": ["$far", 1000]}, 0]}}},
    ]
    assert list(places.aggregate(stages)) == [{"_id": "berlin", "far": 0}, {"_id": "paris", "far": 878}]
    refused(40603, lambda: list(places.aggregate([{"$limit": 1}, stages[0]])))


def test_points_of_the_plane(collection):
    collection.create_index([("p", GEO2D)], min=0, max=100)
    collection.insert_many([{"_id": 1, "p": [10, 10]}, {"_id": 2, "p": [50, 50]}, {"_id": 3, "p": {"x": 90, "y": 10}}])
    assert ids(collection.find({"p": {"$near": [80, 20]}})) == [3, 2, 1]
    assert sorted(ids(collection.find({"p": {"$geoWithin": {"$box": [[0, 0], [60, 60]]}}}))) == [1, 2]
    with pytest.raises(WriteError) as failure:
        collection.insert_one({"p": [500, 0]})
    assert failure.value.code == 13027


def test_all_paths(collection):
    collection.insert_many({"_id": n, "a": {"b": n % 5, "c": [n, {"d": str(n)}]}, "x": n % 3} for n in range(30))
    queries = [{"a.b": 3}, {"a.c": {"$gt": 25}}, {"a.c.d": "7"}, {"x": {"$in": [0, 2]}}, {"a.b": None}, {"a": {"$exists": True}}, {"a.c.0": 4}]
    without = [list(collection.find(query).sort("_id")) for query in queries]
    collection.create_index([("$**", 1)])
    for query, expected in zip(queries, without):
        assert list(collection.find(query).sort("_id")) == expected, query
        assert collection.count_documents(query) == len(expected), query
    for query in queries[:4]:
        assert "IXSCAN" in plan_of(collection.find(query)), query
    refused(31254, lambda: collection.create_index([("$**", 1)], name="n", wildcardProjection={"a": 1, "b": 0}))


def test_nothing_is_found_that_has_expired(collection, clock):
    now = datetime.datetime.fromtimestamp(int(clock.now()), datetime.timezone.utc)
    collection.create_index("at", expireAfterSeconds=10)
    collection.create_index([("t", TEXT)])
    collection.create_index([("p", GEOSPHERE)])
    collection.create_index([("$**", 1)], wildcardProjection={"w": 1})
    whole = {"t": "word", "p": point(1, 1), "w": {"v": 7}}
    collection.insert_many([{"_id": 1, "at": now, **whole}, {"_id": 2, **whole}])

    def seen():
        search, near = {"$text": {"$search": "word"}}, {"near": point(1, 1), "distanceField": "d"}
        return [
            sorted(ids(collection.find(search, {"score": SCORE}).sort([("score", SCORE)]))),
            sorted(ids(collection.find({"p": {"$near": {"$geometry": point(1, 1)}}}))),
            sorted(ids(collection.aggregate([{"$geoNear": near}]))),
            sorted(ids(collection.find({"w.v": 7}))),
            list(range(3 - collection.count_documents(search), 3)),
            list(range(3 - collection.count_documents({"w.v": {"$gt": 1}}), 3)),
        ]

    clock.advance(9)
    assert seen() == [[1, 2]] * 6
    clock.advance(1)
    assert seen() == [[2]] * 6


def test_inserts_find_out_what_is_taken(collection):
    """Nothing is looked up before an insert; what was there is told all the same."""
    collection.insert_many([{"_id": 1}, {"_id": 3}])
    unordered = collection.with_options(write_concern=WriteConcern(w=1))
    with pytest.raises(OperationFailure) as failure:
        unordered.insert_many([{"_id": n} for n in range(5)], ordered=False)
    assert [error["index"] for error in failure.value.details["writeErrors"]] == [1, 3]
    assert ids(collection.find().sort("_id")) == [0, 1, 2, 3, 4]
