//! Paths of an update resolved for one document: positions in place of `$`, `$[]` and `$[name]`.

use std::cmp::Ordering;

use bson::RawDocument;

use super::operators::Change;
use super::parse::{Operation, conflict_among, is_positional};
use super::tree::wrapped;
use crate::context::Context;
use crate::error::{BAD_VALUE, Result, bail};
use crate::filter::Filter;
use crate::path::parse_index;
use crate::values::{Ref, field, items, show};

/// A path without positional parts, and what happens there.
pub(super) type Resolved<'a> = (Vec<String>, &'a Operation);

/// Resolves all paths, in the order in which they are applied.
pub(super) fn resolve<'a>(
    operations: &'a [Operation],
    filters: &[(String, Filter)],
    document: &RawDocument,
    position: Option<usize>,
    inserting: bool,
    context: &Context<'_>,
) -> Result<Vec<Resolved<'a>>> {
    let mut resolved: Vec<Resolved<'a>> = Vec::new();
    let mut positional = false;
    for operation in operations {
        if matches!(operation.change, Change::SetOnInsert(_)) && !inserting {
            continue;
        }
        if !operation.path.iter().any(|part| is_positional(part)) {
            resolved.push((operation.path.clone(), operation));
            continue;
        }
        positional = true;
        let mut walk = Walk { filters, position, context, found: Vec::new() };
        walk.follow(Some(Ref::Document(document)), &operation.path, Vec::new())?;
        resolved.extend(walk.found.into_iter().map(|path| (path, operation)));
    }
    if positional {
        let mut paths: Vec<&[String]> = resolved.iter().map(|(path, _)| path.as_slice()).collect();
        conflict_among(&mut paths)?;
    }
    resolved.sort_by(|a, b| compare_paths(a.1.target(&a.0), b.1.target(&b.0)));
    Ok(resolved)
}

/// Numbers by value, everything else by bytes.
/// The order in which fields are set: numbers by what they count.
pub(crate) fn compare_names(a: &str, b: &str) -> Ordering {
    match (parse_index(a), parse_index(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.cmp(b),
    }
}

fn compare_paths(a: &[String], b: &[String]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        let ordering = compare_names(a, b);
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    a.len().cmp(&b.len())
}

struct Walk<'a, 'c> {
    filters: &'a [(String, Filter)],
    position: Option<usize>,
    context: &'a Context<'c>,
    found: Vec<Vec<String>>,
}

impl Walk<'_, '_> {
    fn follow(&mut self, value: Option<Ref<'_>>, rest: &[String], done: Vec<String>) -> Result<()> {
        let Some((first, rest)) = rest.split_first() else {
            self.found.push(done);
            return Ok(());
        };
        let with = |part: String| {
            let mut done = done.clone();
            done.push(part);
            done
        };
        if first == "$" {
            let Some(position) = self.position else {
                bail!(BAD_VALUE, "The positional operator did not find the match needed from the query.");
            };
            let child = match value {
                Some(Ref::Array(list)) => items(list).nth(position),
                _ => None,
            };
            return self.follow(child, rest, with(position.to_string()));
        }
        if !first.starts_with("$[") {
            let child = match value {
                Some(Ref::Document(object)) => field(object, first),
                Some(Ref::Array(list)) => parse_index(first).and_then(|index| items(list).nth(index)),
                _ => None,
            };
            return self.follow(child, rest, with(first.clone()));
        }
        let list = match value {
            Some(Ref::Array(list)) => list,
            None => bail!(
                BAD_VALUE,
                "The path '{}' must exist in the document in order to apply array updates.",
                done.join(".")
            ),
            Some(other) => bail!(
                BAD_VALUE,
                "Cannot apply array updates to non-array element {}: {}",
                done.last().map(String::as_str).unwrap_or_default(),
                show(other)
            ),
        };
        let name = first.strip_prefix("$[").and_then(|part| part.strip_suffix(']')).unwrap_or_default();
        let filter = self.filters.iter().find(|(known, _)| known == name).map(|(_, filter)| filter);
        for (at, item) in items(list).enumerate() {
            let passes = match filter {
                Some(filter) => filter.matches(&wrapped(name, item), self.context)?,
                None => true,
            };
            if passes {
                self.follow(Some(item), rest, with(at.to_string()))?;
            }
        }
        Ok(())
    }
}
