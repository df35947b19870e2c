// Clients for both schemes, containers that clean up after themselves, and a clock that tests can move.
//
// Where the server is stands in the environment; `cargo xtask test clients` sets it.

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;

final class Harness {
    /** A test with a container of its own. */
    interface Use {
        void run(CosmosContainer container) throws Exception;
    }

    /** A test that sees to everything itself. */
    interface Plain {
        void run() throws Exception;
    }

    /** A test that moves the server's clock. */
    interface Timed {
        void run(Clock clock) throws Exception;
    }

    /** Moves the server's clock on. */
    interface Clock {
        void advance(long seconds) throws Exception;
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final AtomicInteger NAMES = new AtomicInteger();
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    private int passed;
    private int failed;

    static String setting(String name) {
        return Objects.requireNonNull(System.getenv(name), name + " is not set: run `cargo xtask test clients`");
    }

    /** Has Java trust the server's CA, and nothing else. */
    static void trustTheServer() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (FileInputStream pem = new FileInputStream(setting("MAYFLY_TEST_CA"))) {
            store.setCertificateEntry("mayfly", CertificateFactory.getInstance("X.509").generateCertificate(pem));
        }
        Path file = Files.createTempFile("mayfly", ".jks");
        file.toFile().deleteOnExit();
        try (FileOutputStream out = new FileOutputStream(file.toFile())) {
            store.store(out, "mayfly".toCharArray());
        }
        System.setProperty("javax.net.ssl.trustStore", file.toString());
        System.setProperty("javax.net.ssl.trustStorePassword", "mayfly");
    }

    static CosmosClient client(String endpoint) {
        return new CosmosClientBuilder()
            .endpoint(endpoint)
            .key(setting("MAYFLY_TEST_KEY"))
            .gatewayMode()
            .contentResponseOnWriteEnabled(true)
            .buildClient();
    }

    /** Runs a test over http and https, each with a fresh container. */
    void test(String name, Integer defaultTtl, int throughput, Use use) {
        for (String scheme : new String[] {"HTTP", "HTTPS"}) {
            test(name + " " + scheme, () -> withContainer(setting("MAYFLY_TEST_" + scheme), defaultTtl, throughput, use));
        }
    }

    private static void withContainer(String endpoint, Integer defaultTtl, int throughput, Use use) throws Exception {
        try (CosmosClient client = client(endpoint)) {
            String database = "java-" + ProcessHandle.current().pid() + "-" + NAMES.incrementAndGet();
            client.createDatabase(database);
            try {
                CosmosContainerProperties properties = new CosmosContainerProperties("c", "/pk");
                properties.setDefaultTimeToLiveInSeconds(defaultTtl);
                properties.getPartitionKeyDefinition().setVersion(PartitionKeyDefinitionVersion.V2);
                client.getDatabase(database)
                    .createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
                use.run(client.getDatabase(database).getContainer("c"));
            } finally {
                client.getDatabase(database).delete();
            }
        }
    }

    /** Runs a test and says how it went. */
    void test(String name, Plain test) {
        try {
            test.run();
            passed++;
            System.out.println("PASS " + name);
        } catch (Throwable problem) {
            failed++;
            System.out.println("FAIL " + name);
            problem.printStackTrace(System.out);
        }
    }

    /** Says how it went, and ends the program. */
    void end() {
        System.out.println("TOTAL " + passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }

    /** Stops the server's clock for a test. */
    static void withClock(Timed test) throws Exception {
        move("{\"freeze\":true}");
        try {
            test.run(seconds -> move("{\"advanceSeconds\":" + seconds + "}"));
        } finally {
            move("{\"freeze\":false}");
        }
    }

    private static void move(String change) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(setting("MAYFLY_TEST_HTTP") + "_mayfly/clock"))
            .header("authorization", "Bearer " + setting("MAYFLY_TEST_KEY"))
            .POST(HttpRequest.BodyPublishers.ofString(change))
            .build();
        same(HTTP.send(request, HttpResponse.BodyHandlers.ofString()).statusCode(), 200);
    }

    /** An item in partition `p`. */
    static ObjectNode item(String id) {
        return JSON.createObjectNode().put("id", id).put("pk", "p");
    }

    static boolean there(CosmosContainer container, String id) {
        try {
            container.readItem(id, new PartitionKey("p"), ObjectNode.class);
            return true;
        } catch (CosmosException missing) {
            same(missing.getStatusCode(), 404);
            return false;
        }
    }

    /** Fails unless the server refuses with this status. */
    static void refused(int status, Runnable request) {
        try {
            request.run();
        } catch (CosmosException answer) {
            same(answer.getStatusCode(), status);
            return;
        }
        throw new AssertionError("expected " + status + ", but it was done");
    }

    static void same(Object found, Object expected) {
        if (!Objects.equals(found, expected)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }
}
