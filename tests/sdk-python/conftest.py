"""A client for each scheme, containers that clean up after themselves, and a clock that tests can move.

Where the servers are stands in the environment; `cargo xtask test sdk` sets it.
"""

import os
import uuid

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from server_clock import HTTP, KEY, stopped_clock

HTTPS = os.environ["MAYFLY_TEST_HTTPS"]
CA = os.environ["MAYFLY_TEST_CA"]
DISK = os.environ["MAYFLY_TEST_DISK"]
LIMITED = os.environ["MAYFLY_TEST_LIMITED"]


@pytest.fixture(scope="session", params=["http", "https"])
def client(request):
    """The server in memory, over both schemes: every test runs twice."""
    if request.param == "http":
        yield CosmosClient(HTTP, KEY)
    else:
        yield CosmosClient(HTTPS, KEY, connection_verify=CA)


@pytest.fixture
def database(client):
    database = client.create_database(f"db-{uuid.uuid4()}")
    yield database
    client.delete_database(database)


@pytest.fixture
def make_container(database):
    """Makes containers; what is not said has a default."""

    def make(path="/pk", **options):
        return database.create_container(f"c-{uuid.uuid4()}", PartitionKey(path=path), **options)

    return make


@pytest.fixture
def container(make_container):
    return make_container()


@pytest.fixture
def clock():
    with stopped_clock() as clock:
        yield clock


@pytest.fixture
def disk_database():
    """A database on the server with files and the machine's own clock."""
    client = CosmosClient(DISK, KEY)
    database = client.create_database(f"db-{uuid.uuid4()}")
    yield database
    client.delete_database(database)


@pytest.fixture
def limited():
    """The server that holds containers to their request units, and its clock, which stands still."""
    with stopped_clock(LIMITED) as clock:
        client = CosmosClient(LIMITED, KEY, retry_total=0)
        database = client.create_database(f"db-{uuid.uuid4()}")
        yield database, clock
        client.delete_database(database)
