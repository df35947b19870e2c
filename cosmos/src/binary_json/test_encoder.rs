//! Writes binary JSON for the tests, in every form the format has: a seed chooses among those that fit.

use std::collections::HashMap;

use serde_json::Value;

use super::strings::SYSTEM_STRINGS;

/// The body for a value; equal seeds make equal bodies.
pub(super) fn encode(value: &Value, seed: u64) -> Vec<u8> {
    let mut encoder = Encoder { out: vec![0x80], seed: seed | 1, seen: HashMap::new() };
    encoder.value(value);
    encoder.out
}

struct Encoder {
    out: Vec<u8>,
    seed: u64,
    /// Where each string was written first.
    seen: HashMap<String, usize>,
}

/// More bytes than any form of the value takes.
fn size_max(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 20,
        Value::Array(items) => 9 + items.iter().map(size_max).sum::<usize>(),
        Value::Object(members) => {
            9 + members.iter().map(|(name, value)| name.len() + 20 + size_max(value)).sum::<usize>()
        }
        _ => 9,
    }
}

impl Encoder {
    fn choose(&mut self, count: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed >> 11) % count
    }

    fn length(&mut self, length: usize, width: usize) {
        self.out.extend_from_slice(&length.to_le_bytes()[..width]);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.out.push(0xD0),
            Value::Bool(value) => self.out.push(0xD1 + u8::from(*value)),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(value), _, _) => self.integer(value),
                (None, Some(value), _) => self.fixed(0xC7, &value.to_le_bytes()),
                (None, None, value) => self.fixed(0xCC, &value.unwrap().to_le_bytes()),
            },
            Value::String(text) => self.string(text),
            Value::Array(items) => self.array(items, value),
            Value::Object(members) => self.container(0xE8, members.len(), size_max(value), |encoder| {
                for (name, value) in members {
                    encoder.string(name);
                    encoder.value(value);
                }
            }),
        }
    }

    fn fixed(&mut self, marker: u8, bytes: &[u8]) {
        self.out.push(marker);
        self.out.extend_from_slice(bytes);
    }

    fn integer(&mut self, value: i64) {
        let choice = self.choose(4);
        match value {
            0..32 if choice > 0 => self.out.push(value as u8),
            0..256 if choice > 0 => self.fixed([0xC8, 0xD7][choice as usize % 2], &[value as u8]),
            -128..128 if choice > 0 => self.fixed(0xD8, &[value as u8]),
            -0x8000..0x8000 if choice > 0 => {
                self.fixed([0xC9, 0xD9][choice as usize % 2], &(value as i16).to_le_bytes());
            }
            -0x8000_0000..0x8000_0000 if choice > 0 => {
                self.fixed([0xCA, 0xDA][choice as usize % 2], &(value as i32).to_le_bytes());
            }
            0..0x1_0000_0000 if choice > 0 => self.fixed(0xDC, &(value as u32).to_le_bytes()),
            _ => self.fixed([0xCB, 0xDB][choice as usize % 2], &value.to_le_bytes()),
        }
    }

    fn array(&mut self, items: &[Value], value: &Value) {
        let integers: Option<Vec<i64>> = items.iter().map(Value::as_i64).collect();
        match integers {
            Some(integers) if integers.len() < 256 && self.choose(2) == 0 => {
                self.out.extend_from_slice(&[0xF0, 0xDB, integers.len() as u8]);
                self.out.extend(integers.iter().flat_map(|integer| integer.to_le_bytes()));
            }
            _ => self.container(0xE0, items.len(), size_max(value), |encoder| {
                items.iter().for_each(|item| encoder.value(item));
            }),
        }
    }

    fn container(&mut self, base: u8, count: usize, size_max: usize, write: impl FnOnce(&mut Self)) {
        if count < 2 && self.choose(2) == 0 {
            self.out.push(base + count as u8);
            return write(self);
        }
        // Markers 2 to 4 have a length of 1, 2 or 4 bytes, markers 5 to 7 a count as well.
        let narrowest = if size_max < 0x100 { 0 } else { u64::from(size_max >= 0x1_0000) + 1 };
        let width_log = narrowest + self.choose(3 - narrowest);
        let with_count = self.choose(2) == 0;
        let width = 1 << width_log;
        self.out.push(base + 2 + width_log as u8 + if with_count { 3 } else { 0 });
        let length_at = self.out.len();
        self.length(0, width);
        if with_count {
            self.length(count, width);
        }
        let from = self.out.len();
        write(self);
        let length = self.out.len() - from;
        self.out[length_at..length_at + width].copy_from_slice(&length.to_le_bytes()[..width]);
    }

    fn string(&mut self, text: &str) {
        let position = self.out.len();
        if let Some(offset) = self.seen.get(text).copied()
            && self.choose(2) == 0
        {
            let width = if offset < 0x100 { 1 } else { 3 };
            self.out.push(0xC2 + width as u8);
            return self.length(offset, width);
        }
        self.seen.entry(text.into()).or_insert(position);
        if let Some(index) = SYSTEM_STRINGS.iter().position(|name| *name == text) {
            return self.out.push(0x20 + index as u8);
        }
        if text.is_ascii() && !text.is_empty() && text.len() < 256 && self.choose(2) == 0 {
            return self.packed(text);
        }
        match text.len() {
            length @ 0..64 if self.choose(2) == 0 => self.out.push(0x80 + length as u8),
            length @ 0..0x100 => self.fixed(0xC0, &[length as u8]),
            length => {
                self.out.push(0xC2);
                self.length(length, 4);
            }
        }
        self.out.extend_from_slice(text.as_bytes());
    }

    fn packed(&mut self, text: &str) {
        let hex = b"0123456789abcdef";
        if text.bytes().all(|byte| hex.contains(&byte)) {
            self.fixed(0x78, &[text.len() as u8]);
            let digits = text.bytes().map(|byte| hex.iter().position(|digit| *digit == byte).unwrap() as u8);
            return self.bits(digits, 4);
        }
        let (low, high) = (text.bytes().min().unwrap(), text.bytes().max().unwrap());
        match high - low {
            range @ 0..64 => {
                let bits = (u8::BITS - range.leading_zeros()).max(4);
                self.fixed(0x77 + bits as u8, &[text.len() as u8, low]);
                self.bits(text.bytes().map(|byte| byte - low), bits);
            }
            _ => {
                self.fixed(0x7E, &[text.len() as u8]);
                self.bits(text.bytes(), 7);
            }
        }
    }

    fn bits(&mut self, numbers: impl Iterator<Item = u8>, bits: u32) {
        let (mut pending, mut pending_bits) = (0_u32, 0);
        for number in numbers {
            pending |= u32::from(number) << pending_bits;
            pending_bits += bits;
            while pending_bits >= 8 {
                self.out.push(pending as u8);
                pending >>= 8;
                pending_bits -= 8;
            }
        }
        if pending_bits > 0 {
            self.out.push(pending as u8);
        }
    }
}
