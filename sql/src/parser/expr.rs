//! Expressions, by precedence.
//!
//! ```text
//!   expr         ? :                     loosest, right
//!   coalesce     ??                      right
//!   or, and      OR, AND                 chains
//!   predicate    BETWEEN, IN, LIKE       once
//!   binary       = < << ..., then ||, then | ^ & + -, then * / %
//!   unary        - + ~ NOT
//!   postfix      .name [index]           tightest
//! ```
//!
//! NOT binds tighter than every operator between operands: `NOT a = b` is `(NOT a) = b`. BETWEEN may be an
//! operand of AND and OR, which the service's own grammar refuses without parentheses; whatever that accepts
//! means the same here.

use super::Parser;
use crate::ast::{BinaryOp, Call, Expr, ExprKind, Literal, SubqueryKind, UnaryOp};
use crate::error::SqlError;
use crate::token::{Keyword, Sign, Span, TokenKind};

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Result<Expr, SqlError> {
        self.deeper(|parser| {
            let start = parser.span();
            let condition = parser.coalesce()?;
            if !parser.take_sign(Sign::Question) {
                return Ok(condition);
            }
            let then = parser.expr()?;
            parser.expect_sign(Sign::Colon)?;
            let otherwise = parser.expr()?;
            parser.expr_from(start, ExprKind::Conditional(Box::new([condition, then, otherwise])))
        })
    }

    fn coalesce(&mut self) -> Result<Expr, SqlError> {
        let start = self.span();
        let left = self.or()?;
        if !self.take_sign(Sign::Coalesce) {
            return Ok(left);
        }
        let right = self.deeper(Self::coalesce)?;
        self.expr_from(start, ExprKind::Coalesce(Box::new(left), Box::new(right)))
    }

    fn or(&mut self) -> Result<Expr, SqlError> {
        self.chain(Keyword::Or, Self::and, ExprKind::Or)
    }

    fn and(&mut self) -> Result<Expr, SqlError> {
        self.chain(Keyword::And, Self::predicate, ExprKind::And)
    }

    /// `one {keyword one}`; a chain of one is the one.
    fn chain(
        &mut self,
        keyword: Keyword,
        one: fn(&mut Self) -> Result<Expr, SqlError>,
        kind: fn(Vec<Expr>) -> ExprKind,
    ) -> Result<Expr, SqlError> {
        let start = self.span();
        let first = one(self)?;
        if !self.is_keyword(keyword) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.take_keyword(keyword) {
            operands.push(one(self)?);
        }
        self.expr_from(start, kind(operands))
    }

    fn predicate(&mut self) -> Result<Expr, SqlError> {
        let start = self.span();
        let value = self.binary(0)?;
        let negated = self.take_keyword(Keyword::Not);
        if self.take_keyword(Keyword::Between) {
            let low = self.binary(0)?;
            self.expect_keyword(Keyword::And)?;
            let high = self.binary(0)?;
            let operands = Box::new([value, low, high]);
            return self.expr_from(start, ExprKind::Between { negated, operands });
        }
        if self.take_keyword(Keyword::In) {
            self.expect_sign(Sign::ParenOpen)?;
            let list = self.list(Self::expr)?;
            self.expect_sign(Sign::ParenClose)?;
            return self.expr_from(start, ExprKind::In { negated, value: Box::new(value), list });
        }
        if self.take_keyword(Keyword::Like) {
            let pattern = Box::new(self.binary(0)?);
            let escape = if self.take_keyword(Keyword::Escape) { Some(self.escape()?) } else { None };
            let kind = ExprKind::Like { negated, value: Box::new(value), pattern, escape };
            return self.expr_from(start, kind);
        }
        if negated { Err(self.unexpected()) } else { Ok(value) }
    }

    /// The string of one character after ESCAPE.
    fn escape(&mut self) -> Result<char, SqlError> {
        let TokenKind::String(text) = self.kind() else {
            return Err(self.unexpected());
        };
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => {
                self.advance();
                Ok(character)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Operators of at least this strength; all of them group to the left.
    fn binary(&mut self, strength_min: u8) -> Result<Expr, SqlError> {
        let start = self.span();
        let mut left = self.unary()?;
        while let Some((operator, strength)) = self.binary_operator() {
            if strength < strength_min {
                break;
            }
            self.advance();
            let right = self.binary(strength + 1)?;
            left = self.expr_from(start, ExprKind::Binary(operator, Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn binary_operator(&self) -> Option<(BinaryOp, u8)> {
        let TokenKind::Sign(sign) = self.kind() else {
            return None;
        };
        Some(match sign {
            Sign::Equal => (BinaryOp::Equal, 0),
            Sign::NotEqual | Sign::Unequal => (BinaryOp::NotEqual, 0),
            Sign::Less => (BinaryOp::Less, 0),
            Sign::LessOrEqual => (BinaryOp::LessOrEqual, 0),
            Sign::Greater => (BinaryOp::Greater, 0),
            Sign::GreaterOrEqual => (BinaryOp::GreaterOrEqual, 0),
            Sign::ShiftLeft => (BinaryOp::ShiftLeft, 0),
            Sign::ShiftRight => (BinaryOp::ShiftRight, 0),
            Sign::ShiftRightUnsigned => (BinaryOp::ShiftRightUnsigned, 0),
            Sign::Concat => (BinaryOp::Concat, 1),
            Sign::Bar => (BinaryOp::BitOr, 2),
            Sign::Caret => (BinaryOp::BitXor, 2),
            Sign::Ampersand => (BinaryOp::BitAnd, 2),
            Sign::Plus => (BinaryOp::Add, 2),
            Sign::Minus => (BinaryOp::Subtract, 2),
            Sign::Star => (BinaryOp::Multiply, 3),
            Sign::Slash => (BinaryOp::Divide, 3),
            Sign::Percent => (BinaryOp::Modulo, 3),
            _ => return None,
        })
    }

    fn unary(&mut self) -> Result<Expr, SqlError> {
        let start = self.span();
        let operator = match self.kind() {
            TokenKind::Sign(Sign::Minus) => UnaryOp::Minus,
            TokenKind::Sign(Sign::Plus) => UnaryOp::Plus,
            TokenKind::Sign(Sign::Tilde) => UnaryOp::BitNot,
            TokenKind::Keyword(Keyword::Not) => UnaryOp::Not,
            _ => return self.postfix(),
        };
        self.advance();
        if operator == UnaryOp::Minus && *self.kind() == TokenKind::IntegerMinMagnitude {
            self.advance();
            return self.expr_from(start, ExprKind::Literal(Literal::Integer(i64::MIN)));
        }
        let operand = self.deeper(Self::unary)?;
        self.expr_from(start, ExprKind::Unary(operator, Box::new(operand)))
    }

    pub(super) fn postfix(&mut self) -> Result<Expr, SqlError> {
        let start = self.span();
        let mut expr = self.primary()?;
        loop {
            if self.take_sign(Sign::Dot) {
                let name = self.expect_name()?;
                expr = self.expr_from(start, ExprKind::Member(Box::new(expr), name))?;
            } else if self.take_sign(Sign::BracketOpen) {
                expr = self.indexer(expr, start)?;
            } else {
                return Ok(expr);
            }
        }
    }

    /// What follows `[` up to `]`. A constant name makes a member.
    pub(super) fn indexer(&mut self, of: Expr, start: Span) -> Result<Expr, SqlError> {
        let index = self.expr()?;
        self.expect_sign(Sign::BracketClose)?;
        let kind = match index.kind {
            ExprKind::Literal(Literal::String(name)) => ExprKind::Member(Box::new(of), name),
            _ => ExprKind::Index(Box::new(of), Box::new(index)),
        };
        self.expr_from(start, kind)
    }

    fn primary(&mut self) -> Result<Expr, SqlError> {
        let start = self.span();
        if let Some(literal) = self.literal() {
            self.advance();
            return self.expr_from(start, ExprKind::Literal(literal));
        }
        let opens = *self.kind_ahead(1) == TokenKind::Sign(Sign::ParenOpen);
        match self.kind().clone() {
            TokenKind::Parameter(name) => {
                self.advance();
                self.expr_from(start, ExprKind::Parameter(name))
            }
            TokenKind::Keyword(Keyword::Exists) => self.subquery_call(SubqueryKind::Exists),
            TokenKind::Keyword(Keyword::Array) => self.subquery_call(SubqueryKind::Array),
            TokenKind::Keyword(Keyword::Udf) => {
                self.advance();
                self.expect_sign(Sign::Dot)?;
                self.call(start, true)
            }
            TokenKind::Keyword(Keyword::Left | Keyword::Right) if opens => self.call(start, false),
            TokenKind::Identifier(name) if opens => match self.quantifier(&name) {
                Some(kind) => self.subquery_call(kind),
                None => self.call(start, false),
            },
            TokenKind::Identifier(_) | TokenKind::Keyword(Keyword::Let | Keyword::Rank) => {
                let name = self.expect_name()?;
                self.expr_from(start, ExprKind::Name(name))
            }
            TokenKind::Sign(Sign::ParenOpen) => self.parenthesis(),
            TokenKind::Sign(Sign::BracketOpen) => self.array(),
            TokenKind::Sign(Sign::BraceOpen) => self.object(),
            _ => Err(self.unexpected()),
        }
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
    fn quantifier(&self, name: &str) -> Option<SubqueryKind> {
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
        let start = self.span();
        self.advance();
        if !self.is_keyword(Keyword::Select) {
            let expr = self.expr()?;
            self.expect_sign(Sign::ParenClose)?;
            return Ok(expr);
        }
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
