//! How well a text fits some terms: BM25, with the usual constants.
//!
//! A term that is everywhere says little, so a score depends on all texts. Whoever counts them, by reading or from an
//! index, gets the same number here.

/// What is known about all texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// How many documents there are, those without a text included.
    pub documents: f64,
    /// How many words all texts have.
    pub words: f64,
    /// For each term, how many texts have it.
    pub hits: Vec<f64>,
}

/// What is known about one text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Occurrences {
    /// How many words it has.
    pub words: u32,
    /// How often it has each term.
    pub terms: Vec<u32>,
}

impl Totals {
    /// The score of a text; none if it cannot be told.
    pub fn score(&self, text: &Occurrences) -> Option<f64> {
        let length = f64::from(text.words) / (self.words / self.documents);
        if length.is_nan() {
            return None;
        }
        let of_term = |(times, hits): (&u32, &f64)| bm25(f64::from(*times), length, self.documents, *hits);
        Some(text.terms.iter().zip(&self.hits).map(of_term).sum())
    }

    /// The score of a text that has none of the terms.
    pub fn score_without(&self) -> Option<f64> {
        (self.words > 0.0).then_some(0.0)
    }
}

/// What one term adds to the score of a text: more for a term that is frequent in it, that is rare elsewhere, and
/// for a text that is short. `length` is relative to the average.
fn bm25(frequency: f64, length: f64, documents: f64, hits: f64) -> f64 {
    /// How soon repetition stops to count. The usual value.
    const K1: f64 = 1.2;
    /// How much the length counts. The usual value.
    const B: f64 = 0.75;
    let rarity = (1.0 + (documents - hits + 0.5) / (hits + 0.5)).ln();
    rarity * frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, after Robertson and Zaragoza (2009), with k1 = 1.2, b = 0.75 and the rarity that is never negative.
    #[test]
    fn scores_are_those_of_the_formula() {
        let totals = Totals { documents: 10.0, words: 50.0, hits: vec![1.0, 5.0] };
        let score =
            |words, terms: [u32; 2]| totals.score(&Occurrences { words, terms: terms.to_vec() }).unwrap();
        let check =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        // A text of average length: ln(1 + 9.5 / 1.5) * 1 * 2.2 / (1 + 1.2).
        check(score(5, [1, 0]), (1.0_f64 + 9.5 / 1.5).ln());
        check(score(5, [0, 1]), 2.0_f64.ln());
        check(score(5, [1, 1]), (1.0_f64 + 9.5 / 1.5).ln() + 2.0_f64.ln());
        // Twice the length: 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 2)).
        check(score(10, [0, 2]), 2.0_f64.ln() * 4.4 / 4.1);
        check(score(10, [0, 0]), totals.score_without().unwrap());
        let nothing = Totals { documents: 3.0, words: 0.0, hits: vec![0.0] };
        assert_eq!(nothing.score(&Occurrences { words: 0, terms: vec![0] }), None);
        assert_eq!(nothing.score_without(), None);
    }
}
