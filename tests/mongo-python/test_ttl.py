"""Time to live through the MongoDB protocol: the `_ts` index, `ttl` per document, and MongoDB's own indexes on dates.

Nothing here sleeps: the clock is moved. Every look at a document asks in several ways, and the answers must agree.
"""

import datetime

import pytest
from bson import Decimal128, Int64
from pymongo.errors import DuplicateKeyError, OperationFailure

MAX = 2147483647


def there(collection, id=1):
    """Whether a document is there: find, count, distinct, aggregate and the estimate agree."""
    found = collection.find_one({"_id": id}) is not None
    assert (collection.count_documents({"_id": id}) == 1) == found
    assert (id in collection.distinct("_id")) == found
    assert bool(list(collection.aggregate([{"$match": {"_id": id}}]))) == found
    assert collection.estimated_document_count() == len(list(collection.find({})))
    return found


def lives(collection, clock, seconds, id=1):
    """Asserts that a document lives for exactly so many seconds; `None` is for ever."""
    if seconds is None:
        clock.advance(50 * 365 * 86400)
        assert there(collection, id)
        return
    if seconds > 0:
        clock.advance(seconds - 1)
        assert there(collection, id)
        clock.advance(1)
    assert not there(collection, id)


def at(clock, seconds=0):
    """A date so many seconds from the server's now."""
    return datetime.datetime.fromtimestamp(int(clock.now()) + seconds, datetime.timezone.utc)


# Own `ttl` in a collection whose default is ten seconds: what counts, and what is only data.
OWN = [
    (5, 5),
    (20, 20),
    (Int64(5), 5),
    (5.0, 5),
    (MAX, MAX),
    (-1, None),
    (-1.0, None),
    (Int64(-1), None),
    (20.5, 10),
    (2147483649, 10),
    (Int64(MAX + 1), 10),
    ("5", 10),
    (None, 10),
    (0, 10),
    (-5, 10),
    (True, 10),
    (Decimal128("5"), 10),
    ([5], 10),
    ({"ttl": 5}, 10),
]


@pytest.mark.parametrize("own,life", OWN, ids=[repr(own) for own, _ in OWN])
def test_own_ttl(collection, clock, own, life):
    collection.create_index("_ts", expireAfterSeconds=10)
    collection.insert_one({"_id": 1, "ttl": own})
    assert collection.find_one() == {"_id": 1, "ttl": own}
    lives(collection, clock, life)


def test_the_default(collection, clock):
    collection.insert_one({"_id": 1})
    collection.create_index("_ts", expireAfterSeconds=10)
    collection.insert_one({"_id": 2, "Ttl": 2, "x": {"ttl": 2}})
    assert list(collection.find_one({"_id": 1})) == ["_id"]
    clock.advance(9)
    assert there(collection, 1) and there(collection, 2)
    clock.advance(1)
    assert not there(collection, 1) and not there(collection, 2)


@pytest.mark.parametrize("own", [None, 5, -1])
def test_without_a_ts_index_ttl_is_data(collection, clock, own):
    collection.insert_one({"_id": 1, "ttl": own})
    lives(collection, clock, None)


def test_the_default_by_collmod_and_without_it(collection, clock, database):
    collection.create_index("_ts", expireAfterSeconds=100)
    collection.insert_many([{"_id": 1}, {"_id": 2, "ttl": 500}])
    clock.advance(50)
    database.command({"collMod": "c", "index": {"keyPattern": {"_ts": 1}, "expireAfterSeconds": 40}})
    assert not there(collection, 1) and there(collection, 2)
    # What has expired stays gone, also when the rule becomes milder or goes.
    database.command({"collMod": "c", "index": {"keyPattern": {"_ts": 1}, "expireAfterSeconds": 1000}})
    assert not there(collection, 1)
    collection.drop_index("_ts_1")
    assert not there(collection, 1)
    lives(collection, clock, None, id=2)


def test_a_write_begins_the_countdown_anew(collection, clock):
    collection.create_index("_ts", expireAfterSeconds=10)
    collection.insert_one({"_id": 1})
    clock.advance(9)
    collection.update_one({"_id": 1}, {"$set": {"a": 1}})
    clock.advance(9)
    assert there(collection)
    collection.update_one({"_id": 1}, {"$set": {"ttl": 30}})
    clock.advance(29)
    assert there(collection)
    collection.update_one({"_id": 1}, {"$unset": {"ttl": ""}})
    lives(collection, clock, 10)


def test_an_update_that_changes_nothing_does_not_lengthen_a_life(collection, clock):
    collection.create_index("_ts", expireAfterSeconds=10)
    collection.insert_one({"_id": 1, "a": 1})
    clock.advance(9)
    assert collection.update_one({"_id": 1}, {"$set": {"a": 1}}).modified_count == 0
    clock.advance(1)
    assert not there(collection)


def test_what_has_expired_is_gone_for_writes_too(collection, clock):
    collection.create_index("_ts", expireAfterSeconds=10)
    collection.create_index("u", unique=True)
    collection.insert_one({"_id": 1, "u": "x"})
    with pytest.raises(DuplicateKeyError):
        collection.insert_one({"_id": 2, "u": "x"})
    clock.advance(10)
    assert collection.update_one({"_id": 1}, {"$set": {"a": 1}}).matched_count == 0
    assert collection.delete_one({"_id": 1}).deleted_count == 0
    assert collection.find_one_and_update({"_id": 1}, {"$set": {"a": 1}}) is None
    collection.insert_one({"_id": 2, "u": "x"})
    assert collection.update_one({"_id": 1}, {"$set": {"u": "y"}}, upsert=True).upserted_id == 1
    assert collection.count_documents({}) == 2


def test_lookups_and_other_readers_do_not_see_it_either(database, clock):
    database.a.insert_one({"_id": 1, "b": 1})
    database.b.create_index("_ts", expireAfterSeconds=10)
    database.b.insert_one({"_id": 1})
    lookup = [{"$lookup": {"from": "b", "localField": "b", "foreignField": "_id", "as": "b"}}]
    assert list(database.a.aggregate(lookup))[0]["b"] == [{"_id": 1}]
    clock.advance(10)
    assert list(database.a.aggregate(lookup))[0]["b"] == []
    assert database.command("collStats", "b")["count"] == 0
    assert database.command("count", "b")["n"] == 0


DATES = [
    (lambda clock: at(clock, 5), 15),
    (lambda clock: [at(clock, 9), at(clock, 2)], 12),
    (lambda clock: [at(clock, 9), "x", None], 19),
    (lambda clock: at(clock, -10), 0),
    (lambda clock: int(clock.now()), None),
    (lambda clock: "2001-01-01", None),
    (lambda clock: [], None),
    (lambda clock: None, None),
    (lambda clock: {"d": at(clock)}, None),
]


@pytest.mark.parametrize("value,life", DATES, ids=["date", "dates", "mixed", "past", "number", "text", "empty", "null", "nested"])
def test_an_index_on_a_date(collection, clock, value, life):
    collection.create_index("d", expireAfterSeconds=10)
    collection.insert_one({"_id": 1, "d": value(clock)})
    lives(collection, clock, life)


def test_an_index_on_a_date_deeper_down(collection, clock):
    collection.create_index("a.d", expireAfterSeconds=0)
    collection.insert_one({"_id": 1, "a": [{"d": at(clock, 30)}, {"d": at(clock, 7)}]})
    lives(collection, clock, 7)


def test_the_first_of_several_rules_holds(collection, clock):
    collection.create_index("_ts", expireAfterSeconds=100)
    collection.create_index("d", expireAfterSeconds=0)
    collection.create_index("e", expireAfterSeconds=10)
    collection.insert_one({"_id": 1, "d": at(clock, 50), "e": at(clock, 30)})
    lives(collection, clock, 40)


def test_a_partial_filter(collection, clock, database):
    collection.create_index("d", expireAfterSeconds=10, partialFilterExpression={"done": True})
    collection.insert_many([{"_id": 1, "d": at(clock), "done": True}, {"_id": 2, "d": at(clock), "done": False}])
    clock.advance(10)
    assert not there(collection, 1) and there(collection, 2)
    collection.update_one({"_id": 2}, {"$set": {"done": True}})
    assert not there(collection, 2)


def test_collmod_of_a_date_index(collection, clock, database):
    collection.create_index("d", expireAfterSeconds=100)
    collection.insert_one({"_id": 1, "d": at(clock)})
    clock.advance(20)
    reply = database.command({"collMod": "c", "index": {"keyPattern": {"d": 1}, "expireAfterSeconds": 30}})
    assert (reply["expireAfterSeconds_old"], reply["expireAfterSeconds_new"]) == (100, 30)
    assert collection.index_information()["d_1"]["expireAfterSeconds"] == 30
    lives(collection, clock, 10)


def test_an_ordinary_index_becomes_one_that_expires(collection, clock, database):
    collection.create_index("d")
    collection.insert_one({"_id": 1, "d": at(clock)})
    clock.advance(20)
    assert there(collection)
    database.command({"collMod": "c", "index": {"name": "d_1", "expireAfterSeconds": 20}})
    assert not there(collection)


@pytest.mark.parametrize("seconds", [-1, MAX + 1, float("nan"), "x", None])
def test_refused_lives(collection, seconds):
    """NaN too, which MongoDB takes for zero."""
    with pytest.raises(OperationFailure):
        collection.database.command(
            {"createIndexes": "c", "indexes": [{"key": {"d": 1}, "name": "d", "expireAfterSeconds": seconds}]}
        )
    collection.create_index("d", expireAfterSeconds=5)
    if seconds == MAX + 1:
        # Here MongoDB takes more than fits for the most that does.
        return
    with pytest.raises(OperationFailure):
        collection.database.command({"collMod": "c", "index": {"keyPattern": {"d": 1}, "expireAfterSeconds": seconds}})
    assert collection.index_information()["d_1"]["expireAfterSeconds"] == 5


def test_purge_is_counted(client, collection, clock):
    collection.create_index("_ts", expireAfterSeconds=10)
    collection.insert_many({"_id": n} for n in range(20))
    clock.advance(10)
    assert client.admin.command("serverStatus")["metrics"]["ttl"].keys() >= {"deletedDocuments", "passes"}
    assert collection.count_documents({}) == 0


@pytest.mark.parametrize("order", [None, "b", "a", "missing"])
def test_what_expires_between_two_batches_is_not_in_the_second(collection, clock, order):
    """In the order of the walk, gathered, along an index, and along one that says nothing about the order."""
    collection.create_index("at", expireAfterSeconds=10)
    collection.create_index("a")
    collection.create_index("missing")
    collection.insert_many({"_id": n, "a": n, "b": n, **({"at": at(clock)} if n < 8 else {})} for n in range(12))
    cursor = collection.find({}, batch_size=2)
    cursor = cursor.sort(order, 1) if order else cursor
    assert [next(cursor)["_id"], next(cursor)["_id"]] == [0, 1]
    clock.advance(9)
    assert [next(cursor)["_id"], next(cursor)["_id"]] == [2, 3]
    clock.advance(1)
    assert [document["_id"] for document in cursor] == [8, 9, 10, 11]
