"""Two nodes behind a plain TCP load balancer, which gives each connection to the next node: drivers that are told so
(`loadBalanced=true`) stay with a connection for as long as a cursor, a transaction or a stream needs its node. Others take
the balancer for one server, and the nodes see to it that this does not matter to cursors, streams and snapshots.

Only where there is another node: `cargo xtask test scale` starts it.
"""

import os
import socket
import threading
import uuid
from itertools import cycle

import pytest
from pymongo import MongoClient
from pymongo.uri_parser import parse_uri
from test_change_streams import take

OTHER = os.environ.get("MAYFLY_TEST_MONGO_OTHER")

pytestmark = pytest.mark.skipif(OTHER is None, reason="there is one node")


class Balancer:
    """Forwards connections, one to each node in turn."""

    def __init__(self, addresses):
        self.addresses = cycle(addresses)
        self.taken = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            address = next(self.addresses)
            self.taken.append(address)
            node = socket.create_connection(address)
            for pair in ((client, node), (node, client)):
                threading.Thread(target=self.forward, args=pair, daemon=True).start()

    @staticmethod
    def forward(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            source.close()
            target.close()


@pytest.fixture(scope="module")
def balancer():
    nodes = [parse_uri(uri)["nodelist"][0] for uri in (os.environ["MAYFLY_TEST_MONGO"], OTHER)]
    balancer = Balancer(nodes)
    yield balancer
    balancer.listener.close()


@pytest.fixture
def balanced(balancer):
    """A client behind the balancer, with connections to both nodes."""
    with MongoClient(f"mongodb://127.0.0.1:{balancer.port}/?loadBalanced=true") as client:
        before = len(balancer.taken)
        with client.start_session() as one, client.start_session() as two:
            for session in (one, two):
                session.start_transaction()
                client["none"].c.find_one(session=session)
        assert set(balancer.taken[before:]) == set(balancer.taken), "the connections are of both nodes"
        yield client


@pytest.fixture
def collection(balanced):
    database = balanced[f"db-{uuid.uuid4()}"]
    yield database.c
    balanced.drop_database(database.name)


def test_cursors_with_many_batches(collection):
    collection.insert_many([{"_id": n} for n in range(500)])
    cursors = [collection.find(batch_size=3, sort=[("_id", 1)]) for _ in range(6)]
    for n in range(500):
        assert [next(cursor)["_id"] for cursor in cursors] == [n] * 6
    sums = collection.aggregate([{"$match": {"_id": {"$lt": 100}}}], batchSize=2)
    assert sum(found["_id"] for found in sums) == 4950


def test_cursors_beside_each_other(collection):
    collection.insert_many([{"_id": n} for n in range(200)])
    failures = []

    def walk():
        try:
            found = [one["_id"] for one in collection.find(batch_size=2, sort=[("_id", 1)])]
            assert found == list(range(200))
        except Exception as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=walk) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert failures == []


def test_transactions(balanced, collection):
    collection.insert_many([{"_id": n, "a": 0} for n in range(4)])
    for turn in range(10):
        with balanced.start_session() as session, session.start_transaction():
            for n in range(4):
                collection.update_one({"_id": n}, {"$inc": {"a": 1}}, session=session)
            assert {found["a"] for found in collection.find(session=session, batch_size=2)} == {turn + 1}
    with balanced.start_session() as session:
        session.start_transaction()
        collection.delete_many({}, session=session)
        session.abort_transaction()
    assert collection.count_documents({"a": 10}) == 4


def test_transactions_with_a_callback(balanced, collection):
    def work(session):
        collection.insert_one({"_id": "a"}, session=session)
        collection.insert_one({"_id": "b"}, session=session)

    with balanced.start_session() as session:
        session.with_transaction(work)
    assert collection.count_documents({}) == 2


def test_streams(collection):
    with collection.watch() as one, collection.database.watch() as two:
        for n in range(50):
            collection.insert_one({"_id": n})
        for stream in (one, two):
            assert [event["documentKey"]["_id"] for event in take(stream, 50)] == list(range(50))
        collection.drop()
        assert [event["operationType"] for event in take(one, 2)] == ["drop", "invalidate"]
        assert take(two, 1)[0]["operationType"] == "drop"


def test_a_stream_that_loses_its_connection_goes_on_at_whichever_node(collection):
    with collection.watch() as stream:
        collection.insert_one({"_id": 0})
        token = take(stream, 1)[0]["_id"]
    for n in range(1, 6):
        collection.insert_one({"_id": n})
        with collection.watch(resume_after=token) as stream:
            event = take(stream, 1)[0]
            assert event["documentKey"]["_id"] == n
            token = event["_id"]


def test_writes_that_are_sent_again(balanced, collection):
    assert balanced.options.retry_writes
    for n in range(20):
        collection.find_one_and_update({"_id": 1}, {"$inc": {"n": 1}}, upsert=True)
        assert collection.find_one({"_id": 1})["n"] == n + 1


@pytest.fixture
def unaware(balancer):
    """A client that takes the balancer for one server, with connections to both nodes."""
    with MongoClient(f"mongodb://127.0.0.1:{balancer.port}/", minPoolSize=8) as client:
        yield client


def in_threads(count, work):
    failures = []

    def run(number):
        try:
            work(number)
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=run, args=[number]) for number in range(count)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert failures == []


def test_cursors_of_a_driver_that_knows_of_no_balancer(balancer, unaware):
    database = unaware[f"db-{uuid.uuid4()}"]
    database.c.insert_many([{"_id": n, "x": "y" * 100} for n in range(3000)])
    before = len(balancer.taken)

    def walk(number):
        if number % 2:
            found = database.c.find(batch_size=50, sort=[("_id", 1)])
        else:
            found = database.c.aggregate([{"$sort": {"_id": 1}}], batchSize=50)
        assert [one["_id"] for one in found] == list(range(3000))

    in_threads(8, walk)
    assert set(balancer.taken[before:]) == set(balancer.taken), "the connections are of both nodes"
    unaware.drop_database(database.name)


def test_streams_and_snapshots_of_a_driver_that_knows_of_no_balancer(unaware):
    database = unaware[f"db-{uuid.uuid4()}"]
    database.c.insert_many([{"_id": n} for n in range(20)])

    def work(number):
        if number:
            with unaware.start_session(snapshot=True) as session:
                counts = [database.c.count_documents({}, session=session) for _ in range(20)]
                assert len(set(counts)) == 1
        else:
            with database.c.watch(max_await_time_ms=500) as stream:
                for n in range(20, 60):
                    database.c.insert_one({"_id": n})
                assert [event["documentKey"]["_id"] for event in take(stream, 40)] == list(range(20, 60))

    in_threads(4, work)
    unaware.drop_database(database.name)
