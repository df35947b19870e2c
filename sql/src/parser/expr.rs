//! Expressions, by precedence.
//!
//! ```text
//!   expr         ? :                     loosest, right
//!   coalesce     ??                      right
//!   or, and      OR, AND                 chains
//!   predicate    BETWEEN, IN, LIKE, LET  once
//!   binary       = < << ..., then ||, then | ^ & + -, then * / %
//!   unary        - + ~ NOT
//!   postfix      .name [index]           tightest
//! ```
//!
//! NOT binds tighter than every operator between operands: `NOT a = b` is `(NOT a) = b`. BETWEEN may be an
//! operand of AND and OR, which the service's own grammar refuses without parentheses; whatever that accepts
//! means the same here. What operators stand between is read in `primary.rs`.
//!
//! Every rare case has a function of its own: the steps above are on the stack once per level of nesting, and
//! what a rare case keeps there would be kept at every level.

use super::Parser;
use crate::ast::{BinaryOp, Expr, ExprKind, Literal, UnaryOp};
use crate::error::SqlError;
use crate::token::{Keyword, Sign, Span, TokenKind};

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Result<Expr, SqlError> {
        self.deeper(Self::conditional)
    }

    fn conditional(&mut self) -> Result<Expr, SqlError> {
        let start = self.span();
        let condition = self.coalesce()?;
        if self.is_sign(Sign::Question) { self.branches(start, condition) } else { Ok(condition) }
    }

    fn branches(&mut self, start: Span, condition: Expr) -> Result<Expr, SqlError> {
        self.expect_sign(Sign::Question)?;
        let then = self.expr()?;
        self.expect_sign(Sign::Colon)?;
        let otherwise = self.expr()?;
        self.expr_from(start, ExprKind::Conditional(Box::new([condition, then, otherwise])))
    }

    fn coalesce(&mut self) -> Result<Expr, SqlError> {
        let start = self.span();
        let left = self.or()?;
        if self.is_sign(Sign::Coalesce) { self.alternative(start, left) } else { Ok(left) }
    }

    fn alternative(&mut self, start: Span, left: Expr) -> Result<Expr, SqlError> {
        self.expect_sign(Sign::Coalesce)?;
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
        if self.is_keyword(keyword) { self.links(start, first, keyword, one, kind) } else { Ok(first) }
    }

    fn links(
        &mut self,
        start: Span,
        first: Expr,
        keyword: Keyword,
        one: fn(&mut Self) -> Result<Expr, SqlError>,
        kind: fn(Vec<Expr>) -> ExprKind,
    ) -> Result<Expr, SqlError> {
        let mut operands = vec![first];
        while self.take_keyword(keyword) {
            operands.push(one(self)?);
        }
        self.expr_from(start, kind(operands))
    }

    fn predicate(&mut self) -> Result<Expr, SqlError> {
        let start = self.span();
        if self.begins_let() {
            return self.let_in(start);
        }
        let value = self.binary(0)?;
        let negated = self.take_keyword(Keyword::Not);
        match self.kind() {
            TokenKind::Keyword(Keyword::Between) => self.between(start, value, negated),
            TokenKind::Keyword(Keyword::In) => self.in_list(start, value, negated),
            TokenKind::Keyword(Keyword::Like) => self.like(start, value, negated),
            _ if negated => Err(self.unexpected()),
            _ => Ok(value),
        }
    }

    /// `LET` is a name as well; before another name and `=` it is not.
    fn begins_let(&self) -> bool {
        self.is_keyword(Keyword::Let)
            && matches!(self.kind_ahead(1), TokenKind::Identifier(_))
            && *self.kind_ahead(2) == TokenKind::Sign(Sign::Equal)
    }

    fn let_in(&mut self, start: Span) -> Result<Expr, SqlError> {
        self.expect_keyword(Keyword::Let)?;
        let name = self.expect_name()?;
        self.expect_sign(Sign::Equal)?;
        let value = self.binary(0)?;
        self.expect_keyword(Keyword::In)?;
        let body = self.binary(0)?;
        self.expr_from(start, ExprKind::Let { name, parts: Box::new([value, body]) })
    }

    fn between(&mut self, start: Span, value: Expr, negated: bool) -> Result<Expr, SqlError> {
        self.expect_keyword(Keyword::Between)?;
        let low = self.binary(0)?;
        self.expect_keyword(Keyword::And)?;
        let high = self.binary(0)?;
        let operands = Box::new([value, low, high]);
        self.expr_from(start, ExprKind::Between { negated, operands })
    }

    fn in_list(&mut self, start: Span, value: Expr, negated: bool) -> Result<Expr, SqlError> {
        self.expect_keyword(Keyword::In)?;
        self.expect_sign(Sign::ParenOpen)?;
        let list = self.list(Self::expr)?;
        self.expect_sign(Sign::ParenClose)?;
        self.expr_from(start, ExprKind::In { negated, value: Box::new(value), list })
    }

    fn like(&mut self, start: Span, value: Expr, negated: bool) -> Result<Expr, SqlError> {
        self.expect_keyword(Keyword::Like)?;
        let pattern = Box::new(self.binary(0)?);
        let escape = if self.take_keyword(Keyword::Escape) { Some(self.escape()?) } else { None };
        self.expr_from(start, ExprKind::Like { negated, value: Box::new(value), pattern, escape })
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
        while let Some((operator, strength)) = self.binary_operator().filter(|(_, s)| *s >= strength_min) {
            left = self.operand(start, left, operator, strength)?;
        }
        Ok(left)
    }

    fn operand(
        &mut self,
        start: Span,
        left: Expr,
        operator: BinaryOp,
        strength: u8,
    ) -> Result<Expr, SqlError> {
        self.advance();
        let right = self.binary(strength + 1)?;
        self.expr_from(start, ExprKind::Binary(operator, Box::new(left), Box::new(right)))
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
        match self.kind() {
            TokenKind::Sign(Sign::Minus) => self.prefixed(UnaryOp::Minus),
            TokenKind::Sign(Sign::Plus) => self.prefixed(UnaryOp::Plus),
            TokenKind::Sign(Sign::Tilde) => self.prefixed(UnaryOp::BitNot),
            TokenKind::Keyword(Keyword::Not) => self.prefixed(UnaryOp::Not),
            _ => self.postfix(),
        }
    }

    fn prefixed(&mut self, operator: UnaryOp) -> Result<Expr, SqlError> {
        let start = self.span();
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
            match self.kind() {
                TokenKind::Sign(Sign::Dot) => expr = self.member_of(expr, start)?,
                TokenKind::Sign(Sign::BracketOpen) => expr = self.indexer(expr, start)?,
                _ => return Ok(expr),
            }
        }
    }

    /// `.name`
    pub(super) fn member_of(&mut self, of: Expr, start: Span) -> Result<Expr, SqlError> {
        self.expect_sign(Sign::Dot)?;
        let name = self.expect_name()?;
        self.expr_from(start, ExprKind::Member(Box::new(of), name))
    }

    /// `[index]`. A constant name makes a member.
    pub(super) fn indexer(&mut self, of: Expr, start: Span) -> Result<Expr, SqlError> {
        self.expect_sign(Sign::BracketOpen)?;
        let index = self.expr()?;
        self.expect_sign(Sign::BracketClose)?;
        let kind = match index.kind {
            ExprKind::Literal(Literal::String(name)) => ExprKind::Member(Box::new(of), name),
            _ => ExprKind::Index(Box::new(of), Box::new(index)),
        };
        self.expr_from(start, kind)
    }
}
