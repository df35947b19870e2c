//! Partial changes of a document: add, set, replace, remove, increment, move.
//!
//! The engine's form of Cosmos DB's PATCH. All operations or none; paths are JSON pointers, already split.

use bson::{Bson, Document, RawDocument, RawDocumentBuf};

use crate::error::{Error, Result};

/// The most operations in one patch.
pub const OPERATIONS_MAX: usize = 10;

/// One step of a patch.
#[derive(Clone, Debug, PartialEq)]
pub enum PatchOperation {
    /// Create or replace a member; insert into an array.
    Add(Pointer, Bson),
    /// Create or replace a member; replace an array item.
    Set(Pointer, Bson),
    /// Replace what is there.
    Replace(Pointer, Bson),
    /// Remove what is there.
    Remove(Pointer),
    /// Add to a number; a missing one counts as zero.
    Increment(Pointer, Bson),
    /// Take a value from one place to another.
    Move {
        /// Where it is.
        from: Pointer,
        /// Where it goes.
        to: Pointer,
    },
}

/// A place in a document: property names and array positions from the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Reads a JSON pointer (`/a/b/0`, with `~1` for `/` and `~0` for `~`).
    pub fn parse(text: &str) -> Result<Self> {
        let Some(rest) = text.strip_prefix('/').filter(|rest| !rest.is_empty()) else {
            return Err(Error::bad_request(format!(
                "The patch path '{text}' is not valid: it begins with '/' and names a property."
            )));
        };
        Ok(Self(rest.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect()))
    }

    /// The names from the root.
    pub fn segments(&self) -> &[String] {
        &self.0
    }

    fn text(&self) -> String {
        self.0.iter().map(|part| format!("/{part}")).collect()
    }

    fn is_inside(&self, other: &Self) -> bool {
        self.0.len() > other.0.len() && self.0.starts_with(&other.0)
    }
}

/// Applies `operations` in order to a copy of `body`.
pub fn apply(body: &RawDocument, operations: &[PatchOperation]) -> Result<RawDocumentBuf> {
    let mut root = Bson::Document(Document::try_from(body)?);
    for (number, operation) in operations.iter().enumerate() {
        step(&mut root, operation).map_err(|why| {
            Error::bad_request(format!(
                "For Operation({}): {why} Learn more: https://aka.ms/cosmosdbpatchdocs",
                number + 1
            ))
        })?;
    }
    match root {
        Bson::Document(document) => Ok(RawDocumentBuf::try_from(&document)?),
        _ => Err(Error::internal("a patched document is no document")),
    }
}

type Step<T> = std::result::Result<T, String>;

fn step(root: &mut Bson, operation: &PatchOperation) -> Step<()> {
    match operation {
        PatchOperation::Add(at, value) => put(root, at, value.clone(), Put::Add),
        PatchOperation::Set(at, value) => put(root, at, value.clone(), Put::Set),
        PatchOperation::Replace(at, value) => put(root, at, value.clone(), Put::Replace),
        PatchOperation::Remove(at) => take(root, at, "Remove").map(drop),
        PatchOperation::Increment(at, by) => increment(root, at, by),
        PatchOperation::Move { from, to } => {
            if to.is_inside(from) {
                return Err(format!("Move Operation cannot move '{}' into itself.", from.text()));
            }
            let value = take(root, from, "Move")?;
            put(root, to, value, Put::Set)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Put {
    Add,
    Set,
    Replace,
}

/// The object or array that holds the last segment, and that segment.
fn parent<'a, 'p>(root: &'a mut Bson, at: &'p Pointer, verb: &str) -> Step<(&'a mut Bson, &'p str)> {
    let Some((last, path)) = at.0.split_last() else { return Err("The path is empty.".into()) };
    let mut node = root;
    for segment in path {
        let next = match node {
            Bson::Document(members) => members.get_mut(segment),
            Bson::Array(items) => segment.parse::<usize>().ok().and_then(|index| items.get_mut(index)),
            _ => None,
        };
        node = next.ok_or_else(|| {
            format!(
                "{verb} Operation can only create a child object of an existing node(array or object) and cannot \
                 create path recursively, no path found beyond: '{segment}'."
            )
        })?;
    }
    Ok((node, last))
}

fn put(root: &mut Bson, at: &Pointer, value: Bson, how: Put) -> Step<()> {
    let verb = format!("{how:?}");
    let absent = || format!("{verb} Operation can only be performed on an existing path: '{}'.", at.text());
    match parent(root, at, &verb)? {
        (Bson::Document(members), name) => {
            if how == Put::Replace && !members.contains_key(name) {
                return Err(absent());
            }
            members.insert(name, value);
            Ok(())
        }
        (Bson::Array(items), index) => {
            let index = match index {
                "-" if how != Put::Replace => items.len(),
                index => index
                    .parse::<usize>()
                    .map_err(|_| format!("'{index}' is not a position in the array of '{}'.", at.text()))?,
            };
            match how {
                Put::Add if index <= items.len() => items.insert(index, value),
                Put::Set if index == items.len() => items.push(value),
                Put::Set | Put::Replace if index < items.len() => items[index] = value,
                _ => return Err(format!("the array of '{}' has no position {index}.", at.text())),
            }
            Ok(())
        }
        _ => Err(absent()),
    }
}

fn take(root: &mut Bson, at: &Pointer, verb: &str) -> Step<Bson> {
    let found = match parent(root, at, verb)? {
        (Bson::Document(members), name) => members.remove(name),
        (Bson::Array(items), index) => {
            let index = index.parse::<usize>().ok().filter(|index| *index < items.len());
            index.map(|index| items.remove(index))
        }
        _ => None,
    };
    found.ok_or_else(|| {
        format!("{verb} Operation can only be performed on an existing path: '{}'.", at.text())
    })
}

fn increment(root: &mut Bson, at: &Pointer, by: &Bson) -> Step<()> {
    let present = match parent(root, at, "Increment")? {
        (Bson::Document(members), name) => members.get(name).cloned(),
        (Bson::Array(items), index) => {
            index.parse::<usize>().ok().and_then(|index| items.get(index).cloned())
        }
        _ => None,
    };
    let sum = match present {
        None => by.clone(),
        Some(present) => sum(&present, by)
            .ok_or_else(|| format!("Increment Operation needs a number at '{}'.", at.text()))?,
    };
    put(root, at, sum, Put::Set)
}

/// Integers stay integers while they fit.
fn sum(a: &Bson, b: &Bson) -> Option<Bson> {
    let integer = |n: &Bson| match n {
        Bson::Int32(n) => Some(i64::from(*n)),
        Bson::Int64(n) => Some(*n),
        _ => None,
    };
    let double = |n: &Bson| match n {
        Bson::Double(n) => Some(*n),
        n => integer(n).map(|n| n as f64),
    };
    let whole = integer(a).zip(integer(b)).and_then(|(a, b)| a.checked_add(b));
    match whole {
        Some(n) => Some(i32::try_from(n).map_or(Bson::Int64(n), Bson::Int32)),
        None => Some(Bson::Double(double(a)? + double(b)?)).filter(|n| double(n).is_some_and(f64::is_finite)),
    }
}
