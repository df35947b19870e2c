//! The start-up text: how to reach the server, and the lines that scripts wait for.
//!
//! It goes to standard output, apart from the log. Test containers watch for `Started` or for the sentence
//! about being ready, and one of them wants `Started` with CR LF as the very last line.
//!
//! Holds: the text ends in `Started\r\n`, and nothing else of the server writes to standard output after it.

use crate::config::Config;
use crate::connection::Scheme;
use crate::settings::Store;
use mayfly_cosmos::ACCOUNT;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The text for a server that listens on `address`, and on `mongo` if it could.
pub fn text(
    config: &Config,
    address: SocketAddr,
    mongo: Option<SocketAddr>,
    ca_path: Option<&Path>,
) -> String {
    let host = shown_host(&config.host);
    let url = |scheme: Scheme| format!("{}://{host}:{}/", scheme.as_str(), address.port());
    let (first, second) = match config.protocol {
        Scheme::Https => (Scheme::Https, Scheme::Http),
        Scheme::Http => (Scheme::Http, Scheme::Https),
    };
    let key = config.key.0.trim();
    let data = match config.store {
        Store::Memory => "in memory, gone at exit".to_owned(),
        Store::Postgres(_) => format!("PostgreSQL; certificates in {}", config.data_dir.display()),
        Store::Embedded => config.data_dir.display().to_string(),
    };
    let ca = ca_path.map_or_else(String::new, |path| format!("{}, ", path.display()));

    let mut out = String::new();
    let mut line = |text: &str| {
        let _ = writeln!(out, "{text}");
    };
    line(&format!("Mayfly {}", env!("CARGO_PKG_VERSION")));
    line("");
    line(&format!("Endpoint    {}", url(first)));
    line(&format!("            {}", url(second)));
    line(&format!("Key         {key}"));
    line(&format!("Connection  AccountEndpoint={};AccountKey={key};", url(first)));
    line(&format!("Python      azure.cosmos.CosmosClient(\"{}\", \"{key}\")", url(Scheme::Http)));
    if let Some(mongo) = mongo {
        let user = match config.mongo_auth {
            true => format!("{ACCOUNT}:{}@", utf8_percent_encode(key, NON_ALPHANUMERIC)),
            false => String::new(),
        };
        line(&format!("MongoDB     mongodb://{user}{host}:{}/", mongo.port()));
    }
    line(&format!("Portal      {}_explorer/", url(Scheme::Http)));
    line(&format!("Data        {data}"));
    line(&format!("CA          {ca}{}_explorer/emulator.pem", url(Scheme::Http)));
    line("");
    line("System is now fully ready to accept requests");
    out.push_str("Started\r\n");
    out
}

/// A host that a client on this machine can use in a URL.
fn shown_host(host: &str) -> String {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        // The certificate and everyone's habits say localhost.
        Ok(IpAddr::V4(address)) if address.is_loopback() || address.is_unspecified() => "localhost".into(),
        Ok(IpAddr::V6(address)) if address.is_unspecified() => "localhost".into(),
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ => host.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_toml;

    fn banner(toml: &str) -> String {
        let config = Config::resolve(parse_toml(toml).unwrap()).unwrap();
        let mongo = Some("127.0.0.1:27017".parse().unwrap());
        text(&config, "127.0.0.1:8081".parse().unwrap(), mongo, Some(Path::new("d/tls/ca.pem")))
    }

    #[test]
    fn scripts_find_what_they_wait_for() {
        let text = banner("");
        assert!(text.ends_with("\nSystem is now fully ready to accept requests\nStarted\r\n"), "{text}");
        for phrase in [
            "https://localhost:8081/\n",
            "http://localhost:8081/\n",
            "AccountEndpoint=https://localhost:8081/;AccountKey=C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDu\
             VTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==;\n",
            "mongodb://localhost:27017/\n",
            "http://localhost:8081/_explorer/\n",
            "./mayfly-data\n",
            "d/tls/ca.pem, http://localhost:8081/_explorer/emulator.pem\n",
        ] {
            assert!(text.contains(phrase), "{phrase} is missing in\n{text}");
        }
    }

    #[test]
    fn settings_show_in_the_text() {
        assert!(banner("protocol = 'http'").contains("AccountEndpoint=http://localhost:8081/;"));
        assert!(banner("store = 'memory'").contains("Data        in memory"));
        assert!(banner("host = '::1'").contains("https://[::1]:8081/"));
        // Whoever has a key of their own must show it, in a form that a URL can hold.
        assert!(banner("key = 'a+b/cA=='").contains("mongodb://mayfly:a%2Bb%2FcA%3D%3D@localhost:27017/"));
    }
}
