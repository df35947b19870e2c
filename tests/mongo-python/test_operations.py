"""What runs is seen and stopped, by whom it belongs to; and the use of collections is added up."""

import threading
import time
import uuid

import pytest
from bson import Binary
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from conftest import LOCKED, LOCKED_KEY, MONGO

INTERRUPTED = "Executor error during getMore :: caused by :: operation was interrupted"


class Waiting:
    """A client in a thread of its own that waits for a change which nobody makes."""

    def __init__(self, collection):
        self.name = f"waiting-{uuid.uuid4()}"
        self.client = MongoClient(MONGO, appname=self.name)
        self.collection = self.client[collection.database.name][collection.name]
        self.failure = None
        with self.client.start_session() as session:
            self.lsid = session.session_id
            command = {"aggregate": collection.name, "pipeline": [{"$changeStream": {}}], "cursor": {}}
            opened = self.collection.database.command(command, session=session)
            self.cursor = opened["cursor"]["id"]
            self.thread = threading.Thread(target=self.wait, args=[session])
            self.thread.start()
            deadline = time.monotonic() + 10
            while not self.running():
                assert time.monotonic() < deadline, "it does not begin"

    def wait(self, session):
        try:
            command = {"getMore": self.cursor, "collection": self.collection.name, "maxTimeMS": 60_000}
            self.collection.database.command(command, session=session)
        except OperationFailure as failure:
            self.failure = failure

    def running(self):
        stages = [{"$currentOp": {}}, {"$match": {"appName": self.name, "op": "getmore"}}]
        return list(self.client.admin.aggregate(stages))

    def end(self):
        self.thread.join(timeout=10)
        assert not self.thread.is_alive(), "it still waits"
        assert self.running() == []
        return self.failure


@pytest.fixture
def waiting(collection):
    waiting = Waiting(collection)
    yield waiting
    for operation in waiting.running():
        collection.database.client.admin.command("killOp", op=operation["opid"])
    waiting.thread.join(timeout=10)
    waiting.client.close()


def test_what_runs_is_shown_and_stopped(client, collection, waiting):
    [operation] = client.admin.command("currentOp", ns=collection.full_name)["inprog"]
    assert operation["command"]["getMore"] == waiting.cursor
    assert operation["clientMetadata"]["application"] == {"name": waiting.name}
    assert operation["lsid"]["id"] == waiting.lsid["id"]
    assert operation["microsecs_running"] > 0
    assert client.admin.command("currentOp", ns="nowhere")["inprog"] == []

    answer = client.admin.command("killOp", op=operation["opid"])
    assert answer["info"] == "attempting to kill op"
    failure = waiting.end()
    assert (failure.code, failure.details["errmsg"]) == (11601, INTERRUPTED)
    # What it had of a batch is lost, so nobody goes on with the cursor.
    more = {"getMore": waiting.cursor, "collection": collection.name}
    with pytest.raises(OperationFailure) as refused:
        waiting.collection.database.command(more)
    assert refused.value.code == 43


def test_a_cursor_that_is_waited_for_can_be_closed(collection, waiting):
    answer = collection.database.command("killCursors", collection.name, cursors=[waiting.cursor])
    assert answer["cursorsKilled"] == [waiting.cursor]
    failure = waiting.end()
    assert (failure.code, failure.details["errmsg"]) == (237, INTERRUPTED)


@pytest.mark.parametrize("how", ["killSessions", "killAllSessionsByPattern"])
def test_what_a_session_does_ends_with_it(client, waiting, how):
    nobody = Binary(bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
    lsid = {"id": waiting.lsid["id"]}
    pattern = {"lsid": {**lsid, "uid": nobody}}
    client.admin.command({how: [lsid if how == "killSessions" else pattern]})
    failure = waiting.end()
    assert (failure.code, failure.details["errmsg"]) == (11601, INTERRUPTED)


def test_sessions_of_another_user_go_on(client, waiting):
    client.admin.command({"killAllSessions": [{"user": "somebody", "db": "admin"}]})
    client.admin.command({"killAllSessionsByPattern": [{"uid": Binary(bytes(32))}]})
    assert len(waiting.running()) == 1


def test_a_transaction_ends_with_all_sessions(client, collection):
    with client.start_session() as session:
        session.start_transaction()
        collection.insert_one({"_id": 1}, session=session)
        assert client.admin.command("serverStatus")["transactions"]["currentOpen"] >= 1
        client.admin.command({"killAllSessions": []})
        with pytest.raises(OperationFailure) as refused:
            session.commit_transaction()
        assert refused.value.code == 251
    assert collection.count_documents({}) == 0


def test_a_number_that_is_none_is_refused(client):
    for operation, code in [("x", 14), (1.5, 2)]:
        with pytest.raises(OperationFailure) as refused:
            client.admin.command("killOp", op=operation)
        assert refused.value.code == code


def test_cursors_that_nobody_uses_are_shown(client, collection):
    collection.insert_many([{"_id": number} for number in range(10)])
    with collection.find(batch_size=3) as cursor:
        next(cursor)
        stages = [{"$currentOp": {"idleCursors": True}}, {"$match": {"ns": collection.full_name}}]
        [idle] = client.admin.aggregate(stages)
        assert idle["type"] == "idleCursor"
        known = {name: idle["cursor"][name] for name in ("cursorId", "nDocsReturned", "nBatchesReturned")}
        assert known == {"cursorId": cursor.cursor_id, "nDocsReturned": 3, "nBatchesReturned": 1}


def test_use_is_added_up(client, collection):
    collection.insert_many([{"_id": number} for number in range(10)])
    collection.update_one({"_id": 1}, {"$set": {"a": 1}})
    collection.delete_one({"_id": 2})
    assert len(list(collection.find(batch_size=4))) == 9
    collection.count_documents({})

    used = client.admin.command("top")["totals"][collection.full_name]
    counts = {name: used[name]["count"] for name in ("queries", "getmore", "insert", "update", "remove")}
    assert counts == {"queries": 1, "getmore": 2, "insert": 1, "update": 1, "remove": 1}
    assert used["total"]["time"] >= used["queries"]["time"] > 0
    [figures] = collection.aggregate([{"$collStats": {"latencyStats": {}}}])
    assert figures["latencyStats"]["writes"]["ops"] == 3
    assert figures["latencyStats"]["reads"]["ops"] >= 4

    collection.drop()
    assert collection.full_name not in client.admin.command("top")["totals"]


def test_looks_into_indexes_are_counted(collection):
    collection.create_index("a")
    collection.create_index("b")
    collection.insert_many([{"_id": number, "a": number % 3} for number in range(10)])
    list(collection.find({"a": 1}))
    list(collection.find().sort("a"))
    collection.count_documents({"a": 2})
    collection.find_one({"_id": 3})
    list(collection.find({"c": 1}))
    looks = {index["name"]: index["accesses"]["ops"] for index in collection.aggregate([{"$indexStats": {}}])}
    assert looks == {"_id_": 1, "a_1": 3, "b_1": 0}


def test_nobody_sees_or_counts_what_others_do_unless_they_may():
    name = f"db-{uuid.uuid4()}"
    login = {"password": "p", "authSource": name, "serverSelectionTimeoutMS": 5000}
    with MongoClient(LOCKED, username="mayfly", password=LOCKED_KEY) as owner:
        monitor = [{"role": "clusterMonitor", "db": "admin"}]
        owner[name].command("createUser", "monitor", pwd="p", roles=monitor)
        owner[name].command("createUser", "reader", pwd="p", roles=["read"])
        with MongoClient(LOCKED, username="reader", **login) as reader:
            own = list(reader.admin.aggregate([{"$currentOp": {}}]))
            assert [operation["effectiveUsers"] for operation in own] == [[{"user": "reader", "db": name}]] * len(own)
            assert len(own) >= 1
            assert len(reader.admin.command({"currentOp": 1, "$ownOps": True})["inprog"]) >= 1
            refused = [
                lambda: reader.admin.command("currentOp"),
                lambda: list(reader.admin.aggregate([{"$currentOp": {"allUsers": True}}])),
                lambda: list(reader.admin.aggregate([{"$currentOp": {}}, {"$unionWith": "c"}])),
                lambda: reader.admin.command("top"),
                lambda: reader.admin.command({"killAllSessions": []}),
            ]
            for attempt in refused:
                with pytest.raises(OperationFailure) as failure:
                    attempt()
                assert failure.value.code == 13
        with MongoClient(LOCKED, username="monitor", **login) as watcher:
            assert len(watcher.admin.command("currentOp")["inprog"]) >= 1
            assert "totals" in watcher.admin.command("top")
        owner[name].command("dropAllUsersFromDatabase")
