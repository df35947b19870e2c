"""The database tools carry everything from one server to another.

Where both are, and the tools, stands in the environment; `cargo xtask test mongo-tools` sets it.
"""

import datetime
import json
import os
import pathlib
import subprocess

import pytest
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp, decode_all
from pymongo import MongoClient

TOOLS = pathlib.Path(os.environ["MAYFLY_TEST_TOOLS"])
WORK = pathlib.Path(os.environ["MAYFLY_TEST_WORK"])
FROM, TO = os.environ["MAYFLY_TEST_MONGO"], os.environ["MAYFLY_TEST_MONGO_OTHER"]

EVERY_TYPE = {
    "_id": ObjectId("5f5f5f5f5f5f5f5f5f5f5f5f"),
    "double": 1.5,
    "nan": float("inf"),
    "text": "grüße 🦋",
    "document": {"b": 1, "a": [1, {"c": None}]},
    "binary": Binary(b"\x00\xff", 128),
    "uuid": Binary(b"0123456789abcdef", 4),
    "bool": True,
    "date": datetime.datetime(2020, 2, 29, 12, 30, 45, 123000),
    "null": None,
    "regex": Regex("^a", "i"),
    "code": Code("f()"),
    "int": 7,
    "timestamp": Timestamp(1, 2),
    "long": Int64(2**53 + 1),
    "decimal": Decimal128("1.10"),
    "min": MinKey(),
    "max": MaxKey(),
}


def tool(name, uri, *arguments):
    done = subprocess.run([TOOLS / name, f"--uri={uri}", *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def pair():
    with MongoClient(FROM) as source, MongoClient(TO) as destination:
        yield source, destination
        for client in (source, destination):
            client.drop_database("shop")


def everything(client):
    """All that a database holds, in a form that can be compared."""
    database = client["shop"]
    found = {}
    for collection in database.list_collections():
        name = collection["name"]
        found[name] = {"type": collection["type"], "options": collection["options"]}
        if collection["type"] == "collection":
            found[name]["documents"] = sorted(map(repr, database[name].find()))
            found[name]["indexes"] = sorted((json.dumps(index.to_dict(), default=str) for index in database[name].list_indexes()))
    return found


def fill(database):
    database["things"].insert_many([EVERY_TYPE] + [{"_id": n, "n": n, "word": f"w{n % 7}"} for n in range(2500)])
    database["things"].create_index([("n", 1), ("word", -1)], unique=True)
    database["things"].create_index("word", partialFilterExpression={"n": {"$gt": 5}})
    database.create_collection("sessions").insert_many([{"_id": n, "at": datetime.datetime(2100, 1, 1)} for n in range(10)])
    database["sessions"].create_index("at", expireAfterSeconds=3600)
    database.create_collection("kept")
    database["kept"].create_index("_ts", expireAfterSeconds=86_400)
    database["kept"].insert_many([{"_id": 1}, {"_id": 2, "ttl": -1}])
    database.create_collection("log", capped=True, size=100_000, max=50).insert_many([{"_id": n} for n in range(20)])
    database.create_collection("checked", validator={"$jsonSchema": {"required": ["a"]}}).insert_one({"_id": 1, "a": 1})
    database.create_collection("words", collation={"locale": "en", "strength": 2}).insert_one({"_id": "A"})
    database.command("create", "some", viewOn="things", pipeline=[{"$match": {"n": {"$lt": 3}}}])


@pytest.mark.parametrize("way", ["folder", "archive"])
def test_dump_and_restore(pair, way):
    source, destination = pair
    fill(source["shop"])
    place = WORK / f"dump-{way}"
    if way == "folder":
        tool("mongodump", FROM, "--db=shop", f"--out={place}")
        assert len(decode_all((place / "shop/things.bson").read_bytes())) == 2501
        tool("mongorestore", TO, str(place))
    else:
        tool("mongodump", FROM, "--db=shop", f"--archive={place}", "--gzip")
        tool("mongorestore", TO, f"--archive={place}", "--gzip")
    before, after = everything(source), everything(destination)
    assert before.keys() == after.keys()
    for name in before:
        assert before[name] == after[name], name
    assert sorted(document["_id"] for document in destination["shop"]["some"].find()) == [0, 1, 2]
    # Again over what is there: every document is refused, and with --drop it is as before.
    tool("mongorestore", TO, "--drop", *([str(place)] if way == "folder" else [f"--archive={place}", "--gzip"]))
    assert everything(destination) == before


def test_export_and_import(pair):
    source, destination = pair
    things = [EVERY_TYPE] + [{"_id": n, "n": n, "word": f"w{n % 7}"} for n in range(1500)]
    source["shop"]["things"].insert_many(things)
    file = WORK / "things.json"
    tool("mongoexport", FROM, "--db=shop", "--collection=things", "--jsonFormat=canonical", f"--out={file}")
    assert len(file.read_text().splitlines()) == 1501
    tool("mongoimport", TO, "--db=shop", "--collection=things", f"--file={file}")
    copied = destination["shop"]["things"]
    assert sorted(map(repr, copied.find())) == sorted(map(repr, source["shop"]["things"].find()))

    # Changed lines go over what is there, the rest stays.
    file.write_text('{"_id": 3, "n": 33}\n{"_id": "new"}\n')
    tool("mongoimport", TO, "--db=shop", "--collection=things", "--mode=upsert", f"--file={file}")
    assert copied.count_documents({}) == 1502
    assert copied.find_one({"_id": 3}) == {"_id": 3, "n": 33}

    text = tool("mongoexport", FROM, "--db=shop", "--collection=things", "--type=csv", "--fields=_id,word", '--query={"n": {"$lt": 3}}',
                '--sort={"n": -1}')
    assert text.splitlines() == ["_id,word", "2,w2", "1,w1", "0,w0"]
