"""One container through both APIs: what one writes the other reads, and it expires for both at the same second."""

import uuid

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceNotFoundError

from conftest import HTTP, KEY


@pytest.fixture(scope="session")
def cosmos():
    return CosmosClient(HTTP, KEY)


@pytest.fixture
def name(client):
    name = f"both-{uuid.uuid4()}"
    yield name
    client.drop_database(name)


def test_what_the_server_adds_has_a_place_for_cosmos_only(client, cosmos, name):
    container = cosmos.create_database(name).create_container("c", PartitionKey("/pk"))
    item = container.create_item({"id": "1", "pk": "a"})
    container.replace_item("1", {**item, "later": 1})
    assert list(container.read_item("1", "a")) == ["id", "pk", "_rid", "_self", "_etag", "_attachments", "_ts", "later"]
    collection = client[name].c
    assert list(collection.find()) == [{"_id": "1", "id": "1", "pk": "a", "later": 1}]
    assert collection.count_documents({"_etag": {"$exists": True}}) == 0
    collection.update_one({"_id": "1"}, {"$set": {"last": 2}})
    assert container.read_item("1", "a")["_etag"] and container.read_item("1", "a")["last"] == 2


def test_a_container_of_cosmos(client, cosmos, name, clock):
    container = cosmos.create_database(name).create_container("c", PartitionKey("/pk"), default_ttl=60)
    container.create_item({"id": "1", "pk": "a", "n": 1})
    container.create_item({"id": "2", "pk": "b", "n": 2, "ttl": 10})
    collection = client[name].c
    assert list(collection.find({"n": {"$gt": 0}}).sort("n")) == [
        {"_id": "1", "id": "1", "pk": "a", "n": 1},
        {"_id": "2", "id": "2", "pk": "b", "n": 2, "ttl": 10},
    ]
    collection.update_one({"_id": "1"}, {"$inc": {"n": 10}})
    assert container.read_item("1", "a")["n"] == 11
    collection.insert_one({"_id": "3", "pk": "c"})
    assert container.read_item("3", "c")["id"] == "3"
    assert list(container.query_items("SELECT VALUE COUNT(1) FROM c", enable_cross_partition_query=True)) == [3]
    clock.advance(10)
    assert collection.count_documents({}) == 2
    collection.delete_one({"_id": "3"})
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("3", "c")
    clock.advance(50)
    assert collection.count_documents({}) == 0 and list(container.read_all_items()) == []


def test_a_collection_of_mongo(client, cosmos, name, clock):
    collection = client[name].c
    collection.insert_many([{"_id": "a", "n": 1}, {"_id": 7, "n": 2, "ttl": 10}])
    collection.create_index("_ts", expireAfterSeconds=60)
    container = cosmos.get_database_client(name).get_container_client("c")
    assert container.read()["defaultTtl"] == 60
    items = {item["n"]: item for item in container.read_all_items()}
    assert (items[1]["id"], items[1]["_id"]) == ("a", "a")
    assert (items[2]["id"], items[2]["_id"]) == ("7", 7)
    rows = container.query_items("SELECT c.id, c.n FROM c WHERE c.n = 1", enable_cross_partition_query=True)
    assert list(rows) == [{"id": "a", "n": 1}]
    with pytest.raises(CosmosHttpResponseError) as refused:
        container.upsert_item({"id": "b"})
    assert refused.value.status_code == 400 and "MongoDB" in str(refused.value)
    clock.advance(10)
    assert [item["n"] for item in container.read_all_items()] == [1]
    clock.advance(50)
    assert list(container.read_all_items()) == [] and collection.count_documents({}) == 0
