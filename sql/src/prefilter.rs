//! The filter of a query on its own: what tells that a document gives no rows, without the rest of the query.
//!
//! A scan asks this of every document it meets. Most conditions compare a property with a constant: those look at the
//! bytes of the document and make nothing.

use mayfly_value::field::Field;
use memchr::memmem::Finder;

use crate::ast::BinaryOp;
use crate::bind::BoundQuery;
use crate::context::Context;
use crate::eval::{Env, binary, eval};
use crate::hints;
use crate::plan::{Bound, Input, PathStep};
use crate::query::Plan;
use crate::value::{Document, Object, Value};

/// The filter of a query, on its own.
pub struct Prefilter<'p> {
    /// All of them have to hold.
    comparisons: Comparisons<'p>,
    /// And all of these.
    others: Vec<&'p Bound>,
    /// The slots that are the document.
    aliases: Vec<usize>,
    slots: usize,
    context: Context<'p>,
}

/// The conditions of a filter that compare a property of the document with a constant. They keep nothing, so threads can
/// share them.
#[derive(Default)]
pub struct Comparisons<'p>(Vec<Comparison<'p>>);

/// The search for what one of them needs, in bytes that hold documents and other things.
///
/// A document that passes `c.rare = 7` has the name `rare` in it, the byte that ends names, and the number. So wherever
/// the documents begin, bytes without that hold none that passes.
pub struct Hunt<'p> {
    comparison: &'p Comparison<'p>,
    name: Finder<'static>,
}

struct Comparison<'p> {
    path: Vec<String>,
    operator: BinaryOp,
    constant: &'p Value<'static>,
}

impl Plan {
    /// What tells, without the rest of the query, that a document gives no rows. None if the filter is not about the
    /// document alone.
    pub fn prefilter<'p>(&'p self, context: Context<'p>) -> Option<Prefilter<'p>> {
        Prefilter::of(self.bound(), context, |_| true)
    }

    /// The same for something that has only these paths of a document: the conditions that read nothing else. None if
    /// there is no such condition.
    pub fn part_filter<'p>(&'p self, context: Context<'p>, paths: &[Vec<String>]) -> Option<Prefilter<'p>> {
        Prefilter::of(self.bound(), context, |condition| hints::reads_only(self.bound(), condition, paths))
    }
}

impl<'p> Prefilter<'p> {
    fn of(
        bound: &'p BoundQuery,
        context: Context<'p>,
        is_wanted: impl Fn(&Bound) -> bool,
    ) -> Option<Prefilter<'p>> {
        let block = &bound.block;
        let Input::Documents { slot } = block.input else { return None };
        let is_document = |slot| bound.document_paths.get(&slot).is_some_and(Vec::is_empty);
        let conditions = match block.filter.as_ref()? {
            Bound::And(operands) => operands.iter().collect(),
            filter => vec![filter],
        };
        let (mut comparisons, mut others) = (Comparisons::default(), Vec::new());
        for condition in conditions.into_iter().filter(|condition| is_wanted(condition)) {
            match Comparison::of(bound, condition) {
                Some(comparison) => comparisons.0.push(comparison),
                None => others.push(condition),
            }
        }
        let sources: Vec<_> = block.sources.iter().map(|source| source.slot).collect();
        let is_empty = comparisons.0.is_empty() && others.is_empty();
        if is_empty || block.rank.is_some() || !sources.iter().all(|slot| is_document(*slot)) {
            return None;
        }
        let aliases = std::iter::once(slot).chain(sources).collect();
        Some(Prefilter { comparisons, others, aliases, slots: bound.slots, context })
    }

    /// The comparisons, and what else is in the filter.
    pub fn split(mut self) -> (Comparisons<'p>, Option<Prefilter<'p>>) {
        let comparisons = std::mem::take(&mut self.comparisons);
        (comparisons, Some(self).filter(|rest| !rest.others.is_empty()))
    }

    /// Whether a document may give rows. An error counts as yes: the query will meet it again.
    pub fn passes(&self, document: &Document<'_>) -> bool {
        if !self.comparisons.passes(document) {
            return false;
        }
        let mut env = Env::new(self.slots, &self.context);
        for slot in &self.aliases {
            env.set(*slot, Value::Object(Object::Document(*document)));
        }
        self.others.iter().all(|bound| eval(bound, &mut env).map_or(true, |value| value.is_true()))
    }
}

impl Comparisons<'_> {
    /// Whether all of them hold for a document.
    pub fn passes(&self, document: &Document<'_>) -> bool {
        let document = Value::Object(Object::Document(*document));
        self.0.iter().all(|comparison| {
            let value = comparison.path.iter().fold(document.borrow(), |value, name| value.property(name));
            comparison.holds(&value)
        })
    }
}

impl<'p> Comparisons<'p> {
    /// What to search for before anything is taken apart. None if there is no comparison that could tell.
    pub fn hunt(&'p self) -> Option<Hunt<'p>> {
        let selects = |comparison: &&Comparison<'_>| comparison.operator == BinaryOp::Equal;
        let comparison = self.0.iter().find(selects).or(self.0.first())?;
        let name = comparison.path.last().filter(|name| !name.is_empty())?;
        let name = Finder::new(&[name.as_bytes(), &[0]].concat()).into_owned();
        Some(Hunt { comparison, name })
    }
}

impl Hunt<'_> {
    /// Whether bytes may hold a document that passes. It would be whole in them.
    pub fn may_succeed(&self, bytes: &[u8]) -> bool {
        self.name.find_iter(bytes).any(|at| {
            let Some(field) = Field::around(bytes, at..at + self.name.needle().len()) else { return false };
            // What is not simple is left to those who read the document.
            field.simple().is_none_or(|value| self.comparison.holds(&Value::from_raw(value)))
        })
    }
}

impl<'p> Comparison<'p> {
    fn holds(&self, value: &Value<'_>) -> bool {
        binary(self.operator, value, self.constant).is_true()
    }

    fn of(query: &BoundQuery, bound: &'p Bound) -> Option<Comparison<'p>> {
        let Bound::Binary(operator, a, b) = bound else { return None };
        let (path, operator, constant) = match (&**a, &**b) {
            (path, Bound::Constant(constant)) => (path, *operator, constant),
            (Bound::Constant(constant), path) => (path, operator.mirrored(), constant),
            _ => return None,
        };
        let path = query.document_path(path)?.into_iter().map(|step| match step {
            PathStep::Name(name) => Some(name),
            PathStep::Item(_) => None,
        });
        let path = path.collect::<Option<_>>()?;
        operator.compares().then_some(Comparison { path, operator, constant })
    }
}

#[cfg(test)]
mod tests {
    use mayfly_value::json::{JsonLimits, parse_document};

    use super::*;
    use crate::Query;

    /// Whether what a filter needs may be in a document that lies among other bytes.
    fn may_succeed(filter: &str, document: &str) -> bool {
        let plan = Query::parse(&format!("SELECT * FROM c WHERE {filter}")).unwrap().bind(&[]).unwrap();
        let (comparisons, _) = plan.prefilter(Context::new(0, 0)).unwrap().split();
        let body = parse_document(document.as_bytes(), JsonLimits::default()).unwrap();
        comparisons.hunt().unwrap().may_succeed(&[b"before", body.as_bytes(), b"behind"].concat())
    }

    #[test]
    fn bytes_without_what_a_comparison_needs_are_told() {
        for (filter, with, without) in [
            ("c.a = 7", r#"{"x":1,"a":7}"#, r#"{"x":7,"a":1}"#),
            ("c.a = 7", r#"{"a":7.0}"#, r#"{"a":"7","b":7}"#),
            ("c.a > 7", r#"{"a":7.5}"#, r#"{"a":7,"aa":8,"ba":9}"#),
            ("c.a.b = 'x'", r#"{"a":{"b":"x"}}"#, r#"{"a":{"b":"y","c":"x"},"text":"b x"}"#),
            ("c.a = null", r#"{"a":null}"#, r#"{"a":false}"#),
            // By the condition that leaves less.
            ("c.a > 0 AND c.b = 2", r#"{"a":-1,"b":2}"#, r#"{"a":1,"b":1}"#),
            // Arrays are left to those who read the document.
            ("c.a = 7", r#"{"a":[1]}"#, r#"{"b":[7]}"#),
        ] {
            assert!(may_succeed(filter, with), "{filter}: {with}");
            assert!(!may_succeed(filter, without), "{filter}: {without}");
        }
    }

    #[test]
    fn comparisons_by_path_pass_what_the_query_passes() {
        let documents = [
            r#"{"a":1,"b":{"c":"x"}}"#,
            r#"{"a":1.0,"b":{"c":null}}"#,
            r#"{"a":"1","b":[1]}"#,
            r#"{"b":{}}"#,
            r#"{"a":{"x":1},"b":{"c":"y"}}"#,
        ];
        let filters = [
            "c.a = 1",
            "1 = c.a",
            "c.a != 1",
            "c.a > 0",
            "0 < c.a",
            "2 >= c.a",
            "c.b.c = 'x'",
            "c.b.c >= 'x'",
            "c.b.c = null",
            "c = 1",
            "c.a = {x: 1}",
            "c.a = undefined",
            "c.a = 1 AND c.b.c = 'x'",
            "c.a + 0 = 1",
            "c.a = 1 AND LENGTH(c.b.c) = 1",
            "c['b']['c'] <= 'y'",
            "c.b[0] = 1",
        ];
        for filter in filters {
            let plan = Query::parse(&format!("SELECT * FROM c WHERE {filter}")).unwrap().bind(&[]).unwrap();
            let prefilter = plan.prefilter(Context::new(0, 0)).unwrap();
            for text in documents {
                let body = parse_document(text.as_bytes(), JsonLimits::default()).unwrap();
                let document = Document { body: &body, system: &[] };
                let rows = plan.run(Context::new(0, 0)).unwrap().push(&document).unwrap().len();
                assert_eq!(prefilter.passes(&document), rows == 1, "{filter}: {text}");
                let (comparisons, rest) = plan.prefilter(Context::new(0, 0)).unwrap().split();
                let by_parts =
                    comparisons.passes(&document) && rest.is_none_or(|rest| rest.passes(&document));
                assert_eq!(by_parts, rows == 1, "{filter}: {text}");
                if let Some(hunt) = comparisons.hunt() {
                    let among = [b"before", body.as_bytes(), b"behind"].concat();
                    assert!(rows == 0 || hunt.may_succeed(&among), "{filter}: {text}");
                }
            }
        }
    }
}
