//! One layer of settings: what a file, the environment or the command line says, and nothing about the rest.
//!
//! The same struct is read from TOML (key = flag name), from `MAYFLY_*` variables and from flags, so a setting
//! is added in one place. `config` lays the layers over each other and checks the result.
//!
//! Holds: a field that nobody set is `None` in every layer, and secrets do not appear in `{:?}`.

use crate::connection::Scheme;
use clap::{Args, ValueEnum};
use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A layer of settings. The comments are the text of `--help`.
#[derive(Args, Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long, env = "MAYFLY_HOST", value_name = "ADDRESS")]
    pub host: Option<String>,

    /// Port for HTTP and HTTPS, HTTP/1.1 and HTTP/2; 0 takes a free one [default: 8081]
    #[arg(long, env = "MAYFLY_PORT", value_name = "PORT")]
    pub port: Option<u16>,

    /// Port for the MongoDB protocol, plain and TLS; 0 switches it off [default: 27017]
    #[arg(long, env = "MAYFLY_MONGO_PORT", value_name = "PORT")]
    pub mongo_port: Option<u16>,

    /// What MongoDB clients are told: `router`, or `replica-set` (called `mayfly`) at the address they came to
    /// [default: router]
    #[arg(long, env = "MAYFLY_MONGO_TOPOLOGY", value_enum, value_name = "TOPOLOGY")]
    pub mongo_topology: Option<MongoTopology>,

    /// Directory for data and certificates [default: ./mayfly-data]
    #[arg(long, env = "MAYFLY_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Where documents are kept: embedded, memory, or postgres://user:password@host/database, which many nodes may share [default: embedded]
    #[arg(long, env = "MAYFLY_STORE", value_name = "STORE", hide_env_values = true)]
    pub store: Option<Store>,

    /// When a write is safe: after fsync, after the next fsync interval, or when the system pleases [default: fsync]
    #[arg(long, env = "MAYFLY_DURABILITY", value_enum, value_name = "WHEN")]
    pub durability: Option<Durability>,

    /// How files of the embedded store are compressed; may change at every start [default: lz4]
    #[arg(long, env = "MAYFLY_COMPRESSION", value_enum, value_name = "HOW")]
    pub compression: Option<Compression>,

    /// Memory for documents and index entries that were read, in MB, on the embedded store [default: a sixteenth of the
    /// machine's or container's memory, from 64 to 1024]
    #[arg(long, env = "MAYFLY_CACHE_MB", value_name = "MB")]
    pub cache_mb: Option<u64>,

    /// Account key, base64 [default: the well-known key of the Cosmos emulator]
    #[arg(long, env = "MAYFLY_KEY", value_name = "KEY", hide_env_values = true)]
    pub key: Option<Secret>,

    /// Second account key, for changing keys without a pause
    #[arg(long, env = "MAYFLY_SECONDARY_KEY", value_name = "KEY", hide_env_values = true)]
    pub secondary_key: Option<Secret>,

    /// Key that may only read and query
    #[arg(long, env = "MAYFLY_READONLY_KEY", value_name = "KEY", hide_env_values = true)]
    pub readonly_key: Option<Secret>,

    /// Accept the well-known key on an address that others can reach
    #[arg(long, env = "MAYFLY_ALLOW_EMULATOR_KEY", value_parser = switch, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub allow_emulator_key: Option<bool>,

    /// Let clients set the clock, to test expiry without waiting
    #[arg(long, env = "MAYFLY_DEV_CLOCK", value_parser = switch, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub dev_clock: Option<bool>,

    /// Let in whoever brings a token of the form Entra ID gives out, without checking it; for development
    #[arg(long, env = "MAYFLY_DEV_ENTRA", value_parser = switch, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub dev_entra: Option<bool>,

    /// Hold containers to their request units per second with 429 answers
    #[arg(long, env = "MAYFLY_THROTTLE", value_parser = switch, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub throttle: Option<bool>,

    /// Connections served at a time; more wait until one ends [default: 1024]
    #[arg(long, env = "MAYFLY_MAX_CONNECTIONS", value_name = "COUNT")]
    pub max_connections: Option<usize>,

    /// Scheme that the start-up text shows first; both are always served [default: https]
    #[arg(long, env = "MAYFLY_PROTOCOL", value_enum, value_name = "SCHEME")]
    pub protocol: Option<Scheme>,

    /// Form of the log on standard error [default: text]
    #[arg(long, env = "MAYFLY_LOG_FORMAT", value_enum, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,

    /// off, error, warn, info, debug, trace, or a filter like mayfly=debug,info [default: info]
    #[arg(long, env = "MAYFLY_LOG_LEVEL", value_name = "LEVEL")]
    pub log_level: Option<String>,
}

impl Settings {
    /// These settings where they say something, `lower` where they do not.
    pub fn over(self, lower: Settings) -> Settings {
        macro_rules! overlay {
            // Names every field, so that a forgotten one does not compile.
            ($($field:ident),*) => { Settings { $($field: self.$field.or(lower.$field)),* } };
        }
        overlay!(
            host,
            port,
            mongo_port,
            mongo_topology,
            data_dir,
            store,
            durability,
            compression,
            cache_mb,
            key,
            secondary_key,
            readonly_key,
            allow_emulator_key,
            dev_clock,
            dev_entra,
            throttle,
            max_connections,
            protocol,
            log_format,
            log_level
        )
    }
}

/// Where documents are kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Store {
    /// Files in the data directory.
    Embedded,
    /// Nowhere; gone at exit.
    Memory,
    /// A PostgreSQL server; the URL may hold a password.
    Postgres(Secret),
}

impl FromStr for Store {
    type Err = String;

    fn from_str(text: &str) -> Result<Store, String> {
        match text {
            "embedded" => Ok(Store::Embedded),
            "memory" => Ok(Store::Memory),
            _ if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
                Ok(Store::Postgres(Secret(text.into())))
            }
            _ => Err("a store is `embedded`, `memory` or a postgres:// URL".into()),
        }
    }
}

impl TryFrom<String> for Store {
    type Error = String;

    fn try_from(text: String) -> Result<Store, String> {
        text.parse()
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Store::Embedded => "embedded",
            Store::Memory => "memory",
            Store::Postgres(_) => "postgres",
        })
    }
}

/// What MongoDB clients are told about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MongoTopology {
    /// A router: every feature, and no other hosts to look for.
    Router,
    /// A replica set of one.
    ReplicaSet,
}

/// When a write counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// It is on disk.
    Fsync,
    /// It will be on disk within a fixed interval; a power cut may take the last writes.
    Interval,
    /// It is with the operating system.
    None,
}

/// How files are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    None,
    /// With LZ4.
    Lz4,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line to read.
    Text,
    /// A JSON object per line.
    Json,
}

/// A text that must not be printed by accident.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Secret(pub String);

impl FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Secret, Self::Err> {
        Ok(Secret(text.into()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Booleans as people write them in environments.
fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" | "" => Ok(false),
        _ => Err("expected true or false".into()),
    }
}
