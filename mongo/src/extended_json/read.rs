//! Text to BSON. Serde gives the fields in their order; objects that stand for a type are told by their field names.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bson::{
    Binary, Bson, DateTime, Decimal128, Document, JavaScriptCodeWithScope, Regex, Timestamp, oid::ObjectId,
    spec::BinarySubtype,
};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// Reads one document. The error says what is wrong, and where.
pub fn read(text: &[u8]) -> Result<Document, String> {
    match serde_json::from_slice::<Value>(text).map_err(|error| error.to_string())?.0 {
        Bson::Document(document) => Ok(document),
        _ => Err("a JSON object is needed".to_owned()),
    }
}

struct Value(Bson);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader).map(Value)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Bson;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Bson, E> {
        Ok(Bson::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Bson, E> {
        Ok(Bson::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Bson, E> {
        Ok(i32::try_from(value).map_or(Bson::Int64(value), Bson::Int32))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Bson, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => Ok(Bson::Double(value as f64)),
        }
    }

    fn visit_f64<E>(self, value: f64) -> Result<Bson, E> {
        Ok(Bson::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Bson, E> {
        Ok(Bson::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Bson, E> {
        Ok(Bson::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Bson, A::Error> {
        let mut array = Vec::new();
        while let Some(Value(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Bson::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Bson, A::Error> {
        let mut document = Document::new();
        while let Some((name, Value(value))) = fields.next_entry::<String, Value>()? {
            if name.contains('\0') {
                return Err(A::Error::custom("a field name has a zero character"));
            }
            if document.insert(name.as_str(), value).is_some() {
                return Err(A::Error::custom(format!("the field {name:?} is there twice")));
            }
        }
        match typed(&document) {
            None => Ok(Bson::Document(document)),
            Some(value) => value.ok_or_else(|| {
                A::Error::custom(format!("{document} has the form of a type, and not its content"))
            }),
        }
    }
}

/// The value that an object stands for: nothing if it stands for itself, `Some(None)` if its content is wrong.
fn typed(object: &Document) -> Option<Option<Bson>> {
    let (name, value) = object.iter().next()?;
    let text = || value.as_str();
    let names: Vec<&str> = object.keys().map(String::as_str).collect();
    Some(match names.as_slice() {
        ["$oid"] => text().and_then(|text| ObjectId::parse_str(text).ok()).map(Bson::ObjectId),
        ["$numberInt"] => text().and_then(|text| text.parse().ok()).map(Bson::Int32),
        ["$numberLong"] => text().and_then(|text| text.parse().ok()).map(Bson::Int64),
        ["$numberDouble"] => text().and_then(double).map(Bson::Double),
        ["$numberDecimal"] => text().and_then(|text| text.parse::<Decimal128>().ok()).map(Bson::Decimal128),
        ["$date"] => date(value).map(Bson::DateTime),
        ["$symbol"] => text().map(|text| Bson::Symbol(text.to_owned())),
        ["$undefined"] => (value == &Bson::Boolean(true)).then_some(Bson::Undefined),
        ["$minKey"] => (value == &Bson::Int32(1)).then_some(Bson::MinKey),
        ["$maxKey"] => (value == &Bson::Int32(1)).then_some(Bson::MaxKey),
        ["$code"] => text().map(|code| Bson::JavaScriptCode(code.to_owned())),
        ["$code", "$scope"] | ["$scope", "$code"] => scoped(object),
        ["$binary"] => value.as_document().and_then(binary),
        ["$uuid"] => text().and_then(uuid),
        ["$regularExpression"] => value.as_document().and_then(regex),
        ["$timestamp"] => value.as_document().and_then(timestamp),
        _ if name == "$dbPointer" => None,
        _ => return None,
    })
}

fn double(text: &str) -> Option<f64> {
    match text {
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        text => text.parse().ok(),
    }
}

fn date(value: &Bson) -> Option<DateTime> {
    match value {
        Bson::String(text) => DateTime::parse_rfc3339_str(text).ok(),
        // The object with the milliseconds has been read already.
        Bson::Int64(millis) => Some(DateTime::from_millis(*millis)),
        Bson::Int32(millis) => Some(DateTime::from_millis(i64::from(*millis))),
        _ => None,
    }
}

fn scoped(object: &Document) -> Option<Bson> {
    let (code, scope) = (object.get_str("$code").ok()?, object.get_document("$scope").ok()?);
    Some(Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope {
        code: code.to_owned(),
        scope: scope.clone(),
    }))
}

fn binary(content: &Document) -> Option<Bson> {
    let (text, subtype) = (content.get_str("base64").ok()?, content.get_str("subType").ok()?);
    let subtype = u8::from_str_radix(subtype, 16).ok()?;
    let bytes = STANDARD.decode(text).ok()?;
    (content.len() == 2).then(|| Bson::Binary(Binary { subtype: BinarySubtype::from(subtype), bytes }))
}

fn uuid(text: &str) -> Option<Bson> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    let dashes = text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.as_bytes().get(*at) == Some(&b'-'));
    if !dashes || digits.len() != 32 || !digits.is_ascii() {
        return None;
    }
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    Some(Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: pairs.collect::<Option<_>>()? }))
}

fn regex(content: &Document) -> Option<Bson> {
    let (pattern, options) = (content.get_str("pattern").ok()?, content.get_str("options").ok()?);
    let mut options: Vec<char> = options.chars().collect();
    options.sort_unstable();
    let options: String = options.into_iter().collect();
    let (pattern, options) = (pattern.try_into().ok()?, options.try_into().ok()?);
    Some(Bson::RegularExpression(Regex { pattern, options }))
}

fn timestamp(content: &Document) -> Option<Bson> {
    let part = |name: &str| match content.get(name)? {
        Bson::Int32(number) => u32::try_from(*number).ok(),
        Bson::Int64(number) => u32::try_from(*number).ok(),
        _ => None,
    };
    Some(Bson::Timestamp(Timestamp { time: part("t")?, increment: part("i")? }))
}
