//! Signature vectors, and each way a request is refused.

use super::*;
use proptest::prelude::*;

const DATE: &str = "Thu, 01 Jan 2026 00:00:00 GMT";
const NOW: u64 = 1_767_225_600;

fn key(text: &str) -> Key {
    Key::from_base64(text).unwrap()
}

fn keys() -> Keys {
    Keys {
        primary: key(EMULATOR_KEY),
        secondary: Some(key("c2Vjb25kYXJ5")),
        read_only: Some(key("cmVhZG9ubHk=")),
    }
}

fn path(text: &str) -> Path<'_> {
    Path::parse(text).unwrap()
}

fn get<'a>(path: &'a Path<'a>, authorization: &'a str) -> SignedRequest<'a> {
    SignedRequest {
        verb: "GET",
        path,
        authorization: Some(authorization),
        x_ms_date: Some(DATE),
        date: None,
        intent: Intent::Read,
    }
}

fn token(signature: &str) -> String {
    format!("type=master&ver=1.0&sig={signature}")
}

fn signed_by(key_text: &str, verb: &str, kind: &str, link: &str) -> String {
    token(&key(key_text).sign(&payload(verb, kind, link, Some(DATE), None)))
}

#[test]
fn published_vectors() {
    let documented =
        "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==";
    for (key_text, verb, path, date, signature) in [
        (
            documented,
            "GET",
            "/dbs/ToDoList",
            "Thu, 27 Apr 2017 00:51:12 GMT",
            "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c=",
        ),
        (EMULATOR_KEY, "GET", "/", DATE, "PvSAkpCd8QmwlTkPJg3zttqzEEJwP1ep4++LW953aJU="),
        (EMULATOR_KEY, "POST", "/dbs", DATE, "D4r5VwiEkkgEbhXvYlCJwnSVvx4fXhQcnEHFOLTo6Es="),
        (
            EMULATOR_KEY,
            "POST",
            "/dbs/Db%201/colls/C%C3%B4l/docs/",
            DATE,
            "H+HZSAeShUr5qa9m4K1Clvl8joX3QE4SdcuppBTFbok=",
        ),
        (
            EMULATOR_KEY,
            "GET",
            "/dbs/AAASAA==/colls/AAASAIAAACM=/pkranges",
            DATE,
            "rhsszxd6nrxOk7rQ1CC+95rvKKEvGRixtnWaCIbTquE=",
        ),
        (EMULATOR_KEY, "PUT", "/offers/RoD1/", DATE, "26+kDmR4tDIb41XfjZaF7EYyiPVsTmKWJP4hWLRZQuI="),
        (
            EMULATOR_KEY,
            "POST",
            "/dbs/d/colls/c/operations/partitionkeydelete",
            DATE,
            "OxYSWIasCmxw8O3/A7qetecTQ+v3jZGe/srkOQvVhqQ=",
        ),
    ] {
        let keys = Keys { primary: key(key_text), secondary: None, read_only: None };
        let authorization = token(signature);
        let request = SignedRequest {
            verb,
            path: &Path::parse(path).unwrap(),
            authorization: Some(&authorization),
            x_ms_date: Some(date),
            date: None,
            intent: Intent::Write,
        };
        let now = http_date::parse(date).unwrap();
        assert_eq!(verify(&keys, &request, now), Ok(Access::ReadWrite), "{verb} {path}");
    }
}

#[test]
fn header_forms_that_sdks_send() {
    let plain = signed_by(EMULATOR_KEY, "GET", "", "");
    let signature = plain.rsplit("sig=").next().unwrap();
    let lower = format!("type=master&ver=1.0&sig={signature}")
        .replace('=', "%3d")
        .replace('&', "%26")
        .replace('+', "%2b")
        .replace('/', "%2f");
    let upper = lower.replace("%3d", "%3D").replace("%2b", "%2B").replace("%2f", "%2F");
    for header in [plain.clone(), lower, upper] {
        assert_eq!(verify(&keys(), &get(&path("/"), &header), NOW), Ok(Access::ReadWrite), "{header}");
    }
}

proptest! {
    #[test]
    fn escapes_are_undone_as_the_url_standard_says(text in "([A-Za-z0-9+/=]|%[0-9A-Fa-f]{2}|%|\\PC)*") {
        let expected: Vec<u8> = percent_decode_str(&text).collect();
        prop_assert_eq!(unescaped(text.as_bytes()), expected);
    }
}

#[test]
fn the_date_header_stands_in() {
    let signature = key(EMULATOR_KEY).sign(&payload("GET", "dbs", "", None, Some(DATE)));
    let header = token(&signature);
    let dbs = path("/dbs");
    let request = SignedRequest { x_ms_date: None, date: Some(DATE), ..get(&dbs, &header) };
    assert_eq!(verify(&keys(), &request, NOW), Ok(Access::ReadWrite));
    // With both, only x-ms-date is signed.
    let header = signed_by(EMULATOR_KEY, "GET", "dbs", "");
    let request = SignedRequest { date: Some("Fri, 02 Jan 2026 00:00:00 GMT"), ..get(&dbs, &header) };
    assert_eq!(verify(&keys(), &request, NOW), Ok(Access::ReadWrite));
}

#[test]
fn each_key_has_its_rights() {
    for (key_text, intent, expected) in [
        (EMULATOR_KEY, Intent::Write, Some(Access::ReadWrite)),
        ("c2Vjb25kYXJ5", Intent::Write, Some(Access::ReadWrite)),
        ("cmVhZG9ubHk=", Intent::Read, Some(Access::ReadOnly)),
        ("cmVhZG9ubHk=", Intent::Write, None),
        ("b3RoZXI=", Intent::Read, None),
    ] {
        let header = signed_by(key_text, "GET", "dbs", "dbs/d");
        let path = path("/dbs/d");
        let request = SignedRequest { intent, ..get(&path, &header) };
        assert_eq!(verify(&keys(), &request, NOW).ok(), expected, "{key_text} {intent:?}");
    }
}

#[test]
fn a_signature_fits_one_request_only() {
    let header = signed_by(EMULATOR_KEY, "GET", "dbs", "dbs/d");
    for request in [
        SignedRequest { verb: "DELETE", ..get(&path("/dbs/d"), &header) },
        get(&path("/dbs/D"), &header),
        get(&path("/dbs/d/colls"), &header),
        SignedRequest { x_ms_date: Some("Thu, 01 Jan 2026 00:00:01 GMT"), ..get(&path("/dbs/d"), &header) },
    ] {
        assert!(
            matches!(verify(&keys(), &request, NOW), Err(AuthError::WrongSignature { .. })),
            "{request:?}"
        );
    }
    let Err(AuthError::WrongSignature { payload }) = verify(&keys(), &get(&path("/dbs/D"), &header), NOW)
    else {
        panic!("is a wrong signature");
    };
    assert_eq!(payload, "get\ndbs\ndbs/D\nthu, 01 jan 2026 00:00:00 gmt\n\n");
}

#[test]
fn dates_are_valid_for_a_quarter_of_an_hour() {
    let header = signed_by(EMULATOR_KEY, "GET", "dbs", "");
    for (now, valid) in [(NOW - 900, true), (NOW + 900, true), (NOW - 901, false), (NOW + 901, false)] {
        let expected =
            if valid { Ok(Access::ReadWrite) } else { Err(AuthError::NotValidNow { signed_at: NOW, now }) };
        assert_eq!(verify(&keys(), &get(&path("/dbs"), &header), now), expected);
    }
}

#[test]
fn what_is_missing_or_malformed_is_named() {
    let good = signed_by(EMULATOR_KEY, "GET", "dbs", "");
    let check = |request: SignedRequest<'_>, expected: AuthError| {
        assert_eq!(verify(&keys(), &request, NOW), Err(expected), "{request:?}");
    };
    check(SignedRequest { authorization: None, ..get(&path("/dbs"), "") }, AuthError::Missing);
    check(SignedRequest { x_ms_date: None, ..get(&path("/dbs"), &good) }, AuthError::NoDate);
    check(SignedRequest { x_ms_date: Some("today"), ..get(&path("/dbs"), &good) }, AuthError::NoDate);
    for header in [
        "",
        "Bearer abc",
        "type=master",
        "type=master&ver=1.0",
        "type=master&ver=2.0&sig=AAAA",
        "type=master&ver=1.0&sig=not base64",
        "type=master&type=master&sig=AAAA",
        "type=other&ver=1.0&sig=AAAA",
        "type%3dmaster%26ver%3d1.0%26sig%ff",
    ] {
        check(get(&path("/dbs"), header), AuthError::Malformed);
    }
    check(get(&path("/dbs"), "type=resource&ver=1.0&sig=x;y;"), AuthError::Unsupported { kind: "resource" });
    check(get(&path("/dbs"), "type=aad&ver=1.0&sig=a.b.c"), AuthError::Unsupported { kind: "aad" });
    check(get(&path("/dbs"), "type%3Dsas%26ver%3D1.0%26sig%3Dx"), AuthError::Unsupported { kind: "sas" });
}

#[test]
fn a_header_is_one_of_three_credentials() {
    for (header, expected) in [
        ("type=master&ver=1.0&sig=AAEC", Ok(Credential::Master { signature: vec![0, 1, 2] })),
        ("type%3Dmaster%26ver%3D1.0%26sig%3DAAEC", Ok(Credential::Master { signature: vec![0, 1, 2] })),
        ("type=resource&ver=1.0&sig=a+b/=;c-_;", Ok(Credential::Resource("a+b/=;c-_;".into()))),
        ("type%3dresource%26ver%3d1.0%26sig%3da%2Bb%3bc%3b", Ok(Credential::Resource("a+b;c;".into()))),
        ("type=aad&ver=1.0&sig=a.b-_.c", Ok(Credential::Aad("a.b-_.c".into()))),
        ("type%3Daad%26ver%3D1.0%26sig%3Da.b.c", Ok(Credential::Aad("a.b.c".into()))),
        ("type=sas&ver=1.0&sig=a&b=c", Err(AuthError::Unsupported { kind: "sas" })),
        ("type=resource&ver=2.0&sig=a;b;", Err(AuthError::Malformed)),
        ("type=resource&sig=a;b;", Err(AuthError::Malformed)),
        ("Bearer a.b.c", Err(AuthError::Malformed)),
        // In another order or another case they are taken apart.
        ("sig=AAEC&ver=1.0&type=master", Ok(Credential::Master { signature: vec![0, 1, 2] })),
        ("type%3Dmaster%26ver%3d1.0%26sig%3DAAEC", Ok(Credential::Master { signature: vec![0, 1, 2] })),
        (" type=master&ver=1.0&sig=%41AEC ", Ok(Credential::Master { signature: vec![0, 1, 2] })),
        ("type%3dmaster%26ver%3d1.0%26sig%3dAAEC%26", Err(AuthError::Malformed)),
        ("type=master&ver=1.0&sig=%ff", Err(AuthError::Malformed)),
    ] {
        assert_eq!(credential(header), expected, "{header}");
    }
    assert_eq!(format!("{:?}", credential("type=aad&ver=1.0&sig=secret").unwrap()), "Aad(..)");
}

#[test]
fn keys_are_base64_and_never_printed() {
    for text in ["", "  ", "not a key", "AAA"] {
        assert!(Key::from_base64(text).is_err(), "{text:?}");
    }
    assert_eq!(format!("{:?}", key(EMULATOR_KEY)), "Key(..)");
}

proptest! {
    #[test]
    fn no_header_panics_or_passes(header in "\\PC*", path in "\\PC*") {
        if let Ok(path) = Path::parse(&path) {
            prop_assert!(verify(&keys(), &get(&path, &header), NOW).is_err());
        }
    }
}
