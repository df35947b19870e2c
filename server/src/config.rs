//! The settings the server runs with: all present, all checked.
//!
//! Layers, each over the one before: defaults, the TOML file, the emulators' environment variables,
//! `MAYFLY_*` variables, flags. The last two arrive as one layer, since the argument parser knows both.
//!
//! Holds: a `Config` can be run as it is; whatever is wrong was refused with a text that says what to do.

use crate::connection::Scheme;
use crate::memory;
use crate::settings::{Compression, Durability, LogFormat, MongoTopology, Secret, Settings, Store};
use mayfly_cosmos::auth::{EMULATOR_KEY, Key, Keys};
use mayfly_mongo::auth::Role;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use tracing_subscriber::EnvFilter;

/// Where data is kept unless told otherwise.
pub const DATA_DIR_DEFAULT: &str = "./mayfly-data";

/// A terabyte: whoever asks for more has counted in bytes.
const CACHE_MB_MAX: u64 = 1 << 20;

/// Checked settings.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field is documented on `Settings`")]
pub struct Config {
    pub host: String,
    pub port: u16,
    pub mongo_port: u16,
    /// Whether the port was asked for; one that nobody asked for may be taken by somebody else.
    pub mongo_port_asked: bool,
    pub mongo_topology: MongoTopology,
    /// The account's passwords in the MongoDB protocol: its keys as texts.
    pub mongo_passwords: Vec<(Secret, Role)>,
    /// Whether MongoDB clients must say who they are: not while the key is one that everyone knows.
    pub mongo_auth: bool,
    pub data_dir: PathBuf,
    pub store: Store,
    pub durability: Durability,
    pub compression: Compression,
    /// Memory for what the embedded store has read.
    pub cache_mb: u64,
    /// The primary key as text, for the start-up text and `--print-config`.
    pub key: Secret,
    pub keys: Keys,
    pub allow_emulator_key: bool,
    pub dev_clock: bool,
    pub dev_entra: bool,
    pub throttle: bool,
    pub max_connections: usize,
    pub protocol: Scheme,
    pub log_format: LogFormat,
    pub log_level: String,
}

/// Why these settings cannot be used. Shown to the person who started the server.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

fn refuse<T>(message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError(message.into()))
}

/// Reads a layer from a TOML file.
pub fn read_file(path: &Path) -> Result<Settings, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError(format!("cannot read the settings in {}: {error}", path.display())))?;
    parse_toml(&text).map_err(|error| ConfigError(format!("{}: {error}", path.display())))
}

/// Reads a layer from TOML text; a key that is no setting is an error that names it.
pub fn parse_toml(text: &str) -> Result<Settings, ConfigError> {
    toml::from_str(text).map_err(|error| ConfigError(error.to_string()))
}

impl Config {
    /// Fills in the defaults and checks the whole.
    pub fn resolve(settings: Settings) -> Result<Config, ConfigError> {
        let key = settings.key.unwrap_or_else(|| Secret(EMULATOR_KEY.into()));
        let keys = Keys {
            primary: parse_key("--key", &key)?,
            secondary: parse_optional("--secondary-key", settings.secondary_key.as_ref())?,
            read_only: parse_optional("--readonly-key", settings.readonly_key.as_ref())?,
        };
        let passwords = [
            (Some(&key), Role::Admin),
            (settings.secondary_key.as_ref(), Role::Admin),
            (settings.readonly_key.as_ref(), Role::Read),
        ];
        let password = |(key, role): (Option<&Secret>, Role)| Some((Secret(key?.0.trim().into()), role));
        let config = Config {
            host: settings.host.unwrap_or_else(|| "127.0.0.1".into()),
            port: settings.port.unwrap_or(8081),
            mongo_port: settings.mongo_port.unwrap_or(27017),
            mongo_port_asked: settings.mongo_port.is_some(),
            mongo_topology: settings.mongo_topology.unwrap_or(MongoTopology::Router),
            mongo_passwords: passwords.into_iter().filter_map(password).collect(),
            mongo_auth: key.0.trim() != EMULATOR_KEY,
            data_dir: settings.data_dir.unwrap_or_else(|| DATA_DIR_DEFAULT.into()),
            store: settings.store.unwrap_or(Store::Embedded),
            durability: settings.durability.unwrap_or(Durability::Fsync),
            compression: settings.compression.unwrap_or(Compression::Lz4),
            cache_mb: settings.cache_mb.unwrap_or_else(memory::cache_mb),
            key,
            keys,
            allow_emulator_key: settings.allow_emulator_key.unwrap_or(false),
            dev_clock: settings.dev_clock.unwrap_or(false),
            dev_entra: settings.dev_entra.unwrap_or(false),
            throttle: settings.throttle.unwrap_or(false),
            max_connections: settings.max_connections.unwrap_or(1024),
            protocol: settings.protocol.unwrap_or(Scheme::Https),
            log_format: settings.log_format.unwrap_or(LogFormat::Text),
            log_level: settings.log_level.unwrap_or_else(|| "info".into()),
        };
        let all_keys = [Some(&config.key), settings.secondary_key.as_ref(), settings.readonly_key.as_ref()];
        let well_known = all_keys.into_iter().flatten().any(|key| key.0.trim() == EMULATOR_KEY);
        config.check(well_known)?;
        Ok(config)
    }

    fn check(&self, has_well_known_key: bool) -> Result<(), ConfigError> {
        if let (Store::Postgres(_), true) = (&self.store, self.dev_clock) {
            return refuse(
                "--dev-clock is not for a store that other nodes share: they would not agree on the time. Use \
                 `embedded` (the default) or `memory`",
            );
        }
        if self.host.is_empty() || self.host.contains(['/', ' ']) {
            return refuse(format!("--host `{}` is not an address; give an IP address or a name", self.host));
        }
        if self.port != 0 && self.port == self.mongo_port {
            return refuse(format!("--port and --mongo-port are both {}; change one of them", self.port));
        }
        if self.max_connections == 0 {
            return refuse("--max-connections must be at least 1");
        }
        if self.cache_mb == 0 || self.cache_mb > CACHE_MB_MAX {
            return refuse("--cache-mb must be at least 1 and at most 1048576");
        }
        if let Err(error) = EnvFilter::try_new(&self.log_level) {
            return refuse(format!("--log-level `{}` is not a level or filter: {error}", self.log_level));
        }
        if has_well_known_key && !self.allow_emulator_key && !is_loopback(&self.host) {
            return refuse(format!(
                "--host {} can be reached from other machines, and the account key is the emulator key that \
                 everyone knows. Set an own key with --key or MAYFLY_KEY (for example the output of \
                 `openssl rand -base64 64 | tr -d '\\n'`), or say --allow-emulator-key if the network is yours \
                 alone.",
                self.host
            ));
        }
        if self.dev_entra && !self.allow_emulator_key && !is_loopback(&self.host) {
            return refuse(format!(
                "--host {} can be reached from other machines, and --dev-entra lets in anybody who makes up a \
                 token. Leave it out, or say --allow-emulator-key if the network is yours alone.",
                self.host
            ));
        }
        Ok(())
    }

    /// The settings as a TOML file that would give them again, except for secret keys.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        let text = |value: &str| toml::Value::String(value.into()).to_string();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(out, "{name} = {value}");
        };
        line("host", text(&self.host));
        line("port", self.port.to_string());
        line("mongo-port", self.mongo_port.to_string());
        let topology = match self.mongo_topology {
            MongoTopology::Router => "router",
            MongoTopology::ReplicaSet => "replica-set",
        };
        line("mongo-topology", text(topology));
        line("data-dir", text(&self.data_dir.to_string_lossy()));
        line("store", text(&self.store.to_string()));
        line("durability", text(&format!("{:?}", self.durability).to_lowercase()));
        line("compression", text(&format!("{:?}", self.compression).to_lowercase()));
        line("cache-mb", self.cache_mb.to_string());
        // A printed configuration ends up in bug reports; only the key that everyone knows may.
        if self.key.0.trim() == EMULATOR_KEY {
            line("key", text(EMULATOR_KEY));
        } else {
            line("# key", "(set, not shown)".into());
        }
        for (name, key) in
            [("# secondary-key", &self.keys.secondary), ("# readonly-key", &self.keys.read_only)]
        {
            line(name, if key.is_some() { "(set, not shown)".into() } else { "(not set)".into() });
        }
        line("allow-emulator-key", self.allow_emulator_key.to_string());
        line("dev-clock", self.dev_clock.to_string());
        line("dev-entra", self.dev_entra.to_string());
        line("throttle", self.throttle.to_string());
        line("max-connections", self.max_connections.to_string());
        line("protocol", text(self.protocol.as_str()));
        line("log-format", text(&format!("{:?}", self.log_format).to_lowercase()));
        line("log-level", text(&self.log_level));
        out
    }
}

fn parse_key(flag: &str, key: &Secret) -> Result<Key, ConfigError> {
    Key::from_base64(&key.0).map_err(|error| ConfigError(format!("{flag}: {error}")))
}

fn parse_optional(flag: &str, key: Option<&Secret>) -> Result<Option<Key>, ConfigError> {
    key.map(|key| parse_key(flag, key)).transpose()
}

/// Whether only this machine can reach the address. A name other than `localhost` may be anything.
fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().map_or(host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
