//! What the statements of a numbered write answered, so that one that is sent again is told the same and not done again.
//!
//! Most statements of a write answer alike, and their numbers follow each other: a run of such has its answer once. So
//! what a session remembers, and what is stored with each step of a long write, does not grow with the statements
//! before it.
//!
//! ```text
//!   { n: the write's number, r: [ { f: first statement, t: last statement, a: answer }, … ] }
//! ```

use bson::{Document, RawArrayBuf, RawDocument, rawdoc};

use crate::service::to_raw;

/// Answers by statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// In the order of their numbers, none twice.
    runs: Vec<Run>,
}

/// Statements that follow each other and answered alike.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    first: i32,
    last: i32,
    answer: Document,
}

impl Answers {
    /// What a statement answered, if it was carried out.
    pub fn get(&self, statement: i32) -> Option<&Document> {
        let run = self.runs.get(self.from(statement))?;
        (run.first <= statement).then_some(&run.answer)
    }

    /// The first run that is not before a statement.
    fn from(&self, statement: i32) -> usize {
        // As a rule it comes after all that were before it.
        match self.runs.last() {
            Some(run) if run.last < statement => self.runs.len(),
            _ => self.runs.partition_point(|run| run.last < statement),
        }
    }

    /// Remembers an answer. What is remembered already stays: it is what the client was told.
    pub fn insert(&mut self, statement: i32, answer: Document) {
        self.insert_run(Run { first: statement, last: statement, answer });
    }

    fn insert_run(&mut self, run: Run) {
        let at = self.from(run.first);
        if self.runs.get(at).is_some_and(|next| next.first <= run.last) {
            // Some of it is remembered: the rest one by one.
            if run.first < run.last {
                (run.first..=run.last).for_each(|statement| self.insert(statement, run.answer.clone()));
            }
            return;
        }
        if let Some(before) = at.checked_sub(1).and_then(|before| self.runs.get_mut(before))
            && before.last.checked_add(1) == Some(run.first)
            && before.answer == run.answer
        {
            before.last = run.last;
            return;
        }
        self.runs.insert(at, run);
    }

    /// Adds those of another.
    pub fn extend(&mut self, others: Self) {
        others.runs.into_iter().for_each(|run| self.insert_run(run));
    }

    /// As they are stored with the write of this number.
    pub fn to_receipt(&self, number: i64) -> Vec<u8> {
        let mut runs = RawArrayBuf::new();
        for run in &self.runs {
            runs.push(rawdoc! { "f": run.first, "t": run.last, "a": to_raw(&run.answer) });
        }
        rawdoc! { "n": number, "r": runs }.into_bytes()
    }

    /// A write's number and its answers, as they are stored. Earlier versions had each answer by itself, under the
    /// number of its statement.
    pub fn from_receipt(bytes: &[u8]) -> Option<(i64, Self)> {
        let note = RawDocument::from_bytes(bytes).ok()?;
        let mut answers = Self::default();
        let decoded = |answer: &RawDocument| Document::try_from(answer).ok();
        if let Ok(each) = note.get_document("s") {
            for element in each {
                let (name, answer) = element.ok()?;
                answers.insert(name.as_str().parse().ok()?, decoded(answer.as_document()?)?);
            }
        } else {
            for run in note.get_array("r").ok()? {
                let run = run.ok()?.as_document()?;
                let [first, last] = ["f", "t"].map(|name| run.get_i32(name).ok());
                let answer = decoded(run.get_document("a").ok()?)?;
                answers.insert_run(Run { first: first?, last: last?, answer });
            }
        }
        Some((note.get_i64("n").ok()?, answers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn one() -> Document {
        doc! { "n": 1 }
    }

    #[test]
    fn statements_that_answer_alike_are_one_run() {
        let mut answers = Answers::default();
        (0..1000).for_each(|statement| answers.insert(statement, one()));
        assert_eq!(answers.runs.len(), 1);
        answers.insert(1001, one());
        answers.insert(1002, doc! { "n": 2 });
        assert_eq!(answers.runs.len(), 3);
        assert_eq!(answers.get(999), Some(&one()));
        assert_eq!(answers.get(1000), None);
        assert_eq!(answers.get(1002), Some(&doc! { "n": 2 }));
    }

    #[test]
    fn what_was_told_is_told_again() {
        let mut answers = Answers::default();
        for statement in [5, 3, 4, 5, -1] {
            answers.insert(statement, one());
        }
        answers.insert(4, doc! { "n": 0 });
        let mut wider = Answers::default();
        (2..6).for_each(|statement| wider.insert(statement, one()));
        wider.extend(answers.clone());
        answers.extend(wider.clone());
        assert_eq!((answers.get(2), answers.get(5), answers.get(6)), (Some(&one()), Some(&one()), None));
        assert_eq!((wider.get(-1), wider.get(0)), (Some(&one()), None));
        answers.runs.remove(1);
        answers.extend(wider);
        assert_eq!([5, 4, 3, -1].map(|statement| answers.get(statement)), [Some(&one()); 4]);
        assert_eq!([6, 1, 0].map(|statement| answers.get(statement)), [None; 3]);
    }

    #[test]
    fn a_receipt_comes_back_and_so_does_one_of_an_earlier_version() {
        let mut answers = Answers::default();
        [0, 1, 2, 7].into_iter().for_each(|statement| answers.insert(statement, one()));
        assert_eq!(Answers::from_receipt(&answers.to_receipt(9)), Some((9, answers)));
        let earlier = to_raw(&doc! { "n": 4_i64, "s": { "2": { "n": 1 }, "1": { "n": 0 } } });
        let (number, answers) = Answers::from_receipt(earlier.as_bytes()).unwrap();
        assert_eq!((number, answers.get(2), answers.get(1)), (4, Some(&one()), Some(&doc! { "n": 0 })));
        assert_eq!(Answers::from_receipt(b"x"), None);
    }
}
