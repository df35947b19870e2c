//! FROM and JOIN.

use super::Parser;
use crate::ast::{Collection, Expr, ExprKind, Source};
use crate::error::SqlError;
use crate::token::{Keyword, Sign, Span, TokenKind};

impl Parser<'_> {
    /// The sources after FROM.
    pub(super) fn from(&mut self) -> Result<Vec<Source>, SqlError> {
        let mut sources = vec![self.source()?];
        while self.take_keyword(Keyword::Join) {
            sources.push(self.source()?);
        }
        Ok(sources)
    }

    fn source(&mut self) -> Result<Source, SqlError> {
        let start = self.span();
        if self.name().is_some() && *self.kind_ahead(1) == TokenKind::Keyword(Keyword::In) {
            let alias = Some((self.expect_name()?, start));
            self.expect_keyword(Keyword::In)?;
            let collection = self.collection(true)?;
            return Ok(Source { alias, iterates: true, collection, span: start.to(self.span_before()) });
        }
        let collection = self.collection(false)?;
        let must = self.take_keyword(Keyword::As);
        let alias_span = self.span();
        let alias = match self.name() {
            Some(name) => {
                self.advance();
                Some((name, alias_span))
            }
            None if must => return Err(self.unexpected()),
            None => None,
        };
        Ok(Source { alias, iterates: false, collection, span: start.to(self.span_before()) })
    }

    fn collection(&mut self, may_call: bool) -> Result<Collection, SqlError> {
        let start = self.span();
        if self.take_sign(Sign::ParenOpen) {
            let query = self.deeper(Self::query)?;
            self.expect_sign(Sign::ParenClose)?;
            return Ok(Collection::Query(Box::new(query)));
        }
        if may_call && *self.kind_ahead(1) == TokenKind::Sign(Sign::ParenOpen) {
            return Ok(Collection::Call(self.postfix()?));
        }
        let name = self.expect_name()?;
        let root = self.expr_from(start, ExprKind::Name(name))?;
        Ok(Collection::Path(self.path(root, start)?))
    }

    /// `.name`, `["name"]`, `[0]` and `[@p]`, as many as there are.
    fn path(&mut self, mut path: Expr, start: Span) -> Result<Expr, SqlError> {
        loop {
            let is_constant = matches!(
                self.kind_ahead(1),
                TokenKind::Integer(_) | TokenKind::String(_) | TokenKind::Parameter(_)
            );
            match self.kind() {
                TokenKind::Sign(Sign::Dot) => path = self.member_of(path, start)?,
                TokenKind::Sign(Sign::BracketOpen) if is_constant => path = self.indexer(path, start)?,
                TokenKind::Sign(Sign::BracketOpen) => {
                    self.advance();
                    return Err(self.unexpected());
                }
                _ => return Ok(path),
            }
        }
    }
}
