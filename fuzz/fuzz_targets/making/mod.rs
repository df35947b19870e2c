//! BSON out of a fuzzer's bytes: almost every input becomes a document that is well formed and nearly means something, so that
//! the time goes into what operators do and not into refusing damaged lengths (which `mongo_frame` does).

use bson::{
    Binary, DateTime, Decimal128, RawArrayBuf, RawBson, RawDocumentBuf, Regex, Timestamp, oid::ObjectId,
    raw::CString, spec::BinarySubtype,
};
use mayfly_mongo::{expression::EXPRESSIONS, filter::OPERATORS as FILTERS, pipeline::STAGES, update::OPERATORS as UPDATES};

const DEPTH_MAX: usize = 6;
const ITEMS_MAX: u8 = 4;

/// Names of fields, and of the arguments that operators take by name.
const NAMES: &[&str] = &[
    "a", "b", "c", "_id", "a.b", "a.0", "a.b.c", "a.$", "a.$[]", "a.$[x]", "x", "x.b", "", "a.", ".a", "$", "$a", "ttl", "input", "as", "in",
    "cond", "if", "then", "else", "initialValue", "date", "timezone", "format", "dateString", "onError", "onNull", "unit", "binSize",
    "startOfWeek", "startDate", "endDate", "amount", "from", "localField", "foreignField", "let", "pipeline", "into", "on", "path",
    "includeArrayIndex", "preserveNullAndEmptyArrays", "groupBy", "boundaries", "default", "output", "buckets", "granularity",
    "partitionByFields", "partitionBy", "sortBy", "window", "documents", "range", "bounds", "step", "field", "method", "value", "find",
    "replacement", "regex", "options", "chars", "branches", "case", "vars", "n", "p", "limit", "newRoot", "startWith",
    "connectFromField", "connectToField", "maxDepth", "depthField", "restrictSearchWithMatch", "coll", "size", "$each", "$position",
    "$slice", "$sort", "and", "or", "xor", "bsonType", "properties", "required", "items", "minimum", "maximum", "pattern", "enum",
    "additionalProperties", "patternProperties", "type", "coordinates", "near", "distanceField", "key", "spherical", "year", "month",
    "day", "hour", "minute", "isoWeekYear", "isoWeek", "to", "base", "byteOrder", "useLongestMatch", "inputs", "defaults", "$type",
];

/// Texts that mean something somewhere.
const TEXTS: &[&str] = &[
    "a", "", "$a", "$a.b", "$$ROOT", "$$NOW", "$$this", "$$value", "$$REMOVE", "$$KEEP", "$$PRUNE", "$$DESCEND", "2024-02-29T23:59:60Z",
    "%Y-%m-%dT%H:%M:%S.%L%z", "Europe/Paris", "+14:00", "day", "month", "quarter", "week", "int", "decimal", "string", "objectId", "keep",
    "indexKey", "Point", "Polygon", "MultiPolygon", "unbounded", "current", "linear", "locf", "R5", "1-2-5", "(a+)+$", "[", "ß", "é\u{301}", "\u{0}",
    "1e400", "-1", "0x1f", "NaN", "date", "timestamp", "full", "partition", "auto", "binData", "base64", "textScore", "hex", "utf8", "uuid",
];

const NUMBERS: &[f64] = &[0.0, -0.0, 1.0, -1.0, 0.5, 2147483648.0, 9.3e18, -9.3e18, 1e308, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 180.0, 90.0];

/// Makes values as long as there are bytes, and small ones after that.
pub struct Maker<'a>(pub &'a [u8]);

impl Maker<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn eight(&mut self) -> [u8; 8] {
        std::array::from_fn(|_| self.byte())
    }

    fn one<'t>(&mut self, table: &[&'t str]) -> &'t str {
        let place = usize::from(self.byte()) * 256 + usize::from(self.byte());
        table[place % table.len()]
    }

    fn name(&mut self) -> CString {
        let operators = |of: u8| -> Vec<&'static str> {
            match of {
                0 => FILTERS.iter().map(|operator| operator.name).collect(),
                1 => UPDATES.iter().map(|operator| operator.name).collect(),
                2 => STAGES.iter().copied().flatten().map(|stage| stage.name).collect(),
                _ => EXPRESSIONS.iter().copied().flatten().map(|operator| operator.name).collect(),
            }
        };
        let name = match self.byte() % 8 {
            kind @ 0..=4 => {
                let table = operators(kind);
                self.one(&table)
            }
            _ => self.one(NAMES),
        };
        CString::try_from(name).expect("no NUL")
    }

    fn text(&mut self) -> String {
        match self.byte() % 4 {
            0 => char::from(self.byte()).to_string(),
            _ => self.one(TEXTS).to_owned(),
        }
    }

    pub fn document(&mut self, depth: usize) -> RawDocumentBuf {
        let mut made = RawDocumentBuf::new();
        for _ in 0..self.byte() % ITEMS_MAX {
            let name = self.name();
            made.append(name, self.value(depth + 1));
        }
        made
    }

    /// A document of one field, as stages and most expressions are.
    fn operation(&mut self, depth: usize) -> RawDocumentBuf {
        let name = self.name();
        RawDocumentBuf::from_iter([(name, self.value(depth + 1))])
    }

    pub fn array(&mut self, depth: usize) -> RawArrayBuf {
        (0..self.byte() % ITEMS_MAX).map(|_| self.value(depth + 1)).collect()
    }

    pub fn pipeline(&mut self) -> RawArrayBuf {
        let stages: Vec<&str> = STAGES.iter().copied().flatten().map(|stage| stage.name).collect();
        let stage = |maker: &mut Self| {
            let name = CString::try_from(maker.one(&stages)).expect("no NUL");
            RawDocumentBuf::from_iter([(name, maker.value(1))])
        };
        (0..1 + self.byte() % ITEMS_MAX).map(|_| stage(self)).collect()
    }

    pub fn value(&mut self, depth: usize) -> RawBson {
        let kind = self.byte();
        if depth < DEPTH_MAX {
            match kind % 8 {
                0 => return self.document(depth).into(),
                1 | 2 => return self.operation(depth).into(),
                3 => return self.array(depth).into(),
                _ => {}
            }
        }
        match kind / 8 % 20 {
            0..=2 => self.text().into(),
            3 => i32::from(self.byte() as i8).into(),
            4 => i32::from_le_bytes([self.eight()[0]; 4]).into(),
            5 => i64::from_le_bytes(self.eight()).into(),
            6 => NUMBERS[usize::from(self.byte()) % NUMBERS.len()].into(),
            7 => f64::from_le_bytes(self.eight()).into(),
            8 => (self.byte() & 1 == 1).into(),
            9 => RawBson::Null,
            10 => DateTime::from_millis(i64::from_le_bytes(self.eight())).into(),
            11 => DateTime::from_millis(i64::from(self.byte()) * 86_400_000 * 97).into(),
            12 => {
                let (high, low) = (self.eight(), self.eight());
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&high);
                bytes[8..].copy_from_slice(&low);
                Decimal128::from_bytes(bytes).into()
            }
            13 => RawBson::Undefined,
            14 => RawBson::RegularExpression(Regex {
                pattern: CString::try_from(self.text().replace('\0', "")).expect("no NUL"),
                options: CString::try_from(["", "i", "imsx", "x"][usize::from(self.byte() % 4)]).expect("no NUL"),
            }),
            15 => RawBson::Timestamp(Timestamp { time: self.byte().into(), increment: self.byte().into() }),
            16 => RawBson::MinKey,
            17 => RawBson::MaxKey,
            18 => RawBson::Binary(Binary {
                subtype: BinarySubtype::from(self.byte()),
                bytes: self.text().into_bytes(),
            }),
            _ => match self.byte() % 3 {
                0 => RawBson::ObjectId(ObjectId::from_bytes([self.byte(); 12])),
                1 => RawBson::Symbol(self.text()),
                _ => RawBson::JavaScriptCode(self.text()),
            },
        }
    }
}
