//! The parser: tokens into a syntax tree.
//!
//! Clauses are read here, expressions in `expr.rs` by precedence, sources in `from.rs`.
//! The first error ends the parse; it names the token that cannot stand where it stands.
//!
//! Holds: the parser never recurses deeper than [`DEPTH_MAX`] and no tree it gives is deeper.

mod expr;
mod from;
mod primary;

use crate::ast::{
    Count, CountKind, Direction, Expr, ExprKind, Item, OffsetLimit, OrderBy, OrderItem, QueryTree, Select,
    Selection, Top,
};
use crate::error::{SqlError, SyntaxError};
use crate::lexer;
use crate::token::{Keyword, Sign, Span, Token, TokenKind};

/// How deep expressions and subqueries may nest. The service's own limit is not known, a client of it has
/// this one; an unoptimised build takes some 10 KB of stack per level, of the 2 MB a worker thread has.
pub(crate) const DEPTH_MAX: usize = 128;

/// The longest query text, in characters.
const TEXT_MAX: usize = 524_288;

/// Parses a whole query. Positions in the error are bytes.
pub(crate) fn parse(text: &str) -> Result<QueryTree, SqlError> {
    // Bytes first: counting the characters of a text that is short enough in bytes is not needed.
    if text.len() > TEXT_MAX && text.chars().count() > TEXT_MAX {
        let message = format!("The SQL query text exceeded the maximum limit of {TEXT_MAX} characters.");
        return Err(SqlError::new("SC3020", message, Span { start: 0, end: text.len() }));
    }
    let mut parser = Parser { text, tokens: lexer::tokens(text)?, at: 0, depth: 0 };
    let query = parser.query()?;
    match parser.kind() {
        TokenKind::End => Ok(query),
        _ => Err(parser.unexpected()),
    }
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    // Looking at tokens.

    fn kind(&self) -> &TokenKind {
        self.kind_ahead(0)
    }

    fn kind_ahead(&self, count: usize) -> &TokenKind {
        self.tokens.get(self.at + count).map_or(&TokenKind::End, |token| &token.kind)
    }

    fn span(&self) -> Span {
        let end = Span { start: self.text.len(), end: self.text.len() };
        self.tokens.get(self.at).map_or(end, |token| token.span)
    }

    fn span_before(&self) -> Span {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        before.map_or(Span::default(), |token| token.span)
    }

    fn is_keyword(&self, keyword: Keyword) -> bool {
        *self.kind() == TokenKind::Keyword(keyword)
    }

    fn is_sign(&self, sign: Sign) -> bool {
        *self.kind() == TokenKind::Sign(sign)
    }

    /// The error for the token that is next.
    fn unexpected(&self) -> SqlError {
        let span = self.span();
        match self.kind() {
            TokenKind::End => SyntaxError::End.at(span),
            _ => SyntaxError::Near(self.text_of(span).to_owned()).at(span),
        }
    }

    fn text_of(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    // Taking tokens.

    fn advance(&mut self) {
        self.at += 1;
    }

    fn take_keyword(&mut self, keyword: Keyword) -> bool {
        let found = self.is_keyword(keyword);
        self.at += usize::from(found);
        found
    }

    fn take_sign(&mut self, sign: Sign) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }

    fn expect_keyword(&mut self, keyword: Keyword) -> Result<(), SqlError> {
        if self.take_keyword(keyword) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_sign(&mut self, sign: Sign) -> Result<(), SqlError> {
        if self.take_sign(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// A name, where only a name can stand.
    fn expect_name(&mut self) -> Result<String, SqlError> {
        match self.name() {
            Some(name) => {
                self.advance();
                Ok(name)
            }
            None => Err(self.unexpected()),
        }
    }

    /// The name that is next, if one is.
    fn name(&self) -> Option<String> {
        match self.kind() {
            TokenKind::Identifier(name) => Some(name.clone()),
            TokenKind::Keyword(keyword) if keyword.is_also_a_name() => {
                Some(self.text_of(self.span()).to_owned())
            }
            _ => None,
        }
    }

    /// `first {, more}`.
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T, SqlError>) -> Result<Vec<T>, SqlError> {
        let mut list = vec![one(self)?];
        while self.take_sign(Sign::Comma) {
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// Runs a step one level deeper.
    fn deeper<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, SqlError>) -> Result<T, SqlError> {
        self.depth += 1;
        let result = if self.depth > DEPTH_MAX { Err(self.too_deep()) } else { step(self) };
        self.depth -= 1;
        result
    }

    fn too_deep(&self) -> SqlError {
        SqlError::uncoded(format!("The query nests expressions deeper than {DEPTH_MAX} levels."), self.span())
    }

    /// Builds an expression that began at `start` and ends with the last token.
    fn expr_from(&self, start: Span, kind: ExprKind) -> Result<Expr, SqlError> {
        let expr = Expr::new(kind, start.to(self.span_before()));
        if expr.depth > DEPTH_MAX { Err(self.too_deep()) } else { Ok(expr) }
    }

    // Clauses.

    fn query(&mut self) -> Result<QueryTree, SqlError> {
        let start = self.span();
        self.expect_keyword(Keyword::Select)?;
        let select = self.select()?;
        let from = if self.take_keyword(Keyword::From) { self.from()? } else { Vec::new() };
        let filter = if self.take_keyword(Keyword::Where) { Some(self.expr()?) } else { None };
        let group_by = if self.take_keyword(Keyword::Group) {
            self.expect_keyword(Keyword::By)?;
            self.list(Self::expr)?
        } else {
            Vec::new()
        };
        let order_by = if self.is_keyword(Keyword::Order) { Some(self.order_by()?) } else { None };
        let offset_limit = if self.is_keyword(Keyword::Offset) { Some(self.offset_limit()?) } else { None };
        let span = start.to(self.span_before());
        Ok(QueryTree { select, from, filter, group_by, order_by, offset_limit, span })
    }

    fn select(&mut self) -> Result<Select, SqlError> {
        let distinct = self.take_keyword(Keyword::Distinct);
        let start = self.span();
        let top = if self.take_keyword(Keyword::Top) {
            let count = self.count()?;
            Some(Top { count, span: start.to(self.span_before()) })
        } else {
            None
        };
        let star = self.span();
        let what = if self.take_sign(Sign::Star) {
            Selection::Star(star)
        } else if self.take_keyword(Keyword::Value) {
            let expr = self.expr()?;
            Selection::Value(expr, self.alias()?)
        } else {
            Selection::List(self.list(|parser| {
                let expr = parser.expr()?;
                Ok(Item { expr, alias: parser.alias()? })
            })?)
        };
        Ok(Select { distinct, top, what })
    }

    /// `[AS] name` or `[AS] "name"`, if it is there.
    fn alias(&mut self) -> Result<Option<String>, SqlError> {
        let must = self.take_keyword(Keyword::As);
        let alias = match self.kind() {
            TokenKind::String(text) => Some(text.clone()),
            _ => self.name(),
        };
        match alias {
            Some(alias) => {
                self.advance();
                Ok(Some(alias))
            }
            None if must => Err(self.unexpected()),
            None => Ok(None),
        }
    }

    /// A number or a parameter.
    fn count(&mut self) -> Result<Count, SqlError> {
        let span = self.span();
        let kind = match self.kind() {
            TokenKind::Integer(value) => CountKind::Integer(*value),
            TokenKind::IntegerMinMagnitude => CountKind::Double(i64::MIN.unsigned_abs() as f64),
            TokenKind::Double(value) => CountKind::Double(*value),
            TokenKind::Parameter(name) => CountKind::Parameter(name.clone()),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(Count { kind, span })
    }

    fn order_by(&mut self) -> Result<OrderBy, SqlError> {
        let start = self.span();
        self.expect_keyword(Keyword::Order)?;
        self.expect_keyword(Keyword::By)?;
        // `RANK` may also be the name of an alias: then what follows is not a call.
        let rank = self.is_keyword(Keyword::Rank)
            && matches!(
                self.kind_ahead(1),
                TokenKind::Identifier(_) | TokenKind::Keyword(Keyword::Left | Keyword::Right)
            );
        if rank {
            self.advance();
        }
        let items = self.list(|parser| {
            let expr = parser.expr()?;
            let direction = if parser.take_keyword(Keyword::Asc) {
                Some(Direction::Ascending)
            } else if parser.take_keyword(Keyword::Desc) {
                Some(Direction::Descending)
            } else {
                None
            };
            Ok(OrderItem { expr, direction })
        })?;
        Ok(OrderBy { rank, items, span: start.to(self.span_before()) })
    }

    fn offset_limit(&mut self) -> Result<OffsetLimit, SqlError> {
        let start = self.span();
        self.expect_keyword(Keyword::Offset)?;
        let offset = self.count()?;
        self.expect_keyword(Keyword::Limit)?;
        let limit = self.count()?;
        Ok(OffsetLimit { offset, limit, span: start.to(self.span_before()) })
    }
}
