//! What operators stand between: literals, names, calls, constructors and subqueries.

use super::Parser;
use crate::ast::{Call, Expr, ExprKind, Literal, SubqueryKind};
use crate::error::SqlError;
use crate::token::{Keyword, Sign, Span, TokenKind};

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Result<Expr, SqlError> {
        let opens = *self.kind_ahead(1) == TokenKind::Sign(Sign::ParenOpen);
        match self.kind() {
            TokenKind::Sign(Sign::ParenOpen) => self.parenthesis(),
            TokenKind::Sign(Sign::BracketOpen) => self.array(),
            TokenKind::Sign(Sign::BraceOpen) => self.object(),
            TokenKind::Keyword(Keyword::Exists) => self.subquery_call(SubqueryKind::Exists),
            TokenKind::Keyword(Keyword::Array) => self.subquery_call(SubqueryKind::Array),
            TokenKind::Keyword(Keyword::Udf) => self.udf(),
            TokenKind::Keyword(Keyword::Left | Keyword::Right) if opens => self.call(self.span(), false),
            TokenKind::Identifier(_) if opens => match self.quantifier() {
                Some(kind) => self.subquery_call(kind),
                None => self.call(self.span(), false),
            },
            _ => self.leaf(),
        }
    }

    /// A literal, a parameter or a name.
    fn leaf(&mut self) -> Result<Expr, SqlError> {
        let start = self.span();
        let kind = match (self.literal(), self.kind()) {
            (Some(literal), _) => ExprKind::Literal(literal),
            (None, TokenKind::Parameter(name)) => ExprKind::Parameter(name.clone()),
            (None, _) => match self.name() {
                Some(name) => ExprKind::Name(name),
                None => return Err(self.unexpected()),
            },
        };
        self.advance();
        self.expr_from(start, kind)
    }

    fn udf(&mut self) -> Result<Expr, SqlError> {
        let start = self.span();
        self.advance();
        self.expect_sign(Sign::Dot)?;
        self.call(start, true)
    }

    fn literal(&self) -> Option<Literal> {
        Some(match self.kind() {
            TokenKind::Integer(value) => Literal::Integer(*value),
            TokenKind::IntegerMinMagnitude => Literal::Double(i64::MIN.unsigned_abs() as f64),
            TokenKind::Double(value) => Literal::Double(*value),
            TokenKind::String(text) => Literal::String(text.clone()),
            TokenKind::Keyword(Keyword::True) => Literal::Bool(true),
            TokenKind::Keyword(Keyword::False) => Literal::Bool(false),
            TokenKind::Keyword(Keyword::Null) => Literal::Null,
            TokenKind::Keyword(Keyword::Undefined) => Literal::Undefined,
            _ => return None,
        })
    }

    /// ALL, FIRST and LAST are words of the language only before a subquery.
    fn quantifier(&self) -> Option<SubqueryKind> {
        let name = self.name()?;
        if *self.kind_ahead(2) != TokenKind::Keyword(Keyword::Select) {
            return None;
        }
        match name.to_ascii_uppercase().as_str() {
            "ALL" => Some(SubqueryKind::All),
            "FIRST" => Some(SubqueryKind::First),
            "LAST" => Some(SubqueryKind::Last),
            _ => None,
        }
    }

    /// `EXISTS(SELECT ...)` and the like; the word is next.
    fn subquery_call(&mut self, kind: SubqueryKind) -> Result<Expr, SqlError> {
        let start = self.span();
        self.advance();
        self.expect_sign(Sign::ParenOpen)?;
        let query = self.deeper(Self::query)?;
        self.expect_sign(Sign::ParenClose)?;
        self.expr_from(start, ExprKind::Subquery(kind, Box::new(query)))
    }

    /// `name(args)`; the name is next.
    fn call(&mut self, start: Span, is_udf: bool) -> Result<Expr, SqlError> {
        let name_span = self.span();
        let name = match self.kind() {
            TokenKind::Keyword(keyword @ (Keyword::Left | Keyword::Right)) => {
                let name = keyword.text().to_owned();
                self.advance();
                name
            }
            _ => self.expect_name()?,
        };
        self.expect_sign(Sign::ParenOpen)?;
        let args = if self.is_sign(Sign::ParenClose) { Vec::new() } else { self.list(Self::expr)? };
        self.expect_sign(Sign::ParenClose)?;
        self.expr_from(start, ExprKind::Call(Call { is_udf, name, name_span, args }))
    }

    /// `(expr)` or `(SELECT ...)`.
    fn parenthesis(&mut self) -> Result<Expr, SqlError> {
        if *self.kind_ahead(1) == TokenKind::Keyword(Keyword::Select) {
            return self.scalar_subquery();
        }
        self.advance();
        let expr = self.expr()?;
        self.expect_sign(Sign::ParenClose)?;
        Ok(expr)
    }

    fn scalar_subquery(&mut self) -> Result<Expr, SqlError> {
        let start = self.span();
        self.advance();
        let query = self.deeper(Self::query)?;
        self.expect_sign(Sign::ParenClose)?;
        self.expr_from(start, ExprKind::Subquery(SubqueryKind::Scalar, Box::new(query)))
    }

    fn array(&mut self) -> Result<Expr, SqlError> {
        let start = self.span();
        self.advance();
        let items = if self.is_sign(Sign::BracketClose) { Vec::new() } else { self.list(Self::expr)? };
        self.expect_sign(Sign::BracketClose)?;
        self.expr_from(start, ExprKind::Array(items))
    }

    fn object(&mut self) -> Result<Expr, SqlError> {
        let start = self.span();
        self.advance();
        let members = if self.is_sign(Sign::BraceClose) { Vec::new() } else { self.list(Self::member)? };
        self.expect_sign(Sign::BraceClose)?;
        self.expr_from(start, ExprKind::Object(members))
    }

    fn member(&mut self) -> Result<(String, Expr), SqlError> {
        let name = match self.kind() {
            TokenKind::String(text) => {
                let name = text.clone();
                self.advance();
                name
            }
            _ => self.expect_name()?,
        };
        self.expect_sign(Sign::Colon)?;
        Ok((name, self.expr()?))
    }
}
