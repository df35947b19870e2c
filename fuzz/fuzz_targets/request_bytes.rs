//! What a client sends before anybody knows who it is: heads, paths, authorization headers, binary bodies.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mayfly_cosmos::{Address, RawHead, auth, binary_json, hybrid_row, http_date, path::Path};
use mayfly_value::{json::JsonLimits, partition::PartitionKey};

fuzz_target!(|bytes: &[u8]| {
    if let Some(head) = RawHead::read(bytes) {
        let parts = head.to_parts().expect("a head that was read is one that hyper can have");
        assert_eq!(parts.uri.path(), head.path());
    }
    let _ = binary_json::parse_document(bytes, JsonLimits::default());
    let _ = hybrid_row::parse_operations(&bytes::Bytes::copy_from_slice(bytes));
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Path::parse(text).map(|path| Address::from_path(&path).is_ok());
    let _ = auth::credential(text);
    let _ = http_date::parse(text);
    let _ = PartitionKey::parse_header(text);
});
