//! From text to terms: words, folded, without the commonest ones, by their stems.

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// A language that words are taken by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// Words as they are.
    None,
    /// By their stems; English words also without the commonest ones.
    Stemmed(Algorithm),
}

impl Default for Language {
    fn default() -> Self {
        Self::Stemmed(Algorithm::English)
    }
}

/// Names and codes, as MongoDB has them.
const LANGUAGES: &[(&str, &str, Algorithm)] = &[
    ("danish", "da", Algorithm::Danish),
    ("dutch", "nl", Algorithm::Dutch),
    ("english", "en", Algorithm::English),
    ("finnish", "fi", Algorithm::Finnish),
    ("french", "fr", Algorithm::French),
    ("german", "de", Algorithm::German),
    ("hungarian", "hu", Algorithm::Hungarian),
    ("italian", "it", Algorithm::Italian),
    ("norwegian", "nb", Algorithm::Norwegian),
    ("portuguese", "pt", Algorithm::Portuguese),
    ("romanian", "ro", Algorithm::Romanian),
    ("russian", "ru", Algorithm::Russian),
    ("spanish", "es", Algorithm::Spanish),
    ("swedish", "sv", Algorithm::Swedish),
    ("turkish", "tr", Algorithm::Turkish),
];

impl Language {
    /// By name or code.
    pub(crate) fn named(name: &str) -> Option<Language> {
        let name = name.to_lowercase();
        if name == "none" {
            return Some(Language::None);
        }
        let known = LANGUAGES.iter().find(|(long, short, _)| *long == name || *short == name);
        known.map(|(_, _, algorithm)| Language::Stemmed(*algorithm))
    }

    fn is_english(self) -> bool {
        self == Language::default()
    }
}

/// What of the letters counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Folding {
    /// Whether `A` is not `a`.
    pub(crate) keeps_case: bool,
    /// Whether `é` is not `e`.
    pub(crate) keeps_marks: bool,
}

/// A text as it is compared.
pub(super) fn folded(text: &str, folding: Folding) -> String {
    let cased = if folding.keeps_case { text.to_string() } else { text.to_lowercase() };
    if folding.keeps_marks || cased.is_ascii() {
        return cased;
    }
    cased.nfd().filter(|letter| !is_combining_mark(*letter)).nfc().collect()
}

/// English words that are in almost every text.
const STOP_WORDS: &str = "a about above after again against all am an and any are aren't as at be because been before being \
    below between both but by can't cannot could couldn't did didn't do does doesn't doing don't down during each few for \
    from further had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself his \
    how how's i i'd i'll i'm i've if in into is isn't it it's its itself let's me more most mustn't my myself no nor not of \
    off on once only or other ought our ours ourselves out over own same shan't she she'd she'll she's should shouldn't so \
    some such than that that's the their theirs them themselves then there there's these they they'd they'll they're \
    they've this those through to too under until up very was wasn't we we'd we'll we're we've were weren't what what's \
    when when's where where's which while who who's whom why why's with won't would wouldn't you you'd you'll you're \
    you've your yours yourself yourselves";

fn is_stop_word(word: &str) -> bool {
    static SET: std::sync::LazyLock<std::collections::HashSet<&str>> =
        std::sync::LazyLock::new(|| STOP_WORDS.split_whitespace().collect());
    SET.contains(word)
}

/// A term is cut here: what is longer is no word.
const TERM_BYTES_MAX: usize = 400;

/// The terms of a text, in order.
pub(crate) fn terms(text: &str, language: Language, folding: Folding) -> Vec<String> {
    // An apostrophe belongs to an English word.
    let is_letter = |letter: char| {
        letter.is_alphanumeric()
            || letter == '_'
            || is_combining_mark(letter)
            || (language.is_english() && letter == '\'')
    };
    let stemmer = match language {
        Language::None => None,
        Language::Stemmed(algorithm) => Some(Stemmer::create(algorithm)),
    };
    let words = text.split(|letter: char| !is_letter(letter)).filter(|word| !word.is_empty());
    let terms = words.filter_map(|word| {
        if language.is_english() && is_stop_word(&word.to_lowercase()) {
            return None;
        }
        // Stems are those of lower case; with case kept, the ends that stems leave off are.
        let cased = if folding.keeps_case { word.to_string() } else { word.to_lowercase() };
        let stem = match &stemmer {
            Some(stemmer) => stemmer.stem(&cased).into_owned(),
            None => cased,
        };
        let mut term = folded(&stem, folding);
        if term.len() > TERM_BYTES_MAX {
            let end = (0..=TERM_BYTES_MAX).rev().find(|end| term.is_char_boundary(*end)).unwrap_or(0);
            term.truncate(end);
        }
        Some(term)
    });
    terms.filter(|term| !term.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, language: &str, expected: &str) {
        let language = Language::named(language).unwrap();
        assert_eq!(terms(text, language, Folding::default()).join(" "), expected);
    }

    #[test]
    fn words_become_stems() {
        check("The quick brown Foxes were running!", "english", "quick brown fox run");
        check("The quick brown Foxes", "none", "the quick brown foxes");
        check("Caf\u{e9}s cr\u{e8}me", "none", "cafes creme");
        check("don't co-operate", "en", "co oper");
        check("H\u{e4}user", "german", "haus");
    }
}
