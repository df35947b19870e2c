"""What the protocol promises around items: sessions, budgets, tokens, policies."""

import base64
import json
import os
import time
import uuid

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AccessToken
from azure.cosmos import CosmosClient, PartitionKey, exceptions

LIMITED_HTTPS = os.environ["MAYFLY_TEST_LIMITED"].replace("http:", "https:")


def refused(status, call, *arguments, **options):
    with pytest.raises(exceptions.CosmosHttpResponseError) as error:
        call(*arguments, **options)
    assert error.value.status_code == status
    return error.value


def test_a_session_goes_on_where_another_stopped(container):
    container.create_item({"id": "1", "pk": "a"})
    token = container.client_connection.last_response_headers["x-ms-session-token"]
    assert container.read_item("1", "a", session_token=token)["id"] == "1"
    ahead = refused(404, container.read_item, "1", "a", session_token="0:-1#1000000")
    assert ahead.sub_status == 1002
    assert "The read session is not available for the input session token." in ahead.message


def test_sessions_over_several_ranges(make_container):
    container = make_container(offer_throughput=11000)
    for n in range(20):
        container.create_item({"id": str(n), "pk": str(n)})
        assert container.read_item(str(n), str(n))["pk"] == str(n)
    assert len(list(container.query_items("SELECT * FROM c", enable_cross_partition_query=True))) == 20
    token = container.client_connection.last_response_headers["x-ms-session-token"]
    assert [part.split(":")[0] for part in token.split(",")] == ["0", "1"]
    assert len(list(container.read_all_items(session_token=token))) == 20


def test_etags_spare_a_read(container):
    item = container.create_item({"id": "1", "pk": "a"})
    condition = {"etag": item["_etag"], "match_condition": MatchConditions.IfModified}
    assert not container.read_item("1", "a", **condition)
    assert container.client_connection.last_response_headers["etag"] == item["_etag"]
    container.upsert_item({"id": "1", "pk": "a", "changed": True})
    assert container.read_item("1", "a", **condition)["changed"]


def test_statistics_and_usage(make_container):
    container = make_container(offer_throughput=20000)
    for n in range(5):
        container.create_item({"id": str(n), "pk": str(n)})
    read = container.read(populate_quota_info=True, populate_partition_key_range_statistics=True)
    assert sum(part["documentCount"] for part in read["statistics"]) == 5
    assert "documentsCount=5;" in container.client_connection.last_response_headers["x-ms-resource-usage"]


def test_a_container_is_held_to_its_request_units(limited):
    database, clock = limited
    container = database.create_container("c", PartitionKey(path="/pk"), offer_throughput=400)
    spent = 0.0
    with pytest.raises(exceptions.CosmosHttpResponseError) as error:
        for n in range(1000):
            container.create_item({"id": str(n), "pk": "p"})
            spent += float(container.client_connection.last_response_headers["x-ms-request-charge"])
    assert (error.value.status_code, error.value.sub_status) == (429, 3200)
    assert 400 <= spent < 410
    assert int(error.value.headers["x-ms-retry-after-ms"]) > 0
    clock.advance(1)
    assert container.read_item("0", "p")["id"] == "0"


class MadeUp:
    """A credential whose tokens have the form of Entra ID's, and nothing else of them."""

    def get_token(self, *scopes, **options):
        expires = int(time.time()) + 600
        parts = [{"typ": "JWT", "alg": "RS256"}, {"aud": "https://localhost", "exp": expires}, "signature"]
        encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
        return AccessToken(".".join(encoded), expires)


def test_entra_tokens_are_let_in_where_switched_on():
    client = CosmosClient(LIMITED_HTTPS, MadeUp(), connection_verify=False)
    database = client.create_database(f"db-{uuid.uuid4()}")
    container = database.create_container("c", PartitionKey(path="/pk"))
    container.create_item({"id": "1", "pk": "a"})
    assert container.read_item("1", "a")["id"] == "1"
    client.delete_database(database)


def test_entra_tokens_are_refused_elsewhere():
    with pytest.raises(exceptions.CosmosHttpResponseError) as error:
        CosmosClient(os.environ["MAYFLY_TEST_HTTPS"], MadeUp(), connection_verify=os.environ["MAYFLY_TEST_CA"])
    assert error.value.status_code == 401
    assert "start the server with --dev-entra" in error.value.message


def test_policies_are_refused_with_the_services_words(database):
    make = lambda **options: database.create_container(f"c-{uuid.uuid4()}", PartitionKey(path="/pk"), **options)
    query = "SELECT VALUE LOWER(c.name) FROM c"
    error = refused(400, make, computed_properties=[{"name": "id", "query": query}])
    assert "The system property name 'id' cannot be used as a computed property name." in error.message
    error = refused(400, make, indexing_policy={"spatialIndexes": [{"path": "/p/*", "types": []}]})
    assert "The spatial data types array cannot be empty." in error.message
    error = refused(400, make, full_text_policy={"defaultLanguage": "en-US", "fullTextPaths": [{"path": "a"}]})
    assert "The Full Text Policy contains an invalid Path: a" in error.message


def test_what_cannot_change_stays(database):
    key = PartitionKey(path="/pk")
    unique = {"uniqueKeys": [{"paths": ["/email"]}]}
    container = database.create_container("c", key, unique_key_policy=unique)
    replaced = database.replace_container(container, key, default_ttl=10)
    assert replaced.read()["uniqueKeyPolicy"] == unique
    refused(400, database.replace_container, container, PartitionKey(path="/other"))


def test_long_keys_of_the_old_hash(database):
    container = database.create_container("c", PartitionKey(path="/pk", version=1))
    keys = ["x" * 200, "x" * 201]
    for pk in keys:
        container.create_item({"id": "1", "pk": pk})
    for pk in keys:
        assert [item["pk"] for item in container.query_items("SELECT * FROM c", partition_key=pk)] == [pk]
