// The Java SDK of Azure Cosmos DB in gateway mode against a running Mayfly: items, batches, queries, feeds, time to live.

import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedOperationType;
import com.azure.cosmos.models.ChangeFeedProcessorItem;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

final class Main {
    private static final PartitionKey P = new PartitionKey("p");
    private static final long CENTURY_SECONDS = 100L * 365 * 86400;

    public static void main(String[] arguments) throws Exception {
        Harness.trustTheServer();
        // The SDK refuses plain connections unless told otherwise; a test of both schemes needs them.
        System.setProperty("COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "true");
        Harness harness = new Harness();
        harness.test("items", null, 400, Main::items);
        harness.test("batch", null, 400, Main::batch);
        harness.test("bulk", null, 400, Main::bulk);
        harness.test("queries", null, 400, Main::queries);
        harness.test("change feed", null, 400, Main::changeFeed);
        harness.test("processor of latest versions", Main::latestVersions);
        harness.test("several ranges", null, 20_000, Main::severalRanges);
        harness.test("time to live", 10, 400, Main::timeToLive);
        harness.test("default is changed", null, 400, Main::defaultIsChanged);
        harness.test("invalid time to live", -1, 400, Main::invalidTimeToLive);
        Mongo.test(harness);
        Spring.test(harness);
        harness.end();
    }

    private static void items(CosmosContainer container) {
        CosmosItemResponse<ObjectNode> created = container.createItem(Harness.item("1").put("n", 1).put("text", "grüße 🦋"));
        Harness.same(created.getStatusCode(), 201);
        Harness.refused(409, () -> container.createItem(Harness.item("1")));

        CosmosItemResponse<ObjectNode> read = container.readItem("1", P, ObjectNode.class);
        Harness.same(read.getItem().get("text").asText(), "grüße 🦋");
        Harness.same(read.getETag(), created.getETag());

        container.replaceItem(Harness.item("1").put("n", 2), "1", P, null);
        CosmosItemRequestOptions stale = new CosmosItemRequestOptions().setIfMatchETag(created.getETag());
        Harness.refused(412, () -> container.deleteItem("1", P, stale));

        CosmosPatchOperations operations = CosmosPatchOperations.create().increment("/n", 40).set("/deep", true);
        ObjectNode patched = container.patchItem("1", P, operations, ObjectNode.class).getItem();
        Harness.same(patched.get("n").asInt(), 42);
        Harness.same(container.upsertItem(Harness.item("2")).getStatusCode(), 201);
        Harness.same(container.deleteItem("1", P, null).getStatusCode(), 204);
        Harness.same(Harness.there(container, "1"), false);
        Harness.same(Harness.there(container, "2"), true);
    }

    private static void batch(CosmosContainer container) {
        container.createItem(Harness.item("old"));
        CosmosBatch good = CosmosBatch.createCosmosBatch(P);
        good.createItemOperation(Harness.item("new"));
        good.readItemOperation("old");
        Harness.same(container.executeCosmosBatch(good).isSuccessStatusCode(), true);

        CosmosBatch bad = CosmosBatch.createCosmosBatch(P);
        bad.deleteItemOperation("new");
        bad.createItemOperation(Harness.item("old"));
        CosmosBatchResponse answer = container.executeCosmosBatch(bad);
        Harness.same(answer.isSuccessStatusCode(), false);
        Harness.same(answer.getResults().get(0).getStatusCode(), 424);
        Harness.same(answer.getResults().get(1).getStatusCode(), 409);
        Harness.same(Harness.there(container, "new"), true);
    }

    private static void bulk(CosmosContainer container) {
        List<CosmosItemOperation> operations = new ArrayList<>();
        for (int n = 0; n < 250; n++) {
            ObjectNode item = Harness.item("" + n).put("pk", "p" + n % 7);
            operations.add(CosmosBulkOperations.getCreateItemOperation(item, new PartitionKey("p" + n % 7)));
        }
        int created = 0;
        for (var answer : container.executeBulkOperations(operations)) {
            created += answer.getResponse().getStatusCode() == 201 ? 1 : 0;
        }
        Harness.same(created, 250);
    }

    private static void queries(CosmosContainer container) {
        for (int n = 0; n < 25; n++) {
            container.createItem(Harness.item("" + n).put("pk", "p" + n % 5).put("n", n));
        }
        CosmosQueryRequestOptions within = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("p3"));
        SqlQuerySpec query = new SqlQuerySpec(
            "SELECT VALUE c.n FROM c WHERE c.n > @n ORDER BY c.n DESC", new SqlParameter("@n", 5));
        Harness.same(container.queryItems(query, within, Integer.class).stream().toList(), List.of(23, 18, 13, 8));
        Harness.same(rows(container, "SELECT VALUE c.n FROM c WHERE c.n < 4 ORDER BY c.n"), List.of(0, 1, 2, 3));
        Harness.same(rows(container, "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 10"), List.of(15));
        Harness.same(rows(container, "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC"), List.of(24, 23, 22));
        Harness.same(rows(container, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 2 LIMIT 3"), List.of(2, 3, 4));
        Harness.same(rows(container, "SELECT DISTINCT VALUE c.pk FROM c", String.class).size(), 5);
        Harness.same(rows(container, "SELECT VALUE MAX(c.n) FROM c"), List.of(24));
        Harness.same(rows(container, "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk", ObjectNode.class).size(), 5);
        SqlQuerySpec byNull = new SqlQuerySpec("SELECT VALUE c.n FROM c WHERE c.x = @x", new SqlParameter("@x", null));
        container.createItem(Harness.item("null").put("n", 99).putNull("x"));
        Harness.same(
            container.queryItems(byNull, new CosmosQueryRequestOptions(), Integer.class).stream().toList(), List.of(99));
        container.deleteItem("null", P, null);

        int rows = 0;
        for (FeedResponse<ObjectNode> page :
            container.queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), ObjectNode.class).iterableByPage(4)) {
            Harness.same(page.getResults().size() <= 4, true);
            rows += page.getResults().size();
        }
        Harness.same(rows, 25);
        List<CosmosItemIdentity> some = List.of(
            new CosmosItemIdentity(new PartitionKey("p3"), "3"), new CosmosItemIdentity(new PartitionKey("p4"), "4"));
        Harness.same(container.readMany(some, ObjectNode.class).getResults().size(), 2);
    }

    private static List<Integer> rows(CosmosContainer container, String query) {
        return rows(container, query, Integer.class);
    }

    private static <T> List<T> rows(CosmosContainer container, String query, Class<T> type) {
        return container.queryItems(query, new CosmosQueryRequestOptions(), type).stream().toList();
    }

    private static void changeFeed(CosmosContainer container) {
        for (int n = 0; n < 10; n++) {
            container.createItem(Harness.item("" + n).put("pk", "" + n));
        }
        Changes first = changes(container, CosmosChangeFeedRequestOptions
            .createForProcessingFromBeginning(FeedRange.forFullRange()).setMaxItemCount(4));
        Harness.same(first.ids, List.of("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"));
        container.upsertItem(Harness.item("3").put("pk", "3"));
        Changes second = changes(container, CosmosChangeFeedRequestOptions
            .createForProcessingFromContinuation(first.continuation));
        Harness.same(second.ids, List.of("3"));
    }

    /** What the SDK's processor of latest versions reads: each item in an envelope with its metadata. */
    private static void latestVersions() throws Exception {
        CosmosAsyncClient client = new CosmosClientBuilder()
            .endpoint(Harness.setting("MAYFLY_TEST_HTTP"))
            .key(Harness.setting("MAYFLY_TEST_KEY"))
            .gatewayMode()
            .contentResponseOnWriteEnabled(true)
            .buildAsyncClient();
        CosmosAsyncDatabase database = client.getDatabase("java-processor-" + ProcessHandle.current().pid());
        try {
            client.createDatabase(database.getId()).block();
            database.createContainer("feed", "/pk").block();
            database.createContainer("leases", "/id").block();
            CosmosAsyncContainer feed = database.getContainer("feed");
            for (int n = 0; n < 10; n++) {
                feed.createItem(Harness.item("" + n).put("n", n)).block();
            }
            feed.upsertItem(Harness.item("0").put("n", 100)).block();
            ConcurrentHashMap<String, ChangeFeedProcessorItem> seen = new ConcurrentHashMap<>();
            CountDownLatch all = new CountDownLatch(10);
            ChangeFeedProcessor processor = new ChangeFeedProcessorBuilder()
                .hostName("host")
                .feedContainer(feed)
                .leaseContainer(database.getContainer("leases"))
                .options(new ChangeFeedProcessorOptions().setStartFromBeginning(true).setFeedPollDelay(Duration.ofMillis(100)))
                .handleLatestVersionChanges(items -> items.forEach(item -> {
                    if (seen.put(item.getCurrent().get("id").asText(), item) == null) {
                        all.countDown();
                    }
                }))
                .buildChangeFeedProcessor();
            processor.start().block();
            try {
                Harness.same(all.await(60, TimeUnit.SECONDS), true);
            } finally {
                processor.stop().block();
            }
            Harness.same(seen.get("0").getCurrent().get("n").asInt(), 100);
            Harness.same(seen.get("0").getChangeFeedMetaData().getOperationType(), ChangeFeedOperationType.REPLACE);
            Harness.same(seen.get("1").getChangeFeedMetaData().getOperationType(), ChangeFeedOperationType.CREATE);
            Harness.same(seen.get("1").getChangeFeedMetaData().getLogSequenceNumber() > 0, true);
        } finally {
            database.delete().block();
            client.close();
        }
    }

    private record Changes(List<String> ids, String continuation) {}

    private static Changes changes(CosmosContainer container, CosmosChangeFeedRequestOptions options) {
        List<String> ids = new ArrayList<>();
        String continuation = null;
        for (FeedResponse<ObjectNode> page : container.queryChangeFeed(options, ObjectNode.class).iterableByPage()) {
            page.getResults().forEach(item -> ids.add(item.get("id").asText()));
            continuation = page.getContinuationToken();
        }
        return new Changes(ids, continuation);
    }

    private static void severalRanges(CosmosContainer container) {
        Set<String> expected = new TreeSet<>();
        for (int n = 0; n < 40; n++) {
            container.createItem(Harness.item("" + n).put("pk", "" + n).put("n", n));
            expected.add("" + n);
        }
        Set<String> seen = new TreeSet<>();
        List<FeedRange> ranges = container.getFeedRanges();
        // One for each started 6,000 RU/s.
        Harness.same(ranges.size(), 4);
        for (FeedRange range : ranges) {
            List<String> ids =
                changes(container, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range)).ids;
            Harness.same(ids.isEmpty() || ids.size() == 40, false);
            seen.addAll(ids);
        }
        Harness.same(seen, expected);
        Harness.same(
            changes(container, CosmosChangeFeedRequestOptions
                .createForProcessingFromBeginning(FeedRange.forFullRange())).ids.size(), 40);
        Harness.same(
            container.queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), ObjectNode.class).stream().count(), 40L);
    }

    private static void timeToLive(CosmosContainer container) throws Exception {
        Harness.withClock(clock -> {
            container.createItem(Harness.item("default"));
            container.createItem(Harness.item("shorter").put("ttl", 5));
            container.createItem(Harness.item("longer").put("ttl", 20));
            container.createItem(Harness.item("never").put("ttl", -1));
            clock.advance(4);
            alive(container, "default", "longer", "never", "shorter");
            clock.advance(1);
            alive(container, "default", "longer", "never");
            clock.advance(5);
            alive(container, "longer", "never");
            clock.advance(9);
            alive(container, "longer", "never");
            clock.advance(1);
            alive(container, "never");
            clock.advance(CENTURY_SECONDS);
            alive(container, "never");
            Harness.same(container.createItem(Harness.item("default")).getStatusCode(), 201);
        });
    }

    private static void alive(CosmosContainer container, String... ids) {
        Set<String> expected = new TreeSet<>(List.of(ids));
        for (String id : List.of("default", "longer", "never", "shorter")) {
            Harness.same(Harness.there(container, id), expected.contains(id));
        }
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions();
        Set<String> found = new TreeSet<>(
            container.queryItems("SELECT VALUE c.id FROM c", options, String.class).stream().toList());
        Harness.same(found, expected);
        Harness.same(rows(container, "SELECT VALUE COUNT(1) FROM c"), List.of(ids.length));
    }

    private static void defaultIsChanged(CosmosContainer container) throws Exception {
        Harness.withClock(clock -> {
            container.createItem(Harness.item("1"));
            clock.advance(100);
            CosmosContainerProperties definition = container.read().getProperties();
            container.replace(definition.setDefaultTimeToLiveInSeconds(101));
            Harness.same(Harness.there(container, "1"), true);
            clock.advance(1);
            Harness.same(Harness.there(container, "1"), false);
        });
    }

    private static void invalidTimeToLive(CosmosContainer container) {
        for (int ttl : new int[] {0, -10}) {
            Harness.refused(400, () -> container.createItem(Harness.item("1").put("ttl", ttl)));
        }
        Harness.refused(400, () -> container.createItem(Harness.item("1").put("ttl", "x")));
        Harness.refused(400, () -> container.createItem(Harness.item("1").put("ttl", 2.5)));
        Harness.refused(400, () -> container.createItem(Harness.item("1").putNull("ttl")));
    }
}
