"""Change streams: every change once and in order, from where a client left off, and expiry told as what it is."""

import pytest
from pymongo import DESCENDING
from pymongo.errors import OperationFailure


def take(stream, count):
    """The next changes. A change that is there comes at once; one that does not come fails the test."""
    events = []
    for _ in range(100):
        if len(events) == count:
            break
        event = stream.try_next()
        if event is not None:
            events.append(event)
    assert len(events) == count, events
    return events


def kinds(events):
    return [event["operationType"] for event in events]


def test_every_kind_of_change(database, collection):
    with collection.watch() as stream:
        collection.insert_one({"_id": 1, "a": 1, "b": {"c": 1}})
        collection.update_one({"_id": 1}, {"$set": {"b.c": 2}, "$unset": {"a": ""}})
        collection.replace_one({"_id": 1}, {"x": 1})
        collection.delete_one({"_id": 1})
        insert, update, replace, delete = take(stream, 4)
    assert kinds([insert, update, replace, delete]) == ["insert", "update", "replace", "delete"]
    assert insert["fullDocument"] == {"_id": 1, "a": 1, "b": {"c": 1}}
    assert insert["ns"] == {"db": database.name, "coll": "c"} and insert["documentKey"] == {"_id": 1}
    assert update["updateDescription"]["updatedFields"] == {"b.c": 2}
    assert update["updateDescription"]["removedFields"] == ["a"]
    assert replace["fullDocument"] == {"_id": 1, "x": 1}
    assert "fullDocument" not in delete


def test_resuming(collection):
    with collection.watch() as stream:
        collection.insert_many({"_id": n} for n in range(5))
        first, second = take(stream, 2)
    with collection.watch(resume_after=second["_id"]) as stream:
        assert [event["documentKey"]["_id"] for event in take(stream, 3)] == [2, 3, 4]
    with collection.watch(start_after=first["_id"]) as stream:
        assert take(stream, 1)[0]["documentKey"] == {"_id": 1}
    with collection.watch(start_at_operation_time=first["clusterTime"]) as stream:
        assert take(stream, 1)[0]["documentKey"] == {"_id": 0}


def test_a_lost_connection_loses_nothing(collection, fail_point):
    with collection.watch() as stream:
        collection.insert_one({"_id": 1})
        take(stream, 1)
        fail_point({"times": 1}, failCommands=["getMore"], closeConnection=True)
        collection.insert_one({"_id": 2})
        assert take(stream, 1)[0]["documentKey"] == {"_id": 2}


def test_full_documents_and_those_before(database):
    collection = database.create_collection("c", changeStreamPreAndPostImages={"enabled": True})
    collection.insert_one({"_id": 1, "a": 1})
    with collection.watch(full_document="updateLookup", full_document_before_change="whenAvailable") as stream:
        collection.update_one({"_id": 1}, {"$set": {"a": 2}})
        collection.delete_one({"_id": 1})
        update, delete = take(stream, 2)
    assert update["fullDocumentBeforeChange"] == {"_id": 1, "a": 1}
    assert delete["fullDocumentBeforeChange"] == {"_id": 1, "a": 2}


def test_pipelines(collection):
    pipeline = [{"$match": {"operationType": "insert", "fullDocument.a": {"$gt": 1}}}, {"$project": {"documentKey": 1}}]
    with collection.watch(pipeline) as stream:
        collection.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
        collection.delete_one({"_id": 1})
        collection.insert_one({"_id": 3, "a": 3})
        events = take(stream, 2)
    assert [event["documentKey"]["_id"] for event in events] == [2, 3]
    assert set(events[0]) == {"_id", "documentKey"}


def test_watching_a_database_and_everything(client, database):
    database.create_collection("a"), database.create_collection("b")
    with database.watch() as stream, client.watch([{"$match": {"ns.db": database.name}}]) as whole:
        database.a.insert_one({"_id": 1})
        database.b.insert_one({"_id": 2})
        assert [event["ns"]["coll"] for event in take(stream, 2)] == ["a", "b"]
        assert [event["ns"]["coll"] for event in take(whole, 2)] == ["a", "b"]


def test_a_transaction_is_told_when_it_is_committed(client, collection):
    with collection.watch() as stream, client.start_session() as session:
        session.start_transaction()
        collection.insert_one({"_id": 1}, session=session)
        assert stream.try_next() is None
        session.commit_transaction()
        session.start_transaction()
        collection.insert_one({"_id": 2}, session=session)
        session.abort_transaction()
        collection.insert_one({"_id": 3})
        assert [event["documentKey"]["_id"] for event in take(stream, 2)] == [1, 3]


def test_a_dropped_collection_ends_the_stream(collection):
    with collection.watch() as stream:
        collection.insert_one({"_id": 1})
        collection.drop()
        assert kinds(take(stream, 3)) == ["insert", "drop", "invalidate"]
        assert not stream.alive


def test_expiry_is_told(collection, clock):
    collection.create_index("_ts", expireAfterSeconds=10)
    with collection.watch() as stream:
        collection.insert_one({"_id": 1})
        clock.advance(10)
        insert, delete = take(stream, 2)
        assert kinds([insert, delete]) == ["insert", "delete"] and delete["documentKey"] == {"_id": 1}


def test_tokens_that_are_none(collection):
    for token in ({"_data": "82"}, {"_data": "zz"}, {"nothing": 1}):
        with pytest.raises(OperationFailure):
            collection.watch(resume_after=token).close()


def test_paths_that_can_be_read_in_two_ways(collection):
    collection.insert_one({"_id": 1, "a": [{"1": 1}], "b": [1]})
    with collection.watch(show_expanded_events=True) as stream:
        collection.update_one({"_id": 1}, {"$set": {"a.0.1": 2, "b.0": 2}})
        (update,) = take(stream, 1)
        assert update["updateDescription"]["disambiguatedPaths"] == {"a.0.1": ["a", 0, "1"]}


def test_stages_that_a_stream_does_not_take(collection):
    for stage, code in (({"$group": {"_id": 1}}, 20), ({"$noSuch": 1}, 40324)):
        with pytest.raises(OperationFailure) as refused:
            collection.watch([stage])
        assert refused.value.code == code
