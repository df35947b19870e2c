//! JSON text straight from BSON bytes, where they hold nothing but JSON's types: so do nearly all documents that are sent.
//!
//! Holds: what is written here is what would be written without it. Whatever is out of the ordinary (a type that JSON
//! lacks, bytes that cannot be read) is left to that other way: `None`, and what was written so far is of no use.

use super::{text::write_utf8, write::write_int};
use crate::{
    field::{Field, Fields},
    foreign::DEPTH_MAX,
};

/// How a double is written: queries do it in another way than reads.
pub type Double = fn(f64, &mut Vec<u8>);

/// What is written of some members of a document in place of their own.
pub type Instead<'a> = Option<&'a mut dyn FnMut(&mut Vec<u8>)>;

/// Appends the members of a document without its braces, but for those that are hidden; whether there was none. `depth` is that of
/// the document, 1 at the top. Where the first hidden one stands, `instead` writes what it has, once; it is none then.
pub fn write_members(
    document: &[u8],
    is_hidden: impl Fn(&[u8]) -> bool,
    instead: &mut Instead<'_>,
    double: Double,
    out: &mut Vec<u8>,
    depth: usize,
) -> Option<bool> {
    let mut is_first = true;
    let mut fields = Fields::of(document)?;
    for field in &mut fields {
        if is_hidden(field.name) {
            if let Some(write) = instead.take() {
                separate(&mut is_first, out);
                write(out);
            }
            continue;
        }
        separate(&mut is_first, out);
        if !write_utf8(field.name, out) {
            return None;
        }
        out.push(b':');
        write_field(field, double, out, depth + 1)?;
    }
    fields.is_whole().then_some(is_first)
}

/// Appends an array with its brackets.
pub fn write_items(array: &[u8], double: Double, out: &mut Vec<u8>, depth: usize) -> Option<()> {
    let mut is_first = true;
    let mut fields = Fields::of(array)?;
    out.push(b'[');
    for field in &mut fields {
        separate(&mut is_first, out);
        write_field(field, double, out, depth + 1)?;
    }
    out.push(b']');
    fields.is_whole().then_some(())
}

fn write_field(field: Field<'_>, double: Double, out: &mut Vec<u8>, depth: usize) -> Option<()> {
    match (field.kind, field.value) {
        (0x01, value) => double(f64::from_le_bytes(value.try_into().ok()?), out),
        (0x02, value) => {
            let text = value.get(size_of::<i32>()..)?.strip_suffix(&[0])?;
            return write_utf8(text, out).then_some(());
        }
        (0x03 | 0x04, _) if depth > DEPTH_MAX => return None,
        (0x03, document) => {
            out.push(b'{');
            write_members(document, |_| false, &mut None, double, out, depth)?;
            out.push(b'}');
        }
        (0x04, array) => write_items(array, double, out, depth)?,
        (0x08, [0]) => out.extend_from_slice(b"false"),
        (0x08, [1]) => out.extend_from_slice(b"true"),
        (0x0A, _) => out.extend_from_slice(b"null"),
        (0x10, value) => write_int(i32::from_le_bytes(value.try_into().ok()?).into(), out),
        (0x12, value) => write_int(i64::from_le_bytes(value.try_into().ok()?), out),
        _ => return None,
    }
    Some(())
}

/// Appends the comma between members.
pub(super) fn separate(is_first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::take(is_first) {
        out.push(b',');
    }
}
