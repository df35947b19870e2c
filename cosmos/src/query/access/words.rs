//! Full-text indexes: which ones a filter can use, and which ones a ranking.

use mayfly_engine::{Container, IndexAccess, IndexName, Lookup, ValueRange};
use mayfly_sql::{PathStep, Plan, hints::Selects};
use mayfly_value::{path::Path, text::stem_key};

use super::{AccessPlan, Planner, candidates::Candidate, names, vectors::vector_spec};
use crate::resource::SYSTEM_PROPERTIES;

/// The full-text and vector indexes that a ranking goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// The generation of the index.
    pub epoch: u32,
    /// The index of each score's text; none for a score of vectors.
    pub indexes: Vec<Option<u16>>,
    /// The index of each score's vectors.
    pub vectors: Vec<VectorRank>,
}

/// How a ranking knows the vectors of a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorRank {
    /// It is not a score of vectors.
    OfText,
    /// By an index.
    Index(u16),
    /// By the documents.
    Read,
}

impl Planner<'_> {
    /// The walk of a ranking whose texts all have an index, or its vectors.
    pub(super) fn ranked(&self, plan: &Plan) -> Option<AccessPlan> {
        let ranking = plan.ranking()?;
        // A document of a collection is not what is stored, but what is shown of it.
        let epoch = self.container.whole_index().filter(|_| !self.container.is_collection())?;
        let index = |score: &Option<mayfly_sql::TextScore>| match score {
            Some(score) => self.text_index(&score.path).map(Some),
            None => Some(None),
        };
        let indexes: Vec<_> = ranking.scores.iter().map(index).collect::<Option<_>>()?;
        let vector = |(score, path): (&Option<mayfly_sql::TextScore>, Option<&[String]>)| match score {
            Some(_) => VectorRank::OfText,
            None => path.and_then(|path| self.vector_index(path)).map_or(VectorRank::Read, VectorRank::Index),
        };
        let paths = plan.ranked_paths();
        let vectors: Vec<_> = ranking.scores.iter().zip(paths.iter().copied()).map(vector).collect();
        let mut access = self.documents();
        access.indexes.texts =
            indexes.iter().flatten().filter_map(|n| text_spec(self.container, *n)).collect();
        let serves_vectors = ranking.wanted.is_some() && !vectors.contains(&VectorRank::Read);
        if serves_vectors {
            access.indexes.vectors = paths.into_iter().flatten().filter_map(vector_spec).collect();
        }
        let is_served = !access.indexes.texts.is_empty() || !access.indexes.vectors.is_empty();
        access.ranks = Some(Ranks { epoch, indexes, vectors });
        is_served.then_some(access)
    }

    /// What the filter says about words: one candidate for each word that has to be there, or for each list of words of
    /// which one has to.
    pub(super) fn by_words(&self) -> Vec<Candidate> {
        let candidate = |hint: &mayfly_sql::hints::WordHint| {
            let index = IndexName::Text(self.text_index(&hint.path)?);
            let mut keys: Vec<_> = hint.any_of.iter().map(|stem| stem_key(stem)).collect();
            keys.sort();
            Some(Candidate {
                index,
                ranges: keys.into_iter().map(ValueRange::one).collect(),
                exact: false,
                single: true,
                hints: Vec::new(),
                paths: Vec::new(),
                selects: Selects::Few,
                beyond_scalars: false,
            })
        };
        match self.container.is_collection() {
            true => Vec::new(),
            false => self.hints.words.iter().filter_map(candidate).collect(),
        }
    }

    /// The words that a document must have beside those of a walk.
    pub(super) fn other_words(&self, walk: &IndexAccess) -> Vec<Lookup> {
        let lookup = |hint: &mayfly_sql::hints::WordHint| {
            let index = IndexName::Text(self.text_index(&hint.path)?);
            let [stem] = &hint.any_of[..] else { return None };
            let value = stem_key(stem);
            let is_own = walk.index == index && walk.ranges == [ValueRange::one(value.clone())];
            (!is_own).then_some(Lookup { index, value })
        };
        match self.container.is_collection() {
            true => Vec::new(),
            false => self.hints.words.iter().filter_map(lookup).collect(),
        }
    }

    /// The index of the text at a path: nothing that the server adds or computes.
    fn text_index(&self, path: &[PathStep]) -> Option<u16> {
        let names = names(path)?;
        let first = names.first()?;
        let is_added = SYSTEM_PROPERTIES.contains(first) || self.computed.contains(first);
        if is_added { None } else { self.container.text_index(&names) }
    }
}

/// The path of a full-text index.
pub(super) fn text_spec(container: &Container, number: u16) -> Option<String> {
    let path = Path::parse(container.definition().indexing.texts.get(usize::from(number))?).ok()?;
    Some(path.to_string())
}
