"""Background work gives way to those who ask for documents, and not to those who only look on."""

import urllib.request

from server_clock import HTTP


def counted():
    with urllib.request.urlopen(HTTP + "metrics") as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("mayfly_load_requests_total "):
                return int(line.split()[1])
    raise AssertionError("no such metric")


def test_commands_on_documents_count(collection):
    before = counted()
    collection.insert_many({"_id": n} for n in range(5))
    collection.update_one({"_id": 1}, {"$set": {"a": 1}})
    # Two batches: `find` and `getMore`.
    assert len(list(collection.find().batch_size(4))) == 5
    assert counted() == before + 4


def test_looking_on_does_not_count(client, collection):
    collection.insert_one({"_id": 1})
    before = counted()
    for command in ["ping", "hello", "serverStatus", "listDatabases", "buildInfo"]:
        client.admin.command(command)
    assert counted() == before


def test_a_stream_counts_when_something_comes(collection):
    with collection.watch(max_await_time_ms=1) as stream:
        before = counted()
        for _ in range(5):
            assert stream.try_next() is None
        assert counted() == before
        collection.insert_one({"_id": 1})
        while stream.try_next() is None:
            pass
        assert counted() == before + 2
