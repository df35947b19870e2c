//! The log: lines or JSON on standard error.
//!
//! Levels are about who has to act: `error` someone now, `warn` someone soon, `info` nobody, but it is worth
//! knowing; the others are for finding bugs. Panics are logged with their place before anything handles them.
//!
//! Holds: nothing of a document and no key is ever logged.

use crate::config::{Config, ConfigError};
use crate::settings::LogFormat;
use std::any::Any;
use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;

/// Starts logging; once per process.
pub fn start(config: &Config) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(&config.log_level).map_err(|error| ConfigError(error.to_string()))?;
    // Colours are for eyes; in a file or a collector they are noise.
    let ansi = std::io::stderr().is_terminal();
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(ansi).with_writer(std::io::stderr);
    let started = match config.log_format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| ConfigError(format!("cannot start the log: {error}")))?;
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panic: {}", panic_text(panic.payload()));
    }));
    Ok(())
}

/// What a panic said.
pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}
