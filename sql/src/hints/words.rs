//! Which words a document must have for a filter to let it through.

use mayfly_value::text::Language;

use super::Finder;
use crate::functions::full_text::stems;
use crate::plan::{Bound, PathStep};

/// A text that has one of these words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordHint {
    /// Where in the document.
    pub path: Vec<PathStep>,
    /// The stems; each once.
    pub any_of: Vec<String>,
}

impl Finder<'_> {
    /// Collects what the conditions of a filter say about words.
    pub(super) fn words(&self, bound: &Bound, hints: &mut Vec<WordHint>) {
        match bound {
            Bound::And(operands) => operands.iter().for_each(|operand| self.words(operand, hints)),
            Bound::FullText { function, args, language } => {
                if let Some((text, terms)) = args.split_first()
                    && let Some(path) = self.path(text)
                {
                    hints.extend(words_of(function.name, terms, *language).into_iter().map(|any_of| {
                        let path = path.clone();
                        WordHint { path, any_of }
                    }));
                }
            }
            _ => {}
        }
    }
}

/// What has to be in a text, all at once: of each list one word.
fn words_of(function: &str, terms: &[Bound], language: Language) -> Vec<Vec<String>> {
    let terms = terms.iter().map(|term| term.constant().and_then(|term| stems(term, language)));
    match function {
        // A term that forgives mistakes says nothing here, and neither does one without words.
        "FULLTEXTCONTAINS" | "FULLTEXTCONTAINSALL" => {
            let mut words: Vec<String> = terms.flatten().flatten().collect();
            words.sort();
            words.dedup();
            words.into_iter().map(|word| vec![word]).collect()
        }
        "FULLTEXTCONTAINSANY" => {
            // Of a phrase the longest word: most likely the rarest.
            let one = |term: Vec<String>| term.into_iter().max_by_key(String::len);
            let words = terms.map(|term| term.map(one)).collect::<Option<Vec<_>>>();
            let mut words: Vec<String> = words.into_iter().flatten().flatten().collect();
            words.sort();
            words.dedup();
            if words.is_empty() { Vec::new() } else { vec![words] }
        }
        _ => Vec::new(),
    }
}
