//! Distances of vectors, computed exactly.
//!
//! Which distance: the one the call asks for, else the container's, else cosine. A function sees its arguments'
//! values and not the paths they came from; where a container has vectors of several kinds, the planner names
//! the distance function of the path in the options.

use super::{Args, Family, Function};
use crate::context::{Context, Embedding};
use crate::error::EvalError;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[Function::failing(
    "VECTORDISTANCE",
    Family::Vector,
    Args::between(2, 4),
    "VECTORDISTANCE(v1, v2 [, brute_force [, options]])",
    "How similar (cosine, dot product) or how far apart (euclidean) two vectors are.",
    vector_distance,
)
.reads_context()];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distance {
    Cosine,
    DotProduct,
    Euclidean,
}

impl Distance {
    fn named(name: &str) -> Option<Distance> {
        let known = [
            ("cosine", Distance::Cosine),
            ("dotproduct", Distance::DotProduct),
            ("euclidean", Distance::Euclidean),
        ];
        known.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, distance)| distance)
    }

    /// What all vectors of the container agree on.
    fn of_container(embeddings: &[Embedding]) -> Option<Distance> {
        let (first, others) = embeddings.split_first()?;
        let same = |other: &Embedding| other.distance_function.eq_ignore_ascii_case(&first.distance_function);
        if others.iter().all(same) { Distance::named(&first.distance_function) } else { None }
    }

    fn between(self, a: &[f64], b: &[f64]) -> f64 {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        match self {
            // Of a vector without a direction the angle is not known; NaN in the mathematics.
            Distance::Cosine => dot(a, b) / (dot(a, a) * dot(b, b)).sqrt(),
            Distance::DotProduct => dot(a, b),
            Distance::Euclidean => a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt(),
        }
    }
}

fn vector_distance<'a>(context: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let (a, b, options) = match args {
        [a, b] | [a, b, Value::Bool(_)] => (a, b, None),
        [a, b, Value::Bool(_), Value::Object(options)] => (a, b, Some(options)),
        _ => return Ok(Value::Undefined),
    };
    let option = |name| options.map_or(Value::Undefined, |options| options.get(name));
    check_multiplier(&option("searchListSizeMultiplier"))?;
    let distance = match option("distanceFunction") {
        Value::Undefined => Distance::of_container(&context.settings.embeddings).or(Some(Distance::Cosine)),
        name => name.as_str().and_then(Distance::named),
    };
    let (Some(distance), Some(a), Some(b)) = (distance, numbers(a), numbers(b)) else {
        return Ok(Value::Undefined);
    };
    let result = (a.len() == b.len() && !a.is_empty()).then(|| distance.between(&a, &b));
    Ok(result.filter(|result| !result.is_nan()).into())
}

/// There is no search list here, but a wrong value is refused like everywhere.
fn check_multiplier(multiplier: &Value<'_>) -> Result<(), EvalError> {
    match multiplier.as_f64() {
        Some(value) if !(1.0..=100.0).contains(&value) => Err(EvalError::failed(format!(
            "The 'searchListSizeMultiplier' value {value} specified in the VectorDistance function is outside the \
             supported range. The value must be between 1 and 100."
        ))),
        _ => Ok(()),
    }
}

fn numbers(value: &Value<'_>) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(|item| item.as_f64()).collect()
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("VECTORDISTANCE", "[1,0],[0,1]", "0"),
    ("VECTORDISTANCE", "[1,2],[2,4]", "1"),
    ("VECTORDISTANCE", "[3,4],[-3,-4],true", "-1"),
    ("VECTORDISTANCE", r#"[1,2,3],[4,5,6],false,{"distanceFunction":"DotProduct"}"#, "32"),
    ("VECTORDISTANCE", r#"[1,2],[4,6],false,{"distanceFunction":"EUCLIDEAN","dataType":"Float32"}"#, "5"),
    ("VECTORDISTANCE", r#"[1,0],[1,0],false,{"searchListSizeMultiplier":10}"#, "1"),
    ("VECTORDISTANCE", r#"[1],[1],false,{"distanceFunction":"manhattan"}"#, "undefined"),
    ("VECTORDISTANCE", "[1,2],[1]", "undefined"),
    ("VECTORDISTANCE", "[],[]", "undefined"),
    ("VECTORDISTANCE", "[0,0],[1,1]", "undefined"),
    ("VECTORDISTANCE", "[[1]],[[1]]", "undefined"),
    ("VECTORDISTANCE", r#"["1"],[1]"#, "undefined"),
    ("VECTORDISTANCE", "null,[1]", "undefined"),
    ("VECTORDISTANCE", "[1],[1],1", "undefined"),
    ("VECTORDISTANCE", "[1],undefined", "undefined"),
];

#[cfg(test)]
mod tests {
    use super::super::testing::call_in;
    use super::*;
    use crate::context::Settings;

    #[test]
    fn the_container_says_which_distance() {
        let embedding = |name: &str| Embedding { path: vec![], distance_function: name.to_owned() };
        let check = |embeddings, expected| {
            let settings = Settings { embeddings, ..Settings::default() };
            let context = Context::with_settings(0, 0, &settings);
            assert_eq!(
                call_in(&context, "VECTORDISTANCE", "[1,2],[4,6]").map(|value| value.as_f64()),
                Ok(Some(expected))
            );
        };
        check(vec![embedding("euclidean"), embedding("Euclidean")], 5.0);
        check(vec![embedding("dotproduct")], 16.0);
        check(vec![embedding("dotproduct"), embedding("euclidean")], 16.0 / 260.0_f64.sqrt());
    }

    #[test]
    fn a_multiplier_out_of_range_fails() {
        let context = Context::new(0, 0);
        let error = call_in(&context, "VECTORDISTANCE", r#"[1],[1],false,{"searchListSizeMultiplier":-100}"#);
        assert!(error.is_err_and(|error| error.contains("value -100 specified")));
    }
}
