"""Change streams where two nodes share a store: one node tells what the other does, once and in order, and a token of one is good
on the other.

Only where there is another node: `cargo xtask test scale` starts it.
"""

import os

import pytest
from pymongo import MongoClient
from test_change_streams import kinds, take

OTHER = os.environ.get("MAYFLY_TEST_MONGO_OTHER")

pytestmark = pytest.mark.skipif(OTHER is None, reason="there is one node")


@pytest.fixture(scope="module")
def other_client():
    with MongoClient(OTHER) as client:
        yield client


@pytest.fixture
def other(other_client, database):
    return other_client[database.name]


def told(events):
    """Each event as a word: what happened, and to which document or collection."""

    def word(event):
        key = event.get("documentKey", {}).get("_id")
        what = key if key is not None else event.get("ns", {}).get("coll")
        return event["operationType"] if what is None else f"{event['operationType']} {what}"

    return [word(event) for event in events]


def whole_life(database):
    """What one node does to a database, and what a stream tells of it."""
    database.c.insert_one({"_id": 1})
    database.c.update_one({"_id": 1}, {"$set": {"a": 1}})
    database.d.insert_one({"_id": 2})
    database.c.insert_one({"_id": 3})
    database.c.rename("e")
    database.e.delete_one({"_id": 1})
    database.e.drop()
    database.client.drop_database(database.name)
    return [
        "insert 1", "update 1", "insert 2", "insert 3", "rename c", "delete 1", "drop e", "drop d", "dropDatabase",
    ]  # fmt: skip


@pytest.mark.parametrize("turn", range(3))
def test_a_database_that_another_node_makes_fills_and_drops(database, other, turn):
    with database.watch() as stream:
        expected = whole_life(other)
        events = take(stream, len(expected) + 1)
        assert told(events) == [*expected, "invalidate"]
        assert not stream.alive
    times = [event["clusterTime"] for event in events]
    assert times == sorted(times)


@pytest.mark.parametrize("turn", range(3))
def test_everything(client, database, other, turn):
    with client.watch([{"$match": {"ns.db": database.name}}]) as stream:
        expected = whole_life(other)
        assert told(take(stream, len(expected))) == expected


def test_a_token_of_one_node_goes_on_at_the_other(database, other):
    with database.watch() as stream:
        expected = whole_life(other)
        events = take(stream, len(expected))
    for place, event in enumerate(events):
        with other.watch(resume_after=event["_id"]) as stream:
            assert told(take(stream, len(expected) - place)) == [*expected[place + 1 :], "invalidate"]


@pytest.mark.parametrize("turn", range(3))
def test_a_collection_that_is_not_there_yet(database, other, turn):
    with database.c.watch() as stream:
        other.d.insert_one({"_id": 0})
        other.c.insert_one({"_id": 1})
        other.c.insert_one({"_id": 2})
        other.c.drop()
        assert told(take(stream, 4)) == ["insert 1", "insert 2", "drop c", "invalidate"]
        assert not stream.alive


def test_a_collection_that_another_node_drops_or_renames(database, other):
    database.c.insert_one({"_id": 1})
    with database.c.watch() as stream, other.c.watch() as its_own:
        other.c.insert_many([{"_id": n} for n in range(2, 300)])
        other.c.rename("d")
        other.d.insert_one({"_id": 300})
        expected = [*(f"insert {n}" for n in range(2, 300)), "rename c", "invalidate"]
        assert told(take(stream, 300)) == expected
        assert told(take(its_own, 300)) == expected


def test_writes_of_both_nodes(database, other):
    with database.watch() as stream:
        for n in range(0, 40, 4):
            database.a.insert_one({"_id": n})
            other.a.insert_one({"_id": n + 1})
            other.b.insert_one({"_id": n + 2})
            database.b.insert_one({"_id": n + 3})
        events = take(stream, 40)
    assert sorted(event["documentKey"]["_id"] for event in events) == list(range(40))
    for name in ("a", "b"):
        of_one = [event["documentKey"]["_id"] for event in events if event["ns"]["coll"] == name]
        assert of_one == sorted(of_one)


def test_how_another_node_makes_and_changes_collections(database, other):
    with database.watch(show_expanded_events=True) as stream:
        for n in range(3):
            other.c.insert_one({"_id": n})
            other.c.create_index(f"a{n}")
        other.command("collMod", "c", validator={"a": 1})
        events = take(stream, 8)
    assert kinds(events) == ["create"] + ["insert", "createIndexes"] * 3 + ["modify"]


def test_a_transaction_of_another_node(database, other, other_client):
    with database.watch(show_expanded_events=True) as stream:
        with other_client.start_session() as session, session.start_transaction():
            other.c.insert_one({"_id": 1}, session=session)
            other.d.insert_one({"_id": 2}, session=session)
        events = take(stream, 4)
    assert sorted(told(events[:2])) == ["create c", "create d"]
    assert sorted(told(events[2:])) == ["insert 1", "insert 2"]
    assert events[2]["clusterTime"] == events[3]["clusterTime"]
