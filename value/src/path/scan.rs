//! The letters of a path: slashes, property names, quotes. Shared by paths and patterns.

use std::fmt;

use super::PathError;

/// Reads a path's text from left to right.
pub(super) struct Scanner<'t> {
    text: &'t str,
    position: usize,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Scanner { text, position: 0 }
    }

    pub(super) fn at_end(&self) -> bool {
        self.rest().is_empty()
    }

    /// The text that is still to be read.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.position..).unwrap_or_default()
    }

    /// Consumes `token` if the rest begins with it.
    pub(super) fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.position += token.len();
        }
        found
    }

    pub(super) fn error(&self, message: &'static str) -> PathError {
        PathError { path: self.text.into(), position: self.position, message }
    }

    pub(super) fn slash(&mut self) -> Result<(), PathError> {
        if self.take("/") { Ok(()) } else { Err(self.error("expected '/'")) }
    }

    /// Reads a property name, quoted or not.
    pub(super) fn property(&mut self) -> Result<String, PathError> {
        match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote),
            _ => self.unquoted(),
        }
    }

    fn unquoted(&mut self) -> Result<String, PathError> {
        let rest = self.rest();
        let end = rest.find('/').unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default();
        if let Some(bad) = name.find(|c: char| "*?[]{}\"'\\".contains(c) || c.is_control()) {
            self.position += bad;
            return Err(self.error("this character is only allowed inside a quoted property name"));
        }
        if name.is_empty() {
            return Err(self.error("expected a property name"));
        }
        self.position += end;
        Ok(name.into())
    }

    fn quoted(&mut self, quote: char) -> Result<String, PathError> {
        self.position += quote.len_utf8();
        let mut name = String::new();
        loop {
            let Some(next) = self.rest().chars().next() else {
                return Err(self.error("expected a closing quote"));
            };
            self.position += next.len_utf8();
            match next {
                '\\' => name.push(self.escaped()?),
                _ if next == quote => break,
                _ => name.push(next),
            }
        }
        if self.at_end() || self.rest().starts_with('/') {
            Ok(name)
        } else {
            Err(self.error("expected '/' after the closing quote"))
        }
    }

    /// Reads what follows a backslash: the escapes of JSON, and the single quote.
    fn escaped(&mut self) -> Result<char, PathError> {
        let Some(next) = self.rest().chars().next() else {
            return Err(self.error("expected an escaped character"));
        };
        let (character, length) = match next {
            '"' | '\'' | '\\' | '/' => (Some(next), 1),
            'b' => (Some('\u{8}'), 1),
            'f' => (Some('\u{c}'), 1),
            'n' => (Some('\n'), 1),
            'r' => (Some('\r'), 1),
            't' => (Some('\t'), 1),
            'u' => (self.rest().get(1..5).and_then(code_point), 5),
            _ => (None, 0),
        };
        let character = character.ok_or_else(|| self.error("unknown escape"))?;
        self.position += length;
        Ok(character)
    }
}

/// The character of four hex digits; none for halves of surrogate pairs.
fn code_point(digits: &str) -> Option<char> {
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    char::from_u32(u32::from_str_radix(digits, 16).ok()?)
}

/// Writes `/name` in canonical form.
pub(super) fn write_property(out: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if plain {
        return write!(out, "/{name}");
    }
    out.write_str("/\"")?;
    for character in name.chars() {
        match character {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            control if (control as u32) < 0x20 => write!(out, "\\u{:04x}", control as u32)?,
            other => write!(out, "{other}")?,
        }
    }
    out.write_str("\"")
}
