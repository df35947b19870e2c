//! Binary data out of texts and numbers, and back, as `$convert` does it.

use base64::{
    Engine as _,
    alphabet::STANDARD as ALPHABET,
    alphabet::URL_SAFE as URL_ALPHABET,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bson::{Binary, spec::BinarySubtype};

use crate::{
    error::{CONVERSION_FAILURE, Result, bail},
    values::{Ref, Value, as_integer, is_number, show, type_name, type_name_opt},
};

/// Bits behind the last byte are not looked at, as MongoDB does not.
const STANDARD: GeneralPurpose =
    GeneralPurpose::new(&ALPHABET, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Without padding where it is written, with or without where it is read.
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(
    &URL_ALPHABET,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// How binary data stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A UUID as one, everything else as base64.
    Auto,
    /// Base64.
    Base64,
    /// Base64 of URLs.
    Base64Url,
    /// Two digits each.
    Hex,
    /// The text itself.
    Utf8,
    /// Digits with dashes.
    Uuid,
}

impl Format {
    /// What `format` names; nothing if it is null or missing.
    pub fn parse(value: Option<Ref<'_>>) -> Result<Option<Self>> {
        Ok(Some(match word("format", 4341114, value)? {
            None => return Ok(None),
            Some("auto") => Self::Auto,
            Some("base64") => Self::Base64,
            Some("base64url") => Self::Base64Url,
            Some("hex") => Self::Hex,
            Some("utf8") => Self::Utf8,
            Some("uuid") => Self::Uuid,
            Some(other) => bail!(4341125, "Invalid 'format' argument for $convert: {other}"),
        }))
    }
}

/// Which byte of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The smallest.
    Little,
    /// The greatest.
    Big,
}

impl ByteOrder {
    /// What `byteOrder` names.
    pub fn parse(value: Option<Ref<'_>>) -> Result<Self> {
        Ok(match word("byteOrder", 9130001, value)? {
            None | Some("little") => Self::Little,
            Some("big") => Self::Big,
            Some(other) => bail!(9130002, "Invalid 'byteOrder' argument for $convert: {other}"),
        })
    }

    /// Bytes with the smallest first in this order, or the other way round.
    fn arranged<const N: usize>(self, mut bytes: [u8; N]) -> [u8; N] {
        if self == Self::Big {
            bytes.reverse();
        }
        bytes
    }
}

/// The word that an argument is; nothing if it is null or missing.
fn word<'a>(argument: &str, code: i32, value: Option<Ref<'a>>) -> Result<Option<&'a str>> {
    match value {
        None | Some(Ref::Null | Ref::Undefined) => Ok(None),
        Some(Ref::String(word)) => Ok(Some(word)),
        Some(other) => bail!(
            code,
            "$convert requires that '{argument}' be a string, found: {} with value {}",
            type_name(other),
            show(other)
        ),
    }
}

/// The subtype of binary data that a conversion asks for.
pub fn subtype(value: Option<Ref<'_>>) -> Result<BinarySubtype> {
    let Some(number) = value.filter(|value| is_number(*value)) else {
        let found = type_name_opt(value);
        bail!(4341108, "For BinData, $convert's 'subtype' argument must be a number, but is {found}")
    };
    if matches!(number, Ref::Double(double) if double.fract() != 0.0) {
        bail!(4341106, "In $convert, numeric 'subtype' argument is not an integer")
    }
    match as_integer(number) {
        Some(number @ (0..=9 | 128..=255)) => Ok(BinarySubtype::from(number as u8)),
        _ => bail!(
            4341107,
            "In $convert, numeric value for 'subtype' does not correspond to a BinData type: {}",
            show(number)
        ),
    }
}

/// A value as binary data.
pub fn from_value(
    value: Ref<'_>,
    subtype: BinarySubtype,
    format: Option<Format>,
    order: ByteOrder,
) -> Result<Value> {
    let bytes = match value {
        Ref::Binary(binary) if binary.subtype == subtype => return Ok(value.into()),
        Ref::Binary(_) => {
            bail!(CONVERSION_FAILURE, "Conversions between different BinData subtypes are not supported")
        }
        Ref::String(text) => from_text(text, subtype, format)?,
        Ref::Int32(number) => order.arranged(number.to_le_bytes()).to_vec(),
        Ref::Int64(number) => order.arranged(number.to_le_bytes()).to_vec(),
        Ref::Double(number) => order.arranged(number.to_le_bytes()).to_vec(),
        _ => bail!(
            CONVERSION_FAILURE,
            "Unsupported conversion from {} to binData in $convert with no onError value",
            type_name(value)
        ),
    };
    Ok(Value::Binary(Binary { subtype, bytes }))
}

fn from_text(text: &str, subtype: BinarySubtype, format: Option<Format>) -> Result<Vec<u8>> {
    let Some(format) = format else {
        bail!(4341115, "Format must be specified when converting from 'string' to 'binData'")
    };
    let failed = |why: &str| {
        bail!(CONVERSION_FAILURE, "Failed to parse BinData '{text}' in $convert with no onError value: {why}")
    };
    if (subtype == BinarySubtype::Uuid) != (format == Format::Uuid) {
        return failed("Only the 'uuid' format is allowed with the UUID subtype");
    }
    match format {
        Format::Auto => failed("Invalid format 'auto'"),
        Format::Utf8 => Ok(text.as_bytes().to_vec()),
        Format::Base64 => STANDARD.decode(text).or_else(|_| failed("invalid base64")),
        Format::Base64Url => URL_SAFE.decode(text).or_else(|_| failed("invalid base64")),
        Format::Hex => from_hex(text).map_or_else(|| failed("invalid hex"), Ok),
        Format::Uuid => from_uuid(text).map_or_else(|| failed(&format!("Invalid UUID string: {text}")), Ok),
    }
}

/// Binary data as a text.
pub fn to_text(binary: bson::RawBinaryRef<'_>, format: Format) -> Result<String> {
    let failed = |what: &str| {
        bail!(
            CONVERSION_FAILURE,
            "Failed to convert '{}' to string in $convert with no onError value: BinData does not represent a valid {what}",
            shown(binary)
        )
    };
    let is_uuid = binary.subtype == BinarySubtype::Uuid && binary.bytes.len() == 16;
    match format {
        Format::Auto | Format::Uuid if is_uuid => Ok(uuid_text(binary.bytes)),
        Format::Auto | Format::Base64 => Ok(STANDARD.encode(binary.bytes)),
        Format::Base64Url => Ok(URL_SAFE.encode(binary.bytes)),
        Format::Hex => Ok(hex_text(binary.bytes)),
        Format::Utf8 => std::str::from_utf8(binary.bytes)
            .map_or_else(|_| failed("UTF-8 string"), |text| Ok(text.to_owned())),
        Format::Uuid => failed("UUID"),
    }
}

/// Binary data as a whole number: of 1, 2, 4 or, where `most` allows it, 8 bytes.
pub fn to_integer(binary: bson::RawBinaryRef<'_>, order: ByteOrder, most: usize) -> Result<i64> {
    let number = match *binary.bytes {
        [a] => i64::from(a as i8),
        [a, b] => i64::from(i16::from_le_bytes(order.arranged([a, b]))),
        [a, b, c, d] => i64::from(i32::from_le_bytes(order.arranged([a, b, c, d]))),
        [a, b, c, d, e, f, g, h] if most == 8 => i64::from_le_bytes(order.arranged([a, b, c, d, e, f, g, h])),
        _ => return invalid_length(binary),
    };
    Ok(number)
}

/// Binary data as a double: of 4 or 8 bytes.
pub fn to_double(binary: bson::RawBinaryRef<'_>, order: ByteOrder) -> Result<f64> {
    Ok(match *binary.bytes {
        [a, b, c, d] => f64::from(f32::from_le_bytes(order.arranged([a, b, c, d]))),
        [a, b, c, d, e, f, g, h] => f64::from_le_bytes(order.arranged([a, b, c, d, e, f, g, h])),
        _ => return invalid_length(binary),
    })
}

fn invalid_length<T>(binary: bson::RawBinaryRef<'_>) -> Result<T> {
    bail!(
        CONVERSION_FAILURE,
        "Failed to convert '{}' to number in $convert because of invalid length: {}",
        shown(binary),
        binary.bytes.len()
    )
}

fn shown(binary: bson::RawBinaryRef<'_>) -> String {
    format!("BinData({}, \"{}\")", u8::from(binary.subtype), hex_text(binary.bytes))
}

fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

/// A UUID's text.
pub fn uuid_text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&at) {
            text.push('-');
        }
        text += &format!("{byte:02x}");
    }
    text
}

/// The bytes of a UUID's text.
pub fn from_uuid(text: &str) -> Option<Vec<u8>> {
    let shaped = text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.as_bytes().get(*at) == Some(&b'-'));
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    from_hex(&digits).filter(|bytes| shaped && bytes.len() == 16)
}
