//! Encoding values; the layout is in `keycode.rs`.
//!
//! Every function that can cut returns a `Cut`; whoever receives `Cut::Yes` closes its container at once and
//! passes it on. Otherwise two values that differ in the part left out could be told apart, wrongly, by
//! what comes after it.

use bson::{RawArray, RawBsonRef, RawDocument};

use super::parts::{push_escaped, push_u32, push_u64};
use super::{CONTAINER_BYTES_MAX, CUT, END, FIELD, STRING_BYTES_MAX, first_tag};
use crate::foreign::{DEPTH_MAX, db_pointer_parts};
use crate::number::{Magnitude, Number, truncate_to_double};
use crate::order::{Class, Order, fields, items, sorted_fields};

/// Appends a value in ascending order.
pub fn push_value(out: &mut Vec<u8>, value: RawBsonRef<'_>, order: Order) {
    let container_end = out.len() + CONTAINER_BYTES_MAX;
    Encoder { out, order, container_end }.value(value, 0);
}

/// Appends a value in descending order: the same bytes, inverted.
pub fn push_value_desc(out: &mut Vec<u8>, value: RawBsonRef<'_>, order: Order) {
    let from = out.len();
    push_value(out, value, order);
    out.iter_mut().skip(from).for_each(|byte| *byte = !*byte);
}

/// Appends the place of a value that is not there: the lowest in Cosmos, that of null in Mongo.
pub fn push_undefined(out: &mut Vec<u8>, order: Order) {
    let class = match order {
        Order::Cosmos => Class::Undefined,
        Order::Mongo => Class::Null,
    };
    out.push(first_tag(order) + class.rank(order));
}

/// Whether part of a value was left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    No,
    Yes,
}

struct Encoder<'o> {
    out: &'o mut Vec<u8>,
    order: Order,
    /// Where containers are cut. Measured from the start of the value, so equal values are cut equally.
    container_end: usize,
}

impl Encoder<'_> {
    fn value(&mut self, value: RawBsonRef<'_>, depth: usize) -> Cut {
        self.tag(value);
        self.payload(value, depth)
    }

    fn tag(&mut self, value: RawBsonRef<'_>) {
        self.out.push(first_tag(self.order) + Class::of(value).rank(self.order));
    }

    fn payload(&mut self, value: RawBsonRef<'_>, depth: usize) -> Cut {
        if let Some(number) = Number::of(value) {
            self.number(number);
            return Cut::No;
        }
        match value {
            RawBsonRef::Boolean(value) => self.out.push(u8::from(value)),
            RawBsonRef::String(text) | RawBsonRef::Symbol(text) | RawBsonRef::JavaScriptCode(text) => {
                return self.bytes(text.as_bytes());
            }
            RawBsonRef::Array(array) => return self.array(array, depth),
            RawBsonRef::Document(object) => return self.object(object, depth),
            RawBsonRef::Binary(binary) => return self.binary(binary.bytes, binary.subtype.into()),
            RawBsonRef::ObjectId(id) => self.out.extend_from_slice(&id.bytes()),
            RawBsonRef::DateTime(date) => {
                // Flipping the sign bit puts negative numbers before positive ones.
                push_u64(self.out, (date.timestamp_millis() as u64) ^ (1 << 63));
            }
            RawBsonRef::Timestamp(timestamp) => {
                push_u32(self.out, timestamp.time);
                push_u32(self.out, timestamp.increment);
            }
            RawBsonRef::RegularExpression(regex) => {
                if self.bytes(regex.pattern.as_str().as_bytes()) == Cut::Yes {
                    return Cut::Yes;
                }
                return self.bytes(regex.options.as_str().as_bytes());
            }
            RawBsonRef::DbPointer(pointer) => {
                let (namespace, id) = db_pointer_parts(pointer);
                if self.bytes(namespace.as_bytes()) == Cut::Yes {
                    return Cut::Yes;
                }
                self.out.extend_from_slice(&id);
            }
            RawBsonRef::JavaScriptCodeWithScope(code) => {
                if self.bytes(code.code.as_bytes()) == Cut::Yes {
                    return Cut::Yes;
                }
                return self.object(code.scope, depth);
            }
            // Undefined, null, the smallest and the largest key have no payload.
            _ => {}
        }
        Cut::No
    }

    fn number(&mut self, number: Number) {
        match self.order {
            Order::Cosmos => push_u64(self.out, ordered_bits(number.to_double(), false)),
            Order::Mongo => {
                let (double, lost) = truncate_to_double(number);
                push_u64(self.out, ordered_bits(double, lost.is_some()));
                let negative = double.is_sign_negative() && (double != 0.0 || lost.is_some());
                self.remainder(lost, negative && !double.is_nan());
            }
        }
    }

    /// What the double does not hold. Inverted for negative numbers, like the double's own bits.
    fn remainder(&mut self, lost: Option<Magnitude>, negative: bool) {
        let from = self.out.len();
        match lost {
            None => self.out.push(END),
            Some(magnitude) => {
                self.out.push(CUT);
                let adjusted = u16::try_from(magnitude.adjusted + ADJUSTED_BIAS).unwrap_or_default();
                self.out.extend_from_slice(&adjusted.to_be_bytes());
                // 34 digits fit in 113 bits, so the first of the 16 bytes is always zero.
                self.out.extend(magnitude.coefficient.to_be_bytes().into_iter().skip(1));
            }
        }
        if negative {
            self.out.iter_mut().skip(from).for_each(|byte| *byte = !*byte);
        }
    }

    fn bytes(&mut self, bytes: &[u8]) -> Cut {
        // Between any two bytes, not only between characters: where a character is split, what is left of
        // it still says how the string compares.
        match bytes.get(..STRING_BYTES_MAX) {
            Some(head) if bytes.len() > STRING_BYTES_MAX => {
                push_escaped(self.out, head, true);
                Cut::Yes
            }
            _ => {
                push_escaped(self.out, bytes, false);
                Cut::No
            }
        }
    }

    fn binary(&mut self, bytes: &[u8], subtype: u8) -> Cut {
        push_u32(self.out, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.out.push(subtype);
        self.out.extend_from_slice(bytes.get(..STRING_BYTES_MAX).unwrap_or(bytes));
        if bytes.len() > STRING_BYTES_MAX { Cut::Yes } else { Cut::No }
    }

    fn array(&mut self, array: &RawArray, depth: usize) -> Cut {
        if depth >= DEPTH_MAX {
            return self.bytes(array.as_bytes());
        }
        self.container(items(array), |encoder, item| encoder.value(item, depth + 1))
    }

    fn object(&mut self, object: &RawDocument, depth: usize) -> Cut {
        if depth >= DEPTH_MAX {
            return self.bytes(object.as_bytes());
        }
        match self.order {
            Order::Cosmos => self.container(sorted_fields(object).into_iter(), |encoder, (name, value)| {
                encoder.out.push(FIELD);
                if encoder.bytes(name.as_bytes()) == Cut::Yes {
                    return Cut::Yes;
                }
                encoder.value(value, depth + 1)
            }),
            Order::Mongo => self.container(fields(object), |encoder, (name, value)| {
                encoder.tag(value);
                if encoder.bytes(name.as_bytes()) == Cut::Yes {
                    return Cut::Yes;
                }
                encoder.payload(value, depth + 1)
            }),
        }
    }

    fn container<T>(
        &mut self,
        elements: impl Iterator<Item = T>,
        mut encode: impl FnMut(&mut Self, T) -> Cut,
    ) -> Cut {
        for element in elements {
            if self.out.len() > self.container_end || encode(self, element) == Cut::Yes {
                self.out.push(CUT);
                return Cut::Yes;
            }
        }
        self.out.push(END);
        Cut::No
    }
}

/// Makes the powers of ten of all decimals (-6176 to 6144) positive.
pub(super) const ADJUSTED_BIAS: i32 = 0x2000;

/// The bits of a double such that they order like the doubles: NaN is all zeros, -0 is 0.
///
/// The minus of zero is kept for decimals so small that only their remainder tells them from zero.
fn ordered_bits(double: f64, keep_minus_zero: bool) -> u64 {
    if double.is_nan() {
        return 0;
    }
    let double = if double == 0.0 && !keep_minus_zero { 0.0 } else { double };
    let bits = double.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}
