//! `configureFailPoint` and `testVersion2`, where the server was started for tests.

use bson::{Bson, Document, RawDocumentBuf};

use super::reply;
use crate::{
    call::Call,
    fail_point::{FailPoints, Point},
    failure::{Failure, Result},
};

/// Failures of a change stream after which a driver goes on by itself.
const RESUMABLE: &[i32] =
    &[6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436];

/// Only there to be refused where a client holds itself to version 1 of the API.
pub async fn version_2(call: &Call<'_>) -> Result<RawDocumentBuf> {
    match call.mongo.options.test_commands {
        true => reply(Document::new()),
        false => Err(Failure::new(59, "no such command: 'testVersion2'")),
    }
}

/// Arms or disarms `failCommand`, the one that fails `getMore`, the one of retryable writes, or the one of limits. Other fail points are not there.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    if !call.mongo.options.test_commands {
        return Err(Failure::new(59, "no such command: 'configureFailPoint'"));
    }
    let (point, of_cursors) = match call.text("configureFailPoint")? {
        Some("failCommand") => (Point::Commands, false),
        Some("failGetMoreAfterCursorCheckout") => (Point::Commands, true),
        Some("onPrimaryTransactionalWrite") => (Point::Writes, false),
        Some("maxTimeAlwaysTimeOut") => (Point::Times, false),
        _ => return Err(Failure::bad_value("there is no such fail point")),
    };
    let mode = call.get("mode")?.map(Bson::try_from).transpose()?.unwrap_or(Bson::Null);
    let mut data = call.document("data")?.map(Document::try_from).transpose()?.unwrap_or_default();
    if of_cursors {
        data.insert("failCommands", vec!["getMore"]);
        if data.get_i32("errorCode").is_ok_and(|code| RESUMABLE.contains(&code)) {
            data.insert("errorLabels", vec!["ResumableChangeStreamError"]);
        }
    }
    reply(FailPoints::reply(call.mongo.fail_points.configure(point, &mode, data)?))
}
