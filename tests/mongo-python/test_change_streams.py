"""Change streams: every change once and in order, from where a client left off, and expiry told as what it is."""

import pytest
from pymongo import DESCENDING
from pymongo.errors import OperationFailure


def take(stream, count):
    """The next changes. A change that is there comes at once; one that does not come fails the test."""
    events = []
    for _ in range(100 + count):
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
    unknown = ({"$noSuch": 1}, {"$changeStreamSplitLargeEvent": {}})
    for stage, code in (({"$group": {"_id": 1}}, 20), *((stage, 40324) for stage in unknown)):
        with pytest.raises(OperationFailure) as refused:
            collection.watch([stage])
        assert refused.value.code == code


def expanded(database, **options):
    return database.watch(show_expanded_events=True, **options)


def test_how_collections_are_made_and_changed(database):
    with expanded(database) as stream:
        database.create_collection("c")
        database.c.insert_one({"_id": 1, "a": 1})
        database.c.create_index("a")
        database.c.create_index("t", expireAfterSeconds=60)
        database.command("collMod", "c", index={"name": "t_1", "expireAfterSeconds": 120})
        database.command("collMod", "c", validator={"a": 1}, validationLevel="moderate")
        database.c.drop_index("a_1")
        database.c.rename("d")
        database.d.drop()
        events = take(stream, 9)
    create, insert, index, ttl, changed, validated, unindexed, renamed, dropped = events
    assert kinds(events) == [
        "create", "insert", "createIndexes", "createIndexes", "modify", "modify", "dropIndexes", "rename", "drop",
    ]  # fmt: skip
    uuid = create["collectionUUID"]
    assert all(event["collectionUUID"] == uuid and "wallTime" in event for event in events)
    assert all(event["ns"] == {"db": database.name, "coll": "c"} for event in events[:-1])
    assert create["nsType"] == "collection"
    assert create["operationDescription"] == {"idIndex": {"v": 2, "key": {"_id": 1}, "name": "_id_"}}
    assert index["operationDescription"] == {"indexes": [{"v": 2, "key": {"a": 1}, "name": "a_1"}]}
    assert ttl["operationDescription"]["indexes"][0]["expireAfterSeconds"] == 60
    assert changed["operationDescription"] == {"index": {"name": "t_1", "expireAfterSeconds": 120}}
    assert changed["stateBeforeChange"] == {
        "collectionOptions": {"uuid": uuid},
        "indexOptions": {"expireAfterSeconds": 60},
    }
    assert validated["operationDescription"] == {"validator": {"a": 1}, "validationLevel": "moderate"}
    assert unindexed["operationDescription"] == index["operationDescription"]
    assert renamed["operationDescription"] == {"to": {"db": database.name, "coll": "d"}} and renamed["to"]["coll"] == "d"


def test_only_expanded_streams_tell_it(database):
    with database.watch() as stream:
        database.c.insert_one({"_id": 1})
        database.c.create_index("a")
        database.command("create", "v", viewOn="c", pipeline=[])
        database.v.drop()
        database.c.drop()
        events = take(stream, 2)
    assert kinds(events) == ["insert", "drop"] and "collectionUUID" in events[0]


def test_views_are_told_without_an_identifier(database):
    with expanded(database) as stream:
        database.command("create", "v", viewOn="c", pipeline=[{"$match": {"a": 1}}])
        database.v.drop()
        create, drop = take(stream, 2)
    assert create["nsType"] == "view" and create["operationDescription"]["viewOn"] == "c"
    assert "collectionUUID" not in create and drop["ns"]["coll"] == "v"


def test_documents_and_definitions_are_in_order_and_can_be_resumed(database):
    with expanded(database) as stream:
        for n in range(3):
            database.c.insert_one({"_id": n})
            database.c.create_index(f"a{n}")
        events = take(stream, 7)
    assert kinds(events) == ["create"] + ["insert", "createIndexes"] * 3
    for at, event in enumerate(events[:-1]):
        with expanded(database, resume_after=event["_id"]) as stream:
            assert kinds(take(stream, 6 - at)) == kinds(events[at + 1 :])
    with expanded(database, start_at_operation_time=events[2]["clusterTime"]) as stream:
        assert kinds(take(stream, 5)) == kinds(events[2:])


def test_more_than_one_page_stays_in_order(database):
    with expanded(database) as stream:
        database.c.insert_many({"_id": n} for n in range(300))
        database.d.insert_one({"_id": 1})
        database.c.insert_one({"_id": "last"})
        events = take(stream, 304)
    names = [(event["operationType"], event["ns"]["coll"]) for event in events]
    assert names == [("create", "c")] + [("insert", "c")] * 300 + [("create", "d"), ("insert", "d"), ("insert", "c")]


def test_documents_have_the_name_their_collection_had(database):
    with expanded(database) as stream, database.old.watch() as of_old:
        database.old.insert_one({"_id": 1})
        database.old.rename("new")
        database.new.insert_one({"_id": 2})
        events = take(stream, 4)
        assert kinds(take(of_old, 3)) == ["insert", "rename", "invalidate"]
    assert [event["ns"]["coll"] for event in events] == ["old", "old", "old", "new"]


def test_a_transaction_comes_after_the_collection_it_made(client, database):
    with expanded(database) as stream:
        with client.start_session() as session, session.start_transaction():
            database.c.insert_one({"_id": 1}, session=session)
        assert kinds(take(stream, 2)) == ["create", "insert"]


def test_out_renames(database):
    database.c.insert_one({"_id": 1})
    database.out.insert_one({"_id": 2})
    with database.watch() as stream, database.out.watch() as of_out:
        list(database.c.aggregate([{"$out": "out"}]))
        insert, rename = take(stream, 2)
        assert kinds(take(of_out, 2)) == ["rename", "invalidate"]
    assert insert["ns"]["coll"].startswith("tmp.agg_out.") and rename["to"]["coll"] == "out"
    assert "dropTarget" in rename["operationDescription"]


def test_the_flag_is_a_boolean(database):
    with pytest.raises(OperationFailure) as refused:
        database.command("aggregate", 1, pipeline=[{"$changeStream": {"showExpandedEvents": 1}}], cursor={})
    assert refused.value.code == 14
