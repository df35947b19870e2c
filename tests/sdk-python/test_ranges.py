"""Partition key ranges: how many there are, and what goes on while they split."""

import pytest


def ids(items):
    return sorted(item["id"] for item in items)


def filled(container, count=60):
    for n in range(count):
        container.create_item({"id": f"i{n}", "pk": f"p{n % 23}", "n": n % 17})
    return sorted(f"i{n}" for n in range(count))


@pytest.mark.parametrize("throughput, count", [(400, 1), (6000, 1), (11_000, 2), (25_000, 5)])
def test_a_container_has_a_range_for_each_6000_units_that_are_begun(make_container, throughput, count):
    assert len(list(make_container(offer_throughput=throughput).read_feed_ranges())) == count


@pytest.mark.parametrize(
    "query",
    ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.n", "SELECT * FROM c WHERE c.n > 3 ORDER BY c.n DESC, c.id DESC"],
)
@pytest.mark.parametrize("before, after", [(400, 25_000), (11_000, 35_000)])
def test_a_query_goes_on_while_ranges_split(make_container, query, before, after):
    policy = {"compositeIndexes": [[{"path": "/n", "order": "descending"}, {"path": "/id", "order": "descending"}]]}
    container = make_container(offer_throughput=before, indexing_policy=policy)
    filled(container)
    whole = list(container.query_items(query, enable_cross_partition_query=True))
    pages = container.query_items(query, enable_cross_partition_query=True, max_item_count=7).by_page()
    rows = list(next(pages)) + list(next(pages))
    container.replace_throughput(after)
    for page in pages:
        rows.extend(page)
    if "ORDER BY" in query:
        # This SDK reads the ranges that came of a range from their beginning where it sorts, so rows may come twice.
        rows = {row["id"]: row for row in rows}.values()
    assert ids(rows) == ids(whole)


def test_a_change_feed_goes_on_in_the_ranges_that_came_of_its_own(make_container):
    container = make_container(offer_throughput=400)
    expected = filled(container, 30)
    feed = container.query_items_change_feed(start_time="Beginning", max_item_count=5).by_page()
    seen = list(next(feed)) + list(next(feed))
    continuation = container.client_connection.last_response_headers["etag"]
    container.replace_throughput(25_000)
    container.create_item({"id": "new", "pk": "new"})
    seen += container.query_items_change_feed(continuation=continuation)
    assert ids(seen) == sorted([*expected, "new"])
    continuation = container.client_connection.last_response_headers["etag"]
    assert list(container.query_items_change_feed(continuation=continuation)) == []
    container.upsert_item({"id": "i3", "pk": "p3"})
    assert ids(container.query_items_change_feed(continuation=continuation)) == ["i3"]


def test_feed_ranges_of_before_a_split_name_the_same_items(make_container):
    container = make_container(offer_throughput=11_000)
    expected = filled(container)
    before = list(container.read_feed_ranges())
    container.replace_throughput(45_000)
    assert len(list(container.read_feed_ranges(force_refresh=True))) == 5
    for read in (
        lambda feed_range: container.query_items("SELECT * FROM c", feed_range=feed_range),
        lambda feed_range: container.query_items_change_feed(feed_range=feed_range, start_time="Beginning"),
    ):
        parts = [list(read(feed_range)) for feed_range in before]
        assert all(parts)
        assert ids(sum(parts, [])) == expected


def test_items_are_read_and_written_over_a_split_in_one_session(make_container):
    container = make_container(offer_throughput=400)
    filled(container, 20)
    container.replace_throughput(25_000)
    for n in range(20):
        item = container.read_item(f"i{n}", f"p{n}")
        container.replace_item(item, {**item, "seen": True})
    found = container.read_items([(f"i{n}", f"p{n}") for n in range(20)])
    assert len(found) == 20 and all(item["seen"] for item in found)
    # Fewer units merge nothing.
    container.replace_throughput(400)
    assert len(list(container.read_feed_ranges(force_refresh=True))) == 3
