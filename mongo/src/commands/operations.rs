//! `currentOp`, `killOp` and `top`: what runs, its end, and what has run.

use bson::{Document, RawBsonRef, RawDocumentBuf, doc};

use super::reply;
use crate::{
    auth::Right,
    call::{Call, integer, type_name},
    failure::{Failure, Result},
    filter::Filter,
    filtering::Surroundings,
    namespace,
    service::to_raw,
    stages,
};

/// Arguments of `currentOp` that are no part of the filter.
const NO_FILTER: &[&str] = &[
    "$ownOps",
    "$all",
    "$truncateOps",
    "$db",
    "$readPreference",
    "$clusterTime",
    "lsid",
    "comment",
    "maxTimeMS",
];

/// `currentOp`: what runs, as far as a filter finds it.
pub async fn current(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let mut filter = Document::new();
    for argument in call.body().iter().skip(1) {
        let (name, value) = argument?;
        if !NO_FILTER.contains(&name.as_str()) {
            filter.insert(name.as_str(), bson::Bson::try_from(value)?);
        }
    }
    let surroundings = Surroundings::of(call)?;
    let filter = Filter::parse(&to_raw(&filter), &surroundings.names())?;
    let mut found = Vec::new();
    for operation in stages::running(call, !call.flag("$ownOps")?, false)? {
        if surroundings.matches(&filter, &to_raw(&operation))? {
            found.push(operation);
        }
    }
    reply(doc! { "inprog": found })
}

/// `killOp`: stops what only reads. Whether there was such a command is not told.
pub async fn kill(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let id = match call.get("op")? {
        None => return Err(Failure::new(4, "Missing expected field \"op\"")),
        Some(RawBsonRef::Double(number)) if number.fract() != 0.0 => {
            let message = format!(
                "Expected field \"op\" to have a value exactly representable as a 64-bit integer, but found op: {number}"
            );
            return Err(Failure::bad_value(message));
        }
        Some(value) => integer(value).ok_or_else(|| {
            let found = type_name(value);
            Failure::new(14, format!("Expected field \"op\" to have numeric type, but found {found}"))
        })?,
    };
    let stops_all = call.check_right(Right::Stop).is_ok();
    let who = call.connection.who();
    call.mongo.operations.stop(id, (!stops_all).then_some(&*who));
    reply(doc! { "info": "attempting to kill op" })
}

/// `top`: the use of every collection since the server started.
pub async fn top(call: &Call<'_>) -> Result<RawDocumentBuf> {
    call.check_right(Right::Watch)?;
    let engine = &call.mongo.engine;
    reply(doc! { "totals": call.mongo.operations.usage.totals(|name| namespace::is_there(engine, name)) })
}
