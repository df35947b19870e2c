//! A projection applied to a document.

use bson::{RawArray, RawDocument, RawDocumentBuf};

use super::{Action, ProjectionKind, Tree};
use crate::error::{Result, bail};
use crate::expression::Env;
use crate::filter::Details;
use crate::values::{Ref, Value, array, fields, items, put};

impl Tree {
    fn has_computed(&self) -> bool {
        self.fields.iter().any(|(_, action)| match action {
            Action::Compute(_) => true,
            Action::Nested(tree) => tree.has_computed(),
            _ => false,
        })
    }

    pub(super) fn apply(
        &self,
        document: &RawDocument,
        kind: ProjectionKind,
        position: Option<usize>,
        env: &mut Env<'_>,
        out: &mut RawDocumentBuf,
    ) -> Result<()> {
        let mut done = vec![false; self.fields.len()];
        // Items of arrays come after the fields that are kept, like what is computed.
        let mut late = vec![None; self.fields.len()];
        for (name, value) in fields(document) {
            let at = self.fields.iter().position(|(field, _)| field == name);
            let Some((at, action)) = at.and_then(|at| Some((at, &self.fields.get(at)?.1))) else {
                if kind != ProjectionKind::Inclusion {
                    put(out, name, value);
                }
                continue;
            };
            let in_place = kind == ProjectionKind::Addition || !matches!(action, Action::Compute(_));
            if !in_place {
                continue;
            }
            if let Some(done) = done.get_mut(at) {
                *done = true;
            }
            let value = action.apply(value, kind, position, env)?;
            match (action, late.get_mut(at)) {
                (Action::ElemMatch(_), Some(late)) if kind == ProjectionKind::Inclusion => *late = value,
                _ => value.into_iter().for_each(|value| put(out, name, value)),
            }
        }
        for (((name, action), done), late) in self.fields.iter().zip(done).zip(late) {
            let value = if done { late } else { action.create(kind, env)? };
            value.into_iter().for_each(|value| put(out, name, value));
        }
        Ok(())
    }

    fn apply_to_value(
        &self,
        value: Ref<'_>,
        kind: ProjectionKind,
        position: Option<usize>,
        env: &mut Env<'_>,
    ) -> Result<Option<Value>> {
        match value {
            Ref::Document(object) => {
                let mut out = RawDocumentBuf::new();
                self.apply(object, kind, position, env, &mut out)?;
                Ok(Some(Value::Document(out)))
            }
            Ref::Array(list) => {
                let mut values = Vec::new();
                for item in items(list) {
                    values.extend(self.apply_to_value(item, kind, position, env)?);
                }
                Ok(Some(array(values)))
            }
            _ if self.has_computed() => self.created(kind, env),
            scalar if kind == ProjectionKind::Exclusion => Ok(Some(scalar.into())),
            _ => Ok(None),
        }
    }

    /// An object of the computed fields alone.
    fn created(&self, kind: ProjectionKind, env: &mut Env<'_>) -> Result<Option<Value>> {
        if !self.has_computed() {
            return Ok(None);
        }
        let mut out = RawDocumentBuf::new();
        for (name, action) in &self.fields {
            if let Some(value) = action.create(kind, env)? {
                put(&mut out, name, value);
            }
        }
        Ok(Some(Value::Document(out)))
    }
}

impl Action {
    /// What becomes of a field that is there.
    fn apply(
        &self,
        value: Ref<'_>,
        kind: ProjectionKind,
        position: Option<usize>,
        env: &mut Env<'_>,
    ) -> Result<Option<Value>> {
        Ok(match (self, value) {
            (Action::Include, _) => Some(value.into()),
            (Action::Exclude, _) => None,
            (Action::Compute(expr), _) => expr.eval(env)?,
            (Action::Nested(tree), _) => tree.apply_to_value(value, kind, position, env)?,
            (Action::Slice { skip, count }, Ref::Array(list)) => Some(sliced(list, *skip, *count)),
            (Action::Slice { .. }, _) => Some(value.into()),
            (Action::ElemMatch(filter), Ref::Array(_)) => {
                // The filter speaks about a field, so the array gets a name.
                let mut wrapped = RawDocumentBuf::new();
                put(&mut wrapped, "a", value);
                let mut details = Details::default();
                match (filter.matches_with(&wrapped, env.context, &mut details)?, details.position, value) {
                    (true, Some(at), Ref::Array(list)) => {
                        items(list).nth(at).map(|item| array([item.into()]))
                    }
                    _ => None,
                }
            }
            (Action::ElemMatch(_), _) => None,
            (Action::Positional, Ref::Array(list)) => match position.and_then(|at| items(list).nth(at)) {
                Some(item) => Some(array([item.into()])),
                None => bail!(
                    51246,
                    "Executor error during find command :: caused by :: positional operator '.$' couldn't find a \
                     matching element in the array"
                ),
            },
            (Action::Positional, _) => Some(value.into()),
        })
    }

    /// What becomes of a field that is not there.
    fn create(&self, kind: ProjectionKind, env: &mut Env<'_>) -> Result<Option<Value>> {
        match self {
            Action::Compute(expr) => expr.eval(env),
            Action::Nested(tree) => tree.created(kind, env),
            _ => Ok(None),
        }
    }
}

fn sliced(list: &RawArray, skip: Option<i64>, count: i64) -> Value {
    let all: Vec<_> = items(list).collect();
    let length = all.len() as i64;
    let (from, count) = match skip {
        Some(skip) if skip < 0 => ((length + skip).max(0), count),
        Some(skip) => (skip, count),
        None if count < 0 => ((length + count).max(0), -count),
        None => (0, count),
    };
    array(all.into_iter().skip(from as usize).take(count as usize).map(Value::from))
}
