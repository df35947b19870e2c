// Time to live, to the second.

package e2e

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func seconds(n int32) *int32 { return &n }

func TestTimeToLive(t *testing.T) {
	properties := azcosmos.ContainerProperties{DefaultTimeToLive: seconds(10)}
	overBothSchemes(t, properties, func(t *testing.T, container *azcosmos.ContainerClient) {
		withClock(t, func(advance func(int)) {
			create(t, container, "p", document{"id": "default"})
			create(t, container, "p", document{"id": "shorter", "ttl": 5})
			create(t, container, "p", document{"id": "longer", "ttl": 20})
			create(t, container, "p", document{"id": "never", "ttl": -1})
			alive := func(ids ...string) {
				t.Helper()
				expected := map[string]bool{}
				for _, id := range ids {
					expected[id] = true
				}
				for _, id := range []string{"default", "shorter", "longer", "never"} {
					equal(t, there(t, container, "p", id), expected[id])
				}
				count := container.NewQueryItemsPager("SELECT VALUE c.id FROM c", azcosmos.NewPartitionKeyString("p"), nil)
				page, err := count.NextPage(ctx)
				must(t, err)
				equal(t, len(page.Items), len(ids))
			}
			advance(4)
			alive("default", "shorter", "longer", "never")
			advance(1)
			alive("default", "longer", "never")
			advance(5)
			alive("longer", "never")
			advance(9)
			alive("longer", "never")
			advance(1)
			alive("never")
			advance(100 * 365 * 86400)
			alive("never")
			equal(t, create(t, container, "p", document{"id": "default"}).RawResponse.StatusCode, 201)
		})
	})
}

func TestDefaultIsChanged(t *testing.T) {
	overBothSchemes(t, azcosmos.ContainerProperties{}, func(t *testing.T, container *azcosmos.ContainerClient) {
		withClock(t, func(advance func(int)) {
			create(t, container, "p", document{"id": "1"})
			advance(100)
			definition, err := container.Read(ctx, nil)
			must(t, err)
			definition.ContainerProperties.DefaultTimeToLive = seconds(101)
			_, err = container.Replace(ctx, *definition.ContainerProperties, nil)
			must(t, err)
			equal(t, there(t, container, "p", "1"), true)
			advance(1)
			equal(t, there(t, container, "p", "1"), false)
		})
	})
}

func TestInvalidTimeToLive(t *testing.T) {
	properties := azcosmos.ContainerProperties{DefaultTimeToLive: seconds(-1)}
	overBothSchemes(t, properties, func(t *testing.T, container *azcosmos.ContainerClient) {
		for _, ttl := range []any{0, -10, 2.5, "x", nil, 2147483648} {
			_, err := container.CreateItem(ctx, azcosmos.NewPartitionKeyString("p"),
				marshal(t, document{"id": "1", "pk": "p", "ttl": ttl}), nil)
			refused(t, 400, err)
		}
	})
}
