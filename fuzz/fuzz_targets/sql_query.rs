//! Any text is a query or an error; a query prints to one that prints the same, and runs without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mayfly_sql::{Context, Document, Query};
use mayfly_value::json::{JsonLimits, parse_document};

const DOCUMENT: &[u8] = br#"{"id":"1","n":5,"s":"text","a":[1,"x",null,{"b":true}],"o":{"p":{"q":-1.5}}}"#;

fuzz_target!(|text: &str| {
    let Ok(query) = Query::parse(text) else { return };
    let printed = query.to_string();
    let again = Query::parse(&printed).expect("a printed query can be read");
    assert_eq!(printed, again.to_string());
    let Ok(plan) = query.bind(&[]) else { return };
    let Ok(mut run) = plan.run(Context::new(0, 0)) else { return };
    let body = parse_document(DOCUMENT, JsonLimits::default()).expect("the document is valid");
    if run.push(&Document { body: &body, system: &[] }).is_ok() {
        let _ = run.finish();
    }
});
