//! What a filter says about one path, written as the query language would.

use mayfly_sql::{
    Hint, PathStep,
    hints::{Bounded, Span},
    value::{Kind, Value},
};
use serde_json::json;

/// What a hint says; `root` is what the document is called.
pub fn text(root: &str, hint: &Hint) -> String {
    let step = |step: &PathStep| match step {
        PathStep::Name(name) => format!(".{name}"),
        PathStep::Item(item) => format!("[{item}]"),
    };
    let item = if hint.of_item { "[]" } else { "" };
    let subject = format!("{root}{}{item}", hint.path.iter().map(step).collect::<String>());
    let values: Option<Vec<_>> = hint
        .spans
        .iter()
        .map(|span| match span {
            Span::Value(value) => Some(value.to_json()),
            _ => None,
        })
        .collect();
    match values.as_deref() {
        Some([value]) => format!("({subject} = {value})"),
        Some(values) => format!("({subject} IN ({}))", values.join(", ")),
        None => hint.spans.iter().map(|span| one(&subject, span)).collect::<Vec<_>>().join(" OR "),
    }
}

fn one(subject: &str, span: &Span) -> String {
    match span {
        Span::Value(value) => format!("({subject} = {})", value.to_json()),
        Span::StartsWith(prefix) => format!("STARTSWITH({subject}, {})", json!(prefix)),
        Span::Kind(kind) => format!("{}({subject})", type_check(*kind)),
        Span::Between { low, high } => {
            let bounds = [bound(subject, low, [">=", ">"]), bound(subject, high, ["<=", "<"])];
            bounds.into_iter().flatten().collect::<Vec<_>>().join(" AND ")
        }
    }
}

fn bound(subject: &str, bounded: &Bounded, [inclusive, exclusive]: [&str; 2]) -> Option<String> {
    let compared =
        |operator: &str, value: &Value<'_>| Some(format!("({subject} {operator} {})", value.to_json()));
    match bounded {
        Bounded::Inclusive(value) => compared(inclusive, value),
        Bounded::Exclusive(value) => compared(exclusive, value),
        Bounded::Open => None,
    }
}

/// The function that is true for values of a type, and for no others.
fn type_check(kind: Kind) -> &'static str {
    match kind {
        Kind::Undefined => "NOT IS_DEFINED",
        Kind::Null => "IS_NULL",
        Kind::Bool => "IS_BOOL",
        Kind::Number => "IS_NUMBER",
        Kind::String => "IS_STRING",
        Kind::Array => "IS_ARRAY",
        Kind::Object => "IS_OBJECT",
    }
}
