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
//! undefined, not an error. What a function builds is bounded ([`limits`]). Aggregates (COUNT, SUM ...) are not here: the planner knows them.

mod array;
mod array_totals;
mod conditional;
mod conversion;
mod date;
pub(crate) mod full_text;
mod item;
mod limits;
mod math;
mod math_int;
mod set;
mod spatial;
mod string;
mod string_regex;
mod string_search;
#[cfg(test)]
mod testing;
mod trigonometry;
mod type_checks;
mod utf16;
pub(crate) mod vector;

use std::collections::HashMap;
use std::sync::LazyLock;

use mayfly_value::text::Language;

use crate::context::Context;
use crate::error::EvalError;
use crate::value::Value;

/// All functions, one slice per family file.
pub static FUNCTIONS: &[&[Function]] = &[
    array::FUNCTIONS,
    array_totals::FUNCTIONS,
    conditional::FUNCTIONS,
    conversion::FUNCTIONS,
    date::FUNCTIONS,
    full_text::FUNCTIONS,
    item::FUNCTIONS,
    math::FUNCTIONS,
    math_int::FUNCTIONS,
    set::FUNCTIONS,
    spatial::FUNCTIONS,
    string::FUNCTIONS,
    string_regex::FUNCTIONS,
    string_search::FUNCTIONS,
    trigonometry::FUNCTIONS,
    type_checks::FUNCTIONS,
    vector::FUNCTIONS,
];

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
    /// Whether it reads the context (time, randomness, settings), so that equal arguments may give different
    /// results in another run. RAND differs even from call to call.
    pub reads_context: bool,
    /// Whether it only makes sense in ORDER BY RANK, where the planner computes it. It cannot be called.
    pub only_in_rank: bool,
    /// The code.
    pub run: Run,
}

/// Code that always gives a value.
pub type PlainRun = for<'a> fn(&Context<'_>, &[Value<'a>]) -> Value<'a>;

/// Code that may fail the query.
pub type FallibleRun = for<'a> fn(&Context<'_>, &[Value<'a>]) -> Result<Value<'a>, EvalError>;

/// Code that looks at the words of texts.
pub type WordsRun = for<'a> fn(Language, &Context<'_>, &[Value<'a>]) -> Value<'a>;

/// The code of a function.
#[derive(Debug, Clone, Copy)]
pub enum Run {
    /// Always gives a value, possibly undefined.
    Plain(PlainRun),
    /// May fail the whole query.
    Fallible(FallibleRun),
    /// Looks at words, which depend on the language.
    Words(WordsRun),
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
        run: PlainRun,
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
            reads_context: false,
            only_in_rank: false,
            run: Run::Plain(run),
        }
    }

    /// A function that may fail the query. Undefined arguments make it undefined.
    pub const fn failing(
        name: &'static str,
        family: Family,
        args: Args,
        signature: &'static str,
        help: &'static str,
        run: FallibleRun,
    ) -> Function {
        let function = Function::new(name, family, args, signature, help, nothing);
        Function { run: Run::Fallible(run), ..function }
    }

    /// A function of the words of texts. Undefined arguments make it undefined.
    pub const fn of_words(
        name: &'static str,
        args: Args,
        signature: &'static str,
        help: &'static str,
        run: WordsRun,
    ) -> Function {
        let function = Function::new(name, Family::FullText, args, signature, help, nothing);
        Function { run: Run::Words(run), ..function }
    }

    /// The same, and it runs even if arguments are undefined.
    pub const fn sees_undefined(self) -> Function {
        Function { sees_undefined: true, ..self }
    }

    /// The same, known by further names (in upper case).
    pub const fn also(self, aliases: &'static [&'static str]) -> Function {
        Function { aliases, ..self }
    }

    /// The same, and its result depends on the run.
    pub const fn reads_context(self) -> Function {
        Function { reads_context: true, ..self }
    }

    /// The same, and only ORDER BY RANK may hold it.
    pub const fn only_in_rank(self) -> Function {
        Function { only_in_rank: true, ..self }
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
        self.call_in(Language::default(), context, args)
    }

    /// The same, where texts are of a language.
    pub fn call_in<'a>(
        &self,
        language: Language,
        context: &Context<'_>,
        args: &[Value<'a>],
    ) -> Result<Value<'a>, EvalError> {
        if !self.sees_undefined && args.iter().any(|arg| !arg.is_defined()) {
            return Ok(Value::Undefined);
        }
        match self.run {
            Run::Plain(run) => Ok(run(context, args)),
            Run::Fallible(run) => run(context, args),
            Run::Words(run) => Ok(run(language, context, args)),
        }
    }
}

/// Stands in for code that is never run.
fn nothing<'a>(_: &Context<'_>, _: &[Value<'a>]) -> Value<'a> {
    Value::Undefined
}

/// Three-valued AND: false wins over undefined, undefined over true.
fn all(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(true);
    for answer in answers {
        match answer {
            Some(true) => {}
            Some(false) => return Some(false),
            None => result = None,
        }
    }
    result
}

/// Three-valued OR: true wins over undefined, undefined over false.
fn any(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    all(answers.map(|answer| answer.map(|yes| !yes))).map(|none| !none)
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

    /// Every line of the tables at the end of the family files.
    const CASES: &[&[testing::Case]] = &[
        array::CASES,
        array_totals::CASES,
        conditional::CASES,
        conversion::CASES,
        date::CASES,
        full_text::CASES,
        item::CASES,
        math::CASES,
        math_int::CASES,
        set::CASES,
        spatial::CASES,
        string::CASES,
        string_regex::CASES,
        string_search::CASES,
        trigonometry::CASES,
        type_checks::CASES,
        vector::CASES,
    ];

    #[test]
    fn cases_give_what_they_say() {
        let faults: Vec<String> =
            CASES.iter().copied().flatten().filter_map(|case| testing::fault(*case)).collect();
        assert!(faults.is_empty(), "{} cases are off:\n{}", faults.len(), faults.join("\n"));
    }

    #[test]
    fn every_function_has_a_case_with_a_result() {
        for function in FUNCTIONS.iter().copied().flatten().filter(|function| !function.only_in_rank) {
            let mut cases = CASES.iter().copied().flatten();
            let shown = cases.any(|(name, _, expected)| *name == function.name && *expected != "undefined");
            assert!(shown, "{} has no case", function.name);
        }
    }

    /// Whatever the arguments are, there is a value or an error, and undefined in gives undefined out unless
    /// the function asked for it.
    #[test]
    fn no_argument_makes_a_function_panic() {
        let odd = [
            "undefined",
            "null",
            "true",
            "0",
            "-1",
            "1.5",
            "1e300",
            "9223372036854775807",
            "-9223372036854775808",
            "NaN",
            "Infinity",
            r#""""#,
            r#""é😀a""#,
            r#""2020-02-29T""#,
            r#""2020-02-29""#,
            r#""yyyy""#,
            "[]",
            r#"[1,"a",null,[{}]]"#,
            "{}",
            r#"{"type":"Polygon","coordinates":[[[0,0],[9,90],[0,-90],[0,0]]]}"#,
        ];
        for function in FUNCTIONS.iter().copied().flatten() {
            let count = function.min_args.max(1)..=function.max_args.unwrap_or(4).min(4);
            for count in count.filter(|count| function.takes(*count)) {
                // All pairs; of the triples a sample.
                let stride = if count > 2 { 13 } else { 1 };
                for at in (0..odd.len().pow(count.min(3) as u32)).step_by(stride) {
                    let pick = |place: u32| odd[(at / odd.len().pow(place.min(2))) % odd.len()];
                    let args: Vec<&str> = (0..count as u32).map(pick).collect();
                    let _ = testing::call(function.name, &args.join(","));
                }
            }
        }
    }
}
