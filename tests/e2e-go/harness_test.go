// The Go SDK of Azure Cosmos DB against a running Mayfly, over both schemes.
//
// Where the server is stands in the environment; `cargo xtask test clients` sets it. Time is moved with the server's
// own clock, so nothing here sleeps.
package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var ctx = context.Background()

// names makes ids of databases; each test has its own database.
var names atomic.Int64

func setting(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run `cargo xtask test clients`", name)
	}
	return value
}

// overBothSchemes runs a test with a fresh container, over http and over https with the server's certificate.
func overBothSchemes(t *testing.T, properties azcosmos.ContainerProperties, use func(*testing.T, *azcosmos.ContainerClient)) {
	for _, scheme := range []string{"HTTP", "HTTPS"} {
		t.Run(scheme, func(t *testing.T) {
			database := newDatabase(t, newClient(t, setting(t, "MAYFLY_TEST_"+scheme)))
			use(t, newContainer(t, database, properties, 400))
		})
	}
}

func newClient(t *testing.T, endpoint string) *azcosmos.Client {
	t.Helper()
	pem, err := os.ReadFile(setting(t, "MAYFLY_TEST_CA"))
	must(t, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatal("the server's CA is no certificate")
	}
	key, err := azcosmos.NewKeyCredential(setting(t, "MAYFLY_TEST_KEY"))
	must(t, err)
	transport := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true,
	}}
	client, err := azcosmos.NewClientWithKey(endpoint, key, &azcosmos.ClientOptions{
		ClientOptions:                azcore.ClientOptions{Transport: transport},
		EnableContentResponseOnWrite: true,
	})
	must(t, err)
	return client
}

func newDatabase(t *testing.T, client *azcosmos.Client) *azcosmos.DatabaseClient {
	t.Helper()
	name := fmt.Sprintf("go-%d-%d", os.Getpid(), names.Add(1))
	_, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: name}, nil)
	must(t, err)
	database, err := client.NewDatabase(name)
	must(t, err)
	t.Cleanup(func() {
		_, err := database.Delete(ctx, nil)
		must(t, err)
	})
	return database
}

func newContainer(t *testing.T, database *azcosmos.DatabaseClient, properties azcosmos.ContainerProperties, throughput int32) *azcosmos.ContainerClient {
	t.Helper()
	properties.ID = fmt.Sprintf("c-%d", names.Add(1))
	if properties.PartitionKeyDefinition.Paths == nil {
		properties.PartitionKeyDefinition = azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2}
	}
	manual := azcosmos.NewManualThroughputProperties(throughput)
	_, err := database.CreateContainer(ctx, properties, &azcosmos.CreateContainerOptions{ThroughputProperties: &manual})
	must(t, err)
	container, err := database.NewContainer(properties.ID)
	must(t, err)
	return container
}

type document = map[string]any

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	must(t, err)
	return text
}

func unmarshal(t *testing.T, text []byte) document {
	t.Helper()
	var value document
	must(t, json.Unmarshal(text, &value))
	return value
}

func create(t *testing.T, container *azcosmos.ContainerClient, pk string, item document) azcosmos.ItemResponse {
	t.Helper()
	item["pk"] = pk
	answer, err := container.CreateItem(ctx, azcosmos.NewPartitionKeyString(pk), marshal(t, item), nil)
	must(t, err)
	return answer
}

// there says whether an item can be read.
func there(t *testing.T, container *azcosmos.ContainerClient, pk, id string) bool {
	t.Helper()
	_, err := container.ReadItem(ctx, azcosmos.NewPartitionKeyString(pk), id, nil)
	if err != nil {
		refused(t, 404, err)
	}
	return err == nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused fails unless the server answered with this status.
func refused(t *testing.T, status int, err error) {
	t.Helper()
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) || answer.StatusCode != status {
		t.Fatalf("expected %d, got %v", status, err)
	}
}

func equal[T comparable](t *testing.T, found, expected T) {
	t.Helper()
	if found != expected {
		t.Fatalf("expected %v, found %v", expected, found)
	}
}

// withClock stops the server's clock and gives a function that moves it on.
func withClock(t *testing.T, use func(advance func(seconds int))) {
	t.Helper()
	move := func(change document) {
		t.Helper()
		request, err := http.NewRequest("POST", setting(t, "MAYFLY_TEST_HTTP")+"_mayfly/clock", bytes.NewReader(marshal(t, change)))
		must(t, err)
		request.Header.Set("authorization", "Bearer "+setting(t, "MAYFLY_TEST_KEY"))
		answer, err := http.DefaultClient.Do(request)
		must(t, err)
		defer answer.Body.Close()
		equal(t, answer.StatusCode, 200)
	}
	move(document{"freeze": true})
	defer move(document{"freeze": false})
	use(func(seconds int) { move(document{"advanceSeconds": seconds}) })
}
