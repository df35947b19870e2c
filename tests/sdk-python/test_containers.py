"""Databases and containers: names, partition keys, unique keys."""

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceExistsError, CosmosResourceNotFoundError


def test_databases(client, database):
    assert database.id in [found["id"] for found in client.list_databases()]
    assert client.get_database_client(database.id).read()["id"] == database.id
    assert client.create_database_if_not_exists(database.id).id == database.id
    with pytest.raises(CosmosResourceExistsError):
        client.create_database(database.id)
    with pytest.raises(CosmosResourceNotFoundError):
        client.get_database_client("nobody").read()


def test_containers(database):
    database.create_container("a", PartitionKey(path="/pk"))
    with pytest.raises(CosmosResourceExistsError):
        database.create_container("a", PartitionKey(path="/pk"))
    assert [found["id"] for found in database.list_containers()] == ["a"]
    database.delete_container("a")
    assert list(database.list_containers()) == []


def test_a_definition_comes_back_as_it_was_given(make_container):
    policy = {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": "/secret/*"}],
        "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]],
    }
    read = make_container(default_ttl=60, indexing_policy=policy).read()
    assert read["defaultTtl"] == 60
    assert read["partitionKey"]["paths"] == ["/pk"]
    assert {"path": "/secret/*"} in read["indexingPolicy"]["excludedPaths"]
    assert len(read["indexingPolicy"]["compositeIndexes"]) == 1


def test_unique_keys_are_unique_in_a_partition(make_container):
    unique = {"uniqueKeys": [{"paths": ["/email"]}, {"paths": ["/first", "/last"]}]}
    container = make_container(unique_key_policy=unique)
    container.create_item({"id": "1", "pk": "p", "email": "a", "first": "x", "last": "y"})
    for clash in ({"email": "a"}, {"email": "b", "first": "x", "last": "y"}):
        with pytest.raises(CosmosResourceExistsError):
            container.create_item({"id": "2", "pk": "p", **clash})
    container.create_item({"id": "2", "pk": "other", "email": "a"})
    # Free again after a delete.
    container.delete_item("1", "p")
    container.create_item({"id": "3", "pk": "p", "email": "a"})


def test_hierarchical_keys(database):
    key = PartitionKey(path=["/tenant", "/user", "/session"], kind="MultiHash")
    container = database.create_container("h", key)
    body = {"id": "1", "tenant": "t", "user": "u", "session": "s", "n": 1}
    container.create_item(body)
    assert container.read_item("1", ["t", "u", "s"])["n"] == 1
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("1", ["t", "u", "other"])
    container.delete_item("1", ["t", "u", "s"])


def test_keys_of_every_type(container):
    for n, value in enumerate(["text", 7, 2.5, True, None]):
        container.create_item({"id": str(n), "pk": value})
        assert container.read_item(str(n), value)["pk"] == value


def test_the_partition_key_of_a_container_stays(database, make_container):
    container = make_container()
    with pytest.raises(CosmosHttpResponseError) as refused:
        database.replace_container(container, PartitionKey(path="/other"))
    assert refused.value.status_code == 400
