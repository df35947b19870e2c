//! ORDER BY RANK: scores instead of sort keys.

use super::Binder;
use super::call::wrong_count;
use crate::ast::{Call, Collection, Expr, ExprKind, OrderBy, QueryTree};
use crate::error::SqlError;
use crate::plan::{Bound, Rank, Score};
use crate::value::Value;

const NOT_A_SCORE: &str =
    "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.";
const WRONG_WEIGHTS: &str = "The last parameter of the RRF function is an optional array of weights. When present, it must be a \
     literal array of numbers, one for each of the component scores used for the RRF function. The length of \
     this array must be the same as the number of the component scores.";

impl Binder<'_> {
    pub(super) fn rank(&mut self, tree: &QueryTree) -> Result<Option<Rank>, SqlError> {
        let Some(order) = tree.order_by.as_ref().filter(|order| order.rank) else { return Ok(None) };
        check_sources(tree, order)?;
        let mut rank = Rank { scores: Vec::new(), weights: Vec::new(), fuses: order.items.len() > 1 };
        if order.items.iter().any(|item| item.direction.is_some()) {
            let message = "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed.";
            return Err(SqlError::uncoded(message, order.span));
        }
        for item in &order.items {
            match call_of(&item.expr) {
                Some(call) if is(call, "RRF") => {
                    rank.fuses = true;
                    self.fusion(call, &item.expr, order, &mut rank)?;
                }
                _ => {
                    let score = self.score(&item.expr, order)?;
                    rank.scores.push(score);
                }
            }
        }
        if rank.weights.is_empty() {
            rank.weights = vec![1.0; rank.scores.len()];
        }
        Ok(Some(rank))
    }

    /// RRF: several scores, and weights for them after the last.
    fn fusion(&mut self, call: &Call, expr: &Expr, order: &OrderBy, rank: &mut Rank) -> Result<(), SqlError> {
        let (scores, weights) = match call.args.split_last() {
            Some((last, before)) if call_of(last).is_none() => (before, Some(last)),
            _ => (call.args.as_slice(), None),
        };
        if scores.is_empty() {
            return Err(SqlError::new("SC2221", NOT_A_SCORE, order.span));
        }
        for score in scores {
            let score = self.score(score, order)?;
            rank.scores.push(score);
        }
        if let Some(weights) = weights {
            let wrong = || SqlError::new("SC2229", WRONG_WEIGHTS, expr.span);
            if !matches!(weights.kind, ExprKind::Array(_) | ExprKind::Parameter(_)) {
                return Err(wrong());
            }
            let weights = self.expr(weights)?;
            let numbers = match weights.constant() {
                Some(Value::Array(array)) => array.iter().map(|item| item.as_f64()).collect(),
                _ => None,
            };
            let numbers: Vec<f64> = numbers.ok_or_else(wrong)?;
            if numbers.len() != scores.len() {
                return Err(wrong());
            }
            rank.weights.extend(numbers);
        }
        Ok(())
    }

    fn score(&mut self, expr: &Expr, order: &OrderBy) -> Result<Score, SqlError> {
        match call_of(expr) {
            Some(call) if is(call, "FULLTEXTSCORE") => match call.args.as_slice() {
                [text, terms @ ..] if !terms.is_empty() => {
                    let text = self.expr(text)?;
                    let language = self.language_of(Some(&text));
                    Ok(Score::Text { text, terms: self.all(terms)?, language })
                }
                _ => Err(wrong_count("FULLTEXTSCORE", 2, None, expr.span)),
            },
            Some(call) if is(call, "VECTORDISTANCE") => {
                let distance = self.expr(expr)?;
                match distance {
                    Bound::VectorDistance { .. } => Ok(Score::Vector { distance }),
                    _ => Err(SqlError::new("SC2221", NOT_A_SCORE, order.span)),
                }
            }
            _ => Err(SqlError::new("SC2221", NOT_A_SCORE, order.span)),
        }
    }
}

fn check_sources(tree: &QueryTree, order: &OrderBy) -> Result<(), SqlError> {
    let refuse = |code, message: &str| Err(SqlError::new(code, message, order.span));
    match tree.from.as_slice() {
        [_, _, ..] => refuse("SC2224", "The JOIN operator is not allowed with the ORDER BY RANK clause."),
        [source] if matches!(source.collection, Collection::Query(_)) => {
            let message = "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause.";
            refuse("SC2225", message)
        }
        [source] if source.iterates => {
            let message =
                "The FROM clause with the IN operator is not allowed with the ORDER BY RANK clause.";
            refuse("SC2223", message)
        }
        _ => Ok(()),
    }
}

fn call_of(expr: &Expr) -> Option<&Call> {
    match &expr.kind {
        ExprKind::Call(call) if !call.is_udf => Some(call),
        _ => None,
    }
}

fn is(call: &Call, name: &str) -> bool {
    call.name.eq_ignore_ascii_case(name)
}
