//! `hello`: what the server is, what it can do, and what the client is.

use std::time::Duration;

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, oid::ObjectId};
use mayfly_engine::clock::pause;

use super::{login, reply};
use crate::{
    call::Call,
    failure::{Failure, Result},
    service::Topology,
    wire::{Compressor, MESSAGE_BYTES_MAX},
};

/// The version clients are told, and the wire version that belongs to it.
pub const VERSION: [i32; 4] = [8, 2, 0, 0];
const WIRE_VERSION: i32 = 27;

/// The largest document.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The most operations in one write command.
pub const WRITE_BATCH_MAX: usize = 100_000;

/// The longest a monitor is kept waiting.
const AWAIT_MS_MAX: i64 = 600_000;

/// Answers what the server is; a monitor that knows it already waits for it to change.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    remember_client(call)?;
    let known = call.document("topologyVersion")?;
    let wait = call.integer("maxAwaitTimeMS")?;
    match (known, wait) {
        (Some(known), Some(wait)) => {
            let same = known.get_object_id("processId").is_ok_and(|id| id == call.mongo.process);
            if same
                && known.get("counter")?.and_then(crate::call::integer).is_some_and(|counter| counter >= 0)
            {
                pause(Duration::from_millis(wait.clamp(0, AWAIT_MS_MAX) as u64)).await;
            }
        }
        (None, None) => {}
        _ => {
            let message = "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'";
            return Err(Failure::new(31368, message));
        }
    }
    let mut answer = Document::new();
    if call.flag("helloOk")? {
        answer.insert("helloOk", true);
    }
    let legacy = call.info.name != "hello";
    answer.insert(if legacy { "ismaster" } else { "isWritablePrimary" }, true);
    answer.insert("topologyVersion", doc! { "processId": call.mongo.process, "counter": 0_i64 });
    describe_topology(call, &mut answer);
    answer.extend(doc! {
        "maxBsonObjectSize": DOCUMENT_BYTES_MAX as i32,
        "maxMessageSizeBytes": MESSAGE_BYTES_MAX as i32,
        "maxWriteBatchSize": WRITE_BATCH_MAX as i32,
        "localTime": DateTime::from_millis(call.now.0 as i64),
        "logicalSessionTimeoutMinutes": 30,
        "connectionId": call.connection.id,
        "minWireVersion": 0,
        "maxWireVersion": WIRE_VERSION,
        "readOnly": false,
    });
    if call.flag("loadBalanced")? {
        answer.insert("serviceId", call.mongo.process);
    }
    if let Some(names) = call.array("compression")? {
        let names = names.into_iter().filter_map(|name| name.ok()?.as_str());
        let common: Vec<Bson> = names
            .filter(|name| Compressor::ALL.iter().any(|(known, _)| known == name))
            .map(Bson::from)
            .collect();
        if !common.is_empty() {
            answer.insert("compression", common);
        }
    }
    if let Some(user) = call.text("saslSupportedMechs")?
        && let Some(mechanisms) = login::mechanisms(call, user).await?
    {
        answer.insert("saslSupportedMechs", mechanisms);
    }
    if let Some(start) = call.document("speculativeAuthenticate")?
        && let Ok(first) = login::speculative(call, start).await
    {
        answer.insert("speculativeAuthenticate", first);
    }
    reply(answer)
}

fn describe_topology(call: &Call<'_>, answer: &mut Document) {
    match &call.mongo.options.topology {
        Topology::Router => {
            answer.insert("msg", "isdbgrid");
        }
        Topology::ReplicaSet { name } => {
            let host = match call.mongo.options.advertise.as_str() {
                "" => call.connection.local.to_string(),
                host => host.to_owned(),
            };
            let time = call.mongo.cluster_time.last(call.now);
            let date = DateTime::from_millis(call.now.0 as i64);
            let op_time = doc! { "ts": time, "t": 1_i64 };
            let mut election = [0_u8; 12];
            election[0] = 0x7F;
            election[1..4].fill(0xFF);
            election[11] = 1;
            answer.extend(doc! {
                "hosts": [&host],
                "setName": name,
                "setVersion": 1,
                "secondary": false,
                "primary": &host,
                "me": &host,
                "electionId": ObjectId::from_bytes(election),
                "lastWrite": {
                    "opTime": op_time.clone(), "lastWriteDate": date,
                    "majorityOpTime": op_time, "majorityWriteDate": date,
                },
            });
        }
    }
}

/// Keeps what the client says about itself; once per connection.
fn remember_client(call: &Call<'_>) -> Result<()> {
    const METADATA_BYTES_MAX: usize = 512;
    let Some(client) = call.document("client")? else { return Ok(()) };
    if call.connection.who().client.is_some() {
        return Err(Failure::new(186, "The client metadata document may only be sent in the first hello"));
    }
    if client.as_bytes().len() > METADATA_BYTES_MAX {
        let message =
            format!("The client metadata document must be less then or equal to {METADATA_BYTES_MAX} bytes");
        return Err(Failure::new(185, message));
    }
    let client = Document::try_from(client)?;
    for (part, name) in [("driver", "name"), ("driver", "version"), ("os", "type")] {
        let Ok(part) = client.get_document(part) else {
            let message = format!("Missing required sub-document '{part}' in the client metadata document");
            return Err(Failure::new(183, message));
        };
        if part.get_str(name).is_err() {
            let message = format!("Missing required field '{name}' in the client metadata document");
            return Err(Failure::new(183, message));
        }
    }
    call.connection.set_client(client);
    Ok(())
}
