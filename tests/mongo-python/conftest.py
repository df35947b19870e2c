"""Databases that clean up after themselves, and a clock that tests can move.

Where the servers are stands in the environment; `cargo xtask test mongo` sets it.
"""

import os
import uuid

import pytest
from pymongo import MongoClient
from server_clock import HTTP, KEY, needs_test_server, stopped_clock

CA = os.environ["MAYFLY_TEST_CA"]
MONGO = os.environ["MAYFLY_TEST_MONGO"]
LOCKED = os.environ["MAYFLY_TEST_MONGO_LOCKED"]
LOCKED_KEY = os.environ["MAYFLY_TEST_MONGO_LOCKED_KEY"]


@pytest.fixture(scope="session")
def client():
    with MongoClient(MONGO) as client:
        yield client


@pytest.fixture
def database(client):
    name = f"db-{uuid.uuid4()}"
    yield client[name]
    client.drop_database(name)


@pytest.fixture
def collection(database):
    return database.create_collection("c")


@pytest.fixture
def clock():
    with stopped_clock() as clock:
        yield clock


@pytest.fixture
def fail_point(client):
    """Makes commands fail; whatever a test forgets is switched off."""
    needs_test_server()

    def configure(mode, **data):
        client.admin.command({"configureFailPoint": "failCommand", "mode": mode, "data": data})

    yield configure
    client.admin.command({"configureFailPoint": "failCommand", "mode": "off"})
