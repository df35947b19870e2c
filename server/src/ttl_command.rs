//! `mayfly ttl`: look before you set.
//!
//! `preview` says what a default would do to the documents that are there; `set` does the same, asks if much of them
//! would be gone at once, and sets it; `forecast` says what goes hour by hour and day by day, and how the default was
//! changed.

use std::{
    fmt::Write as _,
    io::{self, BufRead as _, Write as _},
};

use clap::{Args, Subcommand};
use mayfly_cosmos::auth::EMULATOR_KEY;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::client::{Client, ClientError};

/// A change that would expire more than this share of the documents at once is asked about.
const ASK_SHARE: f64 = 0.10;

/// What to do with a container's time to live.
#[derive(Debug, Subcommand)]
pub enum TtlCommand {
    /// Show what a default would do to the documents that are there
    Preview(Target),
    /// Show what expires hour by hour and day by day, and how the default was changed
    Forecast(Target),
    /// Set a default; asks first if more than a tenth of the documents would be gone at once
    Set {
        /// Which container, and which default
        #[command(flatten)]
        target: Target,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// Which container, and which default.
///
/// `forecast` takes a default too, and then shows what would be.
#[derive(Debug, Args)]
pub struct Target {
    /// Database
    database: String,
    /// Container
    container: String,
    /// `off`, `-1` (on, no default) or seconds; without it, the present one
    #[arg(long, value_name = "off|-1|SECONDS", allow_hyphen_values = true)]
    default: Option<String>,
    /// The server
    #[arg(long, env = "MAYFLY_ENDPOINT", default_value = "http://localhost:8081")]
    endpoint: String,
    /// The account key
    #[arg(long, env = "MAYFLY_KEY", default_value = EMULATOR_KEY, hide_default_value = true)]
    key: String,
}

/// Carries the command out; the text is for the person who gave it.
pub async fn run(command: TtlCommand) -> Result<String, ClientError> {
    match command {
        TtlCommand::Preview(target) => {
            let client = Client::new(&target.endpoint, &target.key)?;
            Ok(describe(&preview(&client, &target).await?))
        }
        TtlCommand::Forecast(target) => {
            let client = Client::new(&target.endpoint, &target.key)?;
            let forecast = preview(&client, &target).await?;
            let history = client.administration(&format!("{}/history", path(&target))).await?;
            Ok(calendar(&forecast, &history))
        }
        TtlCommand::Set { target, yes } => set(&target, yes).await,
    }
}

fn path(target: &Target) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    format!("/_mayfly/ttl/{}/{}", encoded(&target.database), encoded(&target.container))
}

async fn preview(client: &Client, target: &Target) -> Result<Value, ClientError> {
    let mut path = path(target);
    if let Some(default) = &target.default {
        let _ = write!(path, "?default={default}");
    }
    client.administration(&path).await
}

async fn set(target: &Target, yes: bool) -> Result<String, ClientError> {
    let default = match target.default.as_deref() {
        None => {
            return Err(ClientError("say which default: --default off, -1 or a number of seconds".into()));
        }
        Some("off") => None,
        Some(text) => {
            Some(text.parse::<i64>().map_err(|error| ClientError(format!("--default {text}: {error}")))?)
        }
    };
    let client = Client::new(&target.endpoint, &target.key)?;
    let forecast = preview(&client, target).await?;
    if !yes && share_at_once(&forecast) > ASK_SHARE && !confirmed(&forecast, target)? {
        return Ok("Nothing was changed.".into());
    }
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let path = format!("/dbs/{}/colls/{}", encoded(&target.database), encoded(&target.container));
    let mut definition = client.resource("GET", &path, None).await?;
    if let Some(object) = definition.as_object_mut() {
        match default {
            Some(seconds) => object.insert("defaultTtl".into(), json!(seconds)),
            None => object.remove("defaultTtl"),
        };
    }
    client.resource("PUT", &path, Some(&definition)).await?;
    Ok(format!("{}\nThe default is set.", describe(&forecast)))
}

fn count(forecast: &Value, name: &str) -> u64 {
    forecast[name]["documents"].as_u64().unwrap_or(0)
}

fn share_at_once(forecast: &Value) -> f64 {
    count(forecast, "expiresAtOnce") as f64 / count(forecast, "live").max(1) as f64
}

/// Asks for the container's name: nobody types that by mistake.
fn confirmed(forecast: &Value, target: &Target) -> Result<bool, ClientError> {
    println!("{}", describe(forecast));
    print!(
        "{} of {} documents would be gone at once, for good. Type the container's name to go on: ",
        count(forecast, "expiresAtOnce"),
        count(forecast, "live")
    );
    let mut line = String::new();
    let answered = io::stdout().flush().and_then(|()| io::stdin().lock().read_line(&mut line));
    answered.map_err(|error| ClientError(error.to_string()))?;
    Ok(line.trim() == target.container)
}

fn setting(value: &Value) -> String {
    match value.as_i64() {
        None => "off".to_owned(),
        Some(-1) => "on, no default".to_owned(),
        Some(seconds) => format!("{seconds} s"),
    }
}

/// Hours and days in which something goes, then the changes of the default, the latest first.
fn calendar(forecast: &Value, history: &Value) -> String {
    let mut text = format!("Default: {}\n", setting(&forecast["proposedDefault"]));
    for (unit, name, shown) in [("hour", "hourly", 24), ("day", "daily", 30)] {
        let buckets = forecast[name].as_array().map(Vec::as_slice).unwrap_or_default();
        for (n, bucket) in buckets.iter().take(shown).enumerate() {
            let documents = bucket["documents"].as_u64().unwrap_or(0);
            if documents > 0 {
                let kilobytes = bucket["bytes"].as_u64().unwrap_or(0).div_ceil(1024);
                let _ = writeln!(text, "  {unit} {:<4} {documents:>12}  {kilobytes:>10} KB", n + 1);
            }
        }
    }
    for change in history["changes"].as_array().into_iter().flatten() {
        let (from, to) = (setting(&change["from"]), setting(&change["to"]));
        let _ = writeln!(text, "  changed at {} from {from} to {to}", change["at"]);
    }
    text.trim_end().to_owned()
}

fn describe(forecast: &Value) -> String {
    let (present, proposed) = (setting(&forecast["presentDefault"]), setting(&forecast["proposedDefault"]));
    let mut text = format!("Default: {present} now, {proposed} proposed\n");
    for (label, name) in [
        ("documents", "live"),
        ("gone at once", "expiresAtOnce"),
        ("within an hour", "expiresWithinHour"),
        ("within a day", "expiresWithinDay"),
        ("within 30 days", "expiresWithin30Days"),
        ("later", "expiresLater"),
        ("never", "neverExpires"),
        ("pinned (ttl -1)", "pinned"),
        ("with their own ttl", "ownTtl"),
    ] {
        let bytes = forecast[name]["bytes"].as_u64().unwrap_or(0);
        let _ =
            writeln!(text, "  {label:<20} {:>12}  {:>10} KB", count(forecast, name), bytes.div_ceil(1024));
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_shows_what_goes_and_what_was_changed() {
        let amount = |documents: u64| json!({ "documents": documents, "bytes": documents * 100 });
        let forecast = json!({
            "proposedDefault": 60, "hourly": [amount(0), amount(12)], "daily": [amount(12), amount(0)],
        });
        let history = json!({ "changes": [{ "at": 5, "from": null, "to": 60 }] });
        let text = calendar(&forecast, &history);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert_eq!(lines[0], "Default: 60 s");
        assert!(lines[1].starts_with("hour 2") && lines[1].ends_with("2 KB"), "{text}");
        assert!(lines[2].starts_with("day 1"), "{text}");
        assert_eq!(lines[3], "changed at 5 from off to 60 s");
    }
}
