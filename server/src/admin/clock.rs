//! The engine's time: what it is, and moving it where that is allowed.
//!
//! A clock that can be moved is the machine's plus an offset. The offset needs no record of its own: the
//! store keeps the latest time that was told, and after a restart the clock goes on from there
//! (`Node::open`). Whether it was frozen is not kept.

use std::time::Duration;

use mayfly_cosmos::ApiError;
use mayfly_engine::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::node::Node;

/// The last second that has a year of four digits: dates beyond it cannot be written.
const LAST_SECOND: u64 = 253_402_300_799;

/// From here on, being ahead of the machine's clock is worth a warning.
const FAR: Duration = Duration::from_secs(86_400);

/// How the clock is to be moved. Exactly one of these.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum ClockChange {
    AdvanceSeconds(f64),
    SetUnixSeconds(f64),
    Freeze(bool),
}

/// `GET /_mayfly/clock`
pub async fn read(node: &Node) -> Result<Value, ApiError> {
    let now = node.engine.now().await?;
    Ok(json!({
        "unixSeconds": now.0 as f64 / 1000.0,
        "adjustable": node.dev_clock.is_some(),
        "frozen": node.dev_clock.as_ref().is_some_and(|clock| clock.is_frozen()),
        // By a clock that is behind it, and has to catch up before time goes on.
        "standsStillSeconds": node.engine.ahead_of_clock().as_secs(),
    }))
}

/// `POST /_mayfly/clock`
pub async fn change(node: &Node, body: &[u8]) -> Result<Value, ApiError> {
    let Some(adjustable) = &node.dev_clock else {
        return Err(ApiError::new(
            403,
            0,
            "The clock can be moved only on a server started with --dev-clock.",
        ));
    };
    let change: ClockChange = serde_json::from_slice(body).map_err(|error| {
        ApiError::bad_request(format!(
            "The body is one of {{\"advanceSeconds\": n}}, {{\"setUnixSeconds\": n}}, {{\"freeze\": true}}: {error}"
        ))
    })?;
    // From the latest time that was told: where the clock is behind it, moving the clock alone would change
    // nothing.
    let now = node.engine.now().await?;
    match change {
        ClockChange::AdvanceSeconds(n) => {
            let by = duration(n)?;
            within_years(now.plus(by))?;
            adjustable.catch_up(now);
            adjustable.advance(by);
        }
        ClockChange::SetUnixSeconds(n) => {
            let to = Timestamp(duration(n)?.as_millis() as u64);
            within_years(to)?;
            if to < now {
                return Err(ApiError::bad_request(format!(
                    "Time on this server only goes forward: it is {} already.",
                    now.0 as f64 / 1000.0
                )));
            }
            adjustable.catch_up(to);
        }
        ClockChange::Freeze(true) => {
            adjustable.catch_up(now);
            adjustable.freeze();
        }
        ClockChange::Freeze(false) => {
            adjustable.catch_up(now);
            adjustable.resume();
        }
    }
    let mut answer = read(node).await?;
    let ahead = adjustable.ahead_of_machine();
    if ahead > FAR && !matches!(change, ClockChange::Freeze(_)) {
        let warning = warning(ahead, node.keeps_data());
        match node.keeps_data() {
            true => tracing::warn!("{warning}"),
            false => tracing::info!("{warning}"),
        }
        answer["warning"] = warning.into();
    }
    Ok(answer)
}

fn duration(seconds: f64) -> Result<Duration, ApiError> {
    if seconds < 0.0 {
        return Err(ApiError::bad_request(
            "Time on this server only goes forward: give a number that is not below zero.",
        ));
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| beyond())
}

fn within_years(to: Timestamp) -> Result<(), ApiError> {
    if to.seconds() > LAST_SECOND { Err(beyond()) } else { Ok(()) }
}

fn beyond() -> ApiError {
    ApiError::bad_request(format!(
        "Time ends with the year 9999 here: {LAST_SECOND} is the last second since 1970 that can be set."
    ))
}

fn warning(ahead: Duration, is_kept: bool) -> String {
    let ahead = spelled(ahead);
    match is_kept {
        true => format!(
            "The time of this data is now {ahead} ahead of the machine's clock, and stays so: it never goes back. Opened \
             without --dev-clock, the data stands still until the machine's clock has caught up."
        ),
        false => format!("The time is now {ahead} ahead of the machine's clock, until the server ends."),
    }
}

/// A span for people: its largest unit, and the next.
pub fn spelled(span: Duration) -> String {
    const UNITS: [(u64, &str); 5] =
        [(365 * 86_400, "year"), (86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let mut rest = span.as_secs();
    let mut parts = Vec::new();
    for (seconds, name) in UNITS {
        let number = rest / seconds;
        rest %= seconds;
        if number > 0 {
            parts.push(format!("{number} {name}{}", if number == 1 { "" } else { "s" }));
        } else if !parts.is_empty() {
            break;
        }
        if parts.len() == 2 {
            break;
        }
    }
    if parts.is_empty() { "0 seconds".into() } else { parts.join(" and ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_spelled_by_their_largest_units() {
        let spelled = |seconds| spelled(Duration::from_secs(seconds));
        assert_eq!(spelled(0), "0 seconds");
        assert_eq!(spelled(61), "1 minute and 1 second");
        assert_eq!(spelled(86_400 + 59), "1 day");
        assert_eq!(spelled(2 * 365 * 86_400 + 3 * 86_400 + 5), "2 years and 3 days");
    }
}
