//! `serverStatus`: counters for people and their tools.

use std::sync::atomic::Ordering::Relaxed;

use bson::{DateTime, RawDocumentBuf, doc};

use super::{diagnostics::version, reply};
use crate::{call::Call, failure::Result, service::Topology};

/// Answers with all counters; a section named with 0 is left out.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let (mongo, counters) = (call.mongo, &call.mongo.counters);
    let uptime = mongo.uptime.elapsed();
    let current = counters.connections.load(Relaxed) as i32;
    let engine = &mongo.engine;
    let mut purged = 0;
    for database in engine.databases() {
        for container in engine.containers(&database) {
            purged += engine.metrics().of(container.id).purged_documents.get();
        }
    }
    let process = if mongo.options.topology == Topology::Router { "mongos" } else { "mongod" };
    let mut status = doc! {
        "host": call.connection.local.to_string(),
        "version": version(),
        "process": process,
        "pid": i64::from(std::process::id()),
        "uptime": uptime.as_secs_f64().floor(),
        "uptimeMillis": uptime.as_millis() as i64,
        "uptimeEstimate": uptime.as_secs() as i64,
        "localTime": DateTime::from_millis(call.now.0 as i64),
        "asserts": { "regular": 0, "warning": 0, "msg": 0, "user": 0, "tripwire": 0, "rollovers": 0 },
        "connections": {
            "current": current, "available": 1_000_000 - current,
            "totalCreated": counters.connections_total.load(Relaxed) as i64, "active": current,
        },
        "extra_info": { "note": "fields vary by platform" },
        "globalLock": {
            "totalTime": uptime.as_micros() as i64,
            "currentQueue": { "total": 0, "readers": 0, "writers": 0 },
            "activeClients": { "total": current, "readers": 0, "writers": 0 },
        },
        "network": {
            "bytesIn": counters.bytes_in.load(Relaxed) as i64,
            "bytesOut": counters.bytes_out.load(Relaxed) as i64,
            "numRequests": counters.requests.load(Relaxed) as i64,
        },
        "opcounters": counters.operations(),
        "mem": { "bits": 64, "resident": 0, "virtual": 0, "supported": false },
        "storageEngine": { "name": "mayfly", "supportsCommittedReads": true, "persistent": engine.store_stats().disk_bytes > 0 },
        "logicalSessionRecordCache": { "activeSessionsCount": mongo.sessions.count() as i32 },
        "transactions": { "currentOpen": mongo.sessions.transactions() as i64 },
        "metrics": {
            "commands": counters.commands(),
            "cursor": { "timedOut": 0_i64, "open": { "noTimeout": 0_i64, "pinned": 0_i64, "total": mongo.cursors.count() as i64 } },
            "document": {
                "deleted": counters.deleted.load(Relaxed) as i64, "inserted": counters.inserted.load(Relaxed) as i64,
                "returned": counters.returned.load(Relaxed) as i64, "updated": counters.updated.load(Relaxed) as i64,
            },
            "ttl": {
                "deletedDocuments": purged as i64, "invalidTTLIndexSkips": 0_i64,
                "passes": uptime.as_secs() as i64, "subPasses": uptime.as_secs() as i64,
            },
        },
    };
    if let Topology::ReplicaSet { name } = &mongo.options.topology {
        let host = call.connection.local.to_string();
        status.insert("repl", doc! { "setName": name, "hosts": [&host], "primary": &host, "me": &host });
    }
    for element in call.body().iter_elements().skip(1) {
        let element = element?;
        let off =
            crate::call::integer(element.value()?) == Some(0) || element.value()?.as_bool() == Some(false);
        if off {
            status.remove(element.key().as_str());
        }
    }
    reply(status)
}
