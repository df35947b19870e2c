"""Failures on demand, as drivers' own tests ask for them."""

import pytest
from pymongo import MongoClient
from pymongo.errors import AutoReconnect, ExecutionTimeout, OperationFailure, PyMongoError

from conftest import MONGO
from server_clock import needs_test_server


@pytest.fixture
def armed(client):
    """Arms a fail point by name; whatever a test forgets is switched off."""
    needs_test_server()
    names = set()

    def configure(name, mode, **data):
        names.add(name)
        client.admin.command({"configureFailPoint": name, "mode": mode, "data": data})

    yield configure
    for name in names:
        client.admin.command({"configureFailPoint": name, "mode": "off"})


@pytest.mark.parametrize("before", [True, False])
def test_a_write_whose_connection_breaks_is_sent_again_and_happens_once(collection, armed, before):
    data = {"failBeforeCommitExceptionCode": 1} if before else {}
    armed("onPrimaryTransactionalWrite", {"times": 1}, **data)
    collection.insert_one({"_id": 1, "n": 0})
    armed("onPrimaryTransactionalWrite", {"times": 1}, **data)
    assert collection.update_one({"_id": 1}, {"$inc": {"n": 1}}).modified_count == 1
    assert collection.find_one() == {"_id": 1, "n": 1}


def test_a_write_whose_connection_breaks_twice_fails(collection, armed):
    armed("onPrimaryTransactionalWrite", {"times": 2}, failBeforeCommitExceptionCode=1)
    with pytest.raises(AutoReconnect):
        collection.insert_one({"_id": 1})
    assert collection.count_documents({}) == 0


def test_a_limit_of_time(collection, armed):
    collection.insert_many({"_id": n} for n in range(10))
    cursor = collection.find(batch_size=2).max_time_ms(60_000)
    next(cursor)
    armed("maxTimeAlwaysTimeOut", "alwaysOn")
    with pytest.raises(ExecutionTimeout):
        list(cursor)
    with pytest.raises(ExecutionTimeout):
        collection.find_one(max_time_ms=60_000)
    assert collection.count_documents({"_id": 1}) == 1


def test_a_command_is_met_by_each_of_its_spellings(collection, fail_point):
    fail_point({"times": 1}, failCommands=["isMaster"], errorCode=8)
    with pytest.raises(OperationFailure):
        collection.database.command("ismaster")


@pytest.mark.parametrize("code", [112, 251])
def test_a_transaction_is_begun_again(collection, fail_point, code):
    fail_point({"times": 1}, failCommands=["commitTransaction"], errorCode=code)
    with MongoClient(MONGO) as client, client.start_session() as session:
        things, tries = client[collection.database.name][collection.name], []

        def insert(session):
            tries.append(1)
            things.insert_one({"_id": 1}, session=session)

        session.with_transaction(insert)
        assert len(tries) == 2 and collection.count_documents({}) == 1


def test_a_concern_that_fails_inside_of_a_transaction_has_no_label(collection, fail_point):
    fail_point({"times": 1}, failCommands=["insert"], writeConcernError={"code": 91, "errmsg": "shutting down"})
    with MongoClient(MONGO) as client, client.start_session() as session:
        session.start_transaction()
        things = client[collection.database.name][collection.name]
        with pytest.raises(PyMongoError) as failed:
            things.insert_one({"_id": 1}, session=session)
        assert failed.value.code == 91
        assert not failed.value.has_error_label("TransientTransactionError")
        session.abort_transaction()
