"""Items one at a time: every operation, and what it says when it cannot be done."""

import pytest
from azure.core import MatchConditions
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)


def item(id="1", **properties):
    return {"id": id, "pk": "p", **properties}


def test_what_is_written_is_read(container):
    values = {
        "text": "grüße \U0001f98b",
        "numbers": [0, -1, 2.5, 1e300, 2**53 - 1],
        "nothing": None,
        "nested": {"a": [{"b": True}, []], "": "an empty name"},
    }
    created = container.create_item(item(**values))
    found = container.read_item("1", "p")
    for name, value in values.items():
        assert found[name] == value
    assert found["_etag"] == created["_etag"]
    assert found["_rid"] and found["_self"] and found["_ts"]


def test_the_sdk_makes_an_id_if_asked(container):
    created = container.create_item({"pk": "p"}, enable_automatic_id_generation=True)
    assert container.read_item(created["id"], "p")["id"] == created["id"]


def test_a_second_create_is_refused(container):
    container.create_item(item())
    with pytest.raises(CosmosResourceExistsError):
        container.create_item(item())
    # The id is taken in its partition only.
    container.create_item({"id": "1", "pk": "other"})


def test_what_is_not_there_is_not_found(container):
    for act in (
        lambda: container.read_item("1", "p"),
        lambda: container.replace_item("1", item()),
        lambda: container.delete_item("1", "p"),
        lambda: container.patch_item("1", "p", [{"op": "set", "path": "/a", "value": 1}]),
    ):
        with pytest.raises(CosmosResourceNotFoundError):
            act()


def test_replace_and_upsert(container):
    first = container.upsert_item(item(n=1))
    second = container.upsert_item(item(n=2))
    third = container.replace_item("1", item(n=3))
    assert len({first["_etag"], second["_etag"], third["_etag"]}) == 3
    assert first["_rid"] == second["_rid"] == third["_rid"]
    assert container.read_item("1", "p")["n"] == 3


def test_delete(container):
    container.create_item(item())
    container.delete_item("1", "p")
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("1", "p")
    assert container.create_item(item())["id"] == "1"


def test_patch(container):
    container.create_item(item(n=1, list=[1, 3], old="x"))
    patched = container.patch_item(
        "1",
        "p",
        [
            {"op": "add", "path": "/list/1", "value": 2},
            {"op": "set", "path": "/set", "value": {"deep": True}},
            {"op": "replace", "path": "/old", "value": "y"},
            {"op": "incr", "path": "/n", "value": 41},
            {"op": "move", "from": "/old", "path": "/new"},
            {"op": "remove", "path": "/list/0"},
        ],
    )
    assert (patched["n"], patched["list"], patched["new"]) == (42, [2, 3], "y")
    assert patched["set"] == {"deep": True} and "old" not in patched


def test_a_patch_is_whole_or_not_at_all(container):
    container.create_item(item(n=1))
    with pytest.raises(CosmosHttpResponseError) as refused:
        container.patch_item(
            "1", "p", [{"op": "incr", "path": "/n", "value": 1}, {"op": "remove", "path": "/missing"}]
        )
    assert refused.value.status_code == 400
    assert container.read_item("1", "p")["n"] == 1


def test_a_stale_etag_is_refused(container):
    stale = container.create_item(item(n=1))["_etag"]
    container.replace_item("1", item(n=2))
    condition = {"etag": stale, "match_condition": MatchConditions.IfNotModified}
    for act in (
        lambda: container.replace_item("1", item(n=3), **condition),
        lambda: container.upsert_item(item(n=3), **condition),
        lambda: container.delete_item("1", "p", **condition),
        lambda: container.patch_item("1", "p", [{"op": "incr", "path": "/n", "value": 1}], **condition),
    ):
        with pytest.raises(CosmosAccessConditionFailedError):
            act()
    current = container.read_item("1", "p")
    assert current["n"] == 2
    container.replace_item(
        "1", item(n=3), etag=current["_etag"], match_condition=MatchConditions.IfNotModified
    )


def test_read_all_goes_through_all_pages(container):
    for n in range(25):
        container.create_item({"id": str(n), "pk": str(n % 3)})
    pages = container.read_all_items(max_item_count=10).by_page()
    sizes = [len(list(page)) for page in pages]
    assert sum(sizes) == 25 and len(sizes) >= 3
    assert {found["id"] for found in container.read_all_items()} == {str(n) for n in range(25)}
