"""Two nodes that share a store: what one of them does to collections holds for the next command on the other, and a cursor or a
snapshot that one of them has is gone on with at the other.

Only where there is another node: `cargo xtask test scale` starts it.
"""

import os
import threading
import time
import uuid
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

import pytest
from bson import Int64, Timestamp
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from conftest import LOCKED, LOCKED_KEY

OTHER = os.environ.get("MAYFLY_TEST_MONGO_OTHER")
LOCKED_OTHER = os.environ.get("MAYFLY_TEST_MONGO_LOCKED_OTHER")

# A node that never was.
NOBODY = 65_000

pytestmark = pytest.mark.skipif(OTHER is None, reason="there is one node")


@pytest.fixture(scope="module")
def other_client():
    with MongoClient(OTHER) as client:
        yield client


@pytest.fixture
def other(other_client, database):
    return other_client[database.name]


@pytest.mark.parametrize("turn", range(5))
def test_collections_are_the_same_on_both(database, other, turn):
    one, two = database["c"], other["c"]
    one.insert_one({"_id": 1})
    assert two.find_one({"_id": 1}) == {"_id": 1}
    two.insert_one({"_id": 2, "x": [3]})
    assert one.count_documents({}) == 2
    assert [found["_id"] for found in one.find({"x": 3})] == [2]
    one.create_index("x")
    assert "x_1" in two.index_information()
    assert other.list_collection_names() == ["c"]


@pytest.mark.parametrize("turn", range(5))
def test_a_collection_that_is_gone_is_gone_on_both(database, other, turn):
    one, two = database["c"], other["c"]
    one.insert_many([{"_id": n} for n in range(3)])
    assert two.count_documents({}) == 3
    one.drop()
    assert list(two.find()) == []
    assert two.count_documents({}) == 0
    assert other.list_collection_names() == []
    # A new one of the same name has nothing of the old one.
    two.insert_one({"_id": 9})
    assert list(one.find()) == [{"_id": 9}]
    two.drop()
    one.insert_one({"_id": 10})
    assert [found["_id"] for found in two.aggregate([{"$match": {}}])] == [10]


@pytest.mark.parametrize("turn", range(5))
def test_documents_that_a_node_lets_expire_are_gone_on_both(database, other, turn):
    one, two = database["c"], other["c"]
    long_ago = datetime.now(timezone.utc) - timedelta(hours=1)
    one.insert_one({"_id": 1, "at": long_ago})
    assert two.find_one() is not None
    one.create_index("at", expireAfterSeconds=60)
    assert two.find_one() is None
    assert two.count_documents({}) == 0
    assert two.find_one({"_id": 1}) is None


@contextmanager
def sessions(client, other_client):
    """One session, at both nodes. Drivers have no word for that: they make up the name of a session with its first command."""
    with client.start_session() as one, other_client.start_session() as two:
        client.admin.command("ping", session=one)
        other_client.admin.command("ping", session=two)
        own = two._server_session.session_id
        two._server_session.session_id = one.session_id
        assert two.session_id == one.session_id
        try:
            yield one, two
        finally:
            # The driver uses it again: two writes under one number would be one.
            two._server_session.session_id = own


@pytest.fixture
def ends(client, other_client, database):
    """What sends a command to either node, in one session."""
    with sessions(client, other_client) as pair:
        at = [node[database.name] for node in (client, other_client)]
        yield [lambda command, at=at, session=session: at.command(command, session=session) for at, session in zip(at, pair)]


def more(send, cursor, size=None, **options):
    size = {} if size is None else {"batchSize": size}
    return send({"getMore": cursor["id"], "collection": "c", **size, **options})["cursor"]


def code_of(send, *arguments, **options):
    with pytest.raises(OperationFailure) as refused:
        send(*arguments, **options)
    return refused.value.code


FIND = {"find": "c", "sort": {"_id": 1}, "batchSize": 3}
AGGREGATE = {"aggregate": "c", "pipeline": [{"$sort": {"_id": 1}}], "cursor": {"batchSize": 3}}


@pytest.mark.parametrize("command", [FIND, AGGREGATE], ids=["find", "aggregate"])
def test_a_cursor_goes_on_at_either_node(database, ends, command):
    database.c.insert_many([{"_id": n} for n in range(50)])
    for first in (0, 1):
        cursor = ends[first](command)["cursor"]
        found, turn = cursor["firstBatch"], first
        while cursor["id"]:
            last, turn = cursor, turn + 1
            cursor = more(ends[turn % 2], cursor, 3)
            found += cursor["nextBatch"]
        assert [one["_id"] for one in found] == list(range(50))
        assert [code_of(more, send, last) for send in ends] == [43, 43]


def test_a_cursor_without_a_size(database, ends):
    database.c.insert_many([{"_id": n} for n in range(300)])
    cursor = more(ends[1], ends[0](FIND)["cursor"])
    assert cursor["id"] == 0
    assert [one["_id"] for one in cursor["nextBatch"]] == list(range(3, 300))


def test_batches_as_large_as_they_may_be(database, ends):
    database.c.insert_many([{"_id": n, "x": bytes([n]) * 3_000_000} for n in range(12)])
    cursor = ends[0]({**FIND, "batchSize": 1})["cursor"]
    found = cursor["firstBatch"]
    while cursor["id"]:
        cursor = more(ends[1], cursor)
        found += cursor["nextBatch"]
    assert [one["_id"] for one in found] == list(range(12))
    assert all(one["x"] == bytes([one["_id"]]) * 3_000_000 for one in found)


def test_a_cursor_is_closed_at_either_node(database, ends):
    database.c.insert_many([{"_id": n} for n in range(50)])
    cursors = [ends[end](FIND)["cursor"] for end in (0, 1, 0)]
    ids = [cursor["id"] for cursor in cursors]
    closed = ends[1]({"killCursors": "c", "cursors": ids + [Int64(5)]})
    assert sorted(closed["cursorsKilled"]) == sorted(ids) and closed["cursorsNotFound"] == [5]
    for send in ends:
        assert [code_of(more, send, cursor) for cursor in cursors] == [43] * 3
    assert sorted(ends[1]({"killCursors": "c", "cursors": ids})["cursorsNotFound"]) == sorted(ids)


def test_whose_a_cursor_is_holds_at_either_node(client, other_client, database, ends):
    database.c.insert_many([{"_id": n} for n in range(50)])
    cursor = ends[0](FIND)["cursor"]
    for node in (client, other_client):
        with node.start_session() as session:
            command = {"getMore": cursor["id"], "collection": "c"}
            assert code_of(node[database.name].command, command, session=session) == 50738
    for send in ends:
        assert code_of(send, {"getMore": cursor["id"], "collection": "d"}) == 13
        assert send({"killCursors": "d", "cursors": [cursor["id"]]})["cursorsNotFound"] == [cursor["id"]]
        assert len(more(send, cursor, 2)["nextBatch"]) == 2


def test_a_cursor_of_a_node_that_is_gone(database, ends):
    database.create_collection("c")
    cursor = {"id": Int64(NOBODY << 47 | 5)}
    started = time.monotonic()
    assert code_of(more, ends[0], cursor) == 43
    assert ends[0]({"killCursors": "c", "cursors": [cursor["id"], Int64(NOBODY << 47 | 6)]})["cursorsKilled"] == []
    assert time.monotonic() - started < 20


def test_a_cursor_of_a_transaction_stays_where_it_is(client, other_client, database):
    database.c.insert_many([{"_id": n} for n in range(10)])
    with sessions(client, other_client) as (one, two):
        two._server_session._transaction_id = one._server_session._transaction_id
        one.start_transaction()
        cursor = database.command(FIND, session=one)["cursor"]
        # The transaction is not there; nor may its cursor be gone on with outside of it, which would be.
        two.start_transaction()
        command = {"getMore": cursor["id"], "collection": "c"}
        assert code_of(other_client[database.name].command, command, session=two) in (43, 251)
        two.abort_transaction()
        with pytest.raises(OperationFailure) as refused:
            other_client[database.name].command(command, session=two)
        assert refused.value.code == 50740
        assert len(database.command(command, session=one)["cursor"]["nextBatch"]) == 7
        one.commit_transaction()


@pytest.mark.parametrize("end", [0, 1])
def test_a_stream_goes_on_at_either_node(database, ends, end):
    database.create_collection("c")
    watch = {"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}}
    cursor = ends[0](watch)["cursor"]
    started = time.monotonic()
    assert more(ends[end], cursor, maxTimeMS=300)["nextBatch"] == []
    assert 0.25 < time.monotonic() - started < 5
    writer = threading.Timer(0.5, database.c.insert_one, [{"_id": 1}])
    writer.start()
    started, events = time.monotonic(), []
    while not events:
        events = more(ends[end], cursor, maxTimeMS=30_000)["nextBatch"]
        assert time.monotonic() - started < 20
    writer.join()
    assert [event["documentKey"] for event in events] == [{"_id": 1}]
    database.c.insert_one({"_id": 2})
    assert [event["documentKey"]["_id"] for event in more(ends[1 - end], cursor)["nextBatch"]] == [2]


def test_the_end_of_a_collection_is_waited_for_at_the_other_node(database, ends):
    database.create_collection("c", capped=True, size=10_000)
    database.c.insert_one({"_id": 1})
    cursor = ends[0]({"find": "c", "tailable": True, "awaitData": True})["cursor"]
    assert len(cursor["firstBatch"]) == 1
    assert more(ends[1], cursor, maxTimeMS=200)["nextBatch"] == []
    writer = threading.Timer(0.3, database.c.insert_one, [{"_id": 2}])
    writer.start()
    started, found = time.monotonic(), []
    while not found:
        found = more(ends[1], cursor, maxTimeMS=20_000)["nextBatch"]
        assert time.monotonic() - started < 20
    writer.join()
    assert found == [{"_id": 2}]


@pytest.mark.parametrize("command", [FIND, AGGREGATE], ids=["find", "aggregate"])
def test_what_has_expired_meanwhile_is_not_in_a_batch(database, ends, command):
    now = datetime.now(timezone.utc)
    database.c.create_index("at", expireAfterSeconds=0)
    soon, later = now + timedelta(seconds=3), now + timedelta(hours=1)
    database.c.insert_many([{"_id": n, "at": later if n < 5 or n % 2 else soon} for n in range(40)])
    cursor = ends[0](command)["cursor"]
    assert [one["_id"] for one in cursor["firstBatch"]] == [0, 1, 2]
    while database.c.count_documents({"at": soon}):
        assert (datetime.now(timezone.utc) - now).total_seconds() < 30
        time.sleep(0.1)
    found = more(ends[1], cursor)["nextBatch"]
    assert [one["_id"] for one in found] == [3, 4, *range(5, 40, 2)]


def test_a_snapshot_is_read_at_either_node(database, ends):
    database.c.insert_many([{"_id": n} for n in range(10)])
    snapshot = {"readConcern": {"level": "snapshot"}}
    for first in (0, 1):
        cursor = ends[first]({**FIND, **snapshot})["cursor"]
        at = {"readConcern": {"level": "snapshot", "atClusterTime": cursor["atClusterTime"]}}
        database.c.insert_one({"_id": 100 + first})
        for turn in (first + 1, first, first + 1):
            send, other = ends[turn % 2], ends[(turn + 1) % 2]
            again = send({**FIND, **at})["cursor"]
            assert again["atClusterTime"] == cursor["atClusterTime"]
            found = again["firstBatch"] + more(other, again, 4)["nextBatch"] + more(send, again)["nextBatch"]
            assert [one["_id"] for one in found] == [*range(10), *range(100, 100 + first)]
            counted = send({"aggregate": "c", "pipeline": [{"$count": "n"}], "cursor": {}, **at})["cursor"]
            assert counted["firstBatch"] == [{"n": 10 + first}]
            assert len(send({"distinct": "c", "key": "_id", **at})["values"]) == 10 + first
    for send in ends:
        assert code_of(send, {**FIND, "readConcern": {"level": "snapshot", "atClusterTime": Timestamp(5, NOBODY)}}) == 239


def test_sessions_with_a_snapshot(client, other_client, database, other):
    database.c.insert_many([{"_id": n} for n in range(3)])
    with client.start_session(snapshot=True) as one, other_client.start_session(snapshot=True) as two:
        assert database.c.count_documents({}, session=one) == 3
        two._snapshot_time = one._snapshot_time
        other.c.insert_one({"_id": 3})
        assert other.c.count_documents({}, session=two) == 3
        assert database.c.count_documents({}, session=one) == 3
        assert sorted(other.c.distinct("_id", session=two)) == [0, 1, 2]
    assert other.c.count_documents({}) == 4


@pytest.mark.skipif(LOCKED_OTHER is None, reason="there is one node")
def test_who_may_not_go_on_with_a_cursor_may_not_at_the_other_node():
    name, secret = f"db-{uuid.uuid4()}", f"db-{uuid.uuid4()}"
    with MongoClient(LOCKED, username="mayfly", password=LOCKED_KEY) as admin:
        admin[secret].c.insert_many([{"_id": n} for n in range(10)])
        admin[name].c.insert_many([{"_id": n} for n in range(10)])
        admin[name].command("createUser", "reader", pwd="r", roles=[{"role": "read", "db": name}])
        try:
            for uri in (LOCKED, LOCKED_OTHER):
                with MongoClient(uri, username="reader", password="r", authSource=name) as reader:
                    with sessions(admin, reader) as (one, two):
                        # Of the same session, and the number is known: still nobody else's.
                        cursor = admin[secret].command(FIND, session=one)["cursor"]
                        command = {"getMore": cursor["id"], "collection": "c"}
                        assert code_of(reader[secret].command, command, session=two) == 13
                        kill = {"killCursors": "c", "cursors": [cursor["id"]]}
                        assert reader[secret].command(kill, session=two)["cursorsKilled"] == []
                        assert len(admin[secret].command(command, session=one)["cursor"]["nextBatch"]) == 7
            with (
                MongoClient(LOCKED, username="reader", password="r", authSource=name) as one,
                MongoClient(LOCKED_OTHER, username="reader", password="r", authSource=name) as two,
                sessions(one, two) as (here, there),
            ):
                # Their own they may go on with.
                cursor = one[name].command(FIND, session=here)["cursor"]
                command = {"getMore": cursor["id"], "collection": "c"}
                assert len(two[name].command(command, session=there)["cursor"]["nextBatch"]) == 7
                # What is read at another node is read with their own rights: there is no writing, and no looking elsewhere.
                first = one[name].command({**FIND, "readConcern": {"level": "snapshot"}}, session=here)["cursor"]
                at = {"readConcern": {"level": "snapshot", "atClusterTime": first["atClusterTime"]}}
                for stage in ({"$out": "taken"}, {"$merge": {"into": {"db": secret, "coll": "taken"}}}):
                    command = {"aggregate": "c", "pipeline": [stage], "cursor": {}, **at}
                    assert code_of(two[name].command, command, session=there) is not None
                assert code_of(two[secret].command, {**FIND, **at}, session=there) == 13
                assert len(two[name].command({**FIND, **at}, session=there)["cursor"]["firstBatch"]) == 3
            assert admin[name].list_collection_names() == ["c"]
            assert admin[secret].list_collection_names() == ["c"]
        finally:
            admin[name].command("dropUser", "reader")
            admin.drop_database(name)
            admin.drop_database(secret)
