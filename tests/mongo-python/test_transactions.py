"""Sessions: transactions that see one moment and happen whole, conflicts, and writes that are sent twice."""

import pytest
from bson import Int64
from pymongo import InsertOne, MongoClient, UpdateOne, WriteConcern
from pymongo.errors import AutoReconnect, BulkWriteError, DuplicateKeyError, OperationFailure
from pymongo.read_concern import ReadConcern

from conftest import MONGO


def test_commit_and_abort(client, collection):
    with client.start_session() as session:
        with session.start_transaction():
            collection.insert_one({"_id": 1}, session=session)
            collection.update_one({"_id": 1}, {"$set": {"a": 1}}, session=session)
            assert collection.find_one({}, session=session) == {"_id": 1, "a": 1}
            assert collection.count_documents({}) == 0
        assert collection.find_one() == {"_id": 1, "a": 1}
        session.start_transaction()
        collection.delete_one({"_id": 1}, session=session)
        assert collection.count_documents({}, session=session) == 0
        session.abort_transaction()
    assert collection.count_documents({}) == 1


def test_several_collections_at_once(client, database):
    database.create_collection("a"), database.create_collection("b")

    def move(session):
        database.a.insert_one({"_id": 1}, session=session)
        database.b.insert_many([{"_id": 1}, {"_id": 2}], session=session)

    with client.start_session() as session:
        session.with_transaction(move, write_concern=WriteConcern("majority"))
    assert (database.a.count_documents({}), database.b.count_documents({})) == (1, 2)


def test_a_transaction_sees_one_moment(client, collection):
    collection.insert_one({"_id": 1, "a": 1})
    with client.start_session() as session, session.start_transaction(read_concern=ReadConcern("snapshot")):
        assert collection.find_one({"_id": 1}, session=session)["a"] == 1
        collection.update_one({"_id": 1}, {"$set": {"a": 2}})
        collection.insert_one({"_id": 2})
        assert list(collection.find({}, session=session)) == [{"_id": 1, "a": 1}]
    assert collection.count_documents({}) == 2


def test_two_that_write_the_same(client, collection):
    collection.insert_one({"_id": 1, "a": 0})
    with client.start_session() as first, client.start_session() as second:
        first.start_transaction(), second.start_transaction()
        collection.update_one({"_id": 1}, {"$inc": {"a": 1}}, session=first)
        with pytest.raises(OperationFailure) as conflict:
            collection.update_one({"_id": 1}, {"$inc": {"a": 1}}, session=second)
        assert conflict.value.code == 112 and conflict.value.has_error_label("TransientTransactionError")
        first.commit_transaction()
    assert collection.find_one()["a"] == 1


def test_a_snapshot_that_was_overtaken_does_not_write(client, collection):
    collection.insert_one({"_id": 1, "a": 0})
    with client.start_session() as session:
        session.start_transaction()
        assert collection.find_one({"_id": 1}, session=session)["a"] == 0
        collection.update_one({"_id": 1}, {"$set": {"a": 5}})
        with pytest.raises(OperationFailure) as conflict:
            collection.update_one({"_id": 1}, {"$inc": {"a": 1}}, session=session)
        assert conflict.value.code == 112
    assert collection.find_one()["a"] == 5


def test_expired_documents_in_a_transaction(client, collection, clock):
    collection.create_index("_ts", expireAfterSeconds=10)
    collection.insert_one({"_id": 1})
    clock.advance(10)
    with client.start_session() as session, session.start_transaction():
        assert collection.count_documents({}, session=session) == 0
        collection.insert_one({"_id": 1, "new": True}, session=session)
    assert collection.find_one() == {"_id": 1, "new": True}


def test_what_a_transaction_may_not_do(client, collection, database):
    with client.start_session() as session:
        for command in ({"count": "c"}, {"dropIndexes": "c", "index": "*"}, {"listCollections": 1}):
            session.start_transaction()
            with pytest.raises(OperationFailure) as refused:
                database.command(command, session=session)
            assert refused.value.code == 263, command
            session.abort_transaction()


def test_a_write_that_is_sent_again_happens_once(collection, fail_point):
    """The write is carried out, its answer is lost, the driver sends it again."""
    concern = {"code": 91, "errmsg": "stopping"}
    collection.insert_one({"_id": 1, "a": 0})
    fail_point({"times": 1}, failCommands=["update"], writeConcernError=concern)
    assert collection.update_one({"_id": 1}, {"$inc": {"a": 1}}).modified_count == 1
    assert collection.find_one()["a"] == 1
    fail_point({"times": 1}, failCommands=["insert"], writeConcernError=concern)
    assert collection.insert_many([{"_id": 2}, {"_id": 3}]).inserted_ids == [2, 3]
    fail_point({"times": 1}, failCommands=["findAndModify"], writeConcernError=concern)
    assert collection.find_one_and_update({"_id": 1}, {"$inc": {"a": 1}}) == {"_id": 1, "a": 1}
    fail_point({"times": 1}, failCommands=["delete"], writeConcernError=concern)
    assert collection.delete_one({"_id": 3}).deleted_count == 1
    fail_point({"times": 1}, failCommands=["update"], writeConcernError=concern)
    mixed = collection.bulk_write([UpdateOne({"_id": 1}, {"$inc": {"a": 1}}), InsertOne({"_id": 9})])
    assert (mixed.modified_count, mixed.inserted_count) == (1, 1)
    assert list(collection.find()) == [{"_id": 1, "a": 3}, {"_id": 2}, {"_id": 9}]


def test_a_broken_connection_is_got_over(client, collection, fail_point):
    fail_point({"times": 1}, failCommands=["insert"], closeConnection=True)
    collection.insert_one({"_id": 1})
    fail_point({"times": 1}, failCommands=["find"], closeConnection=True)
    assert collection.find_one() == {"_id": 1}
    fail_point({"times": 2}, failCommands=["insert"], closeConnection=True)
    with pytest.raises(AutoReconnect):
        collection.insert_one({"_id": 2})


def test_numbers_that_are_too_old(database, collection):
    # A client of its own: the session goes back to its pool with numbers that the driver does not know of.
    with MongoClient(MONGO) as client, client.start_session() as session:
        lsid = session.session_id

        def insert(id, number):
            command = {"insert": "c", "documents": [{"_id": id}], "lsid": lsid, "txnNumber": Int64(number)}
            return client[database.name].command(command)

        assert insert(1, 5)["n"] == 1
        again = insert(1, 5)
        assert (again["n"], again["retriedStmtIds"]) == (1, [0])
        with pytest.raises(OperationFailure) as old:
            insert(2, 4)
        assert old.value.code == 225
    assert collection.count_documents({}) == 1


def test_causal_reads(client, collection):
    with client.start_session(causal_consistency=True) as session:
        collection.insert_one({"_id": 1}, session=session)
        assert session.operation_time is not None
        assert collection.with_options(read_concern=ReadConcern("majority")).find_one({}, session=session) == {"_id": 1}


def test_a_snapshot_session_reads_one_moment(client, collection):
    collection.insert_one({"_id": 1})
    with client.start_session(snapshot=True) as session:
        assert collection.count_documents({}, session=session) == 1
        collection.insert_one({"_id": 2})
        assert collection.count_documents({}, session=session) == 1
    assert collection.count_documents({}) == 2


def test_what_a_transaction_cannot_make(collection, client):
    collection.insert_one({"_id": 1})
    with client.start_session() as session:
        for make, code in (
            (lambda: collection.create_index("a", session=session), 263),
            (lambda: collection.database.command("create", collection.name, session=session), 48),
        ):
            session.start_transaction()
            with pytest.raises(OperationFailure) as refused:
                make()
            assert refused.value.code == code
            session.abort_transaction()


@pytest.mark.parametrize("write", [
    lambda c, s: c.insert_one({"_id": 3, "name": "A"}, session=s),
    lambda c, s: c.update_one({"_id": 2}, {"$set": {"name": "A"}}, session=s),
    lambda c, s: c.replace_one({"_id": 2}, {"name": "A"}, session=s),
    lambda c, s: c.update_one({"_id": 7}, {"$set": {"name": "A"}}, upsert=True, session=s),
    lambda c, s: c.find_one_and_update({"_id": 2}, {"$set": {"name": "A"}}, session=s),
    lambda c, s: [c.insert_one({"name": "Z"}, session=s), c.insert_one({"name": "Z"}, session=s)],
], ids=["insert", "update", "replace", "upsert", "find_and_modify", "two_inside"])
def test_a_duplicate_is_told_by_its_statement(client, collection, write):
    collection.create_index("name", unique=True)
    collection.insert_many([{"_id": 1, "name": "A"}, {"_id": 2, "name": "B"}])
    with client.start_session() as session:
        session.start_transaction()
        collection.insert_one({"_id": 9, "name": "Y"}, session=session)
        with pytest.raises(DuplicateKeyError) as refused:
            write(collection, session)
        assert refused.value.details["keyPattern"] == {"name": 1}
        assert not refused.value.has_error_label("TransientTransactionError")
        with pytest.raises(OperationFailure) as over:
            session.commit_transaction()
        assert over.value.code == 251
    assert list(collection.find().sort("_id")) == [{"_id": 1, "name": "A"}, {"_id": 2, "name": "B"}]


def test_a_duplicate_in_a_bulk_of_a_transaction(client, collection):
    collection.create_index("name", unique=True)
    collection.insert_one({"_id": 1, "name": "A"})
    with client.start_session() as session, session.start_transaction():
        with pytest.raises(BulkWriteError) as refused:
            collection.bulk_write([InsertOne({"name": "n"}), InsertOne({"name": "A"})], session=session)
        assert [error["code"] for error in refused.value.details["writeErrors"]] == [11000]
        session.abort_transaction()
    assert collection.count_documents({}) == 1


def test_unique_values_may_be_swapped(client, collection):
    collection.create_index("name", unique=True)
    collection.insert_many([{"_id": 1, "name": "A"}, {"_id": 2, "name": "B"}])
    with client.start_session() as session, session.start_transaction():
        for id, name in ((1, "T"), (2, "A"), (1, "B")):
            collection.update_one({"_id": id}, {"$set": {"name": name}}, session=session)
    assert list(collection.find().sort("_id")) == [{"_id": 1, "name": "B"}, {"_id": 2, "name": "A"}]


def test_a_unique_value_that_a_concurrent_writer_took(client, collection):
    collection.create_index("name", unique=True)
    with client.start_session() as session:
        session.start_transaction()
        collection.insert_one({"_id": 1, "name": "A"}, session=session)
        collection.insert_one({"_id": 2, "name": "B"})
        with pytest.raises(OperationFailure) as conflict:
            collection.insert_one({"_id": 3, "name": "B"}, session=session)
        assert conflict.value.code == 112 and conflict.value.has_error_label("TransientTransactionError")
    assert [found["_id"] for found in collection.find()] == [2]


def test_an_expired_owner_of_a_unique_value_in_a_transaction(client, collection, clock):
    collection.create_index("name", unique=True)
    collection.create_index("_ts", expireAfterSeconds=1000)
    collection.insert_one({"_id": 1, "name": "A", "ttl": 5})
    clock.advance(5)
    with client.start_session() as session, session.start_transaction():
        collection.insert_one({"_id": 2, "name": "A"}, session=session)
    assert list(collection.find()) == [{"_id": 2, "name": "A"}]
