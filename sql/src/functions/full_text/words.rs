//! Text as words: the same analysis for what is searched and what is searched for.
//!
//! A word is a run of letters and digits, in lower case; an apostrophe between letters belongs to it. Frequent
//! words that say nothing are left out. Words are compared by their stem.

use super::stem::stem;

/// One word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// In lower case.
    pub word: String,
    /// What remains without endings.
    pub stem: String,
}

/// English words that occur nearly everywhere.
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to",
    "was", "will", "with",
];

/// Words longer than this are compared as they are, so that counting edits stays cheap.
const FUZZY_WORD_MAX: usize = 64;

/// The words of a text, in order.
pub(super) fn words(text: &str) -> Vec<Word> {
    let is_apart = |character: char| !character.is_alphanumeric() && !matches!(character, '\'' | '’');
    let pieces = text.split(is_apart).map(|piece| piece.trim_matches(['\'', '’']));
    pieces.filter(|piece| !piece.is_empty()).filter_map(word).collect()
}

fn word(piece: &str) -> Option<Word> {
    let lower = piece.to_lowercase().replace('’', "'");
    let word = lower.strip_suffix("'s").unwrap_or(&lower);
    if word.is_empty() || STOP_WORDS.contains(&word) {
        return None;
    }
    Some(Word { stem: stem(word), word: word.to_owned() })
}

impl Word {
    /// Whether this word stands for `wanted`, with at most `edits` letters added, dropped or changed.
    pub fn matches(&self, wanted: &Word, edits: usize) -> bool {
        self.stem == wanted.stem || (edits > 0 && within_edits(&self.word, &wanted.word, edits))
    }
}

/// How often a phrase (words in a row) occurs.
pub(super) fn occurrences(words: &[Word], phrase: &[Word], edits: usize) -> usize {
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
    fn words_are_found_in_any_script() {
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<String> = words(text).into_iter().map(|word| word.word).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("The red-bicycle's DON'T (2 wheels)!", &["red", "bicycle", "don't", "2", "wheels"]);
        check("Größe, ÜBER 'quoted'", &["größe", "über", "quoted"]);
        check("自転車 велосипед", &["自転車", "велосипед"]);
        check(" ... the of ", &[]);
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
