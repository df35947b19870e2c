//! Objects: members in BSON bytes, a whole document, or a list that a query built.
//!
//! A [`Document`] is what an alias such as `c` stands for: the stored body and the system properties the
//! server keeps beside it. It reads as one object, without the two ever being copied together.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bson::raw::CStr;
use bson::{RawDocument, RawDocumentBuf};
use mayfly_value::field::{self, Fields};

use super::Value;

/// A name and its value.
pub type Member<'a> = (Cow<'a, str>, Value<'a>);

/// A stored document as queries see it.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// What the user stored.
    pub body: &'a RawDocument,
    /// What the server adds (`_rid`, `_self`, `_etag`, `_attachments`, `_ts`), in the order it is shown. They
    /// win over properties of the body with the same name: they come where the first of these is, or after all.
    pub system: &'a [(&'a str, Value<'a>)],
}

/// An object that is cheap to clone.
#[derive(Debug, Clone)]
pub enum Object<'a> {
    /// Part of a document.
    Raw(&'a RawDocument),
    /// A copy of a part of a document.
    Buf(Arc<RawDocumentBuf>),
    /// A whole document with its system properties.
    Document(Document<'a>),
    /// Built by a query. No value is undefined, no name occurs twice.
    Members(Arc<[Member<'a>]>),
}

impl<'a> Object<'a> {
    /// An object of the members that are defined. Of two members with one name the last wins, in the first
    /// one's place.
    pub fn of<N: Into<Cow<'a, str>>>(members: impl IntoIterator<Item = (N, Value<'a>)>) -> Object<'a> {
        /// Above this many members a list of the names is slower than a map.
        const FEW: usize = 16;
        let mut list: Vec<Member<'a>> = Vec::new();
        let mut places: HashMap<Cow<'a, str>, usize> = HashMap::new();
        for (name, value) in members {
            if !value.is_defined() {
                continue;
            }
            let name = name.into();
            let place = if list.len() <= FEW {
                list.iter().position(|(known, _)| *known == name)
            } else {
                if places.is_empty() {
                    places =
                        list.iter().enumerate().map(|(place, (name, _))| (name.clone(), place)).collect();
                }
                places.get(&name).copied()
            };
            match place.and_then(|place| list.get_mut(place)) {
                Some(member) => member.1 = value,
                None => {
                    if !places.is_empty() {
                        places.insert(name.clone(), list.len());
                    }
                    list.push((name, value));
                }
            }
        }
        Object::Members(list.into())
    }

    /// The value of a member; undefined if there is none.
    pub fn get(&self, name: &str) -> Value<'a> {
        match self {
            Object::Raw(document) => get_raw(document, name),
            Object::Buf(document) => get_raw(document, name).into_owned(),
            Object::Document(document) => {
                match document.system.iter().find(|(system_name, _)| *system_name == name) {
                    Some((_, value)) => value.borrow(),
                    None => get_raw(document.body, name),
                }
            }
            Object::Members(members) => match members.iter().find(|(known, _)| known == name) {
                Some((_, value)) => value.clone(),
                None => Value::Undefined,
            },
        }
    }

    /// The members in order, as far as the bytes can be read.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Member<'a>> + '_> {
        match self {
            Object::Raw(document) => Box::new(raw_members(document)),
            Object::Buf(document) => {
                let members = raw_members(document);
                Box::new(members.map(|(name, value)| (Cow::Owned(name.into_owned()), value.into_owned())))
            }
            Object::Document(document) => {
                let Document { body, system } = *document;
                let is_own = move |(name, _): &Member<'a>| !system.iter().any(|(known, _)| known == name);
                let system_members =
                    system.iter().map(|(name, value)| (Cow::Borrowed(*name), value.borrow()));
                let before = raw_members(body).take_while(is_own);
                let behind = raw_members(body).skip_while(is_own).filter(is_own);
                Box::new(before.chain(system_members).chain(behind))
            }
            Object::Members(members) => Box::new(members.iter().cloned()),
        }
    }

    /// Calls `visit` with each member in order. For whole documents that are written out: nothing is boxed or copied.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&str, &Value<'_>)) {
        let mut visit_raw = |document: &RawDocument, system: &[(&str, Value<'_>)]| {
            let mut added = Some(system);
            for (name, value) in document.iter().map_while(Result::ok) {
                if !system.iter().any(|(known, _)| *known == name.as_str()) {
                    visit(name.as_str(), &Value::from_raw(value));
                } else if let Some(system) = added.take() {
                    system.iter().for_each(|(name, value)| visit(name, value));
                }
            }
            added.unwrap_or_default().iter().for_each(|(name, value)| visit(name, value));
        };
        match self {
            Object::Raw(document) => visit_raw(document, &[]),
            Object::Buf(document) => visit_raw(document, &[]),
            Object::Document(document) => visit_raw(document.body, document.system),
            Object::Members(members) => members.iter().for_each(|(name, value)| visit(name, value)),
        }
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        match self {
            Object::Members(members) => members.len(),
            _ => self.iter().count(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    pub(crate) fn borrow(&self) -> Object<'_> {
        match self {
            Object::Raw(document) => Object::Raw(document),
            Object::Buf(document) => Object::Raw(document),
            Object::Document(document) => Object::Document(*document),
            Object::Members(members) => Object::Members(Arc::clone(members)),
        }
    }

    pub(crate) fn into_owned(self) -> Object<'static> {
        match self {
            Object::Raw(document) => Object::Buf(Arc::new(document.to_owned())),
            Object::Buf(document) => Object::Buf(document),
            Object::Document(document) => Object::Buf(Arc::new(document.to_bson())),
            Object::Members(members) => {
                let own =
                    |(name, value): &Member<'a>| (Cow::Owned(name.to_string()), value.clone().into_owned());
                Object::Members(members.iter().map(own).collect())
            }
        }
    }

    pub(crate) fn size(&self) -> usize {
        let members_size = |members: &mut dyn Iterator<Item = (usize, usize)>| {
            members.map(|(name, value)| size_of::<Member<'_>>() + name + value).sum::<usize>()
        };
        match self {
            Object::Raw(document) => document.as_bytes().len(),
            Object::Buf(document) => document.as_bytes().len(),
            Object::Document(document) => {
                let system = document.system.iter();
                document.body.as_bytes().len()
                    + members_size(&mut system.map(|(name, value)| (name.len(), value.size())))
            }
            Object::Members(members) => {
                members_size(&mut members.iter().map(|(name, value)| (name.len(), value.size())))
            }
        }
    }
}

impl<'a> Document<'a> {
    /// The document as the value that its alias stands for.
    pub fn as_value(&self) -> Value<'a> {
        Value::Object(Object::Document(*self))
    }
}

impl Document<'_> {
    /// The document as one: the bytes of the body, and the system properties. Rows that wait to be sorted are
    /// mostly these, and bytes take far less memory than a tree.
    fn to_bson(self) -> RawDocumentBuf {
        self.extended().unwrap_or_else(|| self.collected())
    }

    /// The bytes of the body with the system properties behind them, if those are texts and integers and the body has
    /// none of their names.
    fn extended(&self) -> Option<RawDocumentBuf> {
        /// A type, a name and its end, a length, an end.
        const AROUND: usize = 1 + 1 + 4 + 1;
        let body = self.body.as_bytes();
        let has_name = |name: &[u8]| self.system.iter().any(|(known, _)| known.as_bytes() == name);
        let mut fields = Fields::of(body)?;
        if fields.any(|field| has_name(field.name)) || !fields.is_whole() {
            return None;
        }
        let more: usize = self.system.iter().map(|(name, value)| name.len() + value.size() + AROUND).sum();
        let mut bytes = Vec::with_capacity(body.len() + more);
        bytes.extend_from_slice(body.strip_suffix(&[0])?);
        for (name, value) in self.system {
            let kind = match value {
                Value::String(_) => 0x02,
                Value::Int(_) => 0x12,
                _ => return None,
            };
            bytes.push(kind);
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
            match value {
                Value::String(text) => {
                    bytes.extend_from_slice(&i32::try_from(text.len() + 1).ok()?.to_le_bytes());
                    bytes.extend_from_slice(text.as_bytes());
                    bytes.push(0);
                }
                Value::Int(number) => bytes.extend_from_slice(&number.to_le_bytes()),
                _ => return None,
            }
        }
        bytes.push(0);
        let len = i32::try_from(bytes.len()).ok()?.to_le_bytes();
        bytes.get_mut(..len.len())?.copy_from_slice(&len);
        RawDocumentBuf::from_bytes(bytes).ok()
    }

    /// The same member by member.
    fn collected(&self) -> RawDocumentBuf {
        let push_added = |whole: &mut RawDocumentBuf| {
            for (name, value) in self.system {
                if let (Ok(name), Some(value)) = (<&CStr>::try_from(*name), value.to_bson()) {
                    whole.append(name, value);
                }
            }
        };
        let is_replaced = |name: &str| self.system.iter().any(|(known, _)| *known == name);
        let (mut whole, mut is_added) = (RawDocumentBuf::new(), false);
        for (name, value) in self.body.iter().map_while(Result::ok) {
            if !is_replaced(name.as_str()) {
                whole.append(name, value);
            } else if !std::mem::replace(&mut is_added, true) {
                push_added(&mut whole);
            }
        }
        if !is_added {
            push_added(&mut whole);
        }
        whole
    }
}

fn get_raw<'a>(document: &'a RawDocument, name: &str) -> Value<'a> {
    field::find(document, name).map_or(Value::Undefined, Value::from_raw)
}

fn raw_members(document: &RawDocument) -> impl Iterator<Item = Member<'_>> {
    let members = document.iter().map_while(Result::ok);
    members.map(|(name, value)| (Cow::Borrowed(name.as_str()), Value::from_raw(value)))
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    #[test]
    fn a_document_is_extended_as_its_members_are_collected() {
        let system =
            [("_rid", Value::string("r")), ("_ts", Value::Int(1 << 40)), ("_self", Value::string("dbs/é"))];
        for body in [rawdoc! {}, rawdoc! { "id": "a", "list": [1, { "_ts": 2 }], "d": 1.5 }] {
            let document = Document { body: &body, system: &system };
            assert_eq!(document.extended(), Some(document.collected()));
            let whole = document.to_bson();
            assert!(whole.iter().all(|member| member.is_ok()));
        }
        let body = rawdoc! { "_ts": 1, "a": 2 };
        let document = Document { body: &body, system: &system };
        assert_eq!(document.extended(), None);
        assert_eq!(document.to_bson().iter().count(), 4);
        let odd = [("_x", Value::Double(0.5))];
        let document = Document { body: &body, system: &odd };
        assert_eq!(document.to_bson(), rawdoc! { "_ts": 1, "a": 2, "_x": 0.5 });
        // The system's come where the body has the first of their names.
        let body = rawdoc! { "id": "a", "_ts": bson::RawBson::Null, "b": 2, "_rid": 1 };
        let whole = Document { body: &body, system: &system }.to_bson();
        let names: Vec<_> = whole.iter().map(|member| member.unwrap().0.as_str().to_owned()).collect();
        assert_eq!(names, ["id", "_rid", "_ts", "_self", "b"]);
    }
}
