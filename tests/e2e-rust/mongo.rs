//! MongoDB's driver for Rust against a running Mayfly: documents, transactions, change streams, time to live.

use std::time::Duration;

use mayfly_e2e::{Clock, code, with_collection};
use mongodb::{
    IndexModel,
    bson::{Document, doc},
    change_stream::event::OperationType,
    error::TRANSIENT_TRANSACTION_ERROR,
    options::{FullDocumentType, IndexOptions, ReturnDocument},
};

#[test]
fn documents() {
    with_collection(|_, collection| {
        let documents =
            [doc! { "_id": 1, "n": 1, "tags": ["a", "b"] }, doc! { "_id": 2, "n": 2_i64 }, doc! { "_id": 3, "n": 3.5 }];
        collection.insert_many(documents).run().expect("inserts");
        let again = collection.insert_one(doc! { "_id": 1 }).run().expect_err("a second document with the same _id");
        assert_eq!(code(&again), Some(11000));

        let changed = collection.update_many(doc! { "n": { "$lt": 3 } }, doc! { "$inc": { "n": 10 } }).run();
        assert_eq!(changed.expect("an update").modified_count, 2);
        let upsert = collection.find_one_and_update(doc! { "_id": 4 }, doc! { "$set": { "n": 40 } });
        let after = upsert.upsert(true).return_document(ReturnDocument::After).run().expect("an upsert");
        assert_eq!(after, Some(doc! { "_id": 4, "n": 40 }));

        let found = collection.find(doc! {}).sort(doc! { "n": -1 }).batch_size(1).run().expect("a cursor");
        let ids: Vec<_> = found.map(|found| found.expect("a document").get_i32("_id").expect("an id")).collect();
        assert_eq!(ids, [4, 2, 1, 3]);
        let sum = [doc! { "$match": { "n": { "$gt": 3 } } }, doc! { "$group": { "_id": null, "sum": { "$sum": "$n" } } }];
        let sums: Vec<Document> = collection.aggregate(sum).run().expect("a cursor").map(|found| found.expect("a group")).collect();
        assert_eq!(sums, [doc! { "_id": null, "sum": 66.5 }]);

        let gone = collection.delete_many(doc! { "n": { "$exists": true } }).run().expect("a delete");
        assert_eq!(gone.deleted_count, 4);
        let refused = collection.find(doc! { "$nothing": 1 }).run().err().expect("an unknown operator");
        assert_eq!(code(&refused), Some(2));
    });
}

#[test]
fn transactions() {
    with_collection(|client, collection| {
        let count = || collection.count_documents(doc! {}).run().expect("a count");
        let mut session = client.start_session().run().expect("a session");
        session.start_transaction().run().expect("a transaction");
        collection.insert_one(doc! { "_id": 1 }).session(&mut session).run().expect("an insert");
        assert_eq!(count(), 0);
        session.commit_transaction().run().expect("a commit");
        assert_eq!(count(), 1);

        session.start_transaction().run().expect("a transaction");
        collection.delete_many(doc! {}).session(&mut session).run().expect("a delete");
        session.abort_transaction().run().expect("an end");
        assert_eq!(count(), 1);

        // Who wrote first wins; the other may try again.
        let mut other = client.start_session().run().expect("a session");
        session.start_transaction().run().expect("a transaction");
        other.start_transaction().run().expect("a transaction");
        let first = collection.update_one(doc! { "_id": 1 }, doc! { "$set": { "by": "first" } });
        first.session(&mut session).run().expect("the first write");
        let second = collection.update_one(doc! { "_id": 1 }, doc! { "$set": { "by": "second" } });
        let conflict = second.session(&mut other).run().err().or_else(|| {
            session.commit_transaction().run().expect("the first commit");
            other.commit_transaction().run().err()
        });
        let conflict = conflict.expect("the second is refused");
        assert_eq!(code(&conflict), Some(112));
        assert!(conflict.contains_label(TRANSIENT_TRANSACTION_ERROR));
    });
}

#[test]
fn change_stream() {
    with_collection(|_, collection| {
        let watched = collection.watch().full_document(FullDocumentType::UpdateLookup).run();
        let mut stream = watched.expect("a stream");
        collection.insert_one(doc! { "_id": 1, "n": 1 }).run().expect("an insert");
        collection.update_one(doc! { "_id": 1 }, doc! { "$set": { "n": 2 } }).run().expect("an update");
        collection.delete_one(doc! { "_id": 1 }).run().expect("a delete");
        let inserted = stream.next().expect("an event").expect("an event");
        assert_eq!(inserted.operation_type, OperationType::Insert);
        assert_eq!(inserted.full_document, Some(doc! { "_id": 1, "n": 1 }));
        let token = stream.resume_token().expect("a token");
        drop(stream);

        let mut stream = collection.watch().resume_after(token).run().expect("a stream");
        let updated = stream.next().expect("an event").expect("an event");
        assert_eq!(updated.update_description.expect("a description").updated_fields, doc! { "n": 2 });
        let deleted = stream.next().expect("an event").expect("an event");
        assert_eq!(deleted.operation_type, OperationType::Delete);
        assert_eq!(deleted.document_key, Some(doc! { "_id": 1 }));
    });
}

#[test]
fn time_to_live() {
    with_collection(|_, collection| {
        let clock = Clock::stop();
        let life = IndexOptions::builder().expire_after(Duration::from_secs(10)).build();
        let index = IndexModel::builder().keys(doc! { "_ts": 1 }).options(life).build();
        collection.create_index(index).run().expect("an index");
        let lives = [
            doc! { "_id": 1 },
            doc! { "_id": 2, "ttl": 5 },
            doc! { "_id": 3, "ttl": 20_i64 },
            doc! { "_id": 4, "ttl": -1 },
        ];
        collection.insert_many(lives).run().expect("inserts");
        let century = 100 * 365 * 86_400;
        for (seconds, left) in [(4, 4), (1, 3), (4, 3), (1, 2), (9, 2), (1, 1), (century, 1)] {
            clock.advance(seconds);
            assert_eq!(collection.count_documents(doc! {}).run().expect("a count"), left);
        }
    });
}
