//! English words without their endings, after Porter (1980).
//!
//! Only words of the letters a to z are touched; the stem is a key to compare by, not a word to show.

/// The stem of a word in lower case.
pub(super) fn stem(word: &str) -> String {
    if word.len() <= 2 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut stem = Stem { letters: word.to_owned() };
    stem.plural();
    stem.past();
    stem.y_to_i();
    stem.longest_of(&DOUBLE_SUFFIXES, 1);
    stem.longest_of(&LONG_SUFFIXES, 1);
    stem.rest();
    stem.final_e();
    stem.letters
}

const DOUBLE_SUFFIXES: [(&str, &str); 20] = [
    ("ational", "ate"),
    ("ization", "ize"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("tional", "tion"),
    ("biliti", "ble"),
    ("entli", "ent"),
    ("ousli", "ous"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("ator", "ate"),
    ("eli", "e"),
];

const LONG_SUFFIXES: [(&str, &str); 7] = [
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
];

const SUFFIXES: [&str; 18] = [
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize",
    "al", "er", "ic", "ou",
];

struct Stem {
    letters: String,
}

impl Stem {
    /// What comes before an ending.
    fn before(&self, ending: &str) -> Option<&str> {
        self.letters.strip_suffix(ending)
    }

    fn replace(&mut self, ending: &str, with: &str) {
        let kept = self.letters.len().saturating_sub(ending.len());
        self.letters.truncate(kept);
        self.letters.push_str(with);
    }

    fn plural(&mut self) {
        if self.before("sses").is_some() {
            self.replace("es", "");
        } else if self.before("ies").is_some() {
            self.replace("ies", "i");
        } else if self.before("ss").is_none() && self.before("s").is_some() {
            self.replace("s", "");
        }
    }

    fn past(&mut self) {
        if let Some(before) = self.before("eed") {
            if measure(before) > 0 {
                self.replace("d", "");
            }
            return;
        }
        let ending = ["ed", "ing"].into_iter().find(|ending| self.before(ending).is_some_and(has_vowel));
        let Some(ending) = ending else { return };
        self.replace(ending, "");
        if ["at", "bl", "iz"].iter().any(|end| self.before(end).is_some()) {
            self.letters.push('e');
        } else if ends_double(&self.letters) && !self.letters.ends_with(['l', 's', 'z']) {
            self.letters.pop();
        } else if measure(&self.letters) == 1 && ends_short(&self.letters) {
            self.letters.push('e');
        }
    }

    fn y_to_i(&mut self) {
        if self.before("y").is_some_and(has_vowel) {
            self.replace("y", "i");
        }
    }

    /// Replaces the first ending of the list that fits, if enough is left before it.
    fn longest_of(&mut self, list: &[(&str, &str)], measure_min: usize) {
        let Some((ending, with)) = list.iter().find(|(ending, _)| self.before(ending).is_some()) else {
            return;
        };
        if self.before(ending).is_some_and(|before| measure(before) >= measure_min) {
            self.replace(ending, with);
        }
    }

    fn rest(&mut self) {
        let ending = SUFFIXES.into_iter().find(|ending| self.before(ending).is_some());
        let (ending, fits) = match ending {
            Some(ending) => (ending, true),
            None => ("ion", self.before("ion").is_some_and(|before| before.ends_with(['s', 't']))),
        };
        if fits && self.before(ending).is_some_and(|before| measure(before) > 1) {
            self.replace(ending, "");
        }
    }

    fn final_e(&mut self) {
        if let Some(before) = self.before("e") {
            let count = measure(before);
            if count > 1 || (count == 1 && !ends_short(before)) {
                self.replace("e", "");
            }
        }
        if self.letters.ends_with("ll") && measure(&self.letters) > 1 {
            self.letters.pop();
        }
    }
}

/// For each letter whether it is a vowel; y is one after a consonant.
fn vowels(word: &str) -> Vec<bool> {
    let mut vowels: Vec<bool> = Vec::new();
    for letter in word.bytes() {
        let vowel = match letter {
            b'a' | b'e' | b'i' | b'o' | b'u' => true,
            b'y' => vowels.last().is_some_and(|before| !before),
            _ => false,
        };
        vowels.push(vowel);
    }
    vowels
}

fn has_vowel(word: &str) -> bool {
    vowels(word).contains(&true)
}

/// How often a consonant follows a vowel: about the number of syllables.
fn measure(word: &str) -> usize {
    vowels(word).windows(2).filter(|pair| matches!(pair, [true, false])).count()
}

fn ends_double(word: &str) -> bool {
    let consonant = vowels(word).last() == Some(&false);
    matches!(word.as_bytes(), [.., a, b] if a == b && consonant)
}

/// Consonant, vowel, consonant other than w, x, y: a word that had an e, as hope in hoping.
fn ends_short(word: &str) -> bool {
    matches!(vowels(word).as_slice(), [.., false, true, false]) && !word.ends_with(['w', 'x', 'y'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_go() {
        let check = |word: &str, expected: &str| assert_eq!(stem(word), expected, "{word}");
        check("caresses", "caress");
        check("ponies", "poni");
        check("cats", "cat");
        check("agreed", "agre");
        check("plastered", "plaster");
        check("motoring", "motor");
        check("hopping", "hop");
        check("hoping", "hope");
        check("falling", "fall");
        check("happy", "happi");
        check("relational", "relat");
        check("electrical", "electr");
        check("hopefulness", "hope");
        check("adoption", "adopt");
        check("bicycles", "bicycl");
        check("bicycle", "bicycl");
        check("running", "run");
        check("controlling", "control");
        check("is", "is");
        check("größen", "größen");
    }
}
