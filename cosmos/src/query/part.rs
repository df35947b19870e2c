//! What an entry of an index says of its document, as a document that has only that; and the conditions that this is
//! enough for.

use bson::{RawBson, RawDocument, RawDocumentBuf, raw::CStr};
use mayfly_engine::Timestamp;
use mayfly_sql::{Comparisons, Context, Document, Hunt, Plan, Prefilter};
use mayfly_value::keycode::DecodedValue;
use parking_lot::Mutex;

/// A filter that several threads may use. What it has besides comparisons has memory of its own: there are some of it,
/// and who comes takes one that is free.
pub struct Sieve<'p> {
    comparisons: Comparisons<'p>,
    others: Option<[Mutex<Prefilter<'p>>; SIEVES]>,
}

/// As many as threads share a walk.
const SIEVES: usize = 4;

impl<'p> Sieve<'p> {
    /// One that lets through what the filter does; `make` may make it several times. None if there is no filter.
    pub fn new(make: impl Fn() -> Option<Prefilter<'p>>) -> Option<Self> {
        let (comparisons, first) = make()?.split();
        let others = match first {
            None => None,
            Some(first) => {
                let more = || make()?.split().1;
                Some([first, more()?, more()?, more()?].map(Mutex::new))
            }
        };
        Some(Self { comparisons, others })
    }

    /// Whether what passes here passes the query's filter. What is not a comparison may fail, and passes then: the query
    /// meets it again.
    pub fn is_exact(&self) -> bool {
        self.others.is_none()
    }

    /// The search for what a document needs to pass, if there is such a thing.
    pub fn hunt(&self) -> Option<Hunt<'_>> {
        self.comparisons.hunt()
    }

    /// Whether a document may give rows.
    pub fn passes(&self, body: &RawDocument) -> bool {
        let document = Document { body, system: &[] };
        if !self.comparisons.passes(&document) {
            return false;
        }
        let Some(others) = &self.others else { return true };
        match others.iter().find_map(Mutex::try_lock) {
            Some(filter) => filter.passes(&document),
            None => others[0].lock().passes(&document),
        }
    }
}

/// The conditions of a query's filter that read only some paths.
pub struct PartFilter<'p> {
    paths: Vec<Vec<String>>,
    filter: Sieve<'p>,
}

impl<'p> PartFilter<'p> {
    /// None if no condition reads only these paths.
    pub fn new(plan: &'p Plan, paths: &[Vec<String>], now: Timestamp) -> Option<Self> {
        if paths.is_empty() {
            return None;
        }
        let filter = Sieve::new(|| plan.part_filter(Context::new(now.0 as i64, now.0), paths))?;
        Some(Self { paths: paths.to_vec(), filter })
    }

    /// Whether a document may pass that has these values at the paths. Of values that are not plain scalars the entry
    /// does not say enough.
    pub fn keeps(&self, values: &[DecodedValue]) -> bool {
        let is_plain = |value: &DecodedValue| {
            use DecodedValue::{Bool, Double, Null, String, Undefined};
            matches!(value, Undefined | Null | Bool(_) | Double(_) | String(_))
        };
        if !values.iter().all(is_plain) {
            return true;
        }
        self.filter.passes(&part(&self.paths, values))
    }
}

/// A document that has only these values.
pub fn part(paths: &[Vec<String>], values: &[DecodedValue]) -> RawDocumentBuf {
    let mut fields: Vec<(&[String], RawBson)> = Vec::with_capacity(paths.len());
    for (path, value) in paths.iter().zip(values) {
        fields.extend(bson_of(value).map(|value| (&path[..], value)));
    }
    object(&fields)
}

fn object(fields: &[(&[String], RawBson)]) -> RawDocumentBuf {
    let mut object = RawDocumentBuf::new();
    let mut done: Vec<&str> = Vec::new();
    for (path, value) in fields {
        let Some((name, rest)) = path.split_first() else { continue };
        let Ok(key) = <&CStr>::try_from(name.as_str()) else { continue };
        if rest.is_empty() {
            object.append(key, value.clone());
        } else if !done.contains(&name.as_str()) {
            done.push(name);
            let inside: Vec<_> = fields
                .iter()
                .filter(|(path, _)| path.len() > 1 && path.first() == Some(name))
                .map(|(path, value)| (&path[1..], value.clone()))
                .collect();
            object.append(key, self::object(&inside));
        }
    }
    object
}

/// A value of JSON as a document would have it.
fn bson_of(value: &DecodedValue) -> Option<RawBson> {
    Some(match value {
        DecodedValue::Null => RawBson::Null,
        DecodedValue::Bool(value) => RawBson::Boolean(*value),
        // Integers stay integers: sums of them are exact.
        DecodedValue::Double(value) if value.fract() == 0.0 => RawBson::Int64(*value as i64),
        DecodedValue::Double(value) => RawBson::Double(*value),
        DecodedValue::String(text) => RawBson::String(text.clone()),
        // The engine gives the document where an entry holds anything else.
        _ => return None,
    })
}
