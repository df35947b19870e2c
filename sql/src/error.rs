//! What can be wrong with a query.
//!
//! [`SqlError`] is found before anything runs and points into the text; its codes and sentences are those the
//! service answers, because clients look for them. [`EvalError`] ends a query that was right but met data or
//! limits it cannot go on with.

use crate::token::Span;
use crate::value::json::write_str;

/// A query that does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SqlError {
    /// `SC1001` and the like. None where the service gives a sentence without a code.
    pub code: Option<&'static str>,
    /// The sentence the caller reads.
    pub message: String,
    /// Where the fault lies: UTF-16 offsets into the text, the end exclusive. None if it has no place.
    pub location: Option<(usize, usize)>,
    /// What else is wrong with the query, in the order of the text.
    pub more: Vec<SqlError>,
}

impl SqlError {
    /// An error at a place of the text.
    pub(crate) fn new(code: &'static str, message: impl Into<String>, span: Span) -> SqlError {
        let location = Some((span.start, span.end));
        SqlError { code: Some(code), message: message.into(), location, more: Vec::new() }
    }

    /// An error for which the service's code is not known.
    pub(crate) fn uncoded(message: impl Into<String>, span: Span) -> SqlError {
        let location = Some((span.start, span.end));
        SqlError { code: None, message: message.into(), location, more: Vec::new() }
    }

    /// Both, in the order of the text.
    pub(crate) fn and(mut self, other: SqlError) -> SqlError {
        let mut all = std::mem::take(&mut self.more);
        all.extend([self, other]);
        all.sort_by_key(|error| error.location);
        all.dedup();
        let first = all.remove(0);
        SqlError { more: all, ..first }
    }

    /// The same error with its place counted as clients count: in UTF-16 units instead of bytes.
    pub(crate) fn located_in(mut self, text: &str) -> SqlError {
        let units = |bytes: usize| {
            let before = text.char_indices().take_while(|(at, _)| *at < bytes);
            before.map(|(_, character)| character.len_utf16()).sum()
        };
        self.location = self.location.map(|(start, end)| (units(start), units(end)));
        self.more = self.more.into_iter().map(|error| error.located_in(text)).collect();
        self
    }

    /// The body of the service's answer.
    pub fn to_json(&self) -> String {
        let mut out = br#"{"errors":["#.to_vec();
        self.write_json(&mut out);
        for error in &self.more {
            out.push(b',');
            error.write_json(&mut out);
        }
        out.extend_from_slice(b"]}");
        String::from_utf8_lossy(&out).into_owned()
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"severity":"Error""#);
        if let Some((start, end)) = self.location {
            out.extend_from_slice(format!(r#","location":{{"start":{start},"end":{end}}}"#).as_bytes());
        }
        match self.code {
            // A number where the service gives a number: error 2206.
            Some(code) if code.bytes().all(|byte| byte.is_ascii_digit()) => {
                out.extend_from_slice(format!(r#","code":{code}"#).as_bytes());
            }
            Some(code) => out.extend_from_slice(format!(r#","code":"{code}""#).as_bytes()),
            None => {}
        }
        out.extend_from_slice(br#","message":"#);
        write_str(&self.message, out);
        out.push(b'}');
    }
}

/// The ways to break the syntax.
pub(crate) enum SyntaxError {
    /// Something stands where it cannot stand.
    Near(String),
    /// The text ends too early.
    End,
    /// A string that does not end, or that holds an unknown escape.
    String(String),
}

impl SyntaxError {
    pub(crate) fn at(self, span: Span) -> SqlError {
        match self {
            SyntaxError::Near(text) => {
                SqlError::new("SC1001", format!("Syntax error, incorrect syntax near '{text}'."), span)
            }
            SyntaxError::End => SqlError::new("SC1002", "Syntax error, unexpected end-of-file.", span),
            SyntaxError::String(text) => {
                SqlError::new("SC1012", format!("Syntax error, invalid string literal token '{text}'."), span)
            }
        }
    }
}

/// A query that compiled but cannot be answered. The messages are shown to the caller as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The query met a value that makes it fail as a whole.
    #[error("{message}")]
    Failed {
        /// What went wrong.
        message: String,
    },
    /// The query asks for something that is not supported.
    #[error("{feature} is not supported.")]
    Unsupported {
        /// What it asks for.
        feature: String,
    },
    /// Sorting, grouping, removing duplicates or joining needs more memory than one query may take.
    #[error(
        "The query needs more than {bytes_max} bytes of memory for its rows. Narrow it with a filter, or ask \
         for fewer rows with TOP or OFFSET LIMIT."
    )]
    TooMuchMemory {
        /// The limit that was passed.
        bytes_max: usize,
    },
}

impl EvalError {
    /// A query that fails with this sentence.
    pub fn failed(message: impl Into<String>) -> EvalError {
        EvalError::Failed { message: message.into() }
    }

    /// The body of the service's answer.
    pub fn to_json(&self) -> String {
        let mut out = br#"{"Errors":["#.to_vec();
        write_str(&self.to_string(), &mut out);
        out.extend_from_slice(b"]}");
        String::from_utf8_lossy(&out).into_owned()
    }
}
