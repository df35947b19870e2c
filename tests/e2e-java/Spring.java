// Spring Data MongoDB against the same server: transactions that fail by a duplicate or by another's write, versions,
// time to live.

import com.mongodb.MongoBulkWriteException;
import com.mongodb.MongoException;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.springframework.dao.DataAccessException;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;
import org.springframework.data.mongodb.BulkOperationException;
import org.springframework.data.mongodb.MongoTransactionManager;
import org.springframework.data.mongodb.core.BulkOperations.BulkMode;
import org.springframework.data.mongodb.core.FindAndModifyOptions;
import org.springframework.data.mongodb.core.MongoOperations;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.data.mongodb.core.SimpleMongoClientDatabaseFactory;
import org.springframework.data.mongodb.core.convert.DefaultDbRefResolver;
import org.springframework.data.mongodb.core.convert.MappingMongoConverter;
import org.springframework.data.mongodb.core.convert.MongoCustomConversions;
import org.springframework.data.mongodb.core.index.IndexInfo;
import org.springframework.data.mongodb.core.index.Indexed;
import org.springframework.data.mongodb.core.mapping.Document;
import org.springframework.data.mongodb.core.mapping.MongoMappingContext;
import org.springframework.data.mongodb.core.query.Criteria;
import org.springframework.data.mongodb.core.query.Query;
import org.springframework.data.mongodb.core.query.Update;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionTemplate;

final class Spring {
    @Document static class Account {
        @Id String id;
        @Indexed(unique = true) String email;
        int balance;
        @Version Long version;

        Account() {}

        Account(String id, String email, int balance) {
            this.id = id;
            this.email = email;
            this.balance = balance;
        }
    }

    @Document static class Entry {
        @Id String id;
        int amount;

        Entry() {}

        Entry(String id, int amount) {
            this.id = id;
            this.amount = amount;
        }
    }

    @Document static class Visit {
        @Id String id;
        @Indexed(expireAfter = "10s") Instant at;

        Visit() {}

        Visit(String id, Instant at) {
            this.id = id;
            this.at = at;
        }
    }

    /** A database of its own, and transactions over it. */
    private record Store(MongoClient client, MongoTemplate template, TransactionTemplate transaction) {
        void inTransaction(Consumer<MongoTemplate> steps) {
            transaction.executeWithoutResult(status -> steps.accept(template));
        }

        long accounts() {
            return template.count(new Query(), Account.class);
        }
    }

    /** A test with a store. */
    private interface Use {
        void run(Store store) throws Exception;
    }

    private static int names;

    private Spring() {}

    static void test(Harness harness) {
        harness.test("spring transactions", () -> with(Spring::transactions));
        harness.test("spring duplicates", () -> with(Spring::duplicates));
        harness.test("spring duplicates in a session", () -> with(Spring::duplicatesInASession));
        harness.test("spring versions", () -> with(Spring::versions));
        harness.test("spring write conflicts", () -> with(Spring::writeConflicts));
        harness.test("spring time to live", () -> with(Spring::timeToLive));
    }

    private static void with(Use use) throws Exception {
        try (MongoClient client = MongoClients.create(Harness.setting("MAYFLY_TEST_MONGO"))) {
            String name = "java-spring-" + ProcessHandle.current().pid() + "-" + ++names;
            var factory = new SimpleMongoClientDatabaseFactory(client, name);
            var context = new MongoMappingContext();
            context.setAutoIndexCreation(true);
            context.setSimpleTypeHolder(new MongoCustomConversions(List.of()).getSimpleTypeHolder());
            var converter = new MappingMongoConverter(new DefaultDbRefResolver(factory), context);
            converter.afterPropertiesSet();
            var template = new MongoTemplate(factory, converter);
            try {
                use.run(new Store(client, template, new TransactionTemplate(new MongoTransactionManager(factory))));
            } finally {
                client.getDatabase(name).drop();
            }
        }
    }

    private static Query id(String id) {
        return new Query(Criteria.where("_id").is(id));
    }

    private static void transactions(Store store) {
        // The first of an entity makes its collection and its indexes, here in the middle of a transaction.
        store.inTransaction(template -> {
            template.insert(new Account("a", "a@x", 100));
            template.insertAll(List.of(new Account("b", "b@x", 0), new Entry("opened", 100)));
        });
        Harness.same(store.accounts(), 2L);
        List<IndexInfo> indexes = store.template().indexOps(Account.class).getIndexInfo();
        Harness.same(indexes.stream().filter(IndexInfo::isUnique).count(), 1L);
        store.inTransaction(template -> {
            template.updateFirst(id("a"), new Update().inc("balance", -30), Account.class);
            template.updateFirst(id("b"), new Update().inc("balance", 30), Account.class);
            template.insert(new Entry("moved", 30));
            Harness.same(template.findById("b", Account.class).balance, 30);
        });
        Harness.same(store.template().findById("a", Account.class).balance, 70);
        Harness.same(store.template().count(new Query(), Entry.class), 2L);
        try {
            store.inTransaction(template -> {
                template.remove(new Query(), Account.class);
                Harness.same(template.count(new Query(), Account.class), 0L);
                throw new IllegalStateException("as the test wants");
            });
            throw new AssertionError("the transaction went well");
        } catch (IllegalStateException expected) {
            Harness.same(store.accounts(), 2L);
        }
    }

    /** What a duplicate can come of. */
    private static final List<Consumer<MongoOperations>> DUPLICATES = List.of(
        template -> template.insert(new Account("a", "other@x", 0)),
        template -> template.insert(new Account("other", "a@x", 0)),
        template -> template.insertAll(List.of(new Account("other", "other@x", 0), new Account("another", "a@x", 0))),
        template -> template.updateFirst(id("b"), Update.update("email", "a@x"), Account.class),
        template -> template.upsert(id("other"), Update.update("email", "a@x"), Account.class),
        template -> template.findAndModify(
            id("b"), Update.update("email", "a@x"), FindAndModifyOptions.options().returnNew(true), Account.class),
        Spring::bulk);

    /** Spring has an exception of its own for these; its cause is the driver's. */
    private static void bulk(MongoOperations template) {
        try {
            template.bulkOps(BulkMode.ORDERED, Account.class)
                .insert(new Account("other", "other@x", 0)).insert(new Account("another", "a@x", 0)).execute();
        } catch (BulkOperationException refused) {
            throw new DuplicateKeyException(refused.getMessage(), refused.getCause());
        }
    }

    private static void furnish(Store store) {
        store.template().insert(new Account("a", "a@x", 1));
        store.template().insert(new Account("b", "b@x", 1));
    }

    /** A duplicate is told by the statement, nothing of the transaction stays, and the next one goes well. */
    private static void duplicates(Store store) {
        furnish(store);
        for (int n = 0; n < DUPLICATES.size(); n++) {
            Consumer<MongoOperations> duplicate = DUPLICATES.get(n);
            String name = "new " + n;
            try {
                store.inTransaction(template -> {
                    template.insert(new Account(name, name, 0));
                    refused(() -> duplicate.accept(template));
                });
                throw new AssertionError("the transaction was committed");
            } catch (DuplicateKeyException expected) {
                Harness.same(store.accounts(), 2L);
            }
            store.inTransaction(template -> template.insert(new Account(name, name, 0)));
            Harness.same(store.template().remove(id(name), Account.class).getDeletedCount(), 1L);
        }
        // Outside of transactions the same, but that what came before it stays.
        refused(() -> DUPLICATES.get(0).accept(store.template()), false);
        refused(() -> DUPLICATES.get(1).accept(store.template()), false);
        refused(() -> DUPLICATES.get(6).accept(store.template()), false);
        Harness.same(store.accounts(), 3L);
    }

    /** One session, whose transactions fail one after the other. */
    private static void duplicatesInASession(Store store) {
        furnish(store);
        try (ClientSession session = store.client().startSession()) {
            MongoOperations template = store.template().withSession(session);
            for (Consumer<MongoOperations> duplicate : DUPLICATES) {
                session.startTransaction();
                template.insert(new Entry("in between", 1));
                refused(() -> duplicate.accept(template), false);
                // The server has aborted it: whoever goes on all the same is told so, and may begin anew.
                MongoException over = failed(() -> template.insert(new Entry("after", 1)));
                Harness.same(over.getCode(), 251);
                Harness.same(over.hasErrorLabel(MongoException.TRANSIENT_TRANSACTION_ERROR_LABEL), true);
                session.abortTransaction();
                Harness.same(store.template().count(new Query(), Entry.class), 0L);
            }
            session.startTransaction();
            template.insert(new Entry("in between", 1));
            template.insert(new Account("c", "c@x", 1));
            session.commitTransaction();
        }
        Harness.same(store.accounts(), 3L);
    }

    /** The driver's error of a statement that fails. */
    private static MongoException failed(Runnable statement) {
        try {
            statement.run();
        } catch (DataAccessException failed) {
            return (MongoException) failed.getCause();
        }
        throw new AssertionError("it went well");
    }

    private static void refused(Runnable statement) {
        refused(statement, true);
    }

    /** Fails unless a statement is refused for a duplicate, and says that to whoever called. */
    private static void refused(Runnable statement, boolean isTold) {
        try {
            statement.run();
        } catch (DuplicateKeyException refused) {
            MongoException cause = (MongoException) refused.getCause();
            int code = cause instanceof MongoBulkWriteException bulk
                ? bulk.getWriteErrors().get(0).getCode() : cause.getCode();
            Harness.same(code, 11000);
            // To try again would not help.
            Harness.same(cause.hasErrorLabel(MongoException.TRANSIENT_TRANSACTION_ERROR_LABEL), false);
            Harness.same(cause.hasErrorLabel(MongoException.UNKNOWN_TRANSACTION_COMMIT_RESULT_LABEL), false);
            if (isTold) {
                throw refused;
            }
            return;
        }
        throw new AssertionError("a duplicate was taken");
    }

    private static void versions(Store store) {
        furnish(store);
        Account first = store.template().findById("a", Account.class);
        Account second = store.template().findById("a", Account.class);
        Account third = store.template().findById("a", Account.class);
        first.balance = 10;
        Harness.same(store.template().save(first).version, 1L);
        outdated(store, () -> store.template().save(second));
        outdated(store, () -> store.inTransaction(template -> {
            template.insert(new Entry("in between", 1));
            template.save(third);
        }));
        store.inTransaction(template -> {
            Account again = template.findById("a", Account.class);
            again.balance = 20;
            Harness.same(template.save(again).version, 2L);
        });
        Harness.same(store.template().findById("a", Account.class).balance, 20);
    }

    private static void outdated(Store store, Runnable save) {
        try {
            save.run();
        } catch (OptimisticLockingFailureException expected) {
            Harness.same(store.template().findById("a", Account.class).balance, 10);
            Harness.same(store.template().count(new Query(), Entry.class), 0L);
            return;
        }
        throw new AssertionError("an old version was saved");
    }

    /** Who comes second may try again: the error says so, and then it goes well. */
    private static void writeConflicts(Store store) {
        furnish(store);
        var other = new TransactionTemplate(store.transaction().getTransactionManager());
        other.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
        int attempts = 0;
        boolean isDone = false;
        while (!isDone) {
            boolean isFirst = attempts++ == 0;
            try {
                store.inTransaction(template -> {
                    int seen = template.findById("a", Account.class).balance;
                    if (isFirst) {
                        other.executeWithoutResult(
                            status -> template.updateFirst(id("a"), new Update().inc("balance", 1), Account.class));
                    }
                    template.updateFirst(id("a"), new Update().set("balance", seen + 100), Account.class);
                });
                isDone = true;
            } catch (DataAccessException conflict) {
                MongoException cause = (MongoException) conflict.getCause();
                Harness.same(cause.getCode(), 112);
                Harness.same(cause.hasErrorLabel(MongoException.TRANSIENT_TRANSACTION_ERROR_LABEL), true);
                Harness.same(isFirst, true);
            }
        }
        Harness.same(attempts, 2);
        Harness.same(store.template().findById("a", Account.class).balance, 102);

        // A value that another transaction has taken and not committed is a conflict, and a duplicate from then on.
        store.inTransaction(template -> {
            template.insert(new Account("c", "c@x", 0));
            MongoException conflict = failed(
                () -> other.executeWithoutResult(status -> template.insert(new Account("d", "c@x", 0))));
            Harness.same(conflict.getCode(), 112);
            Harness.same(conflict.hasErrorLabel(MongoException.TRANSIENT_TRANSACTION_ERROR_LABEL), true);
        });
        refused(() -> store.inTransaction(template -> template.insert(new Account("d", "c@x", 0))), false);

        // Several at once: each comes to its end, and none is lost.
        List<Thread> threads = IntStream.range(0, 4).mapToObj(n -> new Thread(() -> addTen(store))).toList();
        threads.forEach(Thread::start);
        threads.forEach(Spring::join);
        Harness.same(store.template().findById("b", Account.class).balance, 41);
    }

    private static void addTen(Store store) {
        for (int n = 0; n < 10;) {
            try {
                store.inTransaction(template -> {
                    Account account = template.findById("b", Account.class);
                    account.balance++;
                    template.save(account);
                });
                n++;
            } catch (DataAccessException conflict) {
                // By the server, or by the version if another was quicker.
                boolean isByVersion = conflict instanceof OptimisticLockingFailureException;
                boolean isTransient = conflict.getCause() instanceof MongoException cause
                    && cause.hasErrorLabel(MongoException.TRANSIENT_TRANSACTION_ERROR_LABEL);
                Harness.same(isByVersion || isTransient, true);
            }
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException stopped) {
            throw new AssertionError(stopped);
        }
    }

    private static void timeToLive(Store store) throws Exception {
        Harness.withClock(clock -> {
            // The server's time is not the machine's: tests have moved it.
            var hello = store.template().executeCommand(new org.bson.Document("hello", 1));
            Instant now = hello.getDate("localTime").toInstant();
            store.template().insert(new Visit("now", now));
            store.inTransaction(template -> template.insert(new Visit("later", now.plusSeconds(5))));
            List<Duration> lives = store.template().indexOps(Visit.class).getIndexInfo().stream()
                .flatMap(index -> index.getExpireAfter().stream()).toList();
            Harness.same(lives, List.of(Duration.ofSeconds(10)));
            long[][] steps = {{9, 2}, {2, 1}, {3, 1}, {2, 0}};
            for (long[] step : steps) {
                clock.advance(step[0]);
                Harness.same(store.template().count(new Query(), Visit.class), step[1]);
            }
        });
    }
}
