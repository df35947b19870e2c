//! Any bytes are a document or an error, and what is a document is the same one after a round trip through text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mayfly_value::json::{JsonLimits, parse_document, write_document};

fuzz_target!(|text: &[u8]| {
    let Ok(document) = parse_document(text, JsonLimits::default()) else { return };
    let mut written = Vec::new();
    write_document(&document, &mut written).expect("a parsed document can be written");
    let limits = JsonLimits { bytes_max: usize::MAX, ..JsonLimits::default() };
    let again = parse_document(&written, limits).expect("a written document can be read");
    assert_eq!(document.as_bytes(), again.as_bytes());
});
