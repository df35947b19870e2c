//! The lexer: text into tokens.
//!
//! The whole text is read at once; a query is at most half a megabyte. The list always ends with
//! [`TokenKind::End`]. One semicolon at the very end is ignored.

use crate::error::{SqlError, SyntaxError};
use crate::token::{Keyword, Sign, Span, Token, TokenKind};

/// Reads all tokens of a text. Positions in the error are bytes.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, SqlError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next()?;
        let is_last = token.kind == TokenKind::End;
        tokens.push(token);
        if is_last {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn next(&mut self) -> Result<Token, SqlError> {
        self.skip_blank()?;
        let start = self.at;
        let kind = match self.peek() {
            None => TokenKind::End,
            Some('A'..='Z' | 'a'..='z' | '_') => self.word(),
            Some('@') => self.parameter()?,
            Some('0'..='9') => self.number(),
            Some('.') if self.second().is_some_and(|c| c.is_ascii_digit()) => self.number(),
            Some(quote @ ('"' | '\'')) => self.string(quote)?,
            Some(';') if self.rest().trim_end() == ";" => {
                self.at = self.text.len();
                return Ok(Token { kind: TokenKind::End, span: Span { start, end: start } });
            }
            Some(other) => self.sign(other)?,
        };
        Ok(Token { kind, span: Span { start, end: self.at } })
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    /// Goes on as long as the characters fit, and gives what was passed.
    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) -> Result<(), SqlError> {
        loop {
            self.take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
            if self.rest().starts_with("--") {
                self.take_while(|c| c != '\n');
            } else if self.rest().starts_with("/*") {
                match self.rest().get(2..).and_then(|inside| inside.find("*/")) {
                    Some(length) => self.at += 2 + length + 2,
                    None => {
                        let span = Span { start: self.at, end: self.text.len() };
                        return Err(SyntaxError::Near("/*".to_owned()).at(span));
                    }
                }
            } else {
                return Ok(());
            }
        }
    }

    fn word(&mut self) -> TokenKind {
        let word = self.take_while(is_word);
        match Keyword::find(word) {
            Some(keyword) => TokenKind::Keyword(keyword),
            None => TokenKind::Identifier(word.to_owned()),
        }
    }

    fn parameter(&mut self) -> Result<TokenKind, SqlError> {
        let start = self.at;
        self.at += 1;
        let name = self.take_while(is_word);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            let span = Span { start, end: self.at };
            return Err(SyntaxError::Near(format!("@{name}")).at(span));
        }
        Ok(TokenKind::Parameter(format!("@{name}")))
    }

    fn number(&mut self) -> TokenKind {
        let start = self.at;
        if let Some(hexadecimal) = self.hexadecimal() {
            return hexadecimal;
        }
        let mut is_integer = true;
        self.take_while(|c| c.is_ascii_digit());
        if self.peek() == Some('.') {
            is_integer = false;
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
        }
        if let Some(length) = exponent_length(self.rest()) {
            is_integer = false;
            self.at += length;
        }
        let digits = self.text.get(start..self.at).unwrap_or_default();
        if is_integer {
            match digits.parse::<u64>() {
                Ok(value) => match i64::try_from(value) {
                    Ok(value) => return TokenKind::Integer(value),
                    Err(_) if value == i64::MIN.unsigned_abs() => return TokenKind::IntegerMinMagnitude,
                    Err(_) => return TokenKind::Double(value as f64),
                },
                Err(_) => return TokenKind::Double(parse_double(digits)),
            }
        }
        TokenKind::Double(parse_double(digits))
    }

    /// `0x` and digits; an integer if it fits, else a double.
    fn hexadecimal(&mut self) -> Option<TokenKind> {
        let digits = self.rest().strip_prefix("0x").or_else(|| self.rest().strip_prefix("0X"))?;
        let length = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        if length == 0 {
            return None;
        }
        self.at += 2 + length;
        let digits = digits.get(..length)?;
        Some(match i64::from_str_radix(digits, 16) {
            Ok(value) => TokenKind::Integer(value),
            Err(_) => TokenKind::Double(
                digits
                    .chars()
                    .fold(0.0, |sum, digit| sum * 16.0 + f64::from(digit.to_digit(16).unwrap_or_default())),
            ),
        })
    }

    fn string(&mut self, quote: char) -> Result<TokenKind, SqlError> {
        let start = self.at;
        let mut value = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            if character == quote {
                self.at = start + at + 1;
                return Ok(TokenKind::String(value));
            }
            if character != '\\' {
                value.push(character);
                continue;
            }
            match unescape(&mut characters) {
                Some(character) => value.push(character),
                None => break,
            }
        }
        let span = Span { start, end: self.text.len() };
        Err(SyntaxError::String(self.rest().to_owned()).at(span))
    }

    fn sign(&mut self, first: char) -> Result<TokenKind, SqlError> {
        match Sign::ALL.iter().copied().find(|sign| self.rest().starts_with(sign.text())) {
            Some(sign) => {
                self.at += sign.text().len();
                Ok(TokenKind::Sign(sign))
            }
            None => {
                let span = Span { start: self.at, end: self.at + first.len_utf8() };
                Err(SyntaxError::Near(first.to_string()).at(span))
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a name can be written without quotes.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(is_word)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && Keyword::find(name).is_none()
}

/// The length of `e+10` at the start of the text; none if there is no exponent.
fn exponent_length(text: &str) -> Option<usize> {
    let unsigned = text.strip_prefix(['e', 'E'])?;
    let digits = unsigned.strip_prefix(['+', '-']).unwrap_or(unsigned);
    let count = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    if count == 0 { None } else { Some(text.len() - digits.len() + count) }
}

/// The standard library reads every form the lexer lets through (`1.`, `.5`, `1e5`).
fn parse_double(digits: &str) -> f64 {
    digits.parse().unwrap_or(f64::NAN)
}

/// The character after a backslash; none if there is no such escape.
fn unescape(characters: &mut impl Iterator<Item = (usize, char)>) -> Option<char> {
    Some(match characters.next()?.1 {
        same @ ('\'' | '"' | '\\' | '/') => same,
        'b' => '\u{8}',
        'f' => '\u{C}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => {
            let first = hex_unit(characters)?;
            if !(0xD800..0xDC00).contains(&first) {
                // A low half on its own is no character; strings are UTF-8 here.
                return Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            // Characters beyond 16 bits come as two escapes.
            if characters.next()?.1 != '\\' || characters.next()?.1 != 'u' {
                return None;
            }
            let second = hex_unit(characters)?;
            let low = second.checked_sub(0xDC00)?;
            char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + low)?
        }
        _ => return None,
    })
}

fn hex_unit(characters: &mut impl Iterator<Item = (usize, char)>) -> Option<u32> {
    (0..4).try_fold(0, |sum, _| Some(sum * 16 + characters.next()?.1.to_digit(16)?))
}
