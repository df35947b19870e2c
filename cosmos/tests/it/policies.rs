//! What a container may be defined as, and what of it can change, in the service's words.

use serde_json::{Value, json};

use crate::harness::*;

async fn refused(members: Value, text: &str) {
    let account = Account::new().await;
    let answer = account.container(members.clone(), &[]).await;
    assert_eq!(answer.status, 400, "{members}");
    answer.refused(400, text);
}

/// Makes a container, then replaces it by another definition.
async fn replaced(before: Value, after: Value) -> Answer {
    let account = Account::new().await;
    account.container(before, &[]).await.ok();
    let mut body = json!({ "id": "c", "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 } });
    body.as_object_mut().unwrap().extend(after.as_object().unwrap().clone());
    account.send("PUT", "/dbs/db/colls/c", &[], body.to_string()).await
}

const INVALID: &str = "One of the specified inputs is invalid";

fn computed(properties: Value) -> Value {
    json!({ "computedProperties": properties })
}

#[tokio::test]
async fn computed_properties() {
    let query = "SELECT VALUE LOWER(c.name) FROM c";
    let lower = json!({ "name": "lowerName", "query": query });
    let account = Account::new().await;
    let made = account.container(computed(json!([lower])), &[]).await.ok();
    assert_eq!(made.json()["computedProperties"], json!([lower]));
    for (properties, text) in [
        (lower.clone(), INVALID),
        (json!([1]), INVALID),
        (json!([{ "name": 1, "query": query }]), INVALID),
        (json!([lower, lower]), "Computed property name 'lowerName' cannot be used in multiple definitions."),
        (json!([{ "query": query }]), "Computed property 'name' is either empty or unspecified."),
        (json!([{ "name": "", "query": query }]), "Computed property 'name' is either empty or unspecified."),
        (json!([{ "name": "n" }]), "Computed property 'query' is either empty or unspecified."),
        (
            json!([{ "name": "id", "query": query }]),
            "The system property name 'id' cannot be used as a computed property name.",
        ),
        (
            json!([{ "name": "n", "query": "SELECT LOWER(c.name) FROM c" }]),
            "Required VALUE expression missing from computed property query 'SELECT LOWER(c.name) FROM c' at index (0).",
        ),
        (
            json!([lower, { "name": "n", "query": "SELECT VALUE NOSUCH(" }]),
            "Computed property at index (1) has a malformed query: 'SELECT VALUE NOSUCH(' Error details: '{",
        ),
    ] {
        refused(computed(properties), text).await;
    }
    let spatial = json!({
        "computedProperties": [{ "name": "spatial", "query": query }],
        "indexingPolicy": { "spatialIndexes": [{ "path": "/spatial/*", "types": ["Point"] }] },
    });
    refused(
        spatial,
        "Computed property 'spatial' at index (0) has a spatial index. Remove the spatial index on this path.",
    )
    .await;
}

fn embedding(change: Value) -> Value {
    let mut embedding =
        json!({ "path": "/v", "dataType": "float32", "dimensions": 256, "distanceFunction": "cosine" });
    embedding.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    json!({ "vectorEmbeddings": [embedding] })
}

fn vectors(embedding: Value, index: Value) -> Value {
    json!({ "vectorEmbeddingPolicy": embedding, "indexingPolicy": { "vectorIndexes": [index] } })
}

#[tokio::test]
async fn vector_embeddings() {
    for (change, text) in [
        (json!({ "dataType": "float64" }), "The Vector Embedding Policy has an invalid DataType:float64"),
        (
            json!({ "dimensions": 8000 }),
            "The Vector Embedding Policy has Dimensions:8000 which is more than the maximum supported value",
        ),
        (json!({ "dimensions": -1 }), "The Vector Embedding Policy has Dimensions:-1"),
        (
            json!({ "distanceFunction": "handMeasured" }),
            "The Vector Embedding Policy has an invalid DistanceFunction:handMeasured",
        ),
        (json!({ "path": 1 }), INVALID),
        (json!({ "dimensions": "many" }), INVALID),
        (
            json!({ "embeddingSource": { "authType": "Letter" } }),
            "The auth type provided in the embedding source of vector policy is invalid.",
        ),
    ] {
        refused(json!({ "vectorEmbeddingPolicy": embedding(change) }), text).await;
    }
    refused(json!({ "vectorEmbeddingPolicy": [] }), INVALID).await;
}

#[tokio::test]
async fn vector_indexes() {
    let plain = embedding(json!({}));
    let out_of_range = "is out of range. The allowed range is between";
    for (index, text) in [
        (
            json!({ "path": "/w", "type": "flat" }),
            "The Vector Indexing Policy's path::/w not matching in Embedding's path.".to_owned(),
        ),
        (json!({ "path": "/v", "type": "notFlat" }), "Index Type::notFlat is invalid".into()),
        (
            json!({ "path": "/v", "type": "quantizedFlat", "quantizationByteSize": 0 }),
            format!(
                "The Vector Indexing Policy parameter QuantizationByteSize value :: 0 {out_of_range} 1 and 256."
            ),
        ),
        (
            json!({ "path": "/v", "type": "diskANN", "indexingSearchListSize": 5 }),
            format!("IndexingSearchListSize value :: 5 {out_of_range} 25 and 500."),
        ),
        (
            json!({ "path": "/v", "type": "diskANN", "vectorIndexShardKey": ["country"] }),
            "The Vector Indexing Policy has an invalid Shard Path: country.".into(),
        ),
        (
            json!({ "path": "/v", "type": "diskANN", "vectorIndexShardKey": ["/a", "/b", "/c"] }),
            "The number of shard paths defined in the Vector Indexing Policy: 3 exceeds the maximum: 1."
                .into(),
        ),
        (json!({ "path": "/v", "type": "diskANN", "vectorIndexShardKey": "/a" }), INVALID.into()),
    ] {
        refused(vectors(plain.clone(), index), &text).await;
    }
    let large = embedding(json!({ "dimensions": 550 }));
    let index = json!({ "path": "/v", "type": "quantizedFlat", "quantizationByteSize": 513 });
    refused(vectors(large, index), "QuantizationByteSize value :: 513 is out of range.").await;
}

#[tokio::test]
async fn vectors_stay_as_they_were_made() {
    let flat = json!({ "path": "/v", "type": "flat" });
    let before = vectors(embedding(json!({})), flat.clone());
    let cases = [
        (
            json!({ "indexingPolicy": { "vectorIndexes": [flat] } }),
            "The Vector Indexing Policy's path::/v not matching in Embedding's path.",
        ),
        (
            vectors(embedding(json!({})), json!({ "path": "/v", "type": "quantizedFlat" })),
            "Paths in existing vector indexing policy cannot be modified in Collection Replace",
        ),
        (
            vectors(embedding(json!({ "dimensions": 384 })), flat),
            "Paths in existing embedding policy cannot be modified in Collection Replace",
        ),
    ];
    for (after, text) in cases {
        replaced(before.clone(), after).await.refused(400, text);
    }
    assert_eq!(replaced(before.clone(), before).await.status, 200);
}

#[tokio::test]
async fn full_text() {
    let policy = |path: &str, language: &str| json!({ "defaultLanguage": "en-US", "fullTextPaths": [{ "path": path, "language": language }] });
    let with_index = |index: Value| {
        json!({
            "fullTextPolicy": policy("/abstract", "en-US"),
            "indexingPolicy": { "fullTextIndexes": [index] },
        })
    };
    for (members, text) in [
        (
            json!({ "fullTextPolicy": policy("abstract", "en-US") }),
            "The Full Text Policy contains an invalid Path: abstract",
        ),
        (
            json!({ "fullTextPolicy": policy("/abstract", "spa-SPA") }),
            "The Full Text Policy contains an unsupported Language: spa-SPA",
        ),
        (
            json!({ "fullTextPolicy": { "defaultLanguage": "xx" } }),
            "The Full Text Policy contains an unsupported Language: xx",
        ),
        (
            with_index(json!({ "path": "/other" })),
            "does not match any path specified in the Full Text Policy",
        ),
        (
            with_index(json!({ "path": "abstract" })),
            "does not match any path specified in the Full Text Policy",
        ),
        (with_index(json!({ "not_path": "/abstract" })), INVALID),
    ] {
        refused(members, text).await;
    }
    let account = Account::new().await;
    account.container(with_index(json!({ "path": "/abstract" })), &[]).await.ok();
}

#[tokio::test]
async fn spatial_and_geospatial() {
    let index = |index: Value| json!({ "indexingPolicy": { "spatialIndexes": [index] } });
    let empty = "The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array \
                 for the path '/loc/*'.";
    refused(index(json!({ "path": "/loc/*", "types": [] })), empty).await;
    refused(index(json!({ "path": "/loc/*", "types": ["Blob"] })), "'Blob'").await;
    refused(
        index(json!({ "path": "loc", "types": ["Point"] })),
        "Please ensure that the path is a valid path",
    )
    .await;
    refused(json!({ "geospatialConfig": { "type": "Sphere" } }), "neither 'Geography' nor 'Geometry'").await;
    let mut flat = index(json!({ "path": "/loc/*", "types": ["Point"] }));
    flat["geospatialConfig"] = json!({ "type": "Geometry" });
    refused(flat.clone(), "needs a 'boundingBox'").await;
    flat["indexingPolicy"]["spatialIndexes"][0]["boundingBox"] =
        json!({ "xmin": 0, "ymin": 0, "xmax": 10, "ymax": 10 });
    let account = Account::new().await;
    account.container(flat, &[]).await.ok();
}

#[tokio::test]
async fn client_encryption() {
    let policy = |key: &str| {
        json!({ "clientEncryptionPolicy": { "policyFormatVersion": 1, "includedPaths": [{
            "path": "/secret",
            "clientEncryptionKeyId": key,
            "encryptionType": "Deterministic",
            "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
        }] } })
    };
    refused(policy("none"), "ClientEncryptionKey with id '[none]' does not exist.").await;
    let account = Account::new().await;
    let key = json!({
        "id": "k",
        "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
        "wrappedDataEncryptionKey": "AAAA",
        "keyWrapMetadata": { "type": "t", "name": "n", "value": "v", "algorithm": "a" },
    });
    account.send("POST", "/dbs/db/clientencryptionkeys", &[], key.to_string()).await.ok();
    account.container(policy("k"), &[]).await.ok();
    let mut body = policy("k");
    body["id"] = json!("c");
    body["partitionKey"] = json!({ "paths": ["/pk"], "version": 2 });
    let replace = async |body: &Value| account.send("PUT", "/dbs/db/colls/c", &[], body.to_string()).await;
    replace(&body).await.ok();
    body["clientEncryptionPolicy"]["includedPaths"][0]["encryptionType"] = json!("Randomized");
    let text = "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.";
    replace(&body).await.refused(400, text);
    // Left out, it stays.
    body.as_object_mut().unwrap().remove("clientEncryptionPolicy");
    let kept = replace(&body).await.ok().json();
    assert_eq!(kept["clientEncryptionPolicy"], policy("k")["clientEncryptionPolicy"]);
}

#[tokio::test]
async fn what_cannot_change_is_refused_and_what_is_left_out_stays() {
    let unique = json!({ "uniqueKeyPolicy": { "uniqueKeys": [{ "paths": ["/email"] }] } });
    let other = json!({ "uniqueKeyPolicy": { "uniqueKeys": [{ "paths": ["/name"] }] } });
    replaced(unique.clone(), other).await.refused(400, "Unique index cannot be changed");
    let kept = replaced(unique.clone(), json!({})).await.ok().json();
    assert_eq!(kept["uniqueKeyPolicy"], unique["uniqueKeyPolicy"]);
    let key = json!({ "partitionKey": { "paths": ["/other"], "kind": "Hash", "version": 2 } });
    replaced(json!({}), key).await.refused(400, "Document collection partition key cannot be changed.");
    let custom = json!({ "conflictResolutionPolicy": { "mode": "Custom" } });
    replaced(json!({}), custom.clone()).await.refused(400, "'conflictResolutionPolicy' cannot be changed");
    let kept = replaced(custom.clone(), json!({})).await.ok().json();
    assert_eq!(kept["conflictResolutionPolicy"]["mode"], "Custom");
    // The default, spelt out.
    let spelt = json!({ "conflictResolutionPolicy": { "mode": "lastWriterWins" } });
    assert_eq!(replaced(json!({}), spelt).await.status, 200);
}

#[tokio::test]
async fn the_rest() {
    let policy = |policy: Value| json!({ "indexingPolicy": policy });
    let path = |path: &str| json!({ "path": path });
    for (members, text) in [
        (json!({ "conflictResolutionPolicy": { "mode": "Dice" } }), "neither 'LastWriterWins' nor 'Custom'"),
        (json!({ "conflictResolutionPolicy": "Custom" }), INVALID),
        (policy(json!({ "indexingMode": "eager" })), "indexing mode"),
        (
            policy(json!({ "indexingMode": "none", "automatic": true })),
            "Indexing mode value cannot be 'none' when automatic indexing is specified as 'true'.",
        ),
        (policy(json!({ "includedPaths": [path("/a/?")] })), "Please ensure that the path"),
        (
            policy(json!({ "includedPaths": [path("/*"), path("a")] })),
            "Please ensure that the path is a valid path.",
        ),
        (policy(json!({ "compositeIndexes": [[path("/a")]] })), "from 2 to 8 paths"),
        (
            policy(json!({ "compositeIndexes": [[path("/a"), { "path": "/b", "order": "sideways" }]] })),
            INVALID,
        ),
        (json!({ "uniqueKeyPolicy": { "uniqueKeys": [{ "paths": [] }] } }), "at least one path"),
        (
            json!({ "partitionKey": { "paths": ["pk"] } }),
            "The partition key component definition path 'pk' could not be accepted, failed near position '0'.",
        ),
        (
            json!({ "partitionKey": { "paths": ["/a", "/b"], "kind": "Hash" } }),
            "Too many partition key paths",
        ),
        (json!({ "defaultTtl": 0 }), "The input defaultTtl '0' is invalid."),
        (
            json!({ "defaultTtl": 5, "indexingPolicy": { "indexingMode": "none", "automatic": false } }),
            "Indexing mode value cannot be 'none' when 'defaultTtl' is specified in the collection",
        ),
    ] {
        refused(members, text).await;
    }
}
