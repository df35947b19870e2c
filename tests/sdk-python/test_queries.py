"""Queries, with the rows and the counts they give when items expire between and during them."""

import pytest
from azure.cosmos import PartitionKey
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
    def pages(text, token=None):
        query = people.query_items(text, enable_cross_partition_query=True, max_item_count=3)
        return query.by_page(token)

    # The SDK merges what is sorted, as with the service, and has no token for that.
    assert [list(page) for page in pages("SELECT VALUE c.age FROM c ORDER BY c.age")] == [[36, 41, 53], [71]]
    begun = pages("SELECT VALUE c.age FROM c")
    first = list(next(begun))
    assert len(first) == 3
    # Another request, perhaps another process: the token is all that is needed.
    rest = [list(page) for page in pages("SELECT VALUE c.age FROM c", begun.continuation_token)]
    assert len(rest) == 1 and sorted(first + rest[0]) == [36, 41, 53, 71]


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


@pytest.fixture
def one_and_many(make_container):
    """The same items in a container of one partition key range and in one of seven."""
    containers = [make_container(offer_throughput=throughput) for throughput in (400, 40_000)]
    for container in containers:
        for n in range(40):
            container.create_item({"id": f"i{n}", "pk": f"p{n % 11}", "n": n % 17, "k": "abc"[n % 3]})
    return containers


@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE c.n FROM c ORDER BY c.n",
        "SELECT TOP 7 VALUE c.id FROM c ORDER BY c.id DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 5 LIMIT 9",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE AVG(c.n) FROM c",
        "SELECT VALUE MIN(c.n) FROM c",
        "SELECT VALUE MAX(c.id) FROM c",
        "SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n",
        "SELECT VALUE c.id FROM c WHERE c.pk = 'p3' ORDER BY c.id",
    ],
)
def test_several_ranges_give_the_rows_of_one(one_and_many, text):
    one, many = one_and_many
    assert run(many, text) == run(one, text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE c.id FROM c",
        "SELECT DISTINCT VALUE c.k FROM c",
        "SELECT c.k, COUNT(1) AS n, SUM(c.n) AS s FROM c GROUP BY c.k",
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.n FROM c)",
    ],
)
def test_several_ranges_give_the_rows_of_one_in_some_order(one_and_many, text):
    one, many = one_and_many
    assert sorted(map(str, run(many, text))) == sorted(map(str, run(one, text)))


def test_the_sdk_merges_only_values_of_aggregates(one_and_many):
    for container in one_and_many:
        with pytest.raises(CosmosHttpResponseError) as refusal:
            run(container, "SELECT COUNT(1) AS n FROM c")
        assert refusal.value.status_code == 400


def test_computed_properties(make_container):
    computed = [{"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}]
    container = make_container(computed_properties=computed)
    for n, name in enumerate(["Zoe", "ada", "BOB"]):
        container.create_item({"id": str(n), "pk": "p", "name": name})
    assert run(container, "SELECT VALUE c.lower FROM c ORDER BY c.lower") == ["ada", "bob", "zoe"]
    assert run(container, "SELECT VALUE c.name FROM c WHERE c.lower = 'bob'") == ["BOB"]
    assert all("lower" not in item for item in run(container, "SELECT * FROM c"))
    groups = run(container, "SELECT LEFT(c.lower, 1) AS k, COUNT(1) AS n FROM c GROUP BY c.lower")
    assert sorted(group["k"] for group in groups) == ["a", "b", "z"]


def test_a_wrong_computed_property_is_refused(make_container):
    with pytest.raises(CosmosHttpResponseError) as refusal:
        make_container(computed_properties=[{"name": "n", "query": "SELECT VALUE COUNT(1) FROM c"}])
    assert refusal.value.status_code == 400


def test_rows_without_an_order_come_as_they_were_made(make_container):
    container = make_container()
    ids = [f"{n * 7 % 30:02}" for n in range(30)]
    for n, id in enumerate(ids):
        container.create_item({"id": id, "pk": f"p{n % 4}", "n": n % 3})
    # A replaced item keeps its place; one that is made anew comes last.
    container.upsert_item({"id": ids[3], "pk": "p3", "n": 0})
    container.delete_item(ids[5], "p1")
    container.create_item({"id": ids[5], "pk": "p1", "n": 2})
    ids.append(ids.pop(5))
    assert [item["id"] for item in container.read_all_items(max_item_count=7)] == ids
    assert run(container, "SELECT VALUE c.id FROM c", max_item_count=7) == ids
    assert run(container, "SELECT VALUE c.id FROM c WHERE c.n >= 0", max_item_count=7) == ids
    assert run(container, "SELECT TOP 4 VALUE c.id FROM c WHERE c.id > '10'") == [id for id in ids if id > "10"][:4]


def test_languages_of_texts_are_known_by_number(make_container):
    policy = {"defaultLanguage": "1033", "fullTextPaths": [{"path": "/t", "language": "1033"}]}
    assert make_container(full_text_policy=policy).read()["fullTextPolicy"] == policy


def full_text(language):
    return {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/t", "language": language}]}


INDEXED = {"includedPaths": [{"path": "/*"}], "excludedPaths": [], "fullTextIndexes": [{"path": "/t"}]}


@pytest.mark.parametrize("indexing", [None, INDEXED])
def test_words_are_those_of_the_language_of_the_path(make_container, database, indexing):
    container = make_container(full_text_policy=full_text("de-DE"), indexing_policy=indexing)
    texts = ["Die Häuser der Stadt", "Ein Haus am See", "Der See"]
    for n, text in enumerate(texts):
        container.create_item({"id": str(n), "pk": "a", "t": text, "other": text})
    find = lambda path, word: run(container, f"SELECT VALUE c.id FROM c WHERE FullTextContains(c.{path}, '{word}')")
    assert find("t", "Häusern") == ["0", "1"] and find("t", "der") == []
    assert find("other", "Haus") == ["1"] and find("other", "der") == ["0", "2"]
    best = run(container, "SELECT TOP 1 c.id FROM c ORDER BY RANK FullTextScore(c.t, 'Häuser', 'See')")
    assert best == [{"id": "1"}]
    # Another language makes other words of the same texts.
    database.replace_container(container, partition_key=PartitionKey("/pk"), full_text_policy=full_text("en-US"), indexing_policy=indexing)
    assert find("t", "Haus") == ["1"] and find("t", "der") == ["0", "2"]


@pytest.mark.parametrize("kind", ["flat", "quantizedFlat", "diskANN"])
def test_vectors_are_measured_as_the_policy_says(make_container, kind):
    embedding = {"path": "/v", "dataType": "float32", "dimensions": 2, "distanceFunction": "euclidean"}
    container = make_container(
        vector_embedding_policy={"vectorEmbeddings": [embedding]},
        indexing_policy={"includedPaths": [{"path": "/*"}], "vectorIndexes": [{"path": "/v", "type": kind}]},
    )
    for n, vector in enumerate([[9, 9], [1, 1], [4, 5]]):
        container.create_item({"id": str(n), "pk": "p", "v": vector})
    text = "SELECT TOP 2 c.id, VectorDistance(c.v, [1, 2]) AS d FROM c ORDER BY VectorDistance(c.v, [1, 2])"
    assert [(row["id"], round(row["d"], 3)) for row in run(container, text)] == [("1", 1.0), ("2", 4.243)]


def test_index_metrics_and_explanation(people):
    text = "SELECT * FROM c WHERE c.age > 40 AND c.name = 'Alan' ORDER BY c.age"
    headers = {}
    rows = run(people, text, populate_index_metrics=True, response_hook=lambda given, _: headers.update(given))
    assert len(rows) == 1
    metrics = headers["x-ms-cosmos-index-utilization"]
    used = {index["IndexSpec"]: index["FilterExpression"] for index in metrics["UtilizedSingleIndexes"]}
    assert used["/name/?"] == '(ROOT.name = "Alan")'
    assert "/age/?" in used and metrics["PotentialSingleIndexes"] == []
