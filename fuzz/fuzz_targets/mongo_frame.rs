//! What a MongoDB client sends before anybody knows who it is: headers, messages of every kind, compressed ones, and the document
//! within. A message that is taken is answered in the way it came.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mayfly_mongo::{
    extended_json,
    wire::{HEADER_LEN, Header, check_document, encode_reply, parse},
};

fuzz_target!(|bytes: &[u8]| {
    let _ = extended_json::read(bytes);
    if let Ok(document) = bson::RawDocument::from_bytes(bytes) {
        let _ = check_document(document);
    }
    let Some((start, payload)) = bytes.split_first_chunk::<HEADER_LEN>() else { return };
    let Some(header) = Header::parse(start) else { return };
    let Ok(request) = parse(&header, payload) else { return };
    let answer = encode_reply(request.form, request.compressor, 1, request.id, &request.body, request.is_exhaust());
    let start = answer.first_chunk::<HEADER_LEN>().expect("an answer has a header");
    assert_eq!(Header::parse(start).map(|header| header.length), Some(answer.len()));
});
