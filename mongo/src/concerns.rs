//! What a command asks of every read and write: its concerns, and the time it may take.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use bson::{Bson, Document, RawBsonRef, doc};

use crate::{
    call::{Call, integer, wrong_type},
    commands::{Access, writes_output},
    fail_point::time_is_up,
    failure::{Failure, Result},
};

/// The most members a set can have.
const MEMBERS_MAX: i64 = 50;

impl Call<'_> {
    /// Refuses a read concern that nobody knows.
    pub(crate) fn check_read_concern(&self) -> Result<()> {
        let Some(concern) = self.document("readConcern")? else { return Ok(()) };
        for element in concern.iter_elements() {
            let element = element?;
            match (element.key().as_str(), element.value()?) {
                (
                    "level",
                    RawBsonRef::String("local" | "available" | "majority" | "linearizable" | "snapshot"),
                ) => {}
                ("level", RawBsonRef::String(level)) => {
                    let message = format!(
                        "Enumeration value '{level}' for field 'readConcern.level' is not a valid value."
                    );
                    return Err(Failure::bad_value(message));
                }
                ("level", RawBsonRef::Null) => {}
                ("level", other) => return Err(wrong_type("readConcern.level", other, "string")),
                ("afterClusterTime" | "atClusterTime", RawBsonRef::Timestamp(_)) => {}
                (name @ ("afterClusterTime" | "atClusterTime"), other) => {
                    return Err(wrong_type(&format!("readConcern.{name}"), other, "timestamp"));
                }
                (
                    "afterOpTime"
                    | "provenance"
                    | "allowTransactionTableSnapshot"
                    | "waitLastStableRecoveryTimestamp",
                    _,
                ) => {}
                (name, _) => {
                    let message = format!("BSON field 'readConcern.{name}' is an unknown field.");
                    return Err(Failure::new(40415, message));
                }
            }
        }
        Ok(())
    }

    /// Refuses a write concern that nobody knows.
    pub(crate) fn check_write_concern(&self) -> Result<()> {
        let Some(concern) = self.document("writeConcern")? else { return Ok(()) };
        for element in concern.iter_elements() {
            let element = element?;
            match (element.key().as_str(), element.value()?) {
                ("w", value) => {
                    let members = integer(value);
                    if let Some(found) = members.filter(|members| !(0..=MEMBERS_MAX).contains(members)) {
                        let message = format!(
                            "w has to be a non-negative number and not greater than {MEMBERS_MAX}; found: {found}"
                        );
                        return Err(Failure::new(9, message));
                    }
                    if members.is_none()
                        && !matches!(
                            value,
                            RawBsonRef::String(_) | RawBsonRef::Document(_) | RawBsonRef::Null
                        )
                    {
                        return Err(Failure::new(9, "w has to be a number, string, or object"));
                    }
                }
                (
                    "j" | "fsync" | "wtimeout" | "wtimeoutMS" | "wOpTime" | "wElectionId" | "provenance"
                    | "getLastError",
                    _,
                ) => {}
                (name, _) => {
                    let message = format!("BSON field 'WriteConcernOptions.{name}' is an unknown field.");
                    return Err(Failure::new(40415, message));
                }
            }
        }
        Ok(())
    }

    /// Refuses a limit of time that is none.
    pub(crate) fn check_time_limit(&self) -> Result<()> {
        let Some(value) = self.get("maxTimeMS")? else { return Ok(()) };
        let Some(limit) = integer(value) else {
            return Err(wrong_type(&format!("{}.maxTimeMS", self.info.name), value, "long"));
        };
        let bound = match limit {
            ..0 => ">= 0",
            limit if limit > i64::from(i32::MAX) => "<= 2147483647",
            _ => return Ok(()),
        };
        Err(Failure::bad_value(format!(
            "BSON field 'maxTimeMS' value must be {bound}, actual value '{limit}'"
        )))
    }

    /// The time it may take. Of `getMore` it is the time to wait.
    pub(crate) fn asked_time_limit(&self) -> Option<Duration> {
        let limit = self.count("maxTimeMS").ok()?.filter(|limit| *limit > 0)?;
        self.only_reads().then(|| Duration::from_millis(limit))
    }

    /// Whether it may be left off anywhere. What writes goes on to its end, so that it is known what was
    /// written.
    fn only_reads(&self) -> bool {
        self.info.access == Access::Read && !writes_output(self.body())
    }

    /// Does some of its work within the time that it may take for all of it, and until somebody wants it
    /// stopped.
    pub(crate) async fn within_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match &self.running {
            Some(running) if self.only_reads() => tokio::select! {
                biased;
                done = self.before_limit(work) => done,
                () = running.stopped() => Err(stopped()),
            },
            _ => self.before_limit(work).await,
        }
    }

    async fn before_limit<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let Some(limit) = self.time_limit else { return work.await };
        let mut work = pin!(work);
        // Looked at whenever it has let others have their turn: a busy runtime tells of its timers late.
        let watched = poll_fn(|context| match self.watch.elapsed() < limit {
            true => work.as_mut().poll(context),
            false => Poll::Ready(Err(time_is_up())),
        });
        let left = limit.saturating_sub(self.watch.elapsed());
        tokio::time::timeout(left, watched).await.unwrap_or_else(|_| Err(time_is_up()))
    }

    /// The answer's `writeConcernError`, if a write asks for more members than there are.
    pub(crate) fn unsatisfied_concern(&self) -> Option<Document> {
        let concern = self.document("writeConcern").ok()??;
        let concern = Document::try_from(concern).ok()?;
        let info = doc! { "writeConcern": {
            "w": concern.get("w")?.clone(),
            "wtimeout": concern.get("wtimeout").cloned().unwrap_or(Bson::Int32(0)),
            "provenance": "clientSupplied",
        } };
        let unnamed = String::new();
        let mode = match concern.get("w")? {
            Bson::String(name) if name != "majority" => Some(name),
            Bson::Null => Some(&unnamed),
            _ => None,
        };
        match (mode, concern.get("w")?) {
            (Some(name), _) => Some(doc! {
                "code": 79, "codeName": "UnknownReplWriteConcern",
                "errmsg": format!("No write concern mode named '{name}' found in replica set configuration"),
                "errInfo": info,
            }),
            (None, number) => (integer_of(number)? > 1).then(|| {
                doc! {
                    "code": 100, "codeName": "UnsatisfiableWriteConcern",
                    "errmsg": "Not enough data-bearing nodes", "errInfo": info,
                }
            }),
        }
    }
}

/// 11601: somebody wanted it stopped.
pub fn stopped() -> Failure {
    Failure::new(11601, "operation was interrupted")
}

fn integer_of(value: &Bson) -> Option<i64> {
    match value {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        Bson::Double(number) => Some(*number as i64),
        _ => None,
    }
}
