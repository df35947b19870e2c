//! Calls: built-in functions, aggregates and functions of the user.

use mayfly_value::text::Language;

use super::Binder;
use super::scope::{Phase, contains, is_aggregate, is_subquery};
use crate::aggregate::Aggregate;
use crate::ast::Call;
use crate::error::SqlError;
use crate::functions::{Family, Function};
use crate::plan::{AggregateCall, Bound, PathStep};
use crate::token::Span;
use crate::value::Value;

/// The service's limit.
const UDF_CALLS_MAX: usize = 10;

impl Binder<'_> {
    pub(super) fn call(&mut self, call: &Call, span: Span) -> Result<Bound, SqlError> {
        if call.is_udf {
            return self.udf(call, span);
        }
        if let Some(aggregate) = Aggregate::find(&call.name) {
            return self.aggregate(aggregate, call, span);
        }
        if call.name.eq_ignore_ascii_case("FULLTEXTSCORE") {
            let message = "The FullTextScore function is only allowed in the ORDER BY RANK clause.";
            return Err(SqlError::new("SC2240", message, span));
        }
        // RRF means something only in ORDER BY RANK; elsewhere the service does not know it.
        let is_rrf = call.name.eq_ignore_ascii_case("RRF");
        let Some(function) = Function::find(&call.name).filter(|_| !is_rrf) else {
            let message = format!("'{}' is not a recognized built-in function name.", call.name);
            let unknown = self.note(SqlError::new("SC2005", message, call.name_span));
            return self.all(&call.args).map(|_| unknown);
        };
        let args = self.all(&call.args)?;
        if !function.takes(args.len()) {
            return Ok(self.note(wrong_count(function.name, function.min_args, function.max_args, span)));
        }
        if function.family == Family::Vector {
            check_options(&args, span)?;
            let path = args.iter().take(2).find_map(|arg| self.property_path(arg));
            return Ok(Bound::VectorDistance { function, args, path });
        }
        if function.family == Family::FullText {
            let language = self.language_of(args.first());
            return Ok(Bound::FullText { function, args, language });
        }
        Ok(Bound::Call { function, args })
    }

    /// The language of a text.
    pub(super) fn language_of(&self, text: Option<&Bound>) -> Language {
        let path = text.and_then(|text| self.property_path(text));
        self.settings.languages.of(path.as_deref())
    }

    /// The names on the way from the document to what an expression reads.
    fn property_path(&self, bound: &Bound) -> Option<Vec<String>> {
        let (slot, steps) = bound.as_path()?;
        let before = self.document_paths.get(&slot)?;
        let names = before.iter().chain(&steps).map(|step| match step {
            PathStep::Name(name) => Some(name.clone()),
            PathStep::Item(_) => None,
        });
        names.collect()
    }

    fn aggregate(&mut self, aggregate: Aggregate, call: &Call, span: Span) -> Result<Bound, SqlError> {
        let nested = || {
            let message = "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.";
            SqlError::new("SC2101", message, span)
        };
        let phase = self.phase();
        match phase {
            Phase::Groups | Phase::OrderOfGroups => {}
            Phase::Aggregate => return Err(nested()),
            Phase::Rows => {
                let message = format!(
                    "The aggregate function {} is only allowed in the SELECT clause.",
                    call.name.to_ascii_uppercase()
                );
                return Err(SqlError::uncoded(message, span));
            }
        }
        let [argument] = call.args.as_slice() else {
            return Err(wrong_count(&call.name.to_ascii_uppercase(), 1, Some(1), span));
        };
        if contains(argument, &is_aggregate) || contains(argument, &is_subquery) {
            return Err(nested());
        }
        self.set_phase(Phase::Aggregate);
        let argument = self.expr(argument);
        self.set_phase(phase);
        let argument = argument?;
        let slot = self.new_slot();
        if let Some(scope) = self.scope() {
            scope.aggregates.push(AggregateCall { aggregate, argument, slot });
        }
        Ok(Bound::Slot(slot))
    }

    fn udf(&mut self, call: &Call, span: Span) -> Result<Bound, SqlError> {
        self.udf_calls += 1;
        if self.udf_calls > UDF_CALLS_MAX {
            let message =
                format!("The query exceeds the maximum of {UDF_CALLS_MAX} user-defined function calls.");
            return Err(SqlError::new("SC3005", message, span));
        }
        self.all(&call.args)?;
        Ok(Bound::Udf { name: call.name.clone() })
    }
}

pub(super) fn wrong_count(name: &str, min: usize, max: Option<usize>, span: Span) -> SqlError {
    let count = match max {
        None => format!("at least {min}"),
        Some(max) if max == min => format!("{min}"),
        Some(max) => format!("{min} to {max}"),
    };
    SqlError::new("SC2050", format!("The {name} function requires {count} argument(s)."), span)
}

/// The one option of VectorDistance whose bounds are checked.
fn check_options(args: &[Bound], span: Span) -> Result<(), SqlError> {
    let options = args.get(3).and_then(Bound::constant);
    let multiplier = options.map(|options| options.property("searchListSizeMultiplier"));
    match multiplier.as_ref().and_then(Value::as_f64) {
        Some(value) if !(1.0..=100.0).contains(&value) => {
            let message = format!(
                "The 'searchListSizeMultiplier' value {value} specified in the VectorDistance function is \
                 outside the supported range. The value must be between 1 and 100."
            );
            Err(SqlError::new("SC2213", message, span))
        }
        _ => Ok(()),
    }
}
