//! Full-text and vector indexes in tests: walks over words, and what an index says about all texts or vectors.

use mayfly_engine::{
    Access, Across, Container, DocumentPlace, HashRange, IndexAccess, IndexName, Reliance, Result,
    TextAnswer, TextQuestion, ValueRange,
};
use mayfly_value::{
    text::{Language, stem_key, words},
    vector::{
        Distance,
        code::{Nearness, Target},
    },
};

use crate::World;

/// All documents whose text has one of the words, in the first full-text index of their container.
pub fn words_access(text: &str, within: HashRange) -> Access {
    let mut keys: Vec<_> = words(text, Language::English).iter().map(|word| stem_key(&word.stem)).collect();
    keys.sort();
    keys.dedup();
    Access::Index(IndexAccess {
        index: IndexName::Text(0),
        ranges: keys.into_iter().map(ValueRange::one).collect(),
        also: Vec::new(),
        within,
        relies: Reliance::Nothing,
        across: Across::SlotBySlot,
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
        let languages = &container.definition().indexing;
        let language = languages.texts.first().map(|path| languages.languages.of(path)).unwrap_or_default();
        let stems = |term: &String| words(term, language).into_iter().map(|word| word.stem).collect();
        let question = TextQuestion { index: 0, terms: terms.iter().map(stems).collect() };
        let now = self.now().await;
        self.engine().search(container, within, epoch, now).await?.texts(&question).await
    }
}

impl World {
    /// The documents of the first vector index of a container that have a distance from a vector, as near as they can
    /// be; none if the index is not whole or does not help.
    pub async fn ask_vectors(
        &self,
        container: &Container,
        vector: &[f64],
        distance: Distance,
        within: &HashRange,
    ) -> Result<Option<Vec<(Nearness, DocumentPlace)>>> {
        let Some(epoch) = container.whole_index() else { return Ok(None) };
        let Some(target) = Target::new(vector, distance) else { return Ok(None) };
        let search = self.engine().search(container, within, epoch, self.now().await).await?;
        Ok(Some(search.vectors(0, &target).await?.collect()))
    }
}

/// An answer for people: how many documents and words there are, and each match with its id, words and occurrences.
pub fn show_answer(answer: &TextAnswer) -> Vec<String> {
    let totals = &answer.totals;
    let mut lines =
        vec![format!("{} documents, {} words, hits {:?}", totals.documents, totals.words, totals.hits)];
    lines.extend(answer.matches.iter().map(|(place, text)| {
        let (id, score) = (id_at(place), totals.score(text).unwrap_or_default());
        format!("{id}: {:?} of {} words, score {score:.4}", text.terms, text.words)
    }));
    lines
}

/// Neighbours for people: how near each is, about, and whether that is known at all.
pub fn show_neighbours(neighbours: &[(Nearness, DocumentPlace)]) -> Vec<String> {
    let show = |(nearness, place): &(Nearness, DocumentPlace)| {
        let (id, middle) = (id_at(place), f64::midpoint(nearness.low, nearness.high));
        if middle.is_finite() { format!("{id}: {middle:.1}") } else { format!("{id}: anywhere") }
    };
    neighbours.iter().map(show).collect()
}

/// The id ends the key, after the hash and a letter for its type.
fn id_at(place: &DocumentPlace) -> String {
    let id = place.document.iter().rposition(|byte| *byte == 0).map_or(0, |end| end + 2);
    String::from_utf8_lossy(place.document.get(id..).unwrap_or_default()).into_owned()
}
