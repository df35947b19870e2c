"""Two nodes that share a store: what one of them does to collections holds for the next command on the other.

Only where there is another node: `cargo xtask test scale` starts it.
"""

import os
from datetime import datetime, timedelta, timezone

import pytest
from pymongo import MongoClient

OTHER = os.environ.get("MAYFLY_TEST_MONGO_OTHER")

pytestmark = pytest.mark.skipif(OTHER is None, reason="there is one node")


@pytest.fixture(scope="module")
def other_client():
    with MongoClient(OTHER) as client:
        yield client


@pytest.fixture
def other(other_client, database):
    return other_client[database.name]


@pytest.mark.parametrize("turn", range(5))
def test_collections_are_the_same_on_both(database, other, turn):
    one, two = database["c"], other["c"]
    one.insert_one({"_id": 1})
    assert two.find_one({"_id": 1}) == {"_id": 1}
    two.insert_one({"_id": 2, "x": [3]})
    assert one.count_documents({}) == 2
    assert [found["_id"] for found in one.find({"x": 3})] == [2]
    one.create_index("x")
    assert "x_1" in two.index_information()
    assert other.list_collection_names() == ["c"]


@pytest.mark.parametrize("turn", range(5))
def test_a_collection_that_is_gone_is_gone_on_both(database, other, turn):
    one, two = database["c"], other["c"]
    one.insert_many([{"_id": n} for n in range(3)])
    assert two.count_documents({}) == 3
    one.drop()
    assert list(two.find()) == []
    assert two.count_documents({}) == 0
    assert other.list_collection_names() == []
    # A new one of the same name has nothing of the old one.
    two.insert_one({"_id": 9})
    assert list(one.find()) == [{"_id": 9}]
    two.drop()
    one.insert_one({"_id": 10})
    assert [found["_id"] for found in two.aggregate([{"$match": {}}])] == [10]


@pytest.mark.parametrize("turn", range(5))
def test_documents_that_a_node_lets_expire_are_gone_on_both(database, other, turn):
    one, two = database["c"], other["c"]
    long_ago = datetime.now(timezone.utc) - timedelta(hours=1)
    one.insert_one({"_id": 1, "at": long_ago})
    assert two.find_one() is not None
    one.create_index("at", expireAfterSeconds=60)
    assert two.find_one() is None
    assert two.count_documents({}) == 0
    assert two.find_one({"_id": 1}) is None
