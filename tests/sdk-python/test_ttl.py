"""Time to live: the rule, its boundaries, and what happens when it changes. Nothing here sleeps but the last test."""

import time

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceNotFoundError

MAX = 2147483647
OFF = None
INVALID = [0, -10, None, 2.5, "x", MAX + 1]


def there(container, id="1", key="p"):
    """Whether an item is there: the answers of a point read and of a list, which must agree."""
    try:
        container.read_item(id, key)
        by_read = True
    except CosmosResourceNotFoundError:
        by_read = False
    by_list = id in [item["id"] for item in container.read_all_items()]
    assert by_read == by_list
    return by_read


def set_default(database, container, default):
    return database.replace_container(container, PartitionKey(path="/pk"), default_ttl=default)


# What an item with some `ttl` (or none) does in a container with some default: its life in seconds, or for ever.
MATRIX = [
    (OFF, OFF, None),
    (OFF, -1, None),
    (OFF, 5, None),
    (-1, OFF, None),
    (-1, -1, None),
    (-1, 5, 5),
    (10, OFF, 10),
    (10, -1, None),
    (10, 5, 5),
    (10, 20, 20),
]


@pytest.mark.parametrize("default,own,life", MATRIX)
def test_the_rule(make_container, clock, default, own, life):
    container = make_container(default_ttl=default)
    item = {"id": "1", "pk": "p"} | ({} if own is OFF else {"ttl": own})
    assert container.create_item(item).get("ttl") == own
    if life is None:
        clock.advance(100 * 365 * 86400)
        assert there(container)
    else:
        clock.advance(life - 1)
        assert there(container)
        clock.advance(1)
        assert not there(container)


def test_the_longest_life(make_container, clock):
    container = make_container(default_ttl=MAX)
    container.create_item({"id": "1", "pk": "p"})
    clock.advance(MAX - 1)
    assert there(container)
    clock.advance(1)
    assert not there(container)


@pytest.mark.parametrize("default", [-1, OFF])
@pytest.mark.parametrize("ttl", INVALID)
def test_an_invalid_ttl_is_refused_whether_ttl_is_on_or_off(make_container, ttl, default):
    container = make_container(default_ttl=default)
    with pytest.raises(CosmosHttpResponseError) as refused:
        container.create_item({"id": "1", "pk": "p", "ttl": ttl})
    assert refused.value.status_code == 400
    assert "2147483647" in refused.value.message


def test_without_a_default_ttl_is_a_property_like_any_other(container):
    for n, ttl in enumerate([-1, 1, 2.0, MAX]):
        assert container.create_item({"id": str(n), "pk": "p", "ttl": ttl})["ttl"] == ttl


@pytest.mark.parametrize("default", [0, -10, 2.5, "x", MAX + 1])
def test_an_invalid_default_is_refused(make_container, default):
    with pytest.raises(CosmosHttpResponseError) as refused:
        make_container(default_ttl=default)
    assert refused.value.status_code == 400


def test_a_default_needs_an_index(make_container):
    with pytest.raises(CosmosHttpResponseError) as refused:
        make_container(default_ttl=60, indexing_policy={"indexingMode": "none", "automatic": False})
    assert refused.value.status_code == 400


def test_every_write_starts_the_countdown_anew(make_container, clock):
    container = make_container(default_ttl=10)
    container.create_item({"id": "1", "pk": "p", "n": 0})
    for write in (
        lambda: container.replace_item("1", {"id": "1", "pk": "p", "n": 1}),
        lambda: container.upsert_item({"id": "1", "pk": "p", "n": 2}),
        lambda: container.patch_item("1", "p", [{"op": "incr", "path": "/n", "value": 1}]),
    ):
        clock.advance(9)
        write()
    clock.advance(9)
    # Reading does not.
    assert there(container)
    clock.advance(1)
    assert not there(container)


def test_a_ttl_can_be_given_and_taken(make_container, clock):
    container = make_container(default_ttl=10)
    container.create_item({"id": "1", "pk": "p"})
    container.patch_item("1", "p", [{"op": "set", "path": "/ttl", "value": -1}])
    clock.advance(1000)
    assert there(container)
    container.patch_item("1", "p", [{"op": "remove", "path": "/ttl"}])
    clock.advance(9)
    assert there(container)
    clock.advance(1)
    assert not there(container)


def test_an_expired_item_is_in_nobodys_way(make_container, clock):
    unique = {"uniqueKeys": [{"paths": ["/name"]}]}
    container = make_container(default_ttl=10, unique_key_policy=unique)
    old = container.create_item({"id": "1", "pk": "p", "name": "a"})
    clock.advance(10)
    for act in (
        lambda: container.replace_item("1", {"id": "1", "pk": "p"}),
        lambda: container.delete_item("1", "p"),
        lambda: container.patch_item("1", "p", [{"op": "set", "path": "/a", "value": 1}]),
    ):
        with pytest.raises(CosmosResourceNotFoundError):
            act()
    # Its unique key is free for another item, and its id for a new one.
    container.create_item({"id": "2", "pk": "p", "name": "a"})
    new = container.create_item({"id": "1", "pk": "p", "name": "b"})
    assert new["_rid"] != old["_rid"] and new["_etag"] != old["_etag"]


def test_a_new_default_holds_for_items_that_are_there(database, make_container, clock):
    container = make_container()
    container.create_item({"id": "1", "pk": "p"})
    container.create_item({"id": "pinned", "pk": "p", "ttl": -1})
    clock.advance(100)
    set_default(database, container, 101)
    assert there(container)
    clock.advance(1)
    assert not there(container)
    assert there(container, "pinned")
    set_default(database, container, 1)
    assert there(container, "pinned")


@pytest.mark.parametrize("then", [OFF, -1, 1000])
def test_expiry_is_final(database, make_container, clock, then):
    container = make_container(default_ttl=10)
    container.create_item({"id": "default", "pk": "p"})
    container.create_item({"id": "own", "pk": "p", "ttl": 10})
    container.create_item({"id": "later", "pk": "p", "ttl": 500})
    clock.advance(10)
    set_default(database, container, then)
    assert not there(container, "default")
    assert not there(container, "own")
    assert there(container, "later")


def test_off_and_on_again(database, make_container, clock):
    container = make_container(default_ttl=-1)
    container.create_item({"id": "1", "pk": "p", "ttl": 10})
    set_default(database, container, OFF)
    assert "defaultTtl" not in container.read()
    clock.advance(100)
    assert there(container)
    set_default(database, container, -1)
    assert not there(container)


def test_the_deadline_can_be_read(make_container, clock):
    container = make_container(default_ttl=10)
    headers = {}
    created = container.create_item(
        {"id": "1", "pk": "p"}, response_hook=lambda answer, _: headers.update(answer)
    )
    assert int(headers["x-mayfly-expires-at"]) == created["_ts"] + 10


def test_in_real_time_and_on_disk(disk_database):
    container = disk_database.create_container("brief", PartitionKey(path="/pk"), default_ttl=2)
    created = container.create_item({"id": "1", "pk": "p"})
    container.create_item({"id": "pinned", "pk": "p", "ttl": -1})
    deadline = created["_ts"] + 2
    seen = []
    while time.time() < deadline + 1:
        before = time.time()
        visible = there_by_read(container)
        after = time.time()
        # An answer that cannot have been given on the other side of the deadline must be the right one.
        if after < deadline:
            assert visible
        if before >= deadline:
            assert not visible
        seen.append(visible)
        time.sleep(0.05)
    assert seen[0] and not seen[-1]
    assert there(container, "pinned")
    assert container.create_item({"id": "1", "pk": "p"})["_rid"] != created["_rid"]


def there_by_read(container):
    try:
        return bool(container.read_item("1", "p"))
    except CosmosResourceNotFoundError:
        return False
