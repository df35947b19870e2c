//! Text as words: the same analysis for what is searched, what is searched for, and what an index keeps.
//!
//! A word is a run of letters and digits, in lower case; in English an apostrophe between letters belongs to it.
//! Frequent words that say nothing are left out. Words are compared by their stem. Which words are frequent, and what
//! their stems are, depends on the language.

mod language;
mod score;
mod stem;

pub use language::Language;
pub use score::{Occurrences, Totals};

use bson::RawBsonRef;

use crate::{digest::digest, keycode, order::Order};

/// One word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// In lower case.
    pub word: String,
    /// What remains without endings.
    pub stem: String,
}

/// Words longer than this are compared as they are, so that counting edits stays cheap.
const FUZZY_WORD_MAX: usize = 64;

/// The words of a text, in order.
pub fn words(text: &str, language: Language) -> Vec<Word> {
    let is_apostrophe = |character: char| matches!(character, '\'' | '’');
    let is_apart = |character: char| {
        !(character.is_alphanumeric() || is_apostrophe(character) && language.has_apostrophes())
    };
    let pieces = text.split(is_apart).map(|piece| piece.trim_matches(is_apostrophe));
    pieces.filter(|piece| !piece.is_empty()).filter_map(|piece| word(piece, language)).collect()
}

fn word(piece: &str, language: Language) -> Option<Word> {
    let lower = piece.to_lowercase().replace('’', "'");
    // Apostrophes are left in English words only.
    let word = lower.strip_suffix("'s").unwrap_or(&lower);
    if word.is_empty() || language.is_common(word) {
        return None;
    }
    Some(Word { stem: language.stem(word), word: word.to_owned() })
}

/// The stem of a word as keys have it. No word has the bytes of the empty stem, nor those of a longer one's digest.
pub fn stem_key(stem: &str) -> Vec<u8> {
    /// Longer ones are no words of a language; they stand by their digest, so that keys stay short.
    const STEM_BYTES_MAX: usize = 128;
    let mut key = Vec::with_capacity(stem.len().min(STEM_BYTES_MAX) + 3);
    let mut push = |text: &str| keycode::push_value(&mut key, RawBsonRef::String(text), Order::Cosmos);
    if stem.len() <= STEM_BYTES_MAX {
        push(stem);
    } else {
        let digits: String =
            digest(RawBsonRef::String(stem)).iter().map(|byte| format!("{byte:02x}")).collect();
        // A control character is in no word.
        push(&format!("\u{1}{digits}"));
    }
    key
}

impl Word {
    /// Whether this word stands for `wanted`, with at most `edits` letters added, dropped or changed.
    pub fn matches(&self, wanted: &Word, edits: usize) -> bool {
        self.stem == wanted.stem || (edits > 0 && within_edits(&self.word, &wanted.word, edits))
    }
}

/// How often a phrase (words in a row) occurs.
pub fn occurrences(words: &[Word], phrase: &[Word], edits: usize) -> usize {
    if phrase.is_empty() {
        return 0;
    }
    let is_phrase =
        |place: &&[Word]| place.iter().zip(phrase).all(|(word, wanted)| word.matches(wanted, edits));
    words.windows(phrase.len()).filter(is_phrase).count()
}

fn within_edits(a: &str, b: &str, edits: usize) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().max(b.len()) > FUZZY_WORD_MAX || a.len().abs_diff(b.len()) > edits {
        return a == b;
    }
    // row[j] is the distance of what was read of `a` to the first j letters of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            let at = |row: &[usize], place: usize| row.get(place).copied().unwrap_or(usize::MAX);
            let change = at(&row, j) + usize::from(letter != other);
            let add_or_drop = at(&row, j + 1).min(at(&next, j)).saturating_add(1);
            next.push(change.min(add_or_drop));
        }
        row = next;
    }
    row.last().is_some_and(|distance| *distance <= edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_stems_are_short_and_differ() {
        let long = |end: &str| "x".repeat(4000) + end;
        assert!(stem_key(&long("a")).len() < 50);
        let keys = [stem_key(""), stem_key("a"), stem_key("ab"), stem_key(&long("a")), stem_key(&long("b"))];
        let distinct: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }

    #[test]
    fn words_are_found_in_any_script() {
        let check = |text: &str, expected: &[&str]| {
            let found = words(text, Language::English).into_iter().map(|word| word.word);
            assert_eq!(found.collect::<Vec<_>>(), expected, "{text}");
        };
        check("The red-bicycle's DON'T (2 wheels)!", &["red", "bicycle", "don't", "2", "wheels"]);
        check("Größe, ÜBER 'quoted'", &["größe", "über", "quoted"]);
        check("自転車 велосипед", &["自転車", "велосипед"]);
        check(" ... the of ", &[]);
    }

    #[test]
    fn each_language_has_its_endings_and_its_common_words() {
        let check = |language, text: &str, expected: &str| {
            let stems: Vec<String> = words(text, language).into_iter().map(|word| word.stem).collect();
            assert_eq!(stems.join(" "), expected, "{language:?}: {text}");
        };
        check(Language::English, "The houses of the authors", "hous author");
        check(Language::German, "Die Häuser und das Haus der Autoren", "haus haus autor");
        check(Language::German, "wie geht's dir?", "geht");
        check(Language::Spanish, "las casas y la casa de los niños", "cas cas niñ");
        check(Language::French, "l'homme et les hommes qu’aujourd’hui", "homm homm aujourd hui");
        check(Language::Italian, "dell'albero e degli alberi", "alber alber");
        check(Language::Portuguese, "as casas e os livros não são do menino", "cas livr menin");
        // What is common in one language is a word of another.
        check(Language::French, "the die", "the di");
        check(Language::German, "the die", "the");
        check(Language::English, "the die", "die");
    }

    #[test]
    fn edits_are_counted() {
        let check =
            |a: &str, b: &str, edits, expected| assert_eq!(within_edits(a, b, edits), expected, "{a} {b}");
        check("bicycle", "bycycle", 1, true);
        check("bicycle", "bicycl", 1, true);
        check("bicycle", "bicycles", 1, true);
        check("bicycle", "bycicle", 1, false);
        check("bicycle", "bycicle", 2, true);
        check("abc", "xyz", 2, false);
    }
}
