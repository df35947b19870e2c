//! Distances of vectors, computed exactly. Where there is an index of vectors, `search.rs` says what it is asked for.
//!
//! A function sees its arguments' values and not the paths they came from, so the evaluator puts the distance
//! function that the container's policy names for a path into the options. Without one it is cosine.

use mayfly_value::vector::{self, Distance};

use super::{Args, Family, Function};
use crate::context::Context;
use crate::error::EvalError;
use crate::value::{Array, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::failing(
        "VECTORDISTANCE",
        Family::Vector,
        Args::between(2, 4),
        "VECTORDISTANCE(v1, v2 [, brute_force [, options]])",
        "How similar (cosine, dot product) or how far apart (euclidean) two vectors are.",
        vector_distance,
    ),
    Function::failing(
        "_VECTORSCORE",
        Family::Vector,
        Args::between(2, 4),
        "_VECTORSCORE(v1, v2 [, brute_force [, options]])",
        "VECTORDISTANCE that a client sorts by in the direction it names.",
        vector_distance,
    ),
];

fn vector_distance<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let (a, b, options) = match args {
        [a, b] | [a, b, Value::Bool(_)] => (a, b, None),
        [a, b, Value::Bool(_), Value::Object(options)] => (a, b, Some(options)),
        _ => return Ok(Value::Undefined),
    };
    let option = |name| options.map_or(Value::Undefined, |options| options.get(name));
    check_multiplier(&option("searchListSizeMultiplier"))?;
    let distance = match option("distanceFunction") {
        Value::Undefined => Some(Distance::Cosine),
        name => name.as_str().and_then(Distance::named),
    };
    let (Some(distance), Some(a), Some(b)) = (distance, numbers(a), numbers(b)) else {
        return Ok(Value::Undefined);
    };
    let result = (a.len() == b.len() && !a.is_empty()).then(|| distance.between(&a, &b));
    Ok(result.filter(|result| !result.is_nan()).into())
}

/// There is no search list here, but a wrong value is refused all the same. A constant one the binder has refused.
fn check_multiplier(multiplier: &Value<'_>) -> Result<(), EvalError> {
    match multiplier.as_f64() {
        Some(value) if !(1.0..=100.0).contains(&value) => Err(EvalError::failed(format!(
            "The 'searchListSizeMultiplier' value {value} specified in the VectorDistance function is outside the \
             supported range. The value must be between 1 and 100."
        ))),
        _ => Ok(()),
    }
}

/// The numbers of a vector.
pub(crate) fn numbers(value: &Value<'_>) -> Option<Vec<f64>> {
    match value.as_array()? {
        Array::Raw(array) => vector::numbers(array),
        Array::Buf(array) => vector::numbers(array),
        Array::Items(items) => items.iter().map(Value::as_f64).collect(),
    }
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
    ("_VECTORSCORE", "[1,2],[2,4]", "1"),
];

#[cfg(test)]
mod tests {
    use super::super::testing::call;

    #[test]
    fn a_multiplier_out_of_range_fails() {
        let error = call("VECTORDISTANCE", r#"[1],[1],false,{"searchListSizeMultiplier":-100}"#);
        assert!(error.is_err_and(|error| error.contains("value -100 specified")));
    }
}
