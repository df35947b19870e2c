//! Questions that clients and tools ask before, and beside, their work.

use bson::{Bson, DateTime, Document, RawBsonRef, RawDocumentBuf, doc};

use super::{Access, COMMANDS, hello, reply};
use crate::{
    call::{Call, integer},
    failure::{Failure, Result},
    service::Topology,
};

/// `ping`.
pub async fn ping(_: &Call<'_>) -> Result<RawDocumentBuf> {
    reply(Document::new())
}

/// `fsync`: every write is as durable as it was asked to be when it is answered.
pub async fn fsync(call: &Call<'_>) -> Result<RawDocumentBuf> {
    match call.flag("lock")? {
        true => Err(Failure::new(238, "fsync with lock is not supported: writes are not held back")),
        false => reply(doc! { "numFiles": 1 }),
    }
}

/// Commands that have nothing to do here, and say so.
pub async fn ok(_: &Call<'_>) -> Result<RawDocumentBuf> {
    reply(Document::new())
}

/// The version as text.
pub fn version() -> String {
    let [major, minor, patch, _] = hello::VERSION;
    format!("{major}.{minor}.{patch}")
}

/// `buildInfo`.
pub async fn build_info(_: &Call<'_>) -> Result<RawDocumentBuf> {
    reply(doc! {
        "version": version(),
        "gitVersion": concat!("mayfly-", env!("CARGO_PKG_VERSION")),
        "modules": [],
        "allocator": "system",
        "javascriptEngine": "none",
        "sysinfo": "deprecated",
        "versionArray": hello::VERSION.to_vec(),
        "openssl": { "running": "rustls", "compiled": "rustls" },
        "buildEnvironment": {
            "distmod": "", "distarch": std::env::consts::ARCH, "target_arch": std::env::consts::ARCH,
            "target_os": std::env::consts::OS,
        },
        "bits": 64,
        "debug": false,
        "maxBsonObjectSize": hello::DOCUMENT_BYTES_MAX as i64,
        "storageEngines": ["mayfly"],
    })
}

/// `whatsmyuri`.
pub async fn whats_my_uri(call: &Call<'_>) -> Result<RawDocumentBuf> {
    reply(doc! { "you": call.connection.peer.to_string() })
}

/// `hostInfo`.
pub async fn host_info(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as i32);
    reply(doc! {
        "system": {
            "currentTime": DateTime::from_millis(call.now.0 as i64),
            "hostname": call.connection.local.to_string(),
            "cpuAddrSize": 64,
            "numCores": cores,
            "cpuArch": std::env::consts::ARCH,
            "numaEnabled": false,
        },
        "os": { "type": std::env::consts::OS, "name": std::env::consts::OS, "version": "" },
        "extra": {},
    })
}

/// `getCmdLineOpts`.
pub async fn cmd_line(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let mut parsed = doc! { "net": { "port": i32::from(call.connection.local.port()) } };
    if call.mongo.options.test_commands {
        parsed.insert("setParameter", doc! { "enableTestCommands": "1" });
    }
    reply(doc! { "argv": ["mayfly"], "parsed": parsed })
}

fn parameters(call: &Call<'_>) -> Document {
    doc! {
        "enableTestCommands": call.mongo.options.test_commands,
        "authenticationMechanisms": ["SCRAM-SHA-1", "SCRAM-SHA-256"],
        "featureCompatibilityVersion": { "version": format!("{}.{}", hello::VERSION[0], hello::VERSION[1]) },
        "requireApiVersion": false,
        "ttlMonitorEnabled": true,
        "ttlMonitorSleepSecs": 1,
        "transactionLifetimeLimitSeconds": 60,
        "localLogicalSessionTimeoutMinutes": 30,
        "cursorTimeoutMillis": 600_000_i64,
        "logLevel": 0,
        "quiet": false,
    }
}

/// `getParameter`.
pub async fn get_parameter(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let all = parameters(call);
    let everything = match call.get("getParameter")? {
        Some(RawBsonRef::String("*")) => true,
        Some(RawBsonRef::Document(options)) => options.get_bool("allParameters").unwrap_or(false),
        _ => call.flag("allParameters").unwrap_or(false),
    };
    if everything {
        return reply(all);
    }
    let mut found = Document::new();
    for element in call.body().iter_elements() {
        let name = element?.key().as_str();
        if let Some(value) = all.get(name) {
            found.insert(name, value.clone());
        }
    }
    if found.is_empty() {
        return Err(Failure::new(72, "no option found to get"));
    }
    reply(found)
}

/// `setParameter`: what has no effect here, because expiry is exact and nothing has to be tuned.
pub async fn set_parameter(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let all = parameters(call);
    for element in call.body().iter_elements().skip(1) {
        let element = element?;
        let name = element.key().as_str();
        if let Some(was) = all.get(name) {
            if name == "ttlMonitorSleepSecs" && integer(element.value()?).is_none_or(|seconds| seconds < 1) {
                return Err(Failure::bad_value("ttlMonitorSleepSecs must be strictly greater than 0"));
            }
            return reply(doc! { "was": was.clone() });
        }
        if !name.starts_with('$') && !["lsid", "comment", "apiVersion"].contains(&name) {
            let message =
                format!("attempted to set unrecognized parameter [{name}], use help:true to see options ");
            return Err(Failure::new(72, message));
        }
    }
    Err(Failure::new(72, "no option found to set, use help:true to see options "))
}

/// `getLog`.
pub async fn get_log(call: &Call<'_>) -> Result<RawDocumentBuf> {
    match call.text("getLog")? {
        Some("*") => reply(doc! { "names": ["global", "startupWarnings"] }),
        Some("global" | "startupWarnings") => reply(doc! { "totalLinesWritten": 0, "log": [] }),
        other => Err(Failure::new(96, format!("no log named '{}'", other.unwrap_or_default()))),
    }
}

/// `listCommands`.
pub async fn list_commands(_: &Call<'_>) -> Result<RawDocumentBuf> {
    reply(doc! { "commands": described() })
}

fn described() -> Document {
    let commands = COMMANDS.iter().map(|info| {
        let about = doc! {
            "help": info.help,
            "requiresAuth": info.access != Access::Open,
            "secondaryOk": true,
            "adminOnly": info.admin_only,
            "apiVersions": if info.stable { vec![Bson::from("1")] } else { Vec::new() },
        };
        (info.name.to_owned(), Bson::from(about))
    });
    commands.collect()
}

/// `features`.
pub async fn features(_: &Call<'_>) -> Result<RawDocumentBuf> {
    reply(doc! { "oidReset": true })
}

/// `getDefaultRWConcern`.
pub async fn default_concern(call: &Call<'_>) -> Result<RawDocumentBuf> {
    reply(doc! {
        "defaultReadConcern": { "level": "local" },
        "defaultWriteConcern": { "w": "majority", "wtimeout": 0 },
        "defaultWriteConcernSource": "implicit",
        "defaultReadConcernSource": "implicit",
        "localUpdateWallClockTime": DateTime::from_millis(call.now.0 as i64),
    })
}

/// `replSetGetStatus`.
pub async fn repl_status(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let Topology::ReplicaSet { name } = &call.mongo.options.topology else {
        return Err(Failure::new(115, "replSetGetStatus is not supported through mongos"));
    };
    reply(doc! {
        "set": name,
        "date": DateTime::from_millis(call.now.0 as i64),
        "myState": 1,
        "term": 1_i64,
        "members": [{
            "_id": 0, "name": call.connection.local.to_string(), "health": 1.0, "state": 1, "stateStr": "PRIMARY",
            "uptime": call.mongo.uptime.elapsed().as_secs() as i32, "self": true,
        }],
    })
}

/// `profile`.
pub async fn profile(call: &Call<'_>) -> Result<RawDocumentBuf> {
    match call.integer("profile")? {
        Some(-1 | 0) => reply(doc! { "was": 0, "slowms": 100, "sampleRate": 1.0 }),
        _ => Err(Failure::new(238, "there is no profiler")),
    }
}

/// `listShards`.
pub async fn list_shards(_: &Call<'_>) -> Result<RawDocumentBuf> {
    reply(doc! { "shards": [] })
}
