//! Failures on demand, for the test suites of drivers: `configureFailPoint: "failCommand"`.
//!
//! Only there when the server was started for tests.

use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf, doc};
use mayfly_engine::clock::pause;
use parking_lot::Mutex;

use crate::{
    call::Call,
    failure::{Failure, Result},
};

#[derive(Clone, Debug)]
enum Mode {
    Off,
    AlwaysOn,
    Times(i64),
    Skip(i64),
}

#[derive(Debug, Default)]
struct Armed {
    mode: Option<Mode>,
    data: Document,
    entered: i64,
}

/// The fail points of the server: one.
#[derive(Default)]
pub struct FailPoints(Mutex<Armed>);

/// The answer that makes the connection close instead of being sent.
const CLOSE: &str = "mayfly fail point closes the connection";

impl FailPoints {
    /// Arms or disarms; answers how often it was met before.
    pub fn configure(&self, mode: &Bson, data: Document) -> Result<i64> {
        let wrong =
            || Failure::bad_value("the mode of a fail point is off, alwaysOn, {times: n} or {skip: n}");
        let number = |document: &Document, name: &str| {
            document.get(name).and_then(|n| n.as_i64().or_else(|| n.as_i32().map(i64::from)))
        };
        let mode = match mode {
            Bson::String(text) if text == "off" => Mode::Off,
            Bson::String(text) if text == "alwaysOn" => Mode::AlwaysOn,
            Bson::Document(mode) => match (number(mode, "times"), number(mode, "skip")) {
                (Some(times), _) => Mode::Times(times),
                (_, Some(skip)) => Mode::Skip(skip),
                _ => return Err(wrong()),
            },
            _ => return Err(wrong()),
        };
        let mut armed = self.0.lock();
        let entered = armed.entered;
        *armed = Armed { mode: Some(mode), data, entered };
        Ok(entered)
    }

    /// What happens to a command that meets the fail point: nothing, a failure, or a concern error at the end of its
    /// answer.
    pub async fn meet(&self, call: &Call<'_>) -> Option<Result<Document>> {
        let data = self.enter(call)?;
        if data.get_bool("blockConnection").unwrap_or(false) {
            let ms = data.get("blockTimeMS").and_then(|n| n.as_i64().or_else(|| n.as_i32().map(i64::from)));
            pause(Duration::from_millis(ms.unwrap_or(0).clamp(0, 60_000) as u64)).await;
        }
        if data.get_bool("closeConnection").unwrap_or(false) {
            return Some(Err(Failure::new(0, CLOSE)));
        }
        let code = data.get("errorCode").and_then(|n| n.as_i32().or_else(|| n.as_i64().map(|n| n as i32)));
        if let Some(code) = code {
            let message = data.get_str("errmsg").unwrap_or("Failing command via 'failCommand' failpoint");
            let mut failure = Failure::new(code, message);
            if let Some(labels) = labels(call, &data, code) {
                failure = failure.field("errorLabels", labels);
            }
            if let Ok(ms) = data.get_i32("baseBackoffMS") {
                failure = failure.field("baseBackoffMS", ms);
            }
            return Some(Err(failure));
        }
        let mut error = data.get_document("writeConcernError").ok()?.clone();
        error.remove("errorLabels");
        let labels = labels(call, &data, error.get_i32("code").unwrap_or_default());
        let mut end = doc! { "writeConcernError": error };
        if let Some(labels) = labels {
            end.insert("errorLabels", labels);
        }
        Some(Ok(end))
    }

    fn enter(&self, call: &Call<'_>) -> Option<Document> {
        if call.info.name == "configureFailPoint" {
            return None;
        }
        let mut armed = self.0.lock();
        let mode = armed.mode.clone()?;
        let commands = armed.data.get_array("failCommands").ok()?;
        // A command is met by each of its spellings, whichever the client used.
        let is_this = |name: &str| name == call.info.name || call.info.aliases.contains(&name);
        if !commands.iter().any(|name| name.as_str().is_some_and(is_this)) {
            return None;
        }
        if let Ok(name) = armed.data.get_str("appName")
            && application(call).as_deref() != Some(name)
        {
            return None;
        }
        match mode {
            Mode::Off | Mode::Times(..=0) => return None,
            Mode::AlwaysOn => {}
            Mode::Times(left) => armed.mode = Some(Mode::Times(left - 1)),
            Mode::Skip(left @ 1..) => {
                armed.mode = Some(Mode::Skip(left - 1));
                return None;
            }
            Mode::Skip(_) => {}
        }
        armed.entered += 1;
        Some(armed.data.clone())
    }

    /// Whether an answer is the wish to close the connection.
    pub fn closes(&self, reply: &RawDocumentBuf) -> bool {
        matches!(reply.get_str("errmsg"), Ok(CLOSE))
    }

    /// What `configureFailPoint` answers.
    pub fn reply(entered: i64) -> Document {
        doc! { "count": entered, "ok": 1.0 }
    }
}

/// The name that the client's application gave itself, in this command if it is the first.
fn application(call: &Call<'_>) -> Option<String> {
    let of_first = || {
        let client = call.document("client").ok()??;
        let application = client.get_document("application").ok()?;
        application.get_str("name").ok().map(str::to_owned)
    };
    call.connection.application().or_else(of_first)
}

/// The labels that were asked for, or those that such an error would have.
fn labels(call: &Call<'_>, data: &Document, code: i32) -> Option<Vec<Bson>> {
    if let Ok(labels) = data.get_array("errorLabels") {
        return Some(labels.clone());
    }
    let retryable = call.session.as_ref().is_some_and(|session| session.is_retryable_write());
    let commits = ["commitTransaction", "abortTransaction"].contains(&call.info.name);
    ((retryable || commits) && RETRYABLE.contains(&code)).then(|| vec!["RetryableWriteError".into()])
}

/// Failures after which a retryable write is sent again.
pub const RETRYABLE: &[i32] = &[6, 7, 64, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436];
