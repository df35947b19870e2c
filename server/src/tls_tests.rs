//! What is kept, what is remade, what is refused.

use super::*;

const NOW: u64 = 1_767_225_600;
const OVER_A_YEAR_SECONDS: u64 = 370 * 86_400;

fn kept(dir: &Path, names: &[String], now: u64) -> (String, String) {
    let identity = Identity::kept_in(dir, names, now).unwrap();
    (identity.ca_pem, std::fs::read_to_string(dir.join("server.pem")).unwrap())
}

#[test]
fn a_restart_keeps_both_and_a_change_remakes_the_server_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let names = names_for("127.0.0.1");
    let (ca, server) = kept(dir.path(), &names, NOW);
    assert_eq!(kept(dir.path(), &names, NOW + 1), (ca.clone(), server.clone()), "restart");

    let (ca_later, server_later) = kept(dir.path(), &names, NOW + OVER_A_YEAR_SECONDS);
    assert_eq!(ca_later, ca);
    assert_ne!(server_later, server, "near its end");

    let (ca_named, server_named) = kept(dir.path(), &names_for("db.example"), NOW + OVER_A_YEAR_SECONDS);
    assert_eq!(ca_named, ca);
    assert_ne!(server_named, server_later, "a new name");

    std::fs::write(dir.path().join("server.key"), "damaged").unwrap();
    let (ca_repaired, server_repaired) =
        kept(dir.path(), &names_for("db.example"), NOW + OVER_A_YEAR_SECONDS);
    assert_eq!(ca_repaired, ca);
    assert_ne!(server_repaired, server_named, "damaged");
}

#[cfg(unix)]
#[test]
fn keys_are_for_the_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path(), &names_for("localhost"), NOW);
    for name in ["ca.key", "server.key"] {
        let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_damaged_authority_is_never_replaced() {
    for (name, damage) in [("ca.key", None), ("ca.pem", None), ("ca.key", Some("x")), ("ca.pem", Some("x"))] {
        let dir = tempfile::tempdir().unwrap();
        kept(dir.path(), &names_for("localhost"), NOW);
        let path = dir.path().join(name);
        match damage {
            Some(text) => std::fs::write(&path, text).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let error = Identity::kept_in(dir.path(), &names_for("localhost"), NOW).err().unwrap().to_string();
        assert!(error.contains("remove the directory to get a new CA"), "{name}: {error}");
    }
}

#[test]
fn names_cover_this_machine_and_the_given_host() {
    for (host, extra) in
        [("127.0.0.1", None), ("0.0.0.0", None), ("[::]", None), ("10.1.2.3", Some("10.1.2.3"))]
    {
        let names = names_for(host);
        for name in ["localhost", "127.0.0.1", "::1", "host.docker.internal"].into_iter().chain(extra) {
            assert_eq!(names.iter().filter(|n| *n == name).count(), 1, "{host}: {names:?}");
        }
        assert!(!names.iter().any(|name| name == "0.0.0.0" || name == "::"), "{names:?}");
    }
}
