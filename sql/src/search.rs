//! Rankings by an index of words: what a query asks it for, and how the query goes on with the answer.
//!
//! ORDER BY RANK needs to know of every document how often it has the terms. An index knows without reading
//! the texts. So a ranking says what it wants to know ([`Plan::ranking`]), is told about all texts at once
//! ([`Plan::run_ranked`]) and about each as its document is pushed ([`RankedRun::push`]). The rows are those
//! of a run that reads every text.
//!
//! ORDER BY VectorDistance likewise says what it wants to be near to ([`Plan::nearest`]), and so does a
//! ranking that has distances among its scores ([`Plan::ranked_nearest`]).
//!
//! Where only the first rows are wanted, not every document has to be pushed: [`Ranking::wanted`] says how
//! many rows by each score are enough.

use mayfly_value::{
    text::{Occurrences, Totals},
    vector::{Distance, code::Target},
};

use crate::ast::Direction;
use crate::context::{Context, Settings};
use crate::distribute::candidates;
use crate::error::EvalError;
use crate::functions::{full_text, vector};
use crate::operators::rank::constant_terms;
use crate::operators::stage::Stage;
use crate::plan::{Bound, Input, PathStep, Score, SortDirection};
use crate::query::Plan;
use crate::value::{Document, Object, Value};

/// What a ranking wants to know.
#[derive(Debug, Clone)]
pub struct Ranking {
    /// The text behind each score; none for a score of vectors.
    pub scores: Vec<Option<TextScore>>,
    /// How many of the best rows by each score are enough; none if all are needed.
    pub wanted: Option<usize>,
}

/// A text, and what it is searched for.
#[derive(Debug, Clone)]
pub struct TextScore {
    /// Where the text is.
    pub path: Vec<PathStep>,
    /// The stems of each term, in a row.
    pub terms: Vec<Vec<String>>,
}

/// Vectors, and what they have to be near to.
#[derive(Debug, Clone)]
pub struct Nearest {
    /// The names on the way to the vector.
    pub path: Vec<String>,
    /// What is looked for.
    pub target: Target,
}

impl Plan {
    /// What the rows have to be near to, if they are sorted by nothing but that, and an index may say which
    /// ones are.
    pub fn nearest(&self, settings: &Settings) -> Option<Nearest> {
        self.nearest_path()?;
        let sort = self.bound().block.order.first()?;
        let nearest = nearest_of(&sort.key, settings)?;
        // Where far rows come first, so do those without a distance; and where the settings do not know of
        // the index.
        let is_nearest_first = match sort.direction {
            SortDirection::MostSimilar => {
                !sort.key.counts_up(settings) || sort.key.is_indexed_distance(settings)
            }
            SortDirection::Fixed(direction) => {
                direction == Direction::Descending && nearest.target.distance() != Distance::Euclidean
            }
        };
        is_nearest_first.then_some(nearest)
    }

    /// The names on the way to the vectors that [`Plan::nearest`] is about. None if the query asks for all to
    /// be compared.
    pub fn nearest_path(&self) -> Option<&[String]> {
        let block = &self.bound().block;
        let is_plain = self.is_of_documents() && block.rank.is_none() && !block.distinct;
        match &block.order[..] {
            [sort] if is_plain => compared_path(&sort.key),
            _ => None,
        }
    }

    /// What the rows of a ranking have to be near to, for each score of vectors about which an index may say
    /// that.
    pub fn ranked_nearest(&self, settings: &Settings) -> Vec<Option<Nearest>> {
        let nearest = |score: &Score| match score {
            Score::Vector { distance } => nearest_of(distance, settings),
            Score::Text { .. } => None,
        };
        self.bound().block.rank.iter().flat_map(|rank| &rank.scores).map(nearest).collect()
    }

    /// The names on the way to the vectors of each score that [`Plan::ranked_nearest`] is about.
    pub fn ranked_paths(&self) -> Vec<Option<&[String]>> {
        fn path(score: &Score) -> Option<&[String]> {
            match score {
                Score::Vector { distance } => compared_path(distance),
                Score::Text { .. } => None,
            }
        }
        self.bound().block.rank.iter().flat_map(|rank| &rank.scores).map(path).collect()
    }

    /// Whether each row is of one document, and nothing but that.
    fn is_of_documents(&self) -> bool {
        let (bound, block) = (self.bound(), &self.bound().block);
        let is_document = |slot| bound.document_paths.get(&slot).is_some_and(Vec::is_empty);
        matches!(block.input, Input::Documents { .. })
            && block.group.is_none()
            && block.sources.iter().all(|source| is_document(source.slot))
    }

    /// What an index of words has to know to rank the rows; none if the query ranks nothing, or by something
    /// else than such an index has.
    pub fn ranking(&self) -> Option<Ranking> {
        let (bound, block) = (self.bound(), &self.bound().block);
        let rank = block.rank.as_ref()?;
        if !self.is_of_documents() {
            return None;
        }
        let text_of = |score: &Score| match score {
            Score::Vector { .. } => Some(None),
            Score::Text { text, terms, language } => {
                let terms = constant_terms(terms).ok()?;
                let terms = terms.iter().map(|term| full_text::stems(term, *language));
                let terms = terms.collect::<Option<Vec<_>>>()?;
                Some(Some(TextScore { path: bound.document_path(text)?, terms }))
            }
        };
        let scores: Vec<_> = rank.scores.iter().map(text_of).collect::<Option<_>>()?;
        // A negative weight asks for the worst rows, and DISTINCT may need more than are given.
        let best_only = !rank.fuses || rank.weights.iter().all(|weight| *weight >= 0.0);
        let wanted = block.limit.filter(|_| best_only && !block.distinct).map(|limit| {
            let rows = limit.saturating_add(block.offset);
            if rank.fuses && scores.len() > 1 { candidates(rows) } else { rows }
        });
        Some(Ranking { scores, wanted: wanted.and_then(|rows| usize::try_from(rows).ok()) })
    }

    /// Starts a ranking whose texts are known by an index: `totals` for each score that [`Plan::ranking`] has
    /// a text for.
    pub fn run_ranked<'p>(
        &'p self,
        context: Context<'p>,
        totals: Vec<Option<Totals>>,
    ) -> Result<RankedRun<'p>, EvalError> {
        let bound = self.bound();
        let mut stage = Stage::new(&bound.block, bound.slots, &context)?;
        if let Some(ranker) = stage.ranker() {
            ranker.know(totals);
        }
        Ok(RankedRun { stage, context })
    }
}

/// What vectors have to be near to for a distance to be small, whatever the function.
fn nearest_of(distance: &Bound, settings: &Settings) -> Option<Nearest> {
    let path = compared_path(distance)?.to_vec();
    let Bound::VectorDistance { args, .. } = distance else { return None };
    let vector = args.iter().take(2).find_map(Bound::constant).and_then(vector::numbers)?;
    let named = match args.get(3) {
        None => Value::Undefined,
        Some(options) => match options.constant()? {
            options @ Value::Object(_) => options.property("distanceFunction"),
            // Then there is no distance at all.
            _ => return None,
        },
    };
    let distance = match (&named, settings.distance_function(&path)) {
        (Value::String(name), _) => Distance::named(name)?,
        (Value::Undefined, Some(policy)) => Distance::named(policy)?,
        (Value::Undefined, None) => Distance::Cosine,
        _ => return None,
    };
    Some(Nearest { path, target: Target::new(&vector, distance)? })
}

/// The path whose vectors a distance compares with one that is known. None if all have to be compared.
fn compared_path(distance: &Bound) -> Option<&[String]> {
    let Bound::VectorDistance { args, path, .. } = distance else { return None };
    let is_brute = args.get(2).is_some_and(|brute| !matches!(brute.constant(), Some(Value::Bool(false))));
    // One of the two is the path, so the other has to be constant.
    let has_target = args.iter().take(2).filter(|arg| arg.constant().is_some()).count() == 1;
    path.as_deref().filter(|_| !is_brute && has_target)
}

/// A ranking whose texts are known by an index.
pub struct RankedRun<'p> {
    stage: Stage<'p>,
    context: Context<'p>,
}

impl<'p> RankedRun<'p> {
    /// Gives the query a document, in any order; `place` is where it comes in the order of documents, and
    /// `texts` says of each score how often its text has the terms, if it has. Says whether it gave a row.
    pub fn push(
        &mut self,
        document: &Document<'_>,
        place: &[u8],
        texts: Vec<Option<&Occurrences>>,
    ) -> Result<bool, EvalError> {
        let texts = texts.into_iter().map(Option::<&Occurrences>::cloned).collect();
        let before = self.stage.ranker().map_or(0, |ranker| ranker.begin(place, texts));
        self.stage.push(Value::Object(Object::Document(*document)), &self.context)?;
        Ok(self.stage.ranker().is_some_and(|ranker| ranker.rows() > before))
    }

    /// The rows.
    pub fn finish(self) -> Result<Vec<Value<'p>>, EvalError> {
        self.stage.finish(&self.context)
    }
}
