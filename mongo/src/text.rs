//! Text search: `$text` over the fields of a text index, and how well a document fits.
//!
//! ```text
//!   text ──words──▶ lower case ──stop words out──▶ stems ──▶ terms, in the index and in the search alike
//! ```
//!
//! A search finds documents that have one of its terms, all of its phrases and none of what it negates. The score of a
//! document is the sum over the terms: the more often and the shorter the text, the better, times the field's weight.

mod words;

use std::collections::HashMap;
use std::sync::OnceLock;

use bson::RawDocument;

use crate::error::{BAD_VALUE, Result, TYPE_MISMATCH, bail};
use crate::path::{Leaf, Path};
use crate::values::{Ref, field, fields, items};
use words::folded;
pub(crate) use words::{Folding, Language, terms};

/// How the refusal of a document begins whose language is not known.
pub(crate) const UNKNOWN_LANGUAGE: &str = "language override unsupported";

/// How the refusal of a document begins whose language is no text.
pub(crate) const NO_LANGUAGE: &str = "found language override field";

/// The text index of a collection.
#[derive(Debug, Clone)]
pub(crate) struct TextIndex {
    /// Each field and its weight.
    fields: Vec<(Path, f64)>,
    /// The weight of every string wherever it is, if the index is of all.
    everywhere: Option<f64>,
    language: Language,
    language_field: String,
}

impl TextIndex {
    /// Reads a definition as it is shown.
    pub(crate) fn of(spec: &RawDocument) -> TextIndex {
        let weights = field(spec, "weights").and_then(|weights| weights.as_document());
        let weights = weights.into_iter().flat_map(fields);
        let number = |value| crate::values::as_double(value).unwrap_or(1.0);
        let weights: Vec<(&str, f64)> = weights.map(|(name, value)| (name, number(value))).collect();
        let text = |name| field(spec, name).and_then(|value| value.as_str());
        TextIndex {
            everywhere: weights.iter().find(|(name, _)| *name == "$**").map(|(_, weight)| *weight),
            fields: weights
                .into_iter()
                .filter(|(name, _)| *name != "$**")
                .map(|(name, weight)| (Path::new(name), weight))
                .collect(),
            language: text("default_language").and_then(Language::named).unwrap_or_default(),
            language_field: text("language_override").unwrap_or("language").to_string(),
        }
    }

    /// Why a document cannot be in the index, if its language is none.
    pub(crate) fn refusal(&self, document: &RawDocument) -> Option<String> {
        match field(document, &self.language_field) {
            Some(Ref::String(name)) if Language::named(name).is_none() => {
                Some(format!("{UNKNOWN_LANGUAGE}: {name}"))
            }
            Some(Ref::String(_)) | None => None,
            Some(_) => Some(format!("{NO_LANGUAGE} in document with non-string type")),
        }
    }

    /// The language of a document: what it says itself, or the index's.
    fn language_of(&self, document: &RawDocument) -> Language {
        let own = field(document, &self.language_field).and_then(|value| value.as_str());
        own.and_then(Language::named).unwrap_or(self.language)
    }

    /// Shows the texts of a document, each with its weight.
    fn texts(&self, document: &RawDocument, visit: &mut dyn FnMut(&str, f64)) {
        for (path, weight) in &self.fields {
            path.any(document, Leaf::Items, &mut |value, _| {
                if let Some(Ref::String(text)) = value {
                    visit(text, *weight);
                }
                false
            });
        }
        if let Some(weight) = self.everywhere {
            let is_named = |path: &str| self.fields.iter().any(|(named, _)| named.dotted == path);
            strings(Ref::Document(document), "", 0, &mut |path, text| {
                if !is_named(path) {
                    visit(text, weight);
                }
            });
        }
    }

    /// The terms of a document, as they stand in the index.
    pub(crate) fn terms(&self, document: &RawDocument) -> Vec<String> {
        let language = self.language_of(document);
        let mut found = Vec::new();
        self.texts(document, &mut |text, _| found.extend(terms(text, language, Folding::default())));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// How well each term fits a document.
    fn scores(&self, document: &RawDocument, folding: Folding) -> HashMap<String, f64> {
        let language = self.language_of(document);
        let mut scores = HashMap::new();
        self.texts(document, &mut |text, weight| {
            let mut counts: HashMap<String, (f64, f64)> = HashMap::new();
            let all = terms(text, language, folding);
            let total = all.len() as f64;
            for term in all {
                // Each further occurrence counts half as much as the one before.
                let (count, frequency) = counts.entry(term).or_default();
                *frequency += 0.5_f64.powf(*count);
                *count += 1.0;
            }
            for (term, (count, frequency)) in counts {
                let share = 0.5 * count / total + 0.5;
                let whole = if text.eq_ignore_ascii_case(&term) { 1.1 } else { 1.0 };
                *scores.entry(term).or_insert(0.0) += weight * frequency * share * whole;
            }
        });
        scores
    }
}

/// Deeper than this no text is looked for.
const DEPTH_MAX: usize = 100;

fn strings(value: Ref<'_>, path: &str, depth: usize, visit: &mut dyn FnMut(&str, &str)) {
    match value {
        Ref::String(text) => visit(path, text),
        Ref::Document(object) if depth < DEPTH_MAX => {
            for (name, value) in fields(object) {
                let below = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
                strings(value, &below, depth + 1, visit);
            }
        }
        Ref::Array(list) if depth < DEPTH_MAX => {
            items(list).for_each(|item| strings(item, path, depth + 1, visit));
        }
        _ => {}
    }
}

/// Whether a projection, an order or a stage asks for the score of a text search.
pub(crate) fn asks_for_score(value: Ref<'_>) -> bool {
    match value {
        Ref::Document(object) => fields(object).any(|(name, value)| {
            name == "$meta" && value.as_str() == Some("textScore") || asks_for_score(value)
        }),
        Ref::Array(list) => items(list).any(asks_for_score),
        _ => false,
    }
}

/// What `$text` asks for.
#[derive(Debug, Clone)]
pub(crate) struct TextQuery {
    search: String,
    /// None is the index's.
    language: Option<Language>,
    folding: Folding,
    /// Read with the first index it is asked about: it needs the language.
    wanted: OnceLock<Wanted>,
}

#[derive(Debug, Clone, Default)]
struct Wanted {
    terms: Vec<String>,
    phrases: Vec<String>,
    negated_terms: Vec<String>,
    negated_phrases: Vec<String>,
}

impl TextQuery {
    /// The operand of `$text`.
    pub(crate) fn parse(operand: Ref<'_>) -> Result<TextQuery> {
        let Ref::Document(object) = operand else { bail!(BAD_VALUE, "$text expects an object") };
        let search = match field(object, "$search") {
            Some(Ref::String(text)) => text.to_string(),
            Some(_) => bail!(TYPE_MISMATCH, "\"$search\" had the wrong type. Expected string"),
            None => bail!(4, "Missing expected field \"$search\""),
        };
        let (mut language, mut folding) = (None, Folding::default());
        for (name, value) in fields(object) {
            match (name, value) {
                ("$search", _) => {}
                ("$language", Ref::String(name)) => match Language::named(name) {
                    Some(known) => language = Some(known),
                    None => bail!(BAD_VALUE, "$language specified unsupported language \"{name}\""),
                },
                ("$language", _) => bail!(TYPE_MISMATCH, "\"$language\" had the wrong type. Expected string"),
                ("$caseSensitive", Ref::Boolean(flag)) => folding.keeps_case = flag,
                ("$diacriticSensitive", Ref::Boolean(flag)) => folding.keeps_marks = flag,
                ("$caseSensitive" | "$diacriticSensitive", _) => {
                    bail!(TYPE_MISMATCH, "\"{name}\" had the wrong type. Expected bool")
                }
                _ => bail!(BAD_VALUE, "extra fields in $text"),
            }
        }
        Ok(TextQuery { search, language, folding, wanted: OnceLock::new() })
    }

    fn wanted(&self, index: &TextIndex) -> &Wanted {
        self.wanted
            .get_or_init(|| Wanted::read(&self.search, self.language.unwrap_or(index.language), self.folding))
    }

    /// Terms of which every document that matches has one in the index; none if it can match nothing.
    pub(crate) fn index_terms(&self, index: &TextIndex) -> Vec<String> {
        let language = self.language.unwrap_or(index.language);
        let mut wanted = Wanted::read(&self.search, language, Folding::default()).terms;
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// How well a document fits; none if it does not.
    pub(crate) fn score(&self, document: &RawDocument, index: &TextIndex) -> Option<f64> {
        let wanted = self.wanted(index);
        let scores = index.scores(document, self.folding);
        let score: f64 = wanted.terms.iter().filter_map(|term| scores.get(term)).sum();
        if score == 0.0 || wanted.negated_terms.iter().any(|term| scores.contains_key(term)) {
            return None;
        }
        let contains = |phrase: &String| {
            let mut found = false;
            index.texts(document, &mut |text, _| {
                found |= folded(text, self.folding).contains(phrase.as_str())
            });
            found
        };
        let fits = wanted.phrases.iter().all(contains) && !wanted.negated_phrases.iter().any(contains);
        fits.then_some(score)
    }
}

impl Wanted {
    /// Takes a search apart: words, "phrases", and either with a minus before it.
    fn read(search: &str, language: Language, folding: Folding) -> Wanted {
        let mut wanted = Wanted::default();
        let mut add = |text: &str, negated: bool| {
            let list = if negated { &mut wanted.negated_terms } else { &mut wanted.terms };
            list.extend(terms(text, language, folding));
        };
        let (mut phrases, mut negated_phrases) = (Vec::new(), Vec::new());
        for (place, part) in search.split('"').enumerate() {
            if place % 2 == 1 {
                let before = search.split('"').nth(place - 1).unwrap_or_default();
                let negated =
                    before.ends_with('-') && !before.trim_end_matches('-').ends_with(char::is_alphanumeric);
                let list = if negated { &mut negated_phrases } else { &mut phrases };
                list.push(folded(part, folding));
                if !negated {
                    add(part, false);
                }
                continue;
            }
            for word in part.split_whitespace() {
                match word.strip_prefix('-') {
                    Some(word) => add(word, true),
                    None => add(word, false),
                }
            }
        }
        wanted.phrases = phrases;
        wanted.negated_phrases = negated_phrases;
        wanted.terms.sort_unstable();
        wanted.terms.dedup();
        wanted
    }
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    fn index() -> TextIndex {
        TextIndex::of(&rawdoc! { "weights": { "a": 1, "b": 10 }, "default_language": "english" })
    }

    fn score(search: &str, document: &RawDocument) -> Option<f64> {
        TextQuery::parse(Ref::Document(&rawdoc! { "$search": search })).unwrap().score(document, &index())
    }

    #[test]
    fn words_phrases_and_negations() {
        let document = rawdoc! { "a": "Brewed coffees and cakes", "b": ["Latte"] };
        assert!(score("coffee", &document).is_some());
        assert!(score("the", &document).is_none(), "a stop word");
        assert!(score("tea latte", &document).is_some());
        assert!(score("coffee -cake", &document).is_none());
        assert!(score("\"brewed coffee\"", &document).is_some());
        assert!(score("\"coffee brewed\"", &document).is_none());
        assert!(score("coffee -\"and cakes\"", &document).is_none());
        assert!(score("-cake", &document).is_none());
    }

    #[test]
    fn fields_count_by_their_weights() {
        assert_eq!(score("x", &rawdoc! { "a": "x" }), Some(1.1));
        assert_eq!(score("x", &rawdoc! { "b": "x y" }), Some(7.5));
        assert_eq!(score("x", &rawdoc! { "a": "x x" }), Some(1.5));
    }
}
