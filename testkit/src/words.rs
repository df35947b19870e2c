//! Full-text indexes in tests: walks over words, and what an index says about all texts.

use mayfly_engine::{
    Access, Container, HashRange, IndexAccess, IndexName, Reliance, Result, TextAnswer, TextQuestion,
    ValueRange,
};
use mayfly_value::text::{stem_key, words};

use crate::World;

/// All documents whose text has one of the words, in the first full-text index of their container.
pub fn words_access(text: &str, within: HashRange) -> Access {
    let mut keys: Vec<_> = words(text).iter().map(|word| stem_key(&word.stem)).collect();
    keys.sort();
    keys.dedup();
    Access::Index(IndexAccess {
        index: IndexName::Text(0),
        ranges: keys.into_iter().map(ValueRange::one).collect(),
        also: Vec::new(),
        within,
        relies: Reliance::Nothing,
    })
}

impl World {
    /// What the first full-text index of a container says about some terms; none if it is not whole.
    pub async fn ask_texts(
        &self,
        container: &Container,
        terms: &[String],
        within: &HashRange,
    ) -> Result<Option<TextAnswer>> {
        let Some(epoch) = container.whole_index() else { return Ok(None) };
        let stems = |term: &String| words(term).into_iter().map(|word| word.stem).collect();
        let question = TextQuestion { index: 0, terms: terms.iter().map(stems).collect() };
        let now = self.now().await;
        self.engine().texts(container, within, epoch, now).await?.ask(&question).await
    }
}

/// An answer for people: how many documents and words there are, and each match with its id, words and occurrences.
pub fn show_answer(answer: &TextAnswer) -> Vec<String> {
    let totals = &answer.totals;
    let mut lines =
        vec![format!("{} documents, {} words, hits {:?}", totals.documents, totals.words, totals.hits)];
    lines.extend(answer.matches.iter().map(|(place, text)| {
        // The id ends the key, after the hash and a letter for its type.
        let id = place.document.iter().rposition(|byte| *byte == 0).map_or(0, |end| end + 2);
        let id = String::from_utf8_lossy(place.document.get(id..).unwrap_or_default());
        let score = totals.score(text).unwrap_or_default();
        format!("{id}: {:?} of {} words, score {score:.4}", text.terms, text.words)
    }));
    lines
}
