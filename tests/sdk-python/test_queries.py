"""Queries, with the rows and the counts they give when items expire between and during them."""

import pytest
from azure.cosmos.exceptions import CosmosHttpResponseError


@pytest.fixture
def people(container):
    for n, (name, age, city) in enumerate(
        [("Ada", 36, "London"), ("Alan", 41, "London"), ("Emmy", 53, "Göttingen"), ("Kurt", 71, "Wien")]
    ):
        container.create_item({"id": str(n), "pk": city, "name": name, "age": age, "tags": [name[0], city]})
    return container


def run(container, text, **options):
    options.setdefault("enable_cross_partition_query", True)
    return list(container.query_items(text, **options))


def test_everything(people):
    assert len(run(people, "SELECT * FROM c")) == 4


def test_filters_and_parameters(people):
    text = "SELECT VALUE c.name FROM c WHERE c.age >= @age AND c.pk = @city"
    parameters = [{"name": "@age", "value": 40}, {"name": "@city", "value": "London"}]
    assert run(people, text, parameters=parameters) == ["Alan"]


def test_one_partition(people):
    names = people.query_items("SELECT VALUE c.name FROM c", partition_key="London")
    assert sorted(names) == ["Ada", "Alan"]


@pytest.mark.parametrize("direction,names", [("ASC", ["Ada", "Alan", "Emmy", "Kurt"]), ("DESC", ["Kurt", "Emmy", "Alan", "Ada"])])
def test_order(people, direction, names):
    assert run(people, f"SELECT VALUE c.name FROM c ORDER BY c.age {direction}") == names


def test_top_and_offset(people):
    assert run(people, "SELECT TOP 2 VALUE c.name FROM c ORDER BY c.age") == ["Ada", "Alan"]
    assert run(people, "SELECT VALUE c.name FROM c ORDER BY c.age OFFSET 1 LIMIT 2") == ["Alan", "Emmy"]


def test_aggregates(people):
    assert run(people, "SELECT VALUE COUNT(1) FROM c") == [4]
    assert run(people, "SELECT VALUE SUM(c.age) FROM c") == [201]
    groups = run(people, "SELECT c.pk AS city, COUNT(1) AS n FROM c GROUP BY c.pk")
    assert sorted((group["city"], group["n"]) for group in groups) == [("Göttingen", 1), ("London", 2), ("Wien", 1)]
    assert sorted(run(people, "SELECT DISTINCT VALUE c.pk FROM c")) == ["Göttingen", "London", "Wien"]


def test_shapes_and_joins(people):
    rows = run(people, "SELECT c.name, {years: c.age} AS life, c.missing FROM c WHERE c.name = 'Ada'")
    assert rows == [{"name": "Ada", "life": {"years": 36}}]
    tags = run(people, "SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.name = 'Emmy'")
    assert tags == ["E", "Göttingen"]


def test_pages(people):
    pages = people.query_items(
        "SELECT VALUE c.age FROM c ORDER BY c.age", enable_cross_partition_query=True, max_item_count=3
    ).by_page()
    first = list(next(pages))
    assert first == [36, 41, 53]
    # Another request, perhaps another process: the token is all that is needed.
    rest = people.query_items(
        "SELECT VALUE c.age FROM c ORDER BY c.age", enable_cross_partition_query=True, max_item_count=3
    ).by_page(pages.continuation_token)
    assert [list(page) for page in rest] == [[71]]


def test_what_is_no_query_is_refused(people):
    with pytest.raises(CosmosHttpResponseError) as refused:
        run(people, "SELECT FROM WHERE")
    assert refused.value.status_code == 400


def test_rows_and_counts_leave_out_what_has_expired(make_container, clock):
    container = make_container(default_ttl=10)
    for n in range(6):
        container.create_item({"id": str(n), "pk": "p", "n": n} | ({"ttl": 5} if n % 2 else {}))
    texts = {
        "SELECT VALUE c.n FROM c": sorted,
        "SELECT VALUE c.n FROM c WHERE c.n >= 0": sorted,
        "SELECT VALUE c.n FROM c ORDER BY c.n": list,
        "SELECT VALUE COUNT(1) FROM c": list,
        "SELECT VALUE MAX(c.n) FROM c": list,
    }
    answers = lambda: [order(run(container, text)) for text, order in texts.items()]  # noqa: E731
    everyone, even = [0, 1, 2, 3, 4, 5], [0, 2, 4]
    clock.advance(4)
    assert answers() == [everyone, everyone, everyone, [6], [5]]
    clock.advance(1)
    assert answers() == [even, even, even, [3], [4]]
    clock.advance(5)
    assert run(container, "SELECT * FROM c") == []
    assert run(container, "SELECT VALUE COUNT(1) FROM c") == [0]
