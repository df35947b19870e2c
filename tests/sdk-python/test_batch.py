"""Several operations in one request, and what changed since the last look."""

import pytest
from azure.cosmos.exceptions import CosmosBatchOperationError


def item(id, **properties):
    return {"id": id, "pk": "p", **properties}


def test_a_batch_does_everything(container):
    container.create_item(item("old", n=1))
    results = container.execute_item_batch(
        [
            ("create", (item("new"),)),
            ("upsert", (item("old", n=2),)),
            ("patch", ("old", [{"op": "incr", "path": "/n", "value": 40}])),
            ("read", ("old",)),
            ("replace", ("new", item("new", n=1))),
            ("delete", ("new",)),
        ],
        partition_key="p",
    )
    assert [result["statusCode"] for result in results] == [201, 200, 200, 200, 200, 204]
    assert results[3]["resourceBody"]["n"] == 42
    assert [found["id"] for found in container.read_all_items()] == ["old"]


def test_a_batch_is_whole_or_not_at_all(container):
    container.create_item(item("taken"))
    with pytest.raises(CosmosBatchOperationError) as refused:
        container.execute_item_batch(
            [("create", (item("new"),)), ("create", (item("taken"),)), ("create", (item("never"),))],
            partition_key="p",
        )
    assert refused.value.error_index == 1
    assert [result["statusCode"] for result in refused.value.operation_responses] == [424, 409, 424]
    assert [found["id"] for found in container.read_all_items()] == ["taken"]


def test_an_expired_item_is_absent_in_a_batch(make_container, clock):
    container = make_container(default_ttl=10)
    container.create_item(item("1"))
    clock.advance(10)
    results = container.execute_item_batch([("create", (item("1"),)), ("read", ("1",))], partition_key="p")
    assert [result["statusCode"] for result in results] == [201, 200]


def test_the_change_feed_shows_each_item_once_and_no_expired_one(make_container, clock):
    container = make_container(default_ttl=10)
    container.create_item(item("first"))
    container.create_item(item("brief", ttl=2))
    container.create_item(item("second", n=1))
    container.upsert_item(item("second", n=2))
    clock.advance(2)
    changes = list(container.query_items_change_feed(start_time="Beginning"))
    assert [(change["id"], change.get("n")) for change in changes] == [("first", None), ("second", 2)]
    clock.advance(8)
    assert list(container.query_items_change_feed(start_time="Beginning")) == []


def test_the_change_feed_goes_on_where_it_was(container):
    container.create_item(item("1"))
    headers = {}
    list(
        container.query_items_change_feed(
            start_time="Beginning", response_hook=lambda answer, _: headers.update(answer)
        )
    )
    container.create_item(item("2"))
    rest = container.query_items_change_feed(continuation=headers["etag"])
    assert [change["id"] for change in rest] == ["2"]
