"""Databases that clean up after themselves, and a clock that tests can move.

Where the servers are stands in the environment; `cargo xtask test mongo` sets it.
"""

import json
import os
import urllib.request
import uuid

import pytest
from pymongo import MongoClient

KEY = os.environ["MAYFLY_TEST_KEY"]
HTTP = os.environ["MAYFLY_TEST_HTTP"]
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


class Clock:
    """The server's time machine. It stands still while a test has it."""

    def move(self, **change):
        request = urllib.request.Request(
            HTTP + "_mayfly/clock",
            data=json.dumps(change).encode(),
            headers={"authorization": f"Bearer {KEY}"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def advance(self, seconds):
        self.move(advanceSeconds=seconds)

    def now(self):
        """The server's time in seconds, with a fraction."""
        return self.move(advanceSeconds=0)["unixSeconds"]


@pytest.fixture
def clock():
    clock = Clock()
    clock.move(freeze=True)
    yield clock
    clock.move(freeze=False)


@pytest.fixture
def fail_point(client):
    """Makes commands fail; whatever a test forgets is switched off."""

    def configure(mode, **data):
        client.admin.command({"configureFailPoint": "failCommand", "mode": mode, "data": data})

    yield configure
    client.admin.command({"configureFailPoint": "failCommand", "mode": "off"})
