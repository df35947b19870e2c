//! Tokens that pass, tokens that were tampered with, and what a grant reaches.

use proptest::prelude::*;

use super::*;
use crate::auth::{Credential, EMULATOR_KEY, credential};
use crate::path::Path;

const NOW: u64 = 1_767_225_600;
const CONTAINER: Rid = Rid::Container { db: 0x1200, coll: 0x23 };

fn keys() -> Keys {
    Keys {
        primary: Key::from_base64(EMULATOR_KEY).unwrap(),
        secondary: Some(Key::from_base64("c2Vjb25kYXJ5").unwrap()),
        read_only: Some(Key::from_base64("cmVhZG9ubHk=").unwrap()),
    }
}

fn grant(mode: Mode, link: &str) -> Grant {
    Grant {
        mode,
        resource_link: link.into(),
        resource_rid: CONTAINER,
        partition_key: None,
        expires_at: NOW + 3600,
    }
}

/// What a request with this header would check.
fn sent(header: &str) -> String {
    match credential(header) {
        Ok(Credential::Resource(token)) => token,
        other => panic!("is a resource token: {other:?}"),
    }
}

#[test]
fn tokens_say_what_was_granted() {
    let keys = keys();
    let bound =
        Grant { partition_key: Some(r#"["ä",1]"#.into()), ..grant(Mode::All, "dbs/Db 1/colls/c/docs/i") };
    for grant in [grant(Mode::Read, "dbs/d/colls/c"), bound] {
        let token = mint(&keys.primary, &grant, 7);
        assert!(token.starts_with("type=resource&ver=1.0&sig=") && token.ends_with(';'), "{token}");
        assert_eq!(verify(&keys, &sent(&token), NOW), Ok(grant.clone()));
        let encoded = token.replace('=', "%3D").replace('+', "%2B").replace('/', "%2F").replace(';', "%3B");
        assert_eq!(verify(&keys, &sent(&encoded), NOW), Ok(grant));
    }
    let grant = grant(Mode::Read, "dbs/d/colls/c");
    assert_ne!(mint(&keys.primary, &grant, 1), mint(&keys.primary, &grant, 2));
}

#[test]
fn keys_that_may_write_sign_tokens() {
    let keys = keys();
    let grant = grant(Mode::Read, "dbs/d/colls/c");
    let signed_by = |key: &Key| verify(&keys, &sent(&mint(key, &grant, 1)), NOW);
    assert!(signed_by(&keys.primary).is_ok());
    assert!(signed_by(keys.secondary.as_ref().unwrap()).is_ok());
    assert_eq!(signed_by(keys.read_only.as_ref().unwrap()), Err(TokenError::WrongSignature));
    assert_eq!(signed_by(&Key::from_base64("b3RoZXI=").unwrap()), Err(TokenError::WrongSignature));
}

#[test]
fn tokens_expire() {
    let keys = keys();
    let token = sent(&mint(&keys.primary, &grant(Mode::Read, "dbs/d/colls/c"), 1));
    assert!(verify(&keys, &token, NOW + 3599).is_ok());
    let expired = TokenError::Expired { expires_at: NOW + 3600, now: NOW + 3600 };
    assert_eq!(verify(&keys, &token, NOW + 3600), Err(expired));
    assert_eq!(ApiError::from(expired).status, 403);
    assert_eq!(ApiError::from(TokenError::Malformed).status, 401);
    assert_eq!(ApiError::from(TokenError::WrongSignature).status, 401);
    assert_eq!(forbidden().status, 403);
}

/// A token whose payload is this text, signed by the primary key for a purpose.
fn forged(purpose: &str, payload: &str) -> String {
    let signature = keys().primary.sign(&format!("{purpose}{payload}"));
    format!("{signature};{};", URL_SAFE_NO_PAD.encode(payload))
}

#[test]
fn every_part_is_covered_by_the_signature() {
    let keys = keys();
    let token = sent(&mint(&keys.primary, &grant(Mode::Read, "dbs/d/colls/c"), 1));
    let (signature, payload) = token.split_once(';').unwrap();
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(payload.trim_end_matches(';')).unwrap()).unwrap();
    for (from, to) in [
        ("Read", "All"),
        ("colls/c", "colls/x"),
        ("AAASAIAAACM=", "AAASAIAAACQ="),
        ("null", "\"[1]\""),
        ("1767229200", "1767229201"),
        ("\"nonce\":1", "\"nonce\":2"),
        ("\"v\":1", "\"v\":2"),
        ("}", " }"),
    ] {
        let tampered = text.replace(from, to);
        assert_ne!(tampered, text, "{from}");
        let tampered = format!("{signature};{};", URL_SAFE_NO_PAD.encode(tampered));
        assert_eq!(verify(&keys, &tampered, NOW), Err(TokenError::WrongSignature), "{from}");
    }
    assert!(verify(&keys, &forged(PURPOSE, &text), NOW).is_ok());
    assert_eq!(verify(&keys, &forged("", &text), NOW), Err(TokenError::WrongSignature));
    for payload in [
        text.replace("\"v\":1", "\"v\":2"),
        text.replace("AAASAIAAACM=", "?"),
        text.replace("Read", "Some"),
        text.replace("\"v\"", "\"w\""),
        String::new(),
        "[]".into(),
    ] {
        assert_eq!(verify(&keys, &forged(PURPOSE, &payload), NOW), Err(TokenError::Malformed), "{payload}");
    }
    let payload = payload.trim_end_matches(';');
    for malformed in [
        String::new(),
        ";;".into(),
        format!("{signature};{payload}"),
        format!("{signature}{payload};"),
        format!("{signature};{payload};;"),
        format!("?;{payload};"),
        format!("{signature};?;"),
        format!("{signature};{};", "A".repeat(LEN_MAX)),
    ] {
        let refused = verify(&keys, &malformed, NOW);
        assert!(matches!(refused, Err(TokenError::Malformed | TokenError::WrongSignature)), "{malformed}");
    }
}

const PATHS: [&str; 17] = [
    "/",
    "/dbs",
    "/dbs/d",
    "/dbs/d/colls",
    "/dbs/d/colls/c",
    "/dbs/d/colls/c/pkranges",
    "/dbs/d/colls/c/docs",
    "/dbs/d/colls/c/docs/i",
    "/dbs/d/colls/c/docs/j",
    "/dbs/d/colls/c/sprocs/s",
    "/dbs/d/colls/c/operations/partitionkeydelete",
    "/dbs/d/colls/x",
    "/dbs/d/colls/x/docs/i",
    "/dbs/x/colls/c/docs/i",
    "/dbs/d/users/u/permissions/p",
    "/offers",
    "/dbs/d/colls/c/docs/i/attachments",
];

fn reaches(grant: &Grant, path: &str, intent: Intent, key: Option<&str>) -> bool {
    grant.allows(&Address::from_path(&Path::parse(path).unwrap()).unwrap(), intent, key)
}

/// The paths that a grant opens, of those above.
#[track_caller]
fn check_reach(grant: &Grant, intent: Intent, key: Option<&str>, expected: &[&str]) {
    let reached: Vec<&str> = PATHS.into_iter().filter(|path| reaches(grant, path, intent, key)).collect();
    assert_eq!(reached, expected, "{grant:?}");
}

#[test]
fn a_grant_reaches_its_resource_and_nothing_else() {
    use Intent::*;
    let metadata = ["/", "/dbs/d/colls/c", "/dbs/d/colls/c/pkranges"];
    let documents = ["/dbs/d/colls/c/docs", "/dbs/d/colls/c/docs/i", "/dbs/d/colls/c/docs/j"];
    let one = ["/dbs/d/colls/c/docs/i"];
    let both = |a: &[&'static str], b: &[&'static str]| [a, b].concat();
    let all = grant(Mode::All, "dbs/d/colls/c");
    check_reach(&all, Read, None, &both(&metadata, &documents));
    check_reach(&all, Write, None, &documents);
    check_reach(&grant(Mode::All, "/dbs/d/colls/c/"), Write, None, &documents);
    let read = grant(Mode::Read, "dbs/d/colls/c");
    check_reach(&read, Read, Some("[1]"), &both(&metadata, &documents));
    check_reach(&read, Write, Some("[1]"), &[]);
    let item = grant(Mode::All, "dbs/d/colls/c/docs/i");
    check_reach(&item, Read, None, &both(&metadata, &one));
    check_reach(&item, Write, None, &one);
    check_reach(&grant(Mode::Read, "dbs/d/colls/c/docs/i"), Write, None, &[]);
    check_reach(&grant(Mode::All, "dbs/d/colls/c/sprocs/s"), Read, None, &metadata);
    check_reach(&grant(Mode::All, "dbs/d/colls/c/sprocs/s"), Write, None, &[]);
    for link in ["", "dbs", "dbs/d", "dbs/d/colls", "colls/c", "dbs/D/colls/c", "x/d/colls/c"] {
        check_reach(&grant(Mode::All, link), Read, None, &["/"]);
        check_reach(&grant(Mode::All, link), Write, None, &[]);
    }
}

#[test]
fn a_partition_key_confines_documents_to_it() {
    use Intent::*;
    let metadata = ["/", "/dbs/d/colls/c", "/dbs/d/colls/c/pkranges"];
    let documents = ["/dbs/d/colls/c/docs", "/dbs/d/colls/c/docs/i", "/dbs/d/colls/c/docs/j"];
    let bound = |key: &str| Grant { partition_key: Some(key.into()), ..grant(Mode::All, "dbs/d/colls/c") };
    let grant = bound(r#"["é",1]"#);
    for same in [r#"["é",1]"#, r#"[ "\u00e9", 1.0 ]"#] {
        check_reach(&grant, Read, Some(same), &[&metadata[..], &documents].concat());
        check_reach(&grant, Write, Some(same), &documents);
    }
    for other in [None, Some(""), Some("[]"), Some(r#"["é"]"#), Some(r#"["é",1,2]"#), Some(r#"["é","1"]"#)]
    {
        check_reach(&grant, Read, other, &metadata);
        check_reach(&grant, Write, other, &[]);
    }
    // A key that cannot be read opens nothing, not even to itself.
    check_reach(&bound("x"), Write, Some("x"), &[]);
}

#[test]
fn rids_reach_the_same() {
    let reaches = |grant: &Grant, path: &str| reaches(grant, path, Intent::Read, None);
    let container = grant(Mode::Read, "dbs/d/colls/c");
    assert!(reaches(&container, "/dbs/AAASAA==/colls/AAASAIAAACM=/pkranges"));
    assert!(reaches(&container, "/dbs/AAASAA==/colls/AAASAIAAACM=/docs"));
    assert!(!reaches(&container, "/dbs/AAASAA==/colls/AAASAIAAACQ=/docs"));
    assert!(!reaches(&container, "/dbs/AAATAA==/colls/AAASAIAAACM=/docs"));
    assert!(!reaches(&container, "/dbs/d/colls/AAASAIAAACM=/docs"));
    let item =
        Grant { resource_rid: Rid::document(0x1200, 0x23, 1), ..grant(Mode::Read, "dbs/d/colls/c/docs/i") };
    let in_container = |id: &str| format!("/dbs/AAASAA==/colls/AAASAIAAACM=/docs/{id}");
    assert!(reaches(&item, &in_container("AAASAIAAACMBAAAAAAAAAA==")));
    assert!(reaches(&item, &in_container("i")));
    assert!(!reaches(&item, &in_container("AAASAIAAACMCAAAAAAAAAA==")));
    assert!(!reaches(&item, "/dbs/AAASAA==/colls/AAASAIAAACM=/docs"));
    // With only the container's RID, the item is known by its name alone.
    assert!(!reaches(&grant(Mode::Read, "dbs/d/colls/c/docs/i"), &in_container("AAASAIAAACM=")));
    // A container that was made anew under the old name is another one.
    assert!(item.covers_container(CONTAINER) && container.covers_container(CONTAINER));
    assert!(!container.covers_container(Rid::Container { db: 0x1200, coll: 0x24 }));
}

proptest! {
    #[test]
    fn no_text_panics_or_passes(token in "\\PC*", parts in prop::collection::vec("[A-Za-z0-9+/=_-]{0,60}", 0..4)) {
        let keys = keys();
        prop_assert!(verify(&keys, &token, NOW).is_err());
        prop_assert!(verify(&keys, &(parts.join(";") + ";"), NOW).is_err());
    }

    #[test]
    fn no_flipped_character_passes(at in any::<prop::sample::Index>(), letter in "[A-Za-z0-9_-]") {
        let keys = keys();
        let token = sent(&mint(&keys.primary, &grant(Mode::Read, "dbs/d/colls/c"), 1));
        let at = at.index(token.len());
        prop_assume!(token[at..at + 1] != letter);
        let changed = [&token[..at], &letter, &token[at + 1..]].concat();
        prop_assert!(verify(&keys, &changed, NOW).is_err());
    }

    #[test]
    fn links_and_paths_never_panic(link in "(/|dbs|colls|docs|d|c|\\PC)*", path in "(/|dbs|colls|docs|d|c|\\PC)*") {
        let path = Path::parse(&path);
        if let Some(Ok(address)) = path.as_ref().ok().map(Address::from_path) {
            let _ = grant(Mode::All, &link).allows(&address, Intent::Write, Some(&link));
        }
    }
}
