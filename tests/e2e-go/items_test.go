// Point operations, batches, queries and feeds.

package e2e

import (
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestItems(t *testing.T) {
	overBothSchemes(t, azcosmos.ContainerProperties{}, func(t *testing.T, container *azcosmos.ContainerClient) {
		key := azcosmos.NewPartitionKeyString("p")
		created := create(t, container, "p", document{"id": "1", "n": 1, "text": "grüße 🦋"})
		equal(t, created.RawResponse.StatusCode, 201)
		_, err := container.CreateItem(ctx, key, marshal(t, document{"id": "1", "pk": "p"}), nil)
		refused(t, 409, err)

		read, err := container.ReadItem(ctx, key, "1", nil)
		must(t, err)
		equal(t, unmarshal(t, read.Value)["text"], any("grüße 🦋"))
		equal(t, read.ETag, created.ETag)

		replaced, err := container.ReplaceItem(ctx, key, "1", marshal(t, document{"id": "1", "pk": "p", "n": 2}), nil)
		must(t, err)
		stale := &azcosmos.ItemOptions{IfMatchEtag: &created.ETag}
		_, err = container.DeleteItem(ctx, key, "1", stale)
		refused(t, 412, err)
		if replaced.ETag == created.ETag || replaced.ETag == azcore.ETag("") {
			t.Fatal("a new version has a new etag")
		}

		operations := azcosmos.PatchOperations{}
		operations.AppendIncrement("/n", 40)
		operations.AppendSet("/deep", document{"yes": true})
		patched, err := container.PatchItem(ctx, key, "1", operations, nil)
		must(t, err)
		equal(t, unmarshal(t, patched.Value)["n"], any(42.0))

		upserted, err := container.UpsertItem(ctx, key, marshal(t, document{"id": "2", "pk": "p"}), nil)
		must(t, err)
		equal(t, upserted.RawResponse.StatusCode, 201)
		_, err = container.DeleteItem(ctx, key, "1", nil)
		must(t, err)
		equal(t, there(t, container, "p", "1"), false)
		equal(t, there(t, container, "p", "2"), true)
	})
}

func TestBatch(t *testing.T) {
	overBothSchemes(t, azcosmos.ContainerProperties{}, func(t *testing.T, container *azcosmos.ContainerClient) {
		create(t, container, "p", document{"id": "old"})
		batch := container.NewTransactionalBatch(azcosmos.NewPartitionKeyString("p"))
		batch.CreateItem(marshal(t, document{"id": "new", "pk": "p"}), nil)
		batch.ReadItem("old", nil)
		answer, err := container.ExecuteTransactionalBatch(ctx, batch, nil)
		must(t, err)
		equal(t, answer.Success, true)
		equal(t, answer.OperationResults[1].StatusCode, 200)

		batch = container.NewTransactionalBatch(azcosmos.NewPartitionKeyString("p"))
		batch.DeleteItem("new", nil)
		batch.CreateItem(marshal(t, document{"id": "old", "pk": "p"}), nil)
		answer, err = container.ExecuteTransactionalBatch(ctx, batch, nil)
		must(t, err)
		equal(t, answer.Success, false)
		equal(t, answer.OperationResults[0].StatusCode, 424)
		equal(t, answer.OperationResults[1].StatusCode, 409)
		equal(t, there(t, container, "p", "new"), true)
	})
}

func TestQueries(t *testing.T) {
	overBothSchemes(t, azcosmos.ContainerProperties{}, func(t *testing.T, container *azcosmos.ContainerClient) {
		for n := range 25 {
			create(t, container, fmt.Sprintf("p%d", n%5), document{"id": fmt.Sprint(n), "n": n})
		}
		rows := func(query string, key azcosmos.PartitionKey, options *azcosmos.QueryOptions) (found []string) {
			pager := container.NewQueryItemsPager(query, key, options)
			for pager.More() {
				page, err := pager.NextPage(ctx)
				must(t, err)
				for _, item := range page.Items {
					found = append(found, string(item))
				}
			}
			return found
		}
		within := azcosmos.NewPartitionKeyString("p3")
		options := &azcosmos.QueryOptions{
			PageSizeHint:    2,
			QueryParameters: []azcosmos.QueryParameter{{Name: "@n", Value: 5}},
		}
		found := rows("SELECT VALUE c.n FROM c WHERE c.n > @n ORDER BY c.n DESC", within, options)
		equal(t, fmt.Sprint(found), "[23 18 13 8]")
		everywhere := azcosmos.NewPartitionKey()
		equal(t, len(rows("SELECT * FROM c WHERE c.n >= 10", everywhere, &azcosmos.QueryOptions{PageSizeHint: 4})), 15)

		many, err := container.ReadManyItems(ctx, []azcosmos.ItemIdentity{
			{ID: "3", PartitionKey: within}, {ID: "8", PartitionKey: within},
			{ID: "4", PartitionKey: azcosmos.NewPartitionKeyString("p4")},
		}, nil)
		must(t, err)
		equal(t, len(many.Items), 3)
	})
}

func TestChangeFeed(t *testing.T) {
	overBothSchemes(t, azcosmos.ContainerProperties{}, func(t *testing.T, container *azcosmos.ContainerClient) {
		for n := range 10 {
			create(t, container, fmt.Sprint(n), document{"id": fmt.Sprint(n)})
		}
		ranges, err := container.ReadFeedRanges(ctx, nil)
		must(t, err)
		equal(t, len(ranges), 1)
		var continuation *string
		changes := func() (ids []string) {
			for {
				page, err := container.ReadChangeFeed(ctx, &azcosmos.ChangeFeedOptions{
					FeedRange: &ranges[0], Continuation: continuation, MaxItemCount: 4,
				})
				must(t, err)
				if page.ContinuationToken != "" {
					continuation = &page.ContinuationToken
				}
				if len(page.Items) == 0 {
					return ids
				}
				for _, item := range page.Items {
					ids = append(ids, unmarshal(t, item)["id"].(string))
				}
			}
		}
		equal(t, fmt.Sprint(changes()), "[0 1 2 3 4 5 6 7 8 9]")
		equal(t, len(changes()), 0)
		_, err = container.UpsertItem(ctx, azcosmos.NewPartitionKeyString("3"), marshal(t, document{"id": "3", "pk": "3"}), nil)
		must(t, err)
		equal(t, fmt.Sprint(changes()), "[3]")
	})
}

func TestSeveralRanges(t *testing.T) {
	database := newDatabase(t, newClient(t, setting(t, "MAYFLY_TEST_HTTPS")))
	container := newContainer(t, database, azcosmos.ContainerProperties{}, 20_000)
	for n := range 40 {
		create(t, container, fmt.Sprint(n), document{"id": fmt.Sprint(n)})
	}
	ranges, err := container.ReadFeedRanges(ctx, nil)
	must(t, err)
	// One for each started 6,000 RU/s.
	equal(t, len(ranges), 4)
	seen := map[string]bool{}
	for _, feedRange := range ranges {
		page, err := container.ReadChangeFeed(ctx, &azcosmos.ChangeFeedOptions{FeedRange: &feedRange})
		must(t, err)
		if len(page.Items) == 0 || len(page.Items) == 40 {
			t.Fatal("items are spread over the ranges")
		}
		for _, item := range page.Items {
			seen[unmarshal(t, item)["id"].(string)] = true
		}
	}
	equal(t, len(seen), 40)
	throughput, err := container.ReadThroughput(ctx, nil)
	must(t, err)
	manual, _ := throughput.ThroughputProperties.ManualThroughput()
	equal(t, manual, 20_000)
}
