//! Failures on demand, for the test suites of drivers: `failCommand`; `onPrimaryTransactionalWrite` for writes that may be sent
//! twice, whose connection breaks before they are carried out or after; `maxTimeAlwaysTimeOut` for commands with a limit of time.
//!
//! Only there when the server was started for tests.

use std::{sync::atomic::Ordering, time::Duration};

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

/// The fail points of the server.
#[derive(Default)]
pub struct FailPoints {
    commands: Mutex<Armed>,
    writes: Mutex<Armed>,
    times: Mutex<Armed>,
}

/// Which fail point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// `failCommand`.
    Commands,
    /// `onPrimaryTransactionalWrite`.
    Writes,
    /// `maxTimeAlwaysTimeOut`.
    Times,
}

/// When the connection of a write breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Nothing was written.
    Before,
    /// Everything was written, and nobody is told.
    After,
}

impl Armed {
    /// Whether the fail point is met this time.
    fn meets(&mut self) -> bool {
        match self.mode {
            None | Some(Mode::Off | Mode::Times(..=0)) => return false,
            Some(Mode::AlwaysOn | Mode::Skip(..=0)) => {}
            Some(Mode::Times(left)) => self.mode = Some(Mode::Times(left - 1)),
            Some(Mode::Skip(left)) => {
                self.mode = Some(Mode::Skip(left - 1));
                return false;
            }
        }
        self.entered += 1;
        true
    }
}

/// The answer that makes the connection close instead of being sent.
const CLOSE: &str = "mayfly fail point closes the connection";

impl FailPoints {
    /// Arms or disarms; answers how often it was met before.
    pub fn configure(&self, point: Point, mode: &Bson, data: Document) -> Result<i64> {
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
        let mut armed = match point {
            Point::Commands => self.commands.lock(),
            Point::Writes => self.writes.lock(),
            Point::Times => self.times.lock(),
        };
        let entered = armed.entered;
        *armed = Armed { mode: Some(mode), data, entered };
        Ok(entered)
    }

    /// What happens to a command that meets the fail point: nothing, a failure, or a concern error at the end of its
    /// answer.
    pub async fn meet(&self, call: &Call<'_>) -> Option<Result<Document>> {
        // Of `getMore` it is the time to wait; there the cursor knows.
        let is_limited = call.info.name != "getMore" && matches!(call.count("maxTimeMS"), Ok(Some(1..)));
        if is_limited && self.is_time_up() {
            return Some(Err(time_is_up()));
        }
        let data = self.enter(call)?;
        if data.get_bool("blockConnection").unwrap_or(false) {
            let ms = data.get("blockTimeMS").and_then(|n| n.as_i64().or_else(|| n.as_i32().map(i64::from)));
            pause(Duration::from_millis(ms.unwrap_or(0).clamp(0, 60_000) as u64)).await;
        }
        if data.get_bool("closeConnection").unwrap_or(false) {
            return Some(Err(Self::closing()));
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
        // Inside of a transaction nothing has been waited for yet: its commit is what has to be sent again.
        let is_step = call.in_transaction() && !ENDS.contains(&call.info.name);
        let code = error.get_i32("code").unwrap_or_default();
        let labels = if is_step { None } else { labels(call, &data, code) };
        let mut end = doc! { "writeConcernError": error };
        if let Some(labels) = labels {
            end.insert("errorLabels", labels);
        }
        Some(Ok(end))
    }

    /// Whether a command that may only take so long has taken too long.
    pub fn is_time_up(&self) -> bool {
        self.times.lock().meets()
    }

    fn enter(&self, call: &Call<'_>) -> Option<Document> {
        if call.info.name == "configureFailPoint" {
            return None;
        }
        let mut armed = self.commands.lock();
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
        armed.meets().then(|| armed.data.clone())
    }

    /// Whether the connection of a numbered write breaks, and when.
    pub fn break_of_write(&self, call: &Call<'_>) -> Option<Break> {
        call.session.as_ref().filter(|session| session.is_retryable_write())?;
        let mut armed = self.writes.lock();
        if !armed.meets() {
            return None;
        }
        call.hang_up.store(true, Ordering::Relaxed);
        Some(if armed.data.contains_key("failBeforeCommitExceptionCode") {
            Break::Before
        } else {
            Break::After
        })
    }

    /// The failure that makes the connection close instead of being told.
    pub fn closing() -> Failure {
        Failure::new(0, CLOSE)
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

/// 50: it took longer than it was allowed to.
pub fn time_is_up() -> Failure {
    Failure::new(50, "operation exceeded time limit")
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
    let session = call.session.as_ref()?;
    let ends = ENDS.contains(&call.info.name);
    let (retryable, transient) = (RETRYABLE.contains(&code), TRANSIENT.contains(&code));
    let label = match session.in_transaction {
        // Whoever commits may ask again; whoever is in the middle has to begin again.
        _ if (ends || session.is_retryable_write()) && retryable => "RetryableWriteError",
        true if transient || !ends && retryable => "TransientTransactionError",
        _ => return None,
    };
    Some(vec![label.into()])
}

/// What ends a transaction.
const ENDS: &[&str] = &["commitTransaction", "abortTransaction"];

/// Failures after which a retryable write is sent again.
const RETRYABLE: &[i32] = &[6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436];

/// Failures after which a transaction is begun again: locks, conflicts, moments that are gone, and no such transaction.
const TRANSIENT: &[i32] = &[24, 112, 239, 246, 251, 267];
