//! The registry of built-in functions.
//!
//! One file per family holds the functions and a slice that describes them; [`FUNCTIONS`] lists the slices.
//! Name lookup, argument counts, and the documentation of what is supported all come from it, so a new
//! function is one entry and one `fn`:
//!
//! ```text
//!   Function::new("LENGTH", Family::String, Args::exactly(1), "LENGTH(s)", "...", length)
//! ```
//!
//! Before a function runs, the count of its arguments was checked, and none of them is undefined unless it
//! asked to see undefined ([`Function::sees_undefined`]). An argument of the wrong type makes the result
//! undefined, not an error. Aggregates (COUNT, SUM ...) are not here: the planner knows them.

mod type_checks;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::context::Context;
use crate::error::EvalError;
use crate::value::Value;

/// All functions, one slice per family file.
pub static FUNCTIONS: &[&[Function]] = &[type_checks::FUNCTIONS];

/// One built-in function.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// The name, in upper case; queries may write it in any case.
    pub name: &'static str,
    /// Other spellings, in upper case.
    pub aliases: &'static [&'static str],
    /// What it belongs to.
    pub family: Family,
    /// The fewest arguments it takes.
    pub min_args: usize,
    /// The most arguments it takes; None is no limit.
    pub max_args: Option<usize>,
    /// How it is called, for the manual: `SUBSTRING(s, start, length)`.
    pub signature: &'static str,
    /// What it gives, in one line.
    pub help: &'static str,
    /// Whether it runs even if an argument is undefined. If not, the result is undefined then.
    pub sees_undefined: bool,
    /// The code.
    pub run: Run,
}

/// The code of a function.
#[derive(Debug, Clone, Copy)]
pub enum Run {
    /// Always gives a value, possibly undefined.
    Plain(for<'a> fn(&Context<'_>, &[Value<'a>]) -> Value<'a>),
    /// May fail the whole query.
    Fallible(for<'a> fn(&Context<'_>, &[Value<'a>]) -> Result<Value<'a>, EvalError>),
}

/// How many arguments a function takes.
#[derive(Debug, Clone, Copy)]
pub struct Args {
    min: usize,
    max: Option<usize>,
}

impl Args {
    /// This many.
    pub const fn exactly(count: usize) -> Args {
        Args { min: count, max: Some(count) }
    }

    /// From `min` to `max`.
    pub const fn between(min: usize, max: usize) -> Args {
        Args { min, max: Some(max) }
    }

    /// `min` or more.
    pub const fn at_least(min: usize) -> Args {
        Args { min, max: None }
    }
}

/// What a function belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Arrays and sets.
    Array,
    /// Choosing between values.
    Conditional,
    /// Dates and times.
    DateTime,
    /// The item itself.
    Item,
    /// Numbers.
    Math,
    /// Points, lines and areas.
    Spatial,
    /// Text.
    String,
    /// What type a value has.
    TypeCheck,
    /// Words in text.
    FullText,
    /// Distances of vectors.
    Vector,
}

impl Function {
    /// A function that always gives a value. Undefined arguments make it undefined.
    pub const fn new(
        name: &'static str,
        family: Family,
        args: Args,
        signature: &'static str,
        help: &'static str,
        run: for<'a> fn(&Context<'_>, &[Value<'a>]) -> Value<'a>,
    ) -> Function {
        Function {
            name,
            aliases: &[],
            family,
            min_args: args.min,
            max_args: args.max,
            signature,
            help,
            sees_undefined: false,
            run: Run::Plain(run),
        }
    }

    /// The same, and it runs even if arguments are undefined.
    pub const fn sees_undefined(self) -> Function {
        Function { sees_undefined: true, ..self }
    }

    /// The same, known by further names (in upper case).
    pub const fn also(self, aliases: &'static [&'static str]) -> Function {
        Function { aliases, ..self }
    }

    /// The same with code that may fail the query.
    pub const fn fallible(
        self,
        run: for<'a> fn(&Context<'_>, &[Value<'a>]) -> Result<Value<'a>, EvalError>,
    ) -> Function {
        Function { run: Run::Fallible(run), ..self }
    }

    /// Finds a function by its name or an alias, in any case.
    pub fn find(name: &str) -> Option<&'static Function> {
        static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| {
            let functions = FUNCTIONS.iter().copied().flatten();
            functions.flat_map(|function| function.names().map(move |name| (name, function))).collect()
        });
        BY_NAME.get(name.to_ascii_uppercase().as_str()).copied()
    }

    /// The name and the aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Whether it takes this many arguments.
    pub fn takes(&self, args: usize) -> bool {
        args >= self.min_args && self.max_args.is_none_or(|max| args <= max)
    }

    /// Applies the function to arguments whose count was checked.
    pub fn call<'a>(&self, context: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
        if !self.sees_undefined && args.iter().any(|arg| !arg.is_defined()) {
            return Ok(Value::Undefined);
        }
        match self.run {
            Run::Plain(run) => Ok(run(context, args)),
            Run::Fallible(run) => run(context, args),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_upper_case_and_unique() {
        let mut seen = HashMap::new();
        for function in FUNCTIONS.iter().copied().flatten() {
            for name in function.names() {
                assert_eq!(name, name.to_ascii_uppercase());
                assert!(seen.insert(name, function.name).is_none(), "{name} is there twice");
                assert_eq!(Function::find(&name.to_ascii_lowercase()).map(|f| f.name), Some(function.name));
            }
            assert!(function.max_args.is_none_or(|max| max >= function.min_args), "{}", function.name);
            assert!(!function.help.contains('\n') && function.help.ends_with('.'), "{}", function.name);
            assert!(function.signature.contains('('), "{}", function.name);
        }
    }
}
