//! A document that can be changed: objects and arrays open up only where a path goes.

use bson::{RawArrayBuf, RawDocument, RawDocumentBuf};

use crate::error::{PATH_NOT_VIABLE, Result, bail};
use crate::path::parse_index;
use crate::values::{Ref, Value, fields, items, put, show};

/// A changeable value.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Value(Value),
    Object(Vec<(String, Node)>),
    Array(Vec<Node>),
}

/// A changeable document.
#[derive(Debug)]
pub(super) struct Tree {
    root: Node,
}

/// The longest array that a position beyond its end makes.
const BACKFILL_MAX: usize = 1_500_000;

impl Node {
    /// Opens an object or array by one level.
    fn open(&mut self) {
        match self {
            Node::Value(Value::Document(object)) => {
                let opened =
                    fields(object).map(|(name, value)| (name.to_string(), Node::Value(value.into())));
                *self = Node::Object(opened.collect());
            }
            Node::Value(Value::Array(array)) => {
                *self = Node::Array(items(array).map(|item| Node::Value(item.into())).collect());
            }
            _ => {}
        }
    }

    fn into_value(self) -> Value {
        match self {
            Node::Value(value) => value,
            Node::Object(members) => {
                let mut object = RawDocumentBuf::new();
                for (name, node) in members {
                    put(&mut object, &name, node.into_value());
                }
                Value::Document(object)
            }
            Node::Array(nodes) => {
                let mut array = RawArrayBuf::new();
                nodes.into_iter().for_each(|node| array.push(node.into_value()));
                Value::Array(array)
            }
        }
    }

    fn child(&mut self, part: &str) -> Option<&mut Node> {
        self.open();
        match self {
            Node::Object(members) => members.iter_mut().find(|(name, _)| name == part).map(|(_, node)| node),
            Node::Array(nodes) => nodes.get_mut(parse_index(part)?),
            Node::Value(_) => None,
        }
    }

    /// A copy of the value.
    fn value(&self) -> Value {
        self.clone().into_value()
    }
}

impl Tree {
    pub(super) fn of(document: &RawDocument) -> Tree {
        Tree { root: Node::Value(Value::Document(document.to_owned())) }
    }

    pub(super) fn into_document(self) -> RawDocumentBuf {
        match self.root.into_value() {
            Value::Document(document) => document,
            _ => RawDocumentBuf::new(),
        }
    }

    fn at(&mut self, path: &[String]) -> Option<&mut Node> {
        path.iter().try_fold(&mut self.root, |node, part| node.child(part))
    }

    /// The value at a path.
    pub(super) fn get(&mut self, path: &[String]) -> Option<Value> {
        self.at(path).map(|node| node.value())
    }

    /// Sets a value, and makes the objects on the way that are not there.
    pub(super) fn set(&mut self, path: &[String], value: Value) -> Result<()> {
        let mut node = &mut self.root;
        let mut rest = path.iter();
        while let Some(part) = rest.next() {
            node.open();
            let made = |value: Value, rest: std::slice::Iter<'_, String>| {
                let mut node = Node::Value(value);
                for part in rest.rev() {
                    node = Node::Object(vec![(part.clone(), node)]);
                }
                node
            };
            match node {
                Node::Object(members) => match members.iter().position(|(name, _)| name == part) {
                    Some(place) => match members.get_mut(place) {
                        Some((_, child)) => node = child,
                        None => return Ok(()),
                    },
                    None => {
                        members.push((part.clone(), made(value, rest)));
                        return Ok(());
                    }
                },
                Node::Array(nodes) => {
                    let Some(index) = parse_index(part) else {
                        bail!(
                            PATH_NOT_VIABLE,
                            "Cannot create field '{part}' in element {{{}}}",
                            show(Node::Array(nodes.clone()).into_value().as_raw_bson_ref())
                        );
                    };
                    if index >= nodes.len() {
                        if index - nodes.len() > BACKFILL_MAX {
                            bail!(34, "can't backfill more than {BACKFILL_MAX} elements");
                        }
                        nodes.resize_with(index, || Node::Value(Value::Null));
                        nodes.push(made(value, rest));
                        return Ok(());
                    }
                    match nodes.get_mut(index) {
                        Some(child) => node = child,
                        None => return Ok(()),
                    }
                }
                Node::Value(found) => {
                    bail!(
                        PATH_NOT_VIABLE,
                        "Cannot create field '{part}' in element {{{}}}",
                        show(found.as_raw_bson_ref())
                    )
                }
            }
        }
        *node = Node::Value(value);
        Ok(())
    }

    /// Removes what is at a path. An item of an array becomes null: the others keep their places.
    pub(super) fn remove(&mut self, path: &[String]) {
        let Some((last, parents)) = path.split_last() else { return };
        let Some(parent) = self.at(parents) else { return };
        parent.open();
        match parent {
            Node::Object(members) => members.retain(|(name, _)| name != last),
            Node::Array(nodes) => {
                if let Some(node) = parse_index(last).and_then(|index| nodes.get_mut(index)) {
                    *node = Node::Value(Value::Null);
                }
            }
            Node::Value(_) => {}
        }
    }

    /// Whether some part of the path before its end leads into an array.
    pub(super) fn passes_array(&mut self, path: &[String]) -> bool {
        (1..path.len()).any(|end| {
            let parent = path.get(..end).and_then(|parents| self.at(parents));
            parent.is_some_and(|node| matches!(node, Node::Array(_) | Node::Value(Value::Array(_))))
        })
    }

    /// Refuses a path that a value stands in the way of; one that ends early is fine.
    pub(super) fn check_named(&mut self, path: &[String]) -> Result<()> {
        for end in 1..path.len() {
            let Some(node) = path.get(..end).and_then(|parents| self.at(parents)) else { return Ok(()) };
            node.open();
            let fits = match node {
                Node::Object(_) => true,
                Node::Array(_) => path.get(end).is_some_and(|part| parse_index(part).is_some()),
                Node::Value(_) => false,
            };
            if !fits {
                let (part, all) = (path[end - 1].as_str(), path.join("."));
                let element = show(node.value().as_raw_bson_ref());
                bail!(
                    PATH_NOT_VIABLE,
                    "cannot use the part ({part} of {all}) to traverse the element ({{{part}: {element}}})"
                );
            }
        }
        Ok(())
    }

    /// Refuses a path that could not be created: it goes through something that is neither object nor array.
    pub(super) fn check_viable(&mut self, path: &[String]) -> Result<()> {
        for (at, part) in path.iter().enumerate() {
            let Some(node) = path.get(..at).and_then(|parents| self.at(parents)) else { return Ok(()) };
            node.open();
            let fits = match node {
                Node::Object(_) => true,
                Node::Array(_) => parse_index(part).is_some(),
                Node::Value(_) => false,
            };
            if !fits {
                let element = show(node.value().as_raw_bson_ref());
                bail!(PATH_NOT_VIABLE, "Cannot create field '{part}' in element {{{element}}}");
            }
        }
        Ok(())
    }
}

/// The fields of an array's item by path, for filters on items.
pub(super) fn wrapped(name: &str, item: Ref<'_>) -> RawDocumentBuf {
    let mut object = RawDocumentBuf::new();
    put(&mut object, name, item);
    object
}
