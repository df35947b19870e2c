//! Environment variables of the Cosmos emulators, so that existing compose files and test containers work.
//!
//! Those with a counterpart become a layer of settings between the file and `MAYFLY_*`; the others are
//! ignored. Either way the log says so once. The function is pure but for reading the key file, which it gets
//! as an argument.
//!
//! Holds: an unusable value never stops the server, with one exception: a key file that cannot be read, for
//! going on would mean serving under a key that everyone knows.

use crate::config::ConfigError;
use crate::connection::Scheme;
use crate::settings::{Secret, Settings};

/// Variables that have no counterpart here.
const IGNORED: &[&str] = &[
    "ENABLE_EXPLORER",
    "EXPLORER_PORT",
    "EXPLORER_PROTOCOL",
    "GATEWAY_PUBLIC_ENDPOINT",
    "CERT_PATH",
    "CERT_SECRET",
    "ENABLE_OTLP_EXPORTER",
    "ENABLE_CONSOLE_EXPORTER",
    "ENABLE_TELEMETRY",
    "QUERY_BUFFER_SIZE_KB",
];

const EMULATOR_PREFIX: &str = "AZURE_COSMOS_EMULATOR_";

/// What the emulators' variables say, and a line for the log about each.
#[derive(Debug, Default, PartialEq)]
pub struct EmulatorEnv {
    /// The layer.
    pub settings: Settings,
    /// One line per variable.
    pub notes: Vec<String>,
}

/// Reads the variables; `read_file` is used for `KEY_FILE`.
pub fn read(
    vars: impl IntoIterator<Item = (String, String)>,
    read_file: impl Fn(&str) -> std::io::Result<String>,
) -> Result<EmulatorEnv, ConfigError> {
    let mut env = EmulatorEnv::default();
    let mut vars: Vec<_> = vars.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    // The environment has no order; the log lines should.
    vars.sort();
    for (name, value) in vars {
        let used = match name.as_str() {
            "PORT" => value.parse().ok().map(|port| env.settings.port = Some(port)),
            "PROTOCOL" => scheme(&value).map(|scheme| env.settings.protocol = Some(scheme)),
            "DATA_PATH" => {
                env.settings.data_dir = Some(value.into());
                Some(())
            }
            "LOG_LEVEL" => level(&value).map(|level| env.settings.log_level = Some(level.into())),
            "AZURE_COSMOS_EMULATOR_KEY" => {
                env.settings.key.get_or_insert(Secret(value));
                Some(())
            }
            "KEY_FILE" => {
                let key = read_file(&value).map_err(|error| {
                    ConfigError(format!(
                        "KEY_FILE is set, but {value} cannot be read: {error}. Unset it or give the key with \
                         --key"
                    ))
                })?;
                env.settings.key = Some(Secret(key.trim().into()));
                Some(())
            }
            "AZURE_COSMOS_EMULATOR_ARGS" => {
                args(&value, &mut env);
                continue;
            }
            _ if IGNORED.contains(&name.as_str()) || name.starts_with(EMULATOR_PREFIX) => None,
            _ => continue,
        };
        env.notes.push(match used {
            Some(()) => format!("{name} is taken from the environment; flags and MAYFLY_* go first"),
            None => format!("{name} is an emulator setting without a counterpart here: ignored"),
        });
    }
    Ok(env)
}

/// The switches of the first emulator, `/Name` or `/Name=value`, apart by blanks.
fn args(text: &str, env: &mut EmulatorEnv) {
    for arg in text.split_whitespace() {
        let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
        let used = match name.trim_start_matches(['/', '-']).to_ascii_lowercase().as_str() {
            "port" => value.parse().ok().map(|port| env.settings.port = Some(port)),
            "key" if !value.is_empty() => {
                env.settings.key.get_or_insert(Secret(value.into()));
                Some(())
            }
            "enableratelimiting" => {
                env.settings.throttle = Some(true);
                Some(())
            }
            "disableratelimiting" => {
                env.settings.throttle = Some(false);
                Some(())
            }
            "enableaadauthentication" => {
                env.settings.dev_entra = Some(true);
                Some(())
            }
            _ => None,
        };
        env.notes.push(match used {
            Some(()) => format!("{name} of AZURE_COSMOS_EMULATOR_ARGS is taken; flags and MAYFLY_* go first"),
            None => format!("{name} of AZURE_COSMOS_EMULATOR_ARGS has no counterpart here: ignored"),
        });
    }
}

fn scheme(text: &str) -> Option<Scheme> {
    match text.to_ascii_lowercase().as_str() {
        "http" => Some(Scheme::Http),
        "https" | "https-insecure" => Some(Scheme::Https),
        _ => None,
    }
}

fn level(text: &str) -> Option<&'static str> {
    match text.to_ascii_lowercase().as_str() {
        "quiet" | "error" => Some("error"),
        "warn" | "warning" => Some("warn"),
        "info" => Some("info"),
        "debug" => Some("debug"),
        "trace" => Some("trace"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    fn read_vars(vars: &[(&str, &str)]) -> Result<EmulatorEnv, ConfigError> {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        read(vars, |path| match path {
            "/key" => Ok("a2V5\n".into()),
            _ => Err(Error::from(ErrorKind::NotFound)),
        })
    }

    #[test]
    fn known_variables_become_settings() {
        let env = read_vars(&[
            ("PORT", "9000"),
            ("PROTOCOL", "http"),
            ("DATA_PATH", "/data"),
            ("KEY_FILE", "/key"),
            ("AZURE_COSMOS_EMULATOR_KEY", "b3RoZXI="),
            ("LOG_LEVEL", "quiet"),
            ("HOME", "/root"),
        ])
        .unwrap();
        let expected = Settings {
            port: Some(9000),
            protocol: Some(Scheme::Http),
            data_dir: Some("/data".into()),
            key: Some(Secret("a2V5".into())),
            log_level: Some("error".into()),
            ..Settings::default()
        };
        assert_eq!(env.settings, expected);
        assert_eq!(env.notes.len(), 6);
        assert!(env.notes.iter().all(|note| !note.contains("b3RoZXI=")), "{:?}", env.notes);
    }

    #[test]
    fn the_rest_is_ignored_with_a_line_each() {
        let env = read_vars(&[
            ("AZURE_COSMOS_EMULATOR_PARTITION_COUNT", "3"),
            ("ENABLE_EXPLORER", "false"),
            ("PORT", "tcp://10.0.0.1:80"),
            ("LOG_LEVEL", "loud"),
            ("CERT_PATH", ""),
        ])
        .unwrap();
        assert_eq!(env.settings, Settings::default());
        assert_eq!(env.notes.len(), 4);
        assert!(env.notes.iter().all(|note| note.ends_with("ignored")), "{:?}", env.notes);
    }

    #[test]
    fn switches_of_the_first_emulator_are_read_one_by_one() {
        let args = "/EnableRateLimiting /enableaadauthentication /Port=9001 /Key=a2V5 /Consistency=Strong";
        let env = read_vars(&[("AZURE_COSMOS_EMULATOR_ARGS", args)]).unwrap();
        let expected = Settings {
            port: Some(9001),
            key: Some(Secret("a2V5".into())),
            throttle: Some(true),
            dev_entra: Some(true),
            ..Settings::default()
        };
        assert_eq!(env.settings, expected);
        assert_eq!(env.notes.len(), 5);
        assert!(
            env.notes[4].starts_with("/Consistency of") && env.notes[4].ends_with("ignored"),
            "{:?}",
            env.notes
        );
        assert!(env.notes.iter().all(|note| !note.contains("a2V5")), "{:?}", env.notes);
        let off = read_vars(&[("AZURE_COSMOS_EMULATOR_ARGS", "/DisableRateLimiting")]).unwrap();
        assert_eq!(off.settings.throttle, Some(false));
    }

    #[test]
    fn a_key_file_must_be_readable() {
        let error = read_vars(&[("KEY_FILE", "/nowhere")]).unwrap_err().to_string();
        assert!(error.contains("/nowhere cannot be read"), "{error}");
    }
}
