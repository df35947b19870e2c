//! Sessions: which client a command belongs to, and what that client is in the middle of.
//!
//! A session is a name that clients make up. It carries at most one numbered thing at a time: a retryable
//! write, which must happen once however often it is sent, or a transaction.

mod answers;
mod current;
mod drafts;
mod registry;

use bson::{Document, RawBsonRef, RawDocumentBuf};

pub use answers::Answers;
pub use drafts::{Claim, Drafts};
pub use registry::{SESSION_MINUTES, Sessions, Txn, conflict};

use crate::{
    call::{Call, integer, wrong_type},
    commands::CommandInfo,
    failure::{Failure, Result},
    service::{Topology, appended},
    wire::Request,
};

/// How a command uses its session.
#[derive(Clone, Debug)]
pub struct SessionUse {
    /// The session's name.
    pub id: Vec<u8>,
    /// The number of the write or transaction.
    pub txn_number: Option<i64>,
    /// Whether it is part of a transaction.
    pub in_transaction: bool,
    /// Whether it begins one.
    pub starts: bool,
    /// Numbers of the statements of a batch, if not 0, 1, 2, …
    pub statements: Vec<i32>,
}

impl SessionUse {
    /// Reads the session arguments of a request.
    pub fn parse(request: &Request, info: &CommandInfo) -> Result<Option<Self>> {
        let txn_number = match request.body.get("txnNumber")? {
            None => None,
            Some(RawBsonRef::Int64(number)) => Some(number),
            Some(other) => return Err(wrong_type("OperationSessionInfo.txnNumber", other, "long")),
        };
        let id = match request.body.get("lsid")? {
            None if txn_number.is_some() => {
                return Err(Failure::new(
                    72,
                    "Transaction number requires a session ID to also be specified",
                ));
            }
            None => return Ok(None),
            Some(RawBsonRef::Document(lsid)) => match lsid.get("id")? {
                Some(RawBsonRef::Binary(id)) if id.bytes.len() == 16 => id.bytes.to_vec(),
                Some(RawBsonRef::Binary(_)) => {
                    return Err(Failure::new(207, "uuid must be a 16-byte binary field"));
                }
                Some(other) => return Err(wrong_type("OperationSessionInfo.lsid.id", other, "binData")),
                None => {
                    let message = "BSON field 'OperationSessionInfo.lsid.id' is missing but a required field";
                    return Err(Failure::new(40414, message));
                }
            },
            Some(other) => return Err(wrong_type("OperationSessionInfo.lsid", other, "object")),
        };
        let flag = |name: &str| -> Result<Option<bool>> {
            Ok(match request.body.get(name)? {
                Some(RawBsonRef::Boolean(value)) => Some(value),
                Some(other) => Some(integer(other).is_some_and(|number| number != 0)),
                None => None,
            })
        };
        let (autocommit, starts) = (flag("autocommit")?, flag("startTransaction")?.unwrap_or(false));
        if autocommit == Some(true) {
            return Err(Failure::new(72, "autocommit must be false for transactions"));
        }
        if starts && autocommit.is_none() {
            return Err(Failure::new(
                72,
                "'startTransaction' field requires 'autocommit' field to also be specified",
            ));
        }
        let in_transaction = autocommit == Some(false);
        if in_transaction && txn_number.is_none() {
            return Err(Failure::new(
                72,
                "'autocommit' field requires a transaction number to also be specified",
            ));
        }
        let ends = ["commitTransaction", "abortTransaction"].contains(&info.name);
        if txn_number.is_some() && !in_transaction && !info.retryable && !ends {
            let message = format!(
                "txnNumber may only be provided for multi-document transactions and retryable write commands. \
                 autocommit:false was not provided, and {} is not a retryable write command.",
                info.name
            );
            return Err(Failure::new(50768, message));
        }
        if in_transaction && !info.in_transaction && !ends {
            let message = format!("Cannot run '{}' in a multi-document transaction.", info.name);
            return Err(Failure::new(263, message));
        }
        let mut statements = Vec::new();
        if let Some(RawBsonRef::Array(numbers)) = request.body.get("stmtIds")? {
            for number in numbers {
                statements.extend(integer(number?).map(|number| number as i32));
            }
        } else if let Some(number) = request.body.get("stmtId")?.and_then(integer) {
            statements.push(number as i32);
        }
        Ok(Some(Self { id, txn_number, in_transaction, starts, statements }))
    }

    /// Whether the command is a write that may be sent twice and must happen once.
    pub fn is_retryable_write(&self) -> bool {
        self.txn_number.is_some() && !self.in_transaction
    }

    /// The number of the statement at a place in a batch.
    pub fn statement(&self, place: usize) -> i32 {
        match self.statements.get(place) {
            Some(number) => *number,
            None => self.statements.first().copied().unwrap_or(0) + place as i32,
        }
    }
}

/// Runs a command as its session wants it: alone, or as a step of a transaction.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let Some(session) = &call.session else { return current::run(call).await };
    let sessions = &call.mongo.sessions;
    sessions.touch(&session.id, call.connection, call.now);
    if !session.in_transaction {
        if let Some(number) = session.txn_number {
            sessions.begin_write(&session.id, number)?;
        }
        let step = sessions.begin_step(session);
        let reply = current::run(call).await;
        step.done();
        return reply;
    }
    if ["commitTransaction", "abortTransaction"].contains(&call.info.name) {
        return (call.info.run)(call).await;
    }
    check_concerns(call, session)?;
    let step = sessions.begin_step(session);
    let begun = sessions.step(call, session).await;
    if begun.is_err() {
        step.done();
        return begun.map(|()| RawDocumentBuf::new());
    }
    let reply = call.within_time((call.info.run)(call)).await;
    step.done();
    let aborts = match &reply {
        Err(_) => true,
        Ok(reply) => matches!(reply.get("writeErrors"), Ok(Some(_))) || bulk_failed(reply),
    };
    if aborts {
        sessions.abort(session);
        sessions.drafts.clear(call.mongo).await?;
    }
    // Clients of a router hand this back with their commit, whichever router they come to.
    let token = |reply| match call.mongo.options.topology {
        Topology::Router => appended(reply, bson::doc! { "recoveryToken": { "recoveryShardId": "mayfly" } }),
        Topology::ReplicaSet { .. } => reply,
    };
    reply.map(token).map_err(|failure| match failure.code {
        112 | 251 => failure.label("TransientTransactionError"),
        _ => failure,
    })
}

fn bulk_failed(reply: &RawDocumentBuf) -> bool {
    matches!(reply.get("nErrors"), Ok(Some(number)) if integer(number).is_some_and(|number| number > 0))
}

fn check_concerns(call: &Call<'_>, session: &SessionUse) -> Result<()> {
    if call.get("readConcern")?.is_some() && !session.starts {
        let message = "Only the first command in a transaction may specify a readConcern";
        return Err(Failure::new(72, message));
    }
    if call.get("writeConcern")?.is_some() {
        let message = format!("{} is not allowed to have a write concern in a transaction", call.info.name);
        return Err(Failure::new(72, message));
    }
    Ok(())
}

/// The document that names a session in answers.
pub fn lsid_document(id: &[u8]) -> Document {
    let uuid = bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: id.to_vec() };
    bson::doc! { "id": uuid }
}
