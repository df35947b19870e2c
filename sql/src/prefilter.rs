//! The filter of a query on its own: what tells that a document gives no rows, without the rest of the query.
//!
//! A scan asks this of every document it meets. Most conditions compare a property with a constant: those look at the
//! bytes of the document and make nothing.

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
    conditions: Vec<Condition<'p>>,
    /// The slots that are the document.
    aliases: Vec<usize>,
    slots: usize,
    context: Context<'p>,
}

enum Condition<'p> {
    /// A property of the document beside a constant.
    Compared {
        path: Vec<String>,
        operator: BinaryOp,
        constant: &'p Value<'static>,
    },
    Any(&'p Bound),
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
        let conditions = conditions.into_iter().filter(|condition| is_wanted(condition));
        let conditions: Vec<_> = conditions.map(|condition| Condition::of(bound, condition)).collect();
        let sources: Vec<_> = block.sources.iter().map(|source| source.slot).collect();
        if conditions.is_empty() || block.rank.is_some() || !sources.iter().all(|slot| is_document(*slot)) {
            return None;
        }
        let aliases = std::iter::once(slot).chain(sources).collect();
        Some(Prefilter { conditions, aliases, slots: bound.slots, context })
    }

    /// Whether a document may give rows. An error counts as yes: the query will meet it again.
    pub fn passes(&self, document: &Document<'_>) -> bool {
        let document = Value::Object(Object::Document(*document));
        // Made when it is needed: many documents fail a comparison before.
        let mut env = None;
        self.conditions.iter().all(|condition| match condition {
            Condition::Compared { path, operator, constant } => {
                let names = path.iter();
                let value = names.fold(document.borrow(), |value, name| value.property(name));
                binary(*operator, &value, constant).is_true()
            }
            Condition::Any(bound) => {
                let env = env.get_or_insert_with(|| {
                    let mut env = Env::new(self.slots, &self.context);
                    self.aliases.iter().for_each(|slot| env.set(*slot, document.borrow()));
                    env
                });
                eval(bound, env).map_or(true, |value| value.is_true())
            }
        })
    }
}

impl<'p> Condition<'p> {
    fn of(query: &BoundQuery, bound: &'p Bound) -> Condition<'p> {
        let compared = match bound {
            Bound::Binary(operator, a, b) if operator.compares() => match (&**a, &**b) {
                (path, Bound::Constant(constant)) => Some((path, *operator, constant)),
                (Bound::Constant(constant), path) => Some((path, operator.mirrored(), constant)),
                _ => None,
            },
            _ => None,
        };
        let named = |(path, operator, constant)| {
            let path = query.document_path(path)?.into_iter().map(|step| match step {
                PathStep::Name(name) => Some(name),
                PathStep::Item(_) => None,
            });
            Some(Condition::Compared { path: path.collect::<Option<_>>()?, operator, constant })
        };
        compared.and_then(named).unwrap_or(Condition::Any(bound))
    }
}

#[cfg(test)]
mod tests {
    use mayfly_value::json::{JsonLimits, parse_document};

    use super::*;
    use crate::Query;

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
            }
        }
    }
}
