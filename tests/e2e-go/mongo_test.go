// MongoDB's driver for Go: documents, transactions, change streams, time to live.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// withCollection gives a test a collection that exists, in a database of its own.
func withCollection(t *testing.T, use func(*mongo.Collection)) {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(setting(t, "MAYFLY_TEST_MONGO")).SetTimeout(30 * time.Second))
	must(t, err)
	database := client.Database(fmt.Sprintf("go-mongo-%d-%d", os.Getpid(), names.Add(1)))
	t.Cleanup(func() {
		must(t, database.Drop(ctx))
		must(t, client.Disconnect(ctx))
	})
	must(t, database.CreateCollection(ctx, "c"))
	use(database.Collection("c"))
}

// refusedWith fails unless the server answered with this code.
func refusedWith(t *testing.T, code int, err error) {
	t.Helper()
	var answer mongo.ServerError
	if !errors.As(err, &answer) || !answer.HasErrorCode(code) {
		t.Fatalf("expected error %d, got %v", code, err)
	}
}

func count(t *testing.T, collection *mongo.Collection) int64 {
	t.Helper()
	found, err := collection.CountDocuments(ctx, bson.D{})
	must(t, err)
	return found
}

func TestMongoDocuments(t *testing.T) {
	withCollection(t, func(collection *mongo.Collection) {
		_, err := collection.InsertMany(ctx, []any{
			bson.D{{"_id", 1}, {"n", 1}, {"tags", bson.A{"a", "b"}}}, bson.D{{"_id", 2}, {"n", int64(2)}}, bson.D{{"_id", 3}, {"n", 3.5}},
		})
		must(t, err)
		_, err = collection.InsertOne(ctx, bson.D{{"_id", 1}})
		refusedWith(t, 11000, err)
		if !mongo.IsDuplicateKeyError(err) {
			t.Fatal(err)
		}

		changed, err := collection.UpdateMany(ctx, bson.D{{"n", bson.D{{"$lt", 3}}}}, bson.D{{"$inc", bson.D{{"n", 10}}}})
		must(t, err)
		equal(t, changed.ModifiedCount, 2)
		var after struct{ N int }
		find := options.FindOneAndUpdate().SetReturnDocument(options.After).SetUpsert(true)
		must(t, collection.FindOneAndUpdate(ctx, bson.D{{"_id", 4}}, bson.D{{"$set", bson.D{{"n", 40}}}}, find).Decode(&after))
		equal(t, after.N, 40)

		cursor, err := collection.Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{"n", -1}}).SetBatchSize(1))
		must(t, err)
		var found []struct {
			ID int `bson:"_id"`
		}
		must(t, cursor.All(ctx, &found))
		equal(t, fmt.Sprint(found), "[{4} {2} {1} {3}]")

		cursor, err = collection.Aggregate(ctx, mongo.Pipeline{
			{{"$group", bson.D{{"_id", bson.D{{"$gt", bson.A{"$n", 11}}}}, {"sum", bson.D{{"$sum", "$n"}}}}}}, {{"$sort", bson.D{{"_id", 1}}}},
		})
		must(t, err)
		var groups []struct {
			ID  bool `bson:"_id"`
			Sum float64
		}
		must(t, cursor.All(ctx, &groups))
		equal(t, fmt.Sprint(groups), "[{false 14.5} {true 52}]")

		bulk, err := collection.BulkWrite(ctx, []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(bson.D{{"_id", 5}}),
			mongo.NewReplaceOneModel().SetFilter(bson.D{{"_id", 1}}).SetReplacement(bson.D{{"x", "y"}}),
			mongo.NewDeleteManyModel().SetFilter(bson.D{{"n", bson.D{{"$exists", true}}}}),
		})
		must(t, err)
		equal(t, bulk.DeletedCount, 3)
		equal(t, count(t, collection), 2)
		_, err = collection.Find(ctx, bson.D{{"$nothing", 1}})
		refusedWith(t, 2, err)
	})
}

func TestMongoTransactions(t *testing.T) {
	withCollection(t, func(collection *mongo.Collection) {
		client := collection.Database().Client()
		session, err := client.StartSession()
		must(t, err)
		defer session.EndSession(ctx)
		_, err = session.WithTransaction(ctx, func(inside context.Context) (any, error) {
			if _, err := collection.InsertOne(inside, bson.D{{"_id", 1}}); err != nil {
				return nil, err
			}
			equal(t, count(t, collection), 0)
			return collection.InsertOne(inside, bson.D{{"_id", 2}})
		})
		must(t, err)
		equal(t, count(t, collection), 2)

		must(t, session.StartTransaction())
		_, err = collection.DeleteMany(mongo.NewSessionContext(ctx, session), bson.D{})
		must(t, err)
		must(t, session.AbortTransaction(ctx))
		equal(t, count(t, collection), 2)

		// Who wrote first wins; the other may try again.
		other, err := client.StartSession()
		must(t, err)
		defer other.EndSession(ctx)
		must(t, session.StartTransaction())
		must(t, other.StartTransaction())
		mark := func(session *mongo.Session, mark string) error {
			_, err := collection.UpdateByID(mongo.NewSessionContext(ctx, session), 1, bson.D{{"$set", bson.D{{"by", mark}}}})
			return err
		}
		must(t, mark(session, "first"))
		err = mark(other, "second")
		if err == nil {
			must(t, session.CommitTransaction(ctx))
			err = other.CommitTransaction(ctx)
		} else {
			must(t, session.CommitTransaction(ctx))
		}
		refusedWith(t, 112, err)
		var answer mongo.ServerError
		equal(t, errors.As(err, &answer) && answer.HasErrorLabel("TransientTransactionError"), true)
	})
}

func TestMongoChangeStream(t *testing.T) {
	withCollection(t, func(collection *mongo.Collection) {
		stream, err := collection.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetFullDocument(options.UpdateLookup))
		must(t, err)
		_, err = collection.InsertOne(ctx, bson.D{{"_id", 1}, {"n", 1}})
		must(t, err)
		_, err = collection.UpdateByID(ctx, 1, bson.D{{"$set", bson.D{{"n", 2}}}})
		must(t, err)
		_, err = collection.DeleteOne(ctx, bson.D{{"_id", 1}})
		must(t, err)
		type event struct {
			OperationType string `bson:"operationType"`
			DocumentKey   struct {
				ID int `bson:"_id"`
			} `bson:"documentKey"`
		}
		next := func(stream *mongo.ChangeStream, kind string) {
			t.Helper()
			if !stream.Next(ctx) {
				t.Fatal(stream.Err())
			}
			var found event
			must(t, stream.Decode(&found))
			equal(t, found.OperationType, kind)
			equal(t, found.DocumentKey.ID, 1)
		}
		next(stream, "insert")
		token := stream.ResumeToken()
		next(stream, "update")
		must(t, stream.Close(ctx))
		stream, err = collection.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(token))
		must(t, err)
		next(stream, "update")
		next(stream, "delete")
		must(t, stream.Close(ctx))
	})
}

func TestMongoTimeToLive(t *testing.T) {
	withCollection(t, func(collection *mongo.Collection) {
		withClock(t, func(advance func(int)) {
			index := mongo.IndexModel{Keys: bson.D{{"_ts", 1}}, Options: options.Index().SetExpireAfterSeconds(10)}
			_, err := collection.Indexes().CreateOne(ctx, index)
			must(t, err)
			_, err = collection.InsertMany(ctx, []any{
				bson.D{{"_id", 1}}, bson.D{{"_id", 2}, {"ttl", 5}}, bson.D{{"_id", 3}, {"ttl", int64(20)}}, bson.D{{"_id", 4}, {"ttl", -1}},
			})
			must(t, err)
			for _, step := range []struct {
				seconds int
				left    int64
			}{{4, 4}, {1, 3}, {4, 3}, {1, 2}, {9, 2}, {1, 1}, {100 * 365 * 86400, 1}} {
				advance(step.seconds)
				equal(t, count(t, collection), step.left)
			}
		})
	})
}

func TestMongoDatesExpire(t *testing.T) {
	withCollection(t, func(collection *mongo.Collection) {
		index := mongo.IndexModel{Keys: bson.D{{"at", 1}}, Options: options.Index().SetExpireAfterSeconds(60)}
		_, err := collection.Indexes().CreateOne(ctx, index)
		must(t, err)
		now := time.Now()
		_, err = collection.InsertMany(ctx, []any{
			bson.D{{"_id", 1}, {"at", now.Add(-time.Hour * 24 * 365 * 200)}}, bson.D{{"_id", 2}, {"at", now.Add(time.Hour * 24 * 365 * 200)}}, bson.D{{"_id", 3}, {"at", "never"}},
		})
		must(t, err)
		equal(t, count(t, collection), 2)
	})
}
