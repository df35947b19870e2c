//! Words in text.
//!
//! These functions work on any text by reading it; where there is an index of words, `search.rs` and the hints say
//! what it is asked for. A term is text, matched as a phrase, or an
//! object `{"term": ..., "distance": 1}` that forgives that many wrong letters per word. Words are those of the
//! language that the container's policy names for the path of the text.

use std::sync::Arc;

use mayfly_value::text::{Language, Occurrences, Totals, Word, occurrences, words};

use super::{Args, Family, Function};
use crate::context::Context;
use crate::error::EvalError;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::of_words(
        "FULLTEXTCONTAINS",
        Args::exactly(2),
        "FULLTEXTCONTAINS(s, term)",
        "Whether the text holds the word or phrase.",
        contains_all,
    ),
    Function::of_words(
        "FULLTEXTCONTAINSALL",
        Args::at_least(2),
        "FULLTEXTCONTAINSALL(s, term1 [, ...])",
        "Whether the text holds every term.",
        contains_all,
    ),
    Function::of_words(
        "FULLTEXTCONTAINSANY",
        Args::at_least(2),
        "FULLTEXTCONTAINSANY(s, term1 [, ...])",
        "Whether the text holds one of the terms.",
        contains_any,
    ),
    rank(
        "FULLTEXTSCORE",
        "FULLTEXTSCORE(s, term1 [, ...])",
        "How well the text fits the terms (BM25); only in ORDER BY RANK.",
        full_text_score,
    ),
    rank(
        "RRF",
        "RRF(score1, score2 [, ...] [, weights])",
        "Several rankings fused into one; only in ORDER BY RANK.",
        rrf,
    ),
    Function::of_words(
        "_FULLTEXTSCORE",
        Args::exactly(5),
        "_FULLTEXTSCORE(s, terms, documents, words, hits)",
        "FULLTEXTSCORE with the statistics a client gathered.",
        score_with_statistics,
    ),
    Function::of_words(
        "_FULLTEXTWORDCOUNT",
        Args::exactly(1),
        "_FULLTEXTWORDCOUNT(s)",
        "How many words the text has, for the statistics.",
        word_count,
    ),
];

const fn rank(
    name: &'static str,
    signature: &'static str,
    help: &'static str,
    run: super::FallibleRun,
) -> Function {
    Function::failing(name, Family::FullText, Args::at_least(2), signature, help, run).only_in_rank()
}

/// What to look for.
struct Term {
    phrase: Arc<Vec<Word>>,
    edits: usize,
}

impl Term {
    /// The most wrong letters a term may forgive.
    const EDITS_MAX: i64 = 2;

    fn of(language: Language, context: &Context<'_>, value: &Value<'_>) -> Option<Term> {
        let (text, edits) = match value {
            Value::String(_) => (value.borrow(), 0),
            Value::Object(object) => (object.get("term"), object.get("distance").as_i64()?),
            _ => return None,
        };
        if !(0..=Self::EDITS_MAX).contains(&edits) {
            return None;
        }
        let text = text.as_str()?;
        let make = || words(text, language);
        let phrase = match language {
            Language::English => context.cached(text, make),
            // The same text is other words elsewhere.
            _ => context.cached(&format!("{language:?}\u{0}{text}"), make),
        };
        Some(Term { phrase, edits: edits as usize })
    }

    fn occurrences(&self, words: &[Word]) -> usize {
        occurrences(words, &self.phrase, self.edits)
    }
}

/// The words of the text and the terms; None if one of them is not text.
fn parsed(language: Language, context: &Context<'_>, args: &[Value<'_>]) -> Option<(Vec<Word>, Vec<Term>)> {
    let (text, terms) = args.split_first()?;
    let terms = terms.iter().map(|term| Term::of(language, context, term)).collect::<Option<_>>()?;
    Some((words(text.as_str()?, language), terms))
}

/// A term without words (only stop words, or nothing) is found nowhere.
fn contains_all<'a>(language: Language, context: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let found = parsed(language, context, args);
    found.map(|(words, terms)| terms.iter().all(|term| term.occurrences(&words) > 0)).into()
}

fn contains_any<'a>(language: Language, context: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let found = parsed(language, context, args);
    found.map(|(words, terms)| terms.iter().any(|term| term.occurrences(&words) > 0)).into()
}

fn full_text_score<'a>(_: &Context<'_>, _: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    Err(EvalError::Unsupported { feature: "FullTextScore outside of ORDER BY RANK".to_owned() })
}

fn rrf<'a>(_: &Context<'_>, _: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    Err(EvalError::Unsupported { feature: "RRF outside of ORDER BY RANK".to_owned() })
}

fn word_count<'a>(language: Language, _: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [Value::String(text)] = args else { return Value::Undefined };
    Value::Int(words(text, language).len() as i64)
}

fn score_with_statistics<'a>(language: Language, context: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [text, Value::Array(terms), documents, all_words, Value::Array(hits)] = args else {
        return Value::Undefined;
    };
    let arguments: Vec<Value<'_>> = std::iter::once(text.clone()).chain(terms.iter()).collect();
    let hits: Option<Vec<f64>> = hits.iter().map(|count| count.as_f64()).collect();
    let (Some((words, terms)), Some(hits)) = (parsed(language, context, &arguments), hits) else {
        return Value::Undefined;
    };
    let (Some(documents), Some(all_words)) = (documents.as_f64(), all_words.as_f64()) else {
        return Value::Undefined;
    };
    if terms.len() != hits.len() {
        return Value::Undefined;
    }
    let times = terms.iter().map(|term| term.occurrences(&words) as u32);
    let text = Occurrences { words: words.len() as u32, terms: times.collect() };
    Totals { documents, words: all_words, hits }.score(&text).into()
}

/// The stems of a term that an index of words can find: one that forgives nothing. None if it is no such term.
pub(crate) fn stems(term: &Value<'_>, language: Language) -> Option<Vec<String>> {
    let (text, edits) = match term {
        Value::String(_) => (term.borrow(), 0),
        Value::Object(object) => (object.get("term"), object.get("distance").as_i64()?),
        _ => return None,
    };
    (edits == 0).then_some(())?;
    Some(words(text.as_str()?, language).into_iter().map(|word| word.stem).collect())
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("FULLTEXTCONTAINS", r#""Red Bicycles for sale","bicycle""#, "true"),
    ("FULLTEXTCONTAINS", r#""Red Bicycles for sale","RED bicycle""#, "true"),
    ("FULLTEXTCONTAINS", r#""Red Bicycles for sale","bicycle red""#, "false"),
    ("FULLTEXTCONTAINS", r#""Red Bicycles for sale","bicycles sale""#, "true"),
    ("FULLTEXTCONTAINS", r#""Red Bicycles for sale","cycle""#, "false"),
    ("FULLTEXTCONTAINS", r#""Red Bicycles for sale","the""#, "false"),
    ("FULLTEXTCONTAINS", r#""Red Bicycles",{"term":"bycycle","distance":1}"#, "false"),
    ("FULLTEXTCONTAINS", r#""Red Bicycle",{"term":"bycycle","distance":1}"#, "true"),
    ("FULLTEXTCONTAINS", r#""Red Bicycles",{"term":"bycycle","distance":2}"#, "true"),
    ("FULLTEXTCONTAINS", r#""Red",{"term":"red","distance":3}"#, "undefined"),
    ("FULLTEXTCONTAINS", r#""Red",{"term":1,"distance":1}"#, "undefined"),
    ("FULLTEXTCONTAINS", r#""Red",{}"#, "undefined"),
    ("FULLTEXTCONTAINS", r#"["Red"],"red""#, "undefined"),
    ("FULLTEXTCONTAINS", r#"undefined,"red""#, "undefined"),
    ("FULLTEXTCONTAINS", r#""Red",1"#, "undefined"),
    ("FULLTEXTCONTAINSALL", r#""Red Bicycles for sale","sale","red""#, "true"),
    ("FULLTEXTCONTAINSALL", r#""Red Bicycles for sale","sale","blue""#, "false"),
    ("FULLTEXTCONTAINSALL", r#""Red","red",null"#, "undefined"),
    ("FULLTEXTCONTAINSANY", r#""Red Bicycles for sale","blue","sale""#, "true"),
    ("FULLTEXTCONTAINSANY", r#""Red Bicycles for sale","blue","rent""#, "false"),
    ("FULLTEXTCONTAINSANY", r#"1,"red""#, "undefined"),
    ("_FULLTEXTSCORE", r#""blue",["red"],2,2,[1]"#, "0"),
    ("_FULLTEXTSCORE", r#""red",["red"],2,2,[1]"#, "0.6931471805599453"),
    // By hand: ln(1 + (2 - 1 + 0.5) / (1 + 0.5)) = 0.6931 for each; twice the word in a text of twice the length
    // is 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 2)) = 1.0732 times that.
    ("_FULLTEXTSCORE", r#""red red",["red"],2,2,[1]"#, "0.7438652669423804"),
    // A rare word weighs more: ln(1 + 9.5 / 1.5) = 1.9924 against ln(1 + 5.5 / 5.5) = 0.6931.
    ("_FULLTEXTSCORE", r#""red",["red"],10,10,[1]"#, "1.992430164690206"),
    ("_FULLTEXTSCORE", r#""red",["red"],10,10,[5]"#, "0.6931471805599453"),
    // A term of several words is one phrase; several terms add up.
    ("_FULLTEXTSCORE", r#""red bike",["red bike"],2,4,[1]"#, "0.6931471805599453"),
    ("_FULLTEXTSCORE", r#""red bike",["red car"],2,4,[1]"#, "0"),
    ("_FULLTEXTSCORE", r#""red bike",["red","bike"],2,4,[1,1]"#, "1.3862943611198906"),
    ("_FULLTEXTSCORE", r#""red",["red"],2,2,[1,1]"#, "undefined"),
    ("_FULLTEXTSCORE", r#""red",["red"],2,"2",[1]"#, "undefined"),
    ("_FULLTEXTWORDCOUNT", r#""The red bicycle, and a blue one""#, "4"),
    ("_FULLTEXTWORDCOUNT", r#""""#, "0"),
    ("_FULLTEXTWORDCOUNT", "1", "undefined"),
];
