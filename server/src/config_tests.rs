//! Defaults, layers and refusals.

use super::*;

const OWN_KEY: &str = "bWF5Zmx5LW93bi1rZXk=";

fn layer(toml: &str) -> Settings {
    parse_toml(toml).unwrap()
}

fn refusal(toml: &str) -> String {
    Config::resolve(layer(toml)).unwrap_err().to_string()
}

#[test]
fn defaults_need_no_settings() {
    let config = Config::resolve(Settings::default()).unwrap();
    assert_eq!((config.host.as_str(), config.port, config.mongo_port), ("127.0.0.1", 8081, 27017));
    assert_eq!((config.store, config.durability), (Store::Embedded, Durability::Fsync));
    assert_eq!(config.key.0, EMULATOR_KEY);
    assert_eq!(config.data_dir, Path::new("./mayfly-data"));
    assert!(!config.dev_clock && !config.throttle && !config.dev_entra && !config.allow_emulator_key);
}

#[test]
fn upper_layers_win_where_they_speak() {
    let file = layer("port = 1\nhost = 'localhost'\nthrottle = true");
    let flags = layer("port = 2\nthrottle = false");
    let config = Config::resolve(flags.over(file)).unwrap();
    assert_eq!((config.port, config.host.as_str(), config.throttle), (2, "localhost", false));
}

#[test]
fn unknown_and_misshaped_keys_are_named() {
    for (toml, phrase) in [
        ("prot = 8081", "unknown field `prot`"),
        ("port = 'x'", "port"),
        ("port = 70000", "port"),
        ("store = 'oracle'", "a store is `embedded`"),
        ("durability = 'maybe'", "durability"),
        ("compression = 'most'", "compression"),
    ] {
        let error = parse_toml(toml).unwrap_err().to_string();
        assert!(error.contains(phrase), "{toml}: {error}");
    }
}

#[test]
fn refusals_say_what_to_do() {
    for (toml, phrase) in [
        ("host = '0.0.0.0'", "--allow-emulator-key"),
        ("host = '::'", "--allow-emulator-key"),
        ("host = 'db.example'", "--allow-emulator-key"),
        ("store = 'postgres://u:secret@h/db'\ndev-clock = true", "not agree on the time"),
        ("key = 'no base64!'", "--key: an account key must be base64"),
        ("readonly-key = ''", "--readonly-key"),
        ("port = 5000\nmongo-port = 5000", "both 5000"),
        ("max-connections = 0", "at least 1"),
        ("cache-mb = 0", "at least 1"),
        ("log-level = 'a=b=c'", "--log-level"),
        ("host = ''", "--host"),
    ] {
        let text = refusal(toml);
        assert!(text.contains(phrase), "{toml}: {text}");
        assert!(!text.contains("secret"), "{text}");
    }
    let second = format!("host = '0.0.0.0'\nkey = '{OWN_KEY}'\nsecondary-key = '{EMULATOR_KEY}'");
    assert!(refusal(&second).contains("everyone knows"));
    let open = format!("host = '0.0.0.0'\nkey = '{OWN_KEY}'\ndev-entra = true");
    assert!(refusal(&open).contains("--dev-entra lets in anybody"));
}

#[test]
fn reachable_addresses_are_fine_with_an_own_key_or_on_request() {
    for toml in [
        format!("host = '0.0.0.0'\nkey = '{OWN_KEY}'"),
        "host = '0.0.0.0'\nallow-emulator-key = true".into(),
        "host = '127.0.0.2'".into(),
        "host = '::1'".into(),
        "host = '[::1]'".into(),
        "host = 'LOCALHOST'".into(),
    ] {
        assert!(Config::resolve(layer(&toml)).is_ok(), "{toml}");
    }
}

#[test]
fn printed_settings_read_back_and_hide_keys() {
    let config = Config::resolve(layer("port = 9\ndata-dir = 'a\"b'\nlog-format = 'json'")).unwrap();
    let again = Config::resolve(layer(&config.to_toml())).unwrap();
    assert_eq!(again.to_toml(), config.to_toml());
    let own = Config::resolve(layer(&format!("key = '{OWN_KEY}'"))).unwrap();
    assert!(!own.to_toml().contains(OWN_KEY));
    assert!(!format!("{own:?}").contains(OWN_KEY));
}
