//! Decoders of keys take any bytes, and skipping agrees with decoding.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mayfly_value::{keycode, order::Order};

fuzz_target!(|bytes: &[u8]| {
    for order in [Order::Cosmos, Order::Mongo] {
        if let Ok((_, used)) = keycode::decode_value(bytes, order) {
            assert!(used <= bytes.len());
        }
    }
    let _ = keycode::skip_value(bytes);
    let _ = keycode::take_bytes(bytes);
    let _ = keycode::path_to_string(bytes);
    let _ = keycode::is_cut(bytes);
});
