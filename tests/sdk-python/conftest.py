"""A client for each scheme, containers that clean up after themselves, and a clock that tests can move.

Where the servers are stands in the environment; `cargo xtask test sdk` sets it.
"""

import json
import os
import urllib.request
import uuid

import pytest
from azure.cosmos import CosmosClient, PartitionKey

KEY = os.environ["MAYFLY_TEST_KEY"]
HTTP = os.environ["MAYFLY_TEST_HTTP"]
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


class Clock:
    """The time machine of a server in memory. It stands still while a test has it."""

    def __init__(self, url=HTTP):
        self.url = url

    def move(self, **change):
        request = urllib.request.Request(
            self.url + "_mayfly/clock",
            data=json.dumps(change).encode(),
            headers={"authorization": f"Bearer {KEY}"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def advance(self, seconds):
        self.move(advanceSeconds=seconds)


@pytest.fixture
def clock():
    clock = Clock()
    clock.move(freeze=True)
    yield clock
    clock.move(freeze=False)


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
    clock = Clock(LIMITED)
    clock.move(freeze=True)
    client = CosmosClient(LIMITED, KEY, retry_total=0)
    database = client.create_database(f"db-{uuid.uuid4()}")
    yield database, clock
    client.delete_database(database)
    clock.move(freeze=False)
