//! ORDER BY RANK: the most relevant rows first.
//!
//! How relevant a text is depends on all documents: a term that is everywhere says little. So each document
//! is counted as it comes, the rows are kept with the texts to be scored, and scores are computed at the end
//! by the same internal functions that clients call when they do this themselves.
//!
//! Where an index has counted the words already, each document comes with what it knows of its texts instead, in any
//! order.
//!
//! Several scores are fused by rank: a row gets `weight / (60 + rank)` from each of them.

use std::cmp::Ordering;

use mayfly_value::text::{Language, Occurrences, Totals};

use super::memory::Memory;
use crate::context::Context;
use crate::distribute::candidates;
use crate::error::EvalError;
use crate::eval::{Env, eval};
use crate::functions::Function;
use crate::plan::{Bound, Rank, Score};
use crate::value::Value;

/// Softens the lead of the first ranks; the constant the service's clients use.
const RANK_OFFSET: f64 = 60.0;

/// A ranking on its way.
pub(crate) struct Ranker<'p> {
    plan: &'p Rank,
    components: Vec<Component>,
    documents: i64,
    rows: Vec<RankRow>,
    /// How many rows by each score take part in a fusion; None is all.
    candidates: Option<usize>,
    /// The document that comes: its place, and what an index knows of its texts.
    place: Vec<u8>,
    texts: Vec<Option<Occurrences>>,
}

/// One score, with what is known about all documents.
enum Component {
    Text {
        functions: TextFunctions,
        language: Language,
        terms: Vec<Value<'static>>,
        words: f64,
        hits: Vec<i64>,
    },
    /// A text whose words an index has counted.
    Known {
        totals: Totals,
    },
    Vector {
        counts_up: bool,
    },
}

#[derive(Clone, Copy)]
struct TextFunctions {
    contains: &'static Function,
    words: &'static Function,
    score: &'static Function,
}

struct RankRow {
    row: Value<'static>,
    /// Where its document comes in the order of documents; empty if documents come in that order.
    place: Vec<u8>,
    /// For each component the text to be scored, the score of one that an index knows, or the distance.
    inputs: Vec<Value<'static>>,
}

impl<'p> Ranker<'p> {
    /// `wanted` is how many rows are asked for from the start of the order.
    pub(crate) fn new(
        plan: &'p Rank,
        wanted: Option<u64>,
        context: &Context<'_>,
    ) -> Result<Ranker<'p>, EvalError> {
        let candidates = wanted.filter(|_| plan.fuses && plan.scores.len() > 1).map(candidates);
        let candidates = candidates.and_then(|rows| usize::try_from(rows).ok());
        let components = plan.scores.iter().map(|score| Component::new(score, context));
        let components = components.collect::<Result<_, _>>()?;
        let (rows, place, texts) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Ranker { plan, components, documents: 0, rows, candidates, place, texts })
    }

    /// From now on texts need not be read: an index has counted them.
    pub(crate) fn know(&mut self, totals: Vec<Option<Totals>>) {
        for (component, totals) in self.components.iter_mut().zip(totals) {
            if let Some(totals) = totals
                && matches!(component, Component::Text { .. })
            {
                *component = Component::Known { totals };
            }
        }
    }

    /// The next document is this one. Says how many rows there were before it.
    pub(crate) fn begin(&mut self, place: &[u8], texts: Vec<Option<Occurrences>>) -> usize {
        self.place = place.to_vec();
        self.texts = texts;
        self.rows.len()
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Counts the document in the slots, whether or not the filter lets it through.
    pub(crate) fn count<'v>(&mut self, env: &mut Env<'v, '_>) -> Result<(), EvalError>
    where
        'p: 'v,
    {
        self.documents += 1;
        let plan: &'v Rank = self.plan;
        for (score, component) in plan.scores.iter().zip(&mut self.components) {
            let (Score::Text { text, .. }, Component::Text { functions, language, terms, words, hits }) =
                (score, component)
            else {
                continue;
            };
            let text = eval(text, env)?;
            let count = functions.words.call_in(*language, env.context, std::slice::from_ref(&text))?;
            *words += count.as_f64().unwrap_or(0.0);
            for (term, hits) in terms.iter().zip(hits) {
                let found =
                    functions.contains.call_in(*language, env.context, &[text.clone(), term.clone()])?;
                *hits += i64::from(found.is_true());
            }
        }
        Ok(())
    }

    /// Keeps a row that passed the filter.
    pub(crate) fn add<'v>(
        &mut self,
        row: Value<'v>,
        env: &mut Env<'v, '_>,
        memory: &mut Memory,
    ) -> Result<(), EvalError>
    where
        'p: 'v,
    {
        let plan: &'v Rank = self.plan;
        let mut inputs = Vec::with_capacity(plan.scores.len());
        for (place, (score, component)) in plan.scores.iter().zip(&self.components).enumerate() {
            let (Score::Text { text: input, .. } | Score::Vector { distance: input }) = score;
            let input = eval(input, env)?;
            inputs.push(match component {
                Component::Known { totals } if input.as_str().is_some() => {
                    // A text that an index does not list has none of the terms.
                    let known = self.texts.get(place).and_then(Option::as_ref);
                    known.map_or_else(|| totals.score_without(), |text| totals.score(text)).into()
                }
                Component::Known { .. } => Value::Undefined,
                _ => input.into_owned(),
            });
        }
        memory.take(row.size() + self.place.len() + inputs.iter().map(Value::size).sum::<usize>())?;
        self.rows.push(RankRow { row: row.into_owned(), place: self.place.clone(), inputs });
        Ok(())
    }

    /// The rows, the most relevant first; equally relevant ones as they came.
    pub(crate) fn finish(mut self, context: &Context<'_>) -> Result<Vec<Value<'static>>, EvalError> {
        self.rows.sort_by(|a, b| a.place.cmp(&b.place));
        let mut columns = Vec::with_capacity(self.components.len());
        for (place, component) in self.components.iter().enumerate() {
            let mut scores = Vec::with_capacity(self.rows.len());
            for row in &self.rows {
                let input = row.inputs.get(place).unwrap_or(&Value::Undefined);
                scores.push(component.score(input, self.documents, context)?);
            }
            let weight = self.plan.weights.get(place).copied().unwrap_or(1.0);
            // One score alone is turned into ranks too: the order is the same.
            columns.push((if self.plan.fuses { weight } else { 1.0 }, scores));
        }
        let taken = self.candidates.map(|rows| among_the_best(&columns, self.rows.len(), rows));
        let is_taken = |row: usize| taken.as_ref().is_none_or(|taken| taken.get(row) == Some(&true));
        let rows = self.rows.into_iter().enumerate().filter(|(row, _)| is_taken(*row));
        let mut order: Vec<(f64, Value<'static>)> = rows.map(|(_, row)| (0.0, row.row)).collect();
        for (weight, scores) in columns {
            let scores = scores.into_iter().enumerate().filter(|(row, _)| is_taken(*row));
            let scores: Vec<_> = scores.map(|(_, score)| score).collect();
            for ((total, _), rank) in order.iter_mut().zip(ranks(&scores, weight < 0.0)) {
                *total += weight / (RANK_OFFSET + rank as f64);
            }
        }
        order.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        Ok(order.into_iter().map(|(_, row)| row).collect())
    }
}

impl Component {
    fn new(score: &Score, context: &Context<'_>) -> Result<Component, EvalError> {
        match score {
            Score::Vector { distance } => {
                Ok(Component::Vector { counts_up: distance.counts_up(context.settings) })
            }
            Score::Text { terms, language, .. } => {
                let find = |name: &str| {
                    let unsupported =
                        || EvalError::Unsupported { feature: "The FullTextScore function".into() };
                    Function::find(name).ok_or_else(unsupported)
                };
                let functions = TextFunctions {
                    contains: find("FULLTEXTCONTAINS")?,
                    words: find("_FULLTEXTWORDCOUNT")?,
                    score: find("_FULLTEXTSCORE")?,
                };
                let terms = constant_terms(terms)?;
                let hits = vec![0; terms.len()];
                Ok(Component::Text { functions, language: *language, terms, words: 0.0, hits })
            }
        }
    }

    /// How relevant a row is, more is better; None if it cannot be said.
    fn score(
        &self,
        input: &Value<'_>,
        documents: i64,
        context: &Context<'_>,
    ) -> Result<Option<f64>, EvalError> {
        match self {
            Component::Known { .. } => Ok(input.as_f64()),
            Component::Vector { counts_up } => {
                Ok(input.as_f64().map(|distance| if *counts_up { -distance } else { distance }))
            }
            Component::Text { functions, language, terms, words, hits } => {
                let args = [
                    input.clone(),
                    Value::array(terms.iter().cloned()),
                    Value::Int(documents),
                    Value::Double(*words),
                    Value::array(hits.iter().map(|hits| Value::Int(*hits))),
                ];
                Ok(functions.score.call_in(*language, context, &args)?.as_f64())
            }
        }
    }
}

/// The terms: constants, each an argument of its own or all in one array.
pub(crate) fn constant_terms(terms: &[Bound]) -> Result<Vec<Value<'static>>, EvalError> {
    let not_constant = || EvalError::failed("The terms of the FullTextScore function must be constants.");
    let terms: Option<Vec<_>> = terms.iter().map(|term| term.constant().cloned()).collect();
    let terms = terms.ok_or_else(not_constant)?;
    Ok(match terms.as_slice() {
        [Value::Array(array)] => array.iter().collect(),
        _ => terms,
    })
}

/// Which rows are among the first `count` by one of the scores at least. The others have no part in a fusion,
/// as they have none when clients do it; ranks are counted among those that have.
fn among_the_best(columns: &[(f64, Vec<Option<f64>>)], rows: usize, count: usize) -> Vec<bool> {
    let mut taken = vec![false; rows];
    for (weight, scores) in columns {
        let mut order: Vec<(usize, Option<f64>)> = scores.iter().copied().enumerate().collect();
        order.sort_by(|(_, a), (_, b)| better_first(*a, *b, *weight < 0.0));
        for (row, _) in order.into_iter().take(count) {
            if let Some(place) = taken.get_mut(row) {
                *place = true;
            }
        }
    }
    taken
}

fn better_first(a: Option<f64>, b: Option<f64>, reversed: bool) -> Ordering {
    let ordering = match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        _ => b.is_some().cmp(&a.is_some()),
    };
    if reversed { ordering.reverse() } else { ordering }
}

/// The rank of each score, from 1; equal scores share one, and what has no score comes last.
fn ranks(scores: &[Option<f64>], reversed: bool) -> Vec<usize> {
    let compare = |a, b| better_first(a, b, reversed);
    let mut order: Vec<(usize, Option<f64>)> = scores.iter().copied().enumerate().collect();
    order.sort_by(|(_, a), (_, b)| compare(*a, *b));
    let mut ranks = vec![0; scores.len()];
    let mut rank = 0;
    let mut before = None;
    for (place, score) in order {
        if before.is_none_or(|before| compare(before, score) != Ordering::Equal) {
            rank += 1;
        }
        before = Some(score);
        if let Some(slot) = ranks.get_mut(place) {
            *slot = rank;
        }
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_takes_part_that_is_among_the_best_once() {
        let columns = [
            (1.0, vec![Some(3.0), Some(1.0), None, Some(2.0)]),
            (-1.0, vec![Some(1.0), Some(2.0), Some(0.5), None]),
        ];
        assert_eq!(among_the_best(&columns, 4, 1), [true, false, false, true]);
        assert_eq!(among_the_best(&columns, 4, 9), [true; 4]);
    }

    #[test]
    fn equal_scores_share_a_rank() {
        assert_eq!(ranks(&[Some(1.0), Some(3.0), None, Some(3.0), Some(2.0)], false), [3, 1, 4, 1, 2]);
        assert_eq!(ranks(&[Some(1.0), Some(3.0), None], true), [2, 3, 1]);
    }
}
