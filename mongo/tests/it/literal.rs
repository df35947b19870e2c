//! BSON values as text, the way a shell writes them: `{a: 1, b: [NumberLong(2), 3.0], d: ISODate(0)}`.
//!
//! Unlike relaxed extended JSON the text keeps the types of numbers apart: `1` is an int32, `1.0` a double,
//! `NumberLong(1)` an int64. What `print` writes, `parse` reads back to the same bytes.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bson::raw::{CStr, CString};
use bson::spec::BinarySubtype;
use bson::{
    Binary, DateTime, RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf, RawJavaScriptCodeWithScope, Regex,
    Timestamp, oid::ObjectId,
};
use mayfly_value::bson;

/// Reads one value and gives back the text after it.
pub fn parse(text: &str) -> (RawBson, &str) {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value();
    (value, &text[parser.at..])
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn fail(&self, what: &str) -> ! {
        panic!("{what} at {:?} in {:?}", &self.text[self.at..], self.text)
    }

    fn peek(&mut self) -> char {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next().unwrap_or('\0')
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == wanted;
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) {
        if !self.eat(wanted) {
            self.fail(&format!("no {wanted:?}"));
        }
    }

    fn value(&mut self) -> RawBson {
        match self.peek() {
            '{' => RawBson::Document(self.object()),
            '[' => RawBson::Array(self.array()),
            '"' | '\'' => RawBson::String(self.string()),
            '/' => self.regex(),
            c if c == '-' || c.is_ascii_digit() => self.number(),
            c if c.is_alphabetic() => self.word(),
            _ => self.fail("no value"),
        }
    }

    fn object(&mut self) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        self.expect('{');
        while !self.eat('}') {
            let key = match self.peek() {
                '"' | '\'' => self.string(),
                _ => self.bare(),
            };
            self.expect(':');
            let value = self.value();
            document.append(CString::try_from(key).unwrap(), value);
            if !self.eat(',') {
                self.expect('}');
                break;
            }
        }
        document
    }

    fn array(&mut self) -> RawArrayBuf {
        let mut array = RawArrayBuf::new();
        self.expect('[');
        while !self.eat(']') {
            array.push(self.value());
            if !self.eat(',') {
                self.expect(']');
                break;
            }
        }
        array
    }

    fn bare(&mut self) -> String {
        self.peek();
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "_$.".contains(c))).unwrap_or(rest.len());
        if end == 0 {
            self.fail("no name");
        }
        self.at += end;
        rest[..end].to_string()
    }

    fn string(&mut self) -> String {
        let quote = self.peek();
        self.at += 1;
        let mut text = String::new();
        let mut characters = self.text[self.at..].char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '\\' => match characters.next().map(|(_, c)| c) {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('0') => text.push('\0'),
                    Some('u') => {
                        let hex: String = characters.by_ref().take(4).map(|(_, c)| c).collect();
                        text.extend(char::from_u32(u32::from_str_radix(&hex, 16).unwrap()));
                    }
                    Some(c) => text.push(c),
                    None => break,
                },
                c if c == quote => {
                    self.at += at + 1;
                    return text;
                }
                c => text.push(c),
            }
        }
        self.fail("no end of the string")
    }

    fn regex(&mut self) -> RawBson {
        self.at += 1;
        let rest = &self.text[self.at..];
        let mut end = 0;
        let bytes = rest.as_bytes();
        while bytes[end] != b'/' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let pattern = rest[..end].replace("\\/", "/");
        let flags: String = rest[end + 1..].chars().take_while(|c| c.is_ascii_lowercase()).collect();
        self.at += end + 1 + flags.len();
        RawBson::RegularExpression(Regex {
            pattern: CString::try_from(pattern).unwrap(),
            options: CString::try_from(flags).unwrap(),
        })
    }

    fn number(&mut self) -> RawBson {
        let rest = &self.text[self.at..];
        if rest.starts_with("-Infinity") {
            self.at += "-Infinity".len();
            return RawBson::Double(f64::NEG_INFINITY);
        }
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len());
        self.at += end;
        let text = &rest[..end];
        match text.parse::<i32>() {
            Ok(int) => RawBson::Int32(int),
            Err(_) if text.contains(['.', 'e']) => {
                RawBson::Double(text.parse().unwrap_or_else(|_| panic!("no number: {text}")))
            }
            Err(_) => panic!("{text} is no int32: write NumberLong({text}) or {text}.0"),
        }
    }

    fn word(&mut self) -> RawBson {
        let word = self.bare();
        match word.as_str() {
            "true" => return RawBson::Boolean(true),
            "false" => return RawBson::Boolean(false),
            "null" => return RawBson::Null,
            "undefined" => return RawBson::Undefined,
            "NaN" => return RawBson::Double(f64::NAN),
            "Infinity" => return RawBson::Double(f64::INFINITY),
            "MinKey" => return RawBson::MinKey,
            "MaxKey" => return RawBson::MaxKey,
            _ => {}
        }
        self.expect('(');
        let mut arguments = Vec::new();
        while !self.eat(')') {
            if word == "NumberLong" || word == "ISODate" {
                // int64 has no literal of its own.
                self.peek();
                if !self.text[self.at..].starts_with('"') {
                    let rest = &self.text[self.at..];
                    let end = rest.find(')').unwrap();
                    self.at += end;
                    arguments.push(RawBson::Int64(rest[..end].trim().parse().unwrap()));
                    continue;
                }
            }
            arguments.push(self.value());
            if !self.eat(',') {
                self.expect(')');
                break;
            }
        }
        call(&word, arguments)
    }
}

fn text(value: &RawBson) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no string: {value:?}"))
}

fn call(word: &str, mut arguments: Vec<RawBson>) -> RawBson {
    let int = |at: usize| match arguments[at] {
        RawBson::Int32(value) => i64::from(value),
        RawBson::Int64(value) => value,
        ref other => panic!("no integer: {other:?}"),
    };
    match word {
        "NumberLong" => RawBson::Int64(int(0)),
        "NumberDecimal" => RawBson::Decimal128(text(&arguments[0]).parse().unwrap()),
        "ISODate" => RawBson::DateTime(match &arguments[0] {
            RawBson::String(text) => DateTime::parse_rfc3339_str(text).unwrap(),
            _ => DateTime::from_millis(int(0)),
        }),
        "ObjectId" => RawBson::ObjectId(ObjectId::parse_str(text(&arguments[0])).unwrap()),
        "Timestamp" => RawBson::Timestamp(Timestamp { time: int(0) as u32, increment: int(1) as u32 }),
        "BinData" => RawBson::Binary(Binary {
            subtype: BinarySubtype::from(int(0) as u8),
            bytes: BASE64_STANDARD.decode(text(&arguments[1])).unwrap(),
        }),
        "Symbol" => RawBson::Symbol(text(&arguments[0]).to_string()),
        "Code" if arguments.len() == 2 => match (arguments.remove(0), arguments.remove(0)) {
            (RawBson::String(code), RawBson::Document(scope)) => {
                RawBson::JavaScriptCodeWithScope(RawJavaScriptCodeWithScope { code, scope })
            }
            other => panic!("no code: {other:?}"),
        },
        "Code" => RawBson::JavaScriptCode(text(&arguments[0]).to_string()),
        _ => panic!("unknown word {word}"),
    }
}

/// Writes a value on one line.
pub fn print(value: RawBsonRef<'_>) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: RawBsonRef<'_>, out: &mut String) {
    use RawBsonRef as V;
    match value {
        V::Document(document) => {
            out.push('{');
            for (number, field) in document.iter().enumerate() {
                let (key, value) = field.expect("a well-formed document");
                out.push_str(if number > 0 { ", " } else { "" });
                write_key(key, out);
                out.push_str(": ");
                write(value, out);
            }
            out.push('}');
        }
        V::Array(array) => {
            out.push('[');
            for (number, value) in array.into_iter().enumerate() {
                out.push_str(if number > 0 { ", " } else { "" });
                write(value.expect("a well-formed array"), out);
            }
            out.push(']');
        }
        V::String(text) => write_string(text, out),
        V::Int32(value) => *out += &value.to_string(),
        V::Int64(value) => *out += &format!("NumberLong({value})"),
        V::Double(value) if value.is_nan() => out.push_str("NaN"),
        V::Double(value) if value.is_infinite() => {
            out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" })
        }
        V::Double(value) => *out += &format!("{value:?}"),
        V::Decimal128(value) => *out += &format!("NumberDecimal(\"{value}\")"),
        V::Boolean(value) => *out += &value.to_string(),
        V::Null => out.push_str("null"),
        V::Undefined => out.push_str("undefined"),
        V::MinKey => out.push_str("MinKey"),
        V::MaxKey => out.push_str("MaxKey"),
        V::ObjectId(id) => *out += &format!("ObjectId(\"{id}\")"),
        V::DateTime(date) => match date.try_to_rfc3339_string() {
            Ok(text) if date.timestamp_millis() >= 0 => *out += &format!("ISODate(\"{text}\")"),
            _ => *out += &format!("ISODate({})", date.timestamp_millis()),
        },
        V::Timestamp(value) => *out += &format!("Timestamp({}, {})", value.time, value.increment),
        V::Binary(value) => {
            let base64 = BASE64_STANDARD.encode(value.bytes);
            *out += &format!("BinData({}, \"{base64}\")", u8::from(value.subtype));
        }
        V::RegularExpression(value) => {
            *out += &format!("/{}/{}", value.pattern.as_str().replace('/', "\\/"), value.options.as_str());
        }
        V::Symbol(value) => {
            out.push_str("Symbol(");
            write_string(value, out);
            out.push(')');
        }
        V::JavaScriptCode(value) => {
            out.push_str("Code(");
            write_string(value, out);
            out.push(')');
        }
        V::JavaScriptCodeWithScope(value) => {
            out.push_str("Code(");
            write_string(value.code, out);
            out.push_str(", ");
            write(V::Document(value.scope), out);
            out.push(')');
        }
        V::DbPointer(_) => out.push_str("DBPointer"),
    }
}

fn write_key(key: &CStr, out: &mut String) {
    let key = key.as_str();
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_$.".contains(c));
    if plain { out.push_str(key) } else { write_string(key, out) }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => *out += &format!("\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
}
