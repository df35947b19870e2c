"""Who gets in: the account's key, users, what each may do, TLS; and what tools ask before they do anything."""

import uuid

import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from conftest import CA, LOCKED, LOCKED_KEY, MONGO


def locked(user, password, **options):
    return MongoClient(LOCKED, username=user, password=password, serverSelectionTimeoutMS=5000, **options)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-1", None])
def test_the_key_is_the_password(mechanism):
    options = {"authMechanism": mechanism} if mechanism else {}
    with locked("mayfly", LOCKED_KEY, **options) as client:
        name = f"db-{uuid.uuid4()}"
        client[name].c.insert_one({"_id": 1})
        assert client[name].c.find_one() == {"_id": 1}
        client.drop_database(name)
        [user] = client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"]
        assert user["user"] == "mayfly"


@pytest.mark.parametrize("user,password", [("mayfly", "wrong"), ("nobody", "x"), ("mayfly", LOCKED_KEY[:-1])])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-1"])
def test_wrong_passwords(user, password, mechanism):
    with locked(user, password, authMechanism=mechanism) as client:
        with pytest.raises(OperationFailure) as refused:
            client.admin.command("listDatabases")
        assert refused.value.code == 18 and "Authentication failed" in str(refused.value)


def test_nobody_without_a_password():
    with MongoClient(LOCKED) as client:
        assert client.admin.command("hello")["isWritablePrimary"]
        for command in ({"listDatabases": 1}, {"find": "c"}, {"insert": "c", "documents": [{}]}, {"serverStatus": 1}):
            with pytest.raises(OperationFailure) as refused:
                client.admin.command(command)
            assert refused.value.code == 13


def test_users_and_what_they_may_do():
    name = f"db-{uuid.uuid4()}"
    with locked("mayfly", LOCKED_KEY) as admin:
        database = admin[name]
        database.c.insert_one({"_id": 1})
        database.command("createUser", "reader", pwd="r", roles=[{"role": "read", "db": name}])
        database.command("createUser", "writer", pwd="w", roles=["readWrite"])
        assert {user["user"] for user in database.command("usersInfo")["users"]} == {"reader", "writer"}
        with locked("reader", "r", authSource=name) as reader:
            assert reader[name].c.find_one() == {"_id": 1}
            with pytest.raises(OperationFailure) as refused:
                reader[name].c.insert_one({"_id": 2})
            assert refused.value.code == 13
        with locked("writer", "w", authSource=name) as writer:
            writer[name].c.insert_one({"_id": 2})
            with pytest.raises(OperationFailure) as refused:
                writer["other"].c.find_one()
            assert refused.value.code == 13
        database.command("dropUser", "reader")
        with locked("reader", "r", authSource=name) as reader, pytest.raises(OperationFailure) as refused:
            reader[name].c.find_one()
        assert refused.value.code == 18
        database.command("dropAllUsersFromDatabase")
        admin.drop_database(name)


def test_who_writes_everywhere_does_not_write_users():
    name = f"db-{uuid.uuid4()}"
    with locked("mayfly", LOCKED_KEY) as owner:
        roles = ["readWriteAnyDatabase", "clusterMonitor"]
        owner.admin.command("createUser", name, pwd="w", roles=roles)
        with locked(name, "w") as writer:
            admin, users = writer.admin, {"_id": f"admin.{name}"}
            root = {"$set": {"roles": [{"role": "root", "db": "admin"}]}}
            writer[name].c.insert_one({"_id": 1})
            # What is not there for somebody is not found and not changed; what would have to be made is refused.
            assert admin["system.users"].find_one() is None
            assert admin["system.users"].update_one(users, root).matched_count == 0
            assert list(admin.c.aggregate([{"$unionWith": "system.users"}])) == []
            refused = [
                lambda: admin["system.users"].insert_one({"_id": "admin.evil"}),
                lambda: admin["system.users"].update_one({"_id": "admin.evil"}, root, upsert=True),
                lambda: admin.command({"create": "system.users"}),
                lambda: writer[name].c.aggregate([{"$merge": {"into": {"db": "admin", "coll": "system.users"}}}]),
                lambda: writer[name].c.aggregate([{"$out": {"db": "admin", "coll": "system.users"}}]),
                lambda: admin.command({"renameCollection": f"{name}.c", "to": "admin.system.users", "dropTarget": True}),
                lambda: admin.command({"renameCollection": "admin.system.users", "to": f"{name}.users"}),
                lambda: admin.command("createUser", "evil", pwd="x", roles=["root"]),
                lambda: admin.command("usersInfo", name, showCredentials=True),
                lambda: admin.command("dropDatabase"),
                lambda: admin.command({"setParameter": 1, "ttlMonitorSleepSecs": 1}),
            ]
            for number, attempt in enumerate(refused):
                with pytest.raises(OperationFailure):
                    attempt()
                    pytest.fail(f"attempt {number} was let through")
            inserts = [{"insert": 0, "document": {"_id": "admin.evil"}}]
            answer = admin.command({"bulkWrite": 1, "ops": inserts, "nsInfo": [{"ns": "admin.system.users"}]})
            assert (answer["nErrors"], answer["nInserted"]) == (1, 0)
            [shown] = admin.command("usersInfo")["users"]
            assert shown["user"] == name and "credentials" not in shown
        [user] = owner.admin.command("usersInfo", name)["users"]
        assert {role["role"] for role in user["roles"]} == set(roles)
        owner.admin.command("dropUser", name)
        owner.drop_database(name)


def test_a_bulk_write_needs_the_role_of_each_collection():
    name = f"db-{uuid.uuid4()}"
    with locked("mayfly", LOCKED_KEY) as owner:
        owner[name].command("createUser", "writer", pwd="w", roles=["readWrite"])
        with locked("writer", "w", authSource=name) as writer:

            def write(db):
                operations = [{"insert": 0, "document": {"_id": 1}}]
                return writer.admin.command({"bulkWrite": 1, "ops": operations, "nsInfo": [{"ns": f"{db}.c"}]})

            assert write(name)["nInserted"] == 1
            with pytest.raises(OperationFailure) as refused:
                write("admin")
            assert refused.value.code == 13
        owner[name].command("dropAllUsersFromDatabase")
        owner.drop_database(name)


def test_tls():
    with MongoClient(MONGO, tls=True, tlsCAFile=CA) as client:
        assert client.admin.command("ping")["ok"] == 1


@pytest.mark.parametrize("compressor", ["snappy", "zlib", "zstd"])
def test_compression(database, compressor):
    with MongoClient(MONGO, compressors=compressor) as client:
        collection = client[database.name].c
        collection.insert_one({"_id": 1, "x": "x" * 100_000})
        assert len(collection.find_one()["x"]) == 100_000


TOOLS = ["buildInfo", "hostInfo", "serverStatus", "getCmdLineOpts", "whatsmyuri", "top", "connectionStatus", "listCommands", "ping", "listDatabases"]


@pytest.mark.parametrize("command", TOOLS)
def test_what_tools_ask(client, command):
    assert client.admin.command(command)["ok"] == 1


def test_databases_and_collections(client, database):
    database.create_collection("capped", capped=True, size=4096, max=3)
    database.create_collection("checked", validator={"a": {"$type": "int"}})
    database.plain.insert_one({})
    assert sorted(database.list_collection_names()) == ["capped", "checked", "plain"]
    assert database.name in client.list_database_names()
    described = {each["name"]: each for each in database.list_collections()}
    assert described["checked"]["options"]["validator"] == {"a": {"$type": "int"}}
    with pytest.raises(OperationFailure) as refused:
        database.checked.insert_one({"a": "x"})
    assert refused.value.code == 121
    database.plain.rename("renamed")
    assert database.renamed.count_documents({}) == 1
    with pytest.raises(OperationFailure) as taken:
        database.command({"create": "checked", "validator": {"b": 1}})
    assert taken.value.code == 48
    client.drop_database(database.name)
    assert database.name not in client.list_database_names()
