// MongoDB's driver for Java against the same server: documents, transactions, change streams, time to live.

import com.mongodb.ErrorCategory;
import com.mongodb.MongoException;
import com.mongodb.MongoWriteException;
import com.mongodb.client.ChangeStreamIterable;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoChangeStreamCursor;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Accumulators;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.DeleteManyModel;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.FindOneAndUpdateOptions;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.ReplaceOneModel;
import com.mongodb.client.model.ReturnDocument;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.Updates;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.bson.BsonDocument;
import org.bson.Document;

final class Mongo {
    /** A test with a collection of its own. */
    interface Use {
        void run(MongoCollection<Document> collection, MongoClient client) throws Exception;
    }

    private static int names;

    private Mongo() {}

    static void test(Harness harness) {
        harness.test("mongo documents", () -> with(Mongo::documents));
        harness.test("mongo transactions", () -> with(Mongo::transactions));
        harness.test("mongo change stream", () -> with(Mongo::changeStream));
        harness.test("mongo time to live", () -> with(Mongo::timeToLive));
    }

    private static void with(Use use) throws Exception {
        try (MongoClient client = MongoClients.create(Harness.setting("MAYFLY_TEST_MONGO"))) {
            MongoDatabase database = client.getDatabase("java-mongo-" + ProcessHandle.current().pid() + "-" + ++names);
            try {
                database.createCollection("c");
                use.run(database.getCollection("c"), client);
            } finally {
                database.drop();
            }
        }
    }

    private static void documents(MongoCollection<Document> collection, MongoClient client) {
        collection.insertMany(List.of(
            new Document("_id", 1).append("n", 1).append("tags", List.of("a", "b")),
            new Document("_id", 2).append("n", 2L), new Document("_id", 3).append("n", 3.5)));
        try {
            collection.insertOne(new Document("_id", 1));
            throw new AssertionError("a second document with the same _id");
        } catch (MongoWriteException refused) {
            Harness.same(refused.getError().getCategory(), ErrorCategory.DUPLICATE_KEY);
        }
        Harness.same(collection.updateMany(Filters.lt("n", 3), Updates.inc("n", 10)).getModifiedCount(), 2L);
        FindOneAndUpdateOptions upsert = new FindOneAndUpdateOptions().upsert(true).returnDocument(ReturnDocument.AFTER);
        Harness.same(collection.findOneAndUpdate(Filters.eq(4), Updates.set("n", 40), upsert), new Document("_id", 4).append("n", 40));
        List<Integer> found = new ArrayList<>();
        collection.find().sort(Sorts.descending("n")).batchSize(2).forEach(document -> found.add(document.getInteger("_id")));
        Harness.same(found, List.of(4, 2, 1, 3));

        List<Document> groups = collection.aggregate(List.of(
            Aggregates.match(Filters.gt("n", 3)), Aggregates.group(null, Accumulators.sum("sum", "$n"), Accumulators.push("ids", "$_id"))))
            .into(new ArrayList<>());
        Harness.same(groups.get(0).get("sum"), 66.5);
        Harness.same(groups.get(0).getList("ids", Integer.class), List.of(1, 2, 3, 4));
        Harness.same(collection.bulkWrite(List.of(
            new InsertOneModel<>(new Document("_id", 5)), new ReplaceOneModel<>(Filters.eq(1), new Document("x", "grüße 🦋")),
            new DeleteManyModel<>(Filters.exists("n")))).getDeletedCount(), 3);
        Harness.same(collection.countDocuments(), 2L);
        Harness.same(collection.find(Filters.eq(1)).first().getString("x"), "grüße 🦋");
        refused(2, () -> collection.find(new Document("$nothing", 1)).first());
    }

    private static void transactions(MongoCollection<Document> collection, MongoClient client) {
        try (ClientSession session = client.startSession(); ClientSession other = client.startSession()) {
            session.withTransaction(() -> {
                collection.insertOne(session, new Document("_id", 1));
                Harness.same(collection.countDocuments(), 0L);
                return collection.insertOne(session, new Document("_id", 2));
            });
            Harness.same(collection.countDocuments(), 2L);

            session.startTransaction();
            collection.deleteMany(session, new Document());
            session.abortTransaction();
            Harness.same(collection.countDocuments(), 2L);

            // Who wrote first wins; the other may try again.
            session.startTransaction();
            other.startTransaction();
            collection.updateOne(session, Filters.eq(1), Updates.set("by", "first"));
            MongoException conflict = refused(112, () -> {
                collection.updateOne(other, Filters.eq(1), Updates.set("by", "second"));
                session.commitTransaction();
                other.commitTransaction();
            });
            Harness.same(conflict.hasErrorLabel(MongoException.TRANSIENT_TRANSACTION_ERROR_LABEL), true);
        }
    }

    private static void changeStream(MongoCollection<Document> collection, MongoClient client) {
        BsonDocument token;
        try (MongoChangeStreamCursor<ChangeStreamDocument<Document>> stream = collection.watch().cursor()) {
            collection.insertOne(new Document("_id", 1).append("n", 1));
            collection.updateOne(Filters.eq(1), Updates.set("n", 2));
            collection.deleteOne(Filters.eq(1));
            Harness.same(stream.next().getOperationType().getValue(), "insert");
            token = stream.getResumeToken();
            Harness.same(stream.next().getUpdateDescription().getUpdatedFields().getInt32("n").getValue(), 2);
        }
        ChangeStreamIterable<Document> resumed = collection.watch().resumeAfter(token);
        try (MongoChangeStreamCursor<ChangeStreamDocument<Document>> stream = resumed.cursor()) {
            Harness.same(stream.next().getOperationType().getValue(), "update");
            ChangeStreamDocument<Document> deleted = stream.next();
            Harness.same(deleted.getOperationType().getValue(), "delete");
            Harness.same(deleted.getDocumentKey().getInt32("_id").getValue(), 1);
        }
    }

    private static void timeToLive(MongoCollection<Document> collection, MongoClient client) throws Exception {
        Harness.withClock(clock -> {
            collection.createIndex(Indexes.ascending("_ts"), new IndexOptions().expireAfter(10L, TimeUnit.SECONDS));
            collection.insertMany(List.of(
                new Document("_id", 1), new Document("_id", 2).append("ttl", 5), new Document("_id", 3).append("ttl", 20L),
                new Document("_id", 4).append("ttl", -1)));
            long[][] steps = {{4, 4}, {1, 3}, {4, 3}, {1, 2}, {9, 2}, {1, 1}, {100L * 365 * 86400, 1}};
            for (long[] step : steps) {
                clock.advance(step[0]);
                Harness.same(collection.countDocuments(), step[1]);
            }
        });
    }

    /** Fails unless the server refuses with this code. */
    private static MongoException refused(int code, Runnable request) {
        try {
            request.run();
        } catch (MongoException answer) {
            Harness.same(answer.getCode(), code);
            return answer;
        }
        throw new AssertionError("expected error " + code + ", but it was done");
    }
}
