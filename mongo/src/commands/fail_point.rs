//! `configureFailPoint`, where the server was started for tests.

use bson::{Bson, Document, RawDocumentBuf};

use super::reply;
use crate::{
    call::Call,
    fail_point::FailPoints,
    failure::{Failure, Result},
};

/// Arms or disarms `failCommand`. Other fail points are not there.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    if !call.mongo.options.test_commands {
        return Err(Failure::new(59, "no such command: 'configureFailPoint'"));
    }
    if call.text("configureFailPoint")? != Some("failCommand") {
        return Err(Failure::bad_value("the only fail point is failCommand"));
    }
    let mode = call.get("mode")?.map(Bson::try_from).transpose()?.unwrap_or(Bson::Null);
    let data = call.document("data")?.map(Document::try_from).transpose()?.unwrap_or_default();
    reply(FailPoints::reply(call.mongo.fail_points.configure(&mode, data)?))
}
