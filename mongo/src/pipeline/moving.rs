//! `$match` before the stages that do not touch what it looks at, and `$limit` and `$skip` before those that make one document of each; of two
//! `$sort` in a row the last.
//!
//! What is filtered early is not reshaped, sorted or joined for nothing, and may be found by an index. It shows in answers too: a
//! stage does not fail over documents that a later filter leaves out, so a division is safe if zeros are filtered out after
//! it. A filter is taken apart into the conditions that all must hold; each goes as far forward as it can.

use bson::{RawArray, RawArrayBuf, RawDocument, RawDocumentBuf};

use super::STAGES_MAX;
use crate::expression::{Names, split_path};
use crate::projection::Projection;
use crate::sort::SortPattern;
use crate::values::{Ref, field, fields, items, put};

/// Stages that make one document of each.
const RESHAPING: [&str; 4] = ["$addFields", "$set", "$project", "$unset"];

/// The stages with each `$match` as early as it may stand; none if they are so already.
pub(crate) fn filters_first(stages: &RawArray, names: &Names) -> Option<RawArrayBuf> {
    let mut list: Vec<RawDocumentBuf> = Vec::new();
    for stage in items(stages) {
        let Ref::Document(stage) = stage else { return None };
        list.push(stage.to_owned());
    }
    // A filter in two parts is a stage more.
    if list.len() > STAGES_MAX / 2 {
        return None;
    }
    let (mut moved, mut at) = (false, 1);
    while at < list.len() {
        match list.get(at - 1).zip(list.get(at)).and_then(|(before, filter)| swapped(before, filter, names)) {
            Some(pair) => {
                list.splice(at - 1..=at, pair);
                // What moved may move on.
                at = (at - 1).max(1);
                moved = true;
            }
            None => at += 1,
        }
    }
    moved.then(|| {
        let mut all = RawArrayBuf::new();
        list.into_iter().for_each(|stage| all.push(stage));
        all
    })
}

/// The stages that two neighbours become, if the second is a filter of which a part can go before the first, or be one with it.
fn swapped(before: &RawDocument, filter: &RawDocument, names: &Names) -> Option<Vec<RawDocumentBuf>> {
    let (name, operand) = only_field(before)?;
    let filter = match only_field(filter)? {
        ("$match", Ref::Document(filter)) => filter,
        // Of two orders the last counts, and the first is not even looked for.
        ("$sort", _) if name == "$sort" && is_order(operand) => return Some(vec![filter.to_owned()]),
        ("$limit" | "$skip", _) if RESHAPING.contains(&name) => {
            return Some(vec![filter.to_owned(), before.to_owned()]);
        }
        _ => return None,
    };
    if let ("$match", Ref::Document(other)) = (name, operand) {
        // What may only stand in the first stage of all is refused elsewhere.
        paths(filter)?;
        return Some(vec![match_all(&[other.to_owned(), filter.to_owned()])]);
    }
    let untouched = Untouched::by(name, operand, names)?;
    let mut conditions = Vec::new();
    conjuncts(filter, &mut conditions)?;
    let (early, late): (Vec<_>, Vec<_>) = conditions.into_iter().partition(|condition| {
        paths(condition).is_some_and(|paths| paths.iter().all(|path| untouched.has(path)))
    });
    if early.is_empty() {
        return None;
    }
    let mut stages = vec![match_all(&early), before.to_owned()];
    if !late.is_empty() {
        stages.push(match_all(&late));
    }
    Some(stages)
}

/// Whether it is an order that can be looked for.
fn is_order(operand: Ref<'_>) -> bool {
    matches!(operand, Ref::Document(order) if SortPattern::parse(order).is_ok_and(|order| !order.is_empty()))
}

fn only_field(document: &RawDocument) -> Option<(&str, Ref<'_>)> {
    let mut entries = fields(document);
    entries.next().filter(|_| entries.next().is_none())
}

/// A `$match` of conditions that all must hold.
fn match_all(conditions: &[RawDocumentBuf]) -> RawDocumentBuf {
    let mut stage = RawDocumentBuf::new();
    match conditions {
        [one] => put(&mut stage, "$match", one.clone()),
        several => {
            let (mut list, mut all) = (RawArrayBuf::new(), RawDocumentBuf::new());
            several.iter().for_each(|condition| list.push(condition.clone()));
            put(&mut all, "$and", list);
            put(&mut stage, "$match", all);
        }
    }
    stage
}

/// The conditions of a filter that all must hold; none if it is not a filter.
fn conjuncts(filter: &RawDocument, found: &mut Vec<RawDocumentBuf>) -> Option<()> {
    for (name, value) in fields(filter) {
        match (name, value) {
            ("$and", Ref::Array(list)) => {
                for item in items(list) {
                    let Ref::Document(item) = item else { return None };
                    conjuncts(item, found)?;
                }
            }
            _ => {
                let mut one = RawDocumentBuf::new();
                put(&mut one, name, value);
                found.push(one);
            }
        }
    }
    Some(())
}

/// The paths that a condition looks at; none if it may look at anything.
fn paths(condition: &RawDocument) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for (name, value) in fields(condition) {
        match (name, value) {
            ("$and" | "$or" | "$nor", Ref::Array(list)) => {
                for item in items(list) {
                    let Ref::Document(item) = item else { return None };
                    found.extend(paths(item)?);
                }
            }
            ("$expr", value) => read_by(value, &mut found)?,
            ("$comment", _) => {}
            (name, _) if name.starts_with('$') => return None,
            (name, _) => found.push(name.to_string()),
        }
    }
    Some(found)
}

/// The paths that an expression reads; none if it may read the whole document.
fn read_by(expression: Ref<'_>, found: &mut Vec<String>) -> Option<()> {
    match expression {
        Ref::String(text) => match text.strip_prefix('$') {
            // Other variables hold what is read where they are defined.
            Some(variable) if variable.starts_with("$ROOT") || variable.starts_with("$CURRENT") => {
                return None;
            }
            Some(variable) if variable.starts_with('$') => {}
            Some(path) => found.push(path.to_string()),
            None => {}
        },
        Ref::Array(list) => {
            for item in items(list) {
                read_by(item, found)?;
            }
        }
        Ref::Document(object) => {
            for (name, value) in fields(object) {
                // These read a field by a name that is computed, or are not the same twice.
                if ["$getField", "$setField", "$unsetField", "$rand", "$meta"].contains(&name) {
                    return None;
                }
                read_by(value, found)?;
            }
        }
        _ => {}
    }
    Some(())
}

/// What a stage leaves as it is.
enum Untouched {
    /// Everything.
    All,
    /// Everything but these paths, what they lie in and what lies in them.
    Except(Vec<String>),
    /// What a projection keeps.
    Kept(Box<Projection>),
}

impl Untouched {
    /// None for a stage that a filter cannot pass.
    fn by(name: &str, operand: Ref<'_>, names: &Names) -> Option<Untouched> {
        let text = |object: &RawDocument, name: &str| match field(object, name) {
            Some(Ref::String(text)) => Some(text.to_string()),
            _ => None,
        };
        match (name, operand) {
            ("$sort", Ref::Document(_)) => Some(Untouched::All),
            ("$addFields" | "$set", Ref::Document(object)) => {
                Projection::parse_add(object, names).ok().map(|added| Untouched::Kept(Box::new(added)))
            }
            ("$project", Ref::Document(object)) => {
                Projection::parse_project(object, names).ok().map(|kept| Untouched::Kept(Box::new(kept)))
            }
            ("$unset", Ref::String(path)) => Some(Untouched::Except(vec![path.to_string()])),
            ("$unset", Ref::Array(list)) => {
                let path = |item: Ref<'_>| match item {
                    Ref::String(path) => Some(path.to_string()),
                    _ => None,
                };
                items(list).map(path).collect::<Option<Vec<_>>>().map(Untouched::Except)
            }
            ("$unwind", Ref::String(path)) => {
                Some(Untouched::Except(vec![path.trim_start_matches('$').to_string()]))
            }
            ("$unwind", Ref::Document(object)) => {
                let mut touched = vec![text(object, "path")?.trim_start_matches('$').to_string()];
                touched.extend(text(object, "includeArrayIndex"));
                Some(Untouched::Except(touched))
            }
            ("$lookup" | "$graphLookup", Ref::Document(object)) => {
                Some(Untouched::Except(vec![text(object, "as")?]))
            }
            _ => None,
        }
    }

    fn has(&self, path: &str) -> bool {
        match self {
            Untouched::All => true,
            Untouched::Except(touched) => !touched.iter().any(|other| meet(other, path)),
            Untouched::Kept(projection) => split_path(path).is_ok_and(|path| projection.keeps(&path)),
        }
    }
}

/// Whether one path is the other, or leads to it.
fn meet(a: &str, b: &str) -> bool {
    a.split('.').zip(b.split('.')).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use bson::{Document, doc, rawdoc};

    use super::*;

    fn moved(stages: Vec<Document>) -> Option<Vec<Document>> {
        let list: RawArrayBuf = stages
            .iter()
            .map(|stage| rawdoc! { "s": RawDocumentBuf::try_from(stage).unwrap_or_default() })
            .filter_map(|stage| stage.get_document("s").ok().map(RawDocument::to_owned))
            .collect();
        let moved = filters_first(&list, &Names::default())?;
        Some(items(&moved).filter_map(|stage| Document::try_from(stage.as_document()?).ok()).collect())
    }

    #[test]
    fn a_filter_goes_before_what_does_not_touch_its_fields() {
        let set = doc! { "$set": { "x": { "$divide": [1, "$b"] } } };
        let early = doc! { "$match": { "b": { "$ne": 0 } } };
        assert_eq!(moved(vec![set.clone(), early.clone()]), Some(vec![early.clone(), set.clone()]));
        assert_eq!(moved(vec![early.clone(), set.clone()]), None);
        let sort = doc! { "$sort": { "a": 1 } };
        assert_eq!(moved(vec![set.clone(), sort.clone(), early.clone()]), Some(vec![early, set, sort]));
    }

    #[test]
    fn the_first_few_are_taken_before_they_are_reshaped() {
        let (set, sort) = (doc! { "$set": { "x": 1 } }, doc! { "$sort": { "a": 1 } });
        let (limit, filter) = (doc! { "$limit": 2 }, doc! { "$match": { "b": 1 } });
        let wanted = vec![sort.clone(), limit.clone(), filter.clone(), set.clone()];
        assert_eq!(moved(vec![sort.clone(), set, limit.clone(), filter]), Some(wanted));
        assert_eq!(moved(vec![sort, limit]), None);
    }

    #[test]
    fn a_filter_is_taken_apart() {
        let set = doc! { "$set": { "x": 1 } };
        let filter = doc! { "$match": { "b": 1, "x": 2, "$and": [{ "c": 3 }] } };
        let early = doc! { "$match": { "$and": [{ "b": 1 }, { "c": 3 }] } };
        let late = doc! { "$match": { "x": 2 } };
        assert_eq!(moved(vec![set.clone(), filter]), Some(vec![early, set, late]));
    }

    #[test]
    fn what_a_stage_touches_stays_behind_it() {
        let filter = doc! { "$match": { "a.b": 1 } };
        for stage in [
            doc! { "$set": { "a": 1 } },
            doc! { "$set": { "a.c": 1 } },
            doc! { "$set": { "a.b.c": 1 } },
            doc! { "$project": { "b": 1 } },
            doc! { "$project": { "a": { "b": "$c" } } },
            doc! { "$project": { "a": 0 } },
            doc! { "$unset": "a.b" },
            doc! { "$unwind": "$a" },
            doc! { "$unwind": { "path": "$c", "includeArrayIndex": "a.b" } },
            doc! { "$lookup": { "from": "d", "localField": "x", "foreignField": "y", "as": "a" } },
            doc! { "$limit": 3 },
            doc! { "$group": { "_id": "$a" } },
        ] {
            assert_eq!(moved(vec![stage.clone(), filter.clone()]), None, "{stage}");
        }
        for stage in [
            doc! { "$set": { "b": 1 } },
            doc! { "$project": { "a": 1, "x": "$c" } },
            doc! { "$project": { "a.b": 1 } },
            doc! { "$project": { "b": 0 } },
            doc! { "$unset": ["c", "d.a"] },
            doc! { "$unwind": "$b" },
            doc! { "$lookup": { "from": "d", "localField": "x", "foreignField": "y", "as": "j" } },
        ] {
            let wanted = vec![filter.clone(), stage.clone()];
            assert_eq!(moved(vec![stage, filter.clone()]), Some(wanted));
        }
    }

    #[test]
    fn what_may_look_at_anything_stays() {
        let set = doc! { "$set": { "x": 1 } };
        for filter in [
            doc! { "$jsonSchema": { "required": ["a"] } },
            doc! { "$expr": { "$eq": ["$$ROOT", 1] } },
            doc! { "$expr": { "$gt": ["$x", 1] } },
            doc! { "$expr": { "$gt": [{ "$getField": "a" }, 1] } },
            doc! { "$sampleRate": 0.5 },
            doc! { "$or": [{ "a": 1 }, { "x": 1 }] },
        ] {
            assert_eq!(moved(vec![set.clone(), doc! { "$match": filter }]), None);
        }
    }
}
