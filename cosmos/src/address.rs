//! Which resource a path means.
//!
//! The parse is positional (a database may be called `colls`), and every id may be a name or a RID. A `Ref`
//! keeps both readings: look a resource up by name first, then by RID, as the service does for the few names
//! that look like RIDs.
//!
//! Holds: `Address::from_path` accepts every route of the protocol, also those that are answered with 501, and
//! never panics.

use crate::path::{Path, signed_link, signed_type};
use crate::rid::Rid;

/// An id in a path: always a possible name, in a RID-based path also a RID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ref<'a> {
    text: &'a str,
    rid: Option<Rid>,
}

impl<'a> Ref<'a> {
    /// The segment as it was decoded; the name, if it is one.
    pub fn name(&self) -> &'a str {
        self.text
    }

    /// The RID, if the path is written in RIDs and this segment is one.
    pub fn rid(&self) -> Option<Rid> {
        self.rid
    }
}

/// A container and the database it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct ContainerRef<'a> {
    pub db: Ref<'a>,
    pub coll: Ref<'a>,
}

/// The three kinds of server-side code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum ScriptKind {
    StoredProcedure,
    Trigger,
    UserDefinedFunction,
}

impl ScriptKind {
    /// The word in the path.
    pub fn segment(self) -> &'static str {
        match self {
            ScriptKind::StoredProcedure => "sprocs",
            ScriptKind::Trigger => "triggers",
            ScriptKind::UserDefinedFunction => "udfs",
        }
    }
}

/// A resource or a feed of resources. Plural variants are feeds; they list, create and query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum Address<'a> {
    Account,
    Databases,
    Database {
        db: Ref<'a>,
    },
    Containers {
        db: Ref<'a>,
    },
    Container(ContainerRef<'a>),
    Documents(ContainerRef<'a>),
    Document {
        container: ContainerRef<'a>,
        id: Ref<'a>,
    },
    PartitionKeyRanges(ContainerRef<'a>),
    PartitionKeyRange {
        container: ContainerRef<'a>,
        id: Ref<'a>,
    },
    Scripts {
        container: ContainerRef<'a>,
        kind: ScriptKind,
    },
    Script {
        container: ContainerRef<'a>,
        kind: ScriptKind,
        id: Ref<'a>,
    },
    Conflicts(ContainerRef<'a>),
    Conflict {
        container: ContainerRef<'a>,
        id: Ref<'a>,
    },
    /// `POST …/operations/partitionkeydelete`: delete every document of one logical partition.
    PartitionKeyDelete(ContainerRef<'a>),
    Users {
        db: Ref<'a>,
    },
    User {
        db: Ref<'a>,
        user: Ref<'a>,
    },
    Permissions {
        db: Ref<'a>,
        user: Ref<'a>,
    },
    Permission {
        db: Ref<'a>,
        user: Ref<'a>,
        permission: Ref<'a>,
    },
    ClientEncryptionKeys {
        db: Ref<'a>,
    },
    ClientEncryptionKey {
        db: Ref<'a>,
        key: Ref<'a>,
    },
    Offers,
    Offer {
        rid: Ref<'a>,
    },
    /// Legacy attachments of a document; recognised so that they can be refused by name.
    Attachments {
        container: ContainerRef<'a>,
        document: Ref<'a>,
    },
    Attachment {
        container: ContainerRef<'a>,
        document: Ref<'a>,
        id: Ref<'a>,
    },
    /// Legacy media.
    Media {
        id: Option<Ref<'a>>,
    },
    /// Replica addresses, asked for only by clients in Direct mode.
    Addresses,
}

/// No route of the protocol has this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Server could not parse the Url.")]
pub struct UnknownRoute;

impl<'a> Address<'a> {
    /// Gives a path its meaning.
    pub fn from_path(path: &'a Path<'_>) -> Result<Self, UnknownRoute> {
        let by_rid = path.is_rid_based();
        let id = |text| Ref { text, rid: by_rid.then(|| Rid::decode(text)).flatten() };
        Ok(match *path.segments() {
            [] => Address::Account,
            ["dbs"] => Address::Databases,
            ["dbs", db] => Address::Database { db: id(db) },
            ["dbs", db, "colls"] => Address::Containers { db: id(db) },
            ["dbs", db, "colls", coll, ref rest @ ..] => {
                let container = ContainerRef { db: id(db), coll: id(coll) };
                return in_container(container, rest, id);
            }
            ["dbs", db, "users"] => Address::Users { db: id(db) },
            ["dbs", db, "users", user] => Address::User { db: id(db), user: id(user) },
            ["dbs", db, "users", user, "permissions"] => Address::Permissions { db: id(db), user: id(user) },
            ["dbs", db, "users", user, "permissions", permission] => {
                Address::Permission { db: id(db), user: id(user), permission: id(permission) }
            }
            ["dbs", db, "clientencryptionkeys"] => Address::ClientEncryptionKeys { db: id(db) },
            ["dbs", db, "clientencryptionkeys", key] => {
                Address::ClientEncryptionKey { db: id(db), key: id(key) }
            }
            ["offers"] => Address::Offers,
            ["offers", rid] => Address::Offer { rid: Ref { text: rid, rid: Rid::decode(rid) } },
            ["media"] => Address::Media { id: None },
            ["media", media] => Address::Media { id: Some(id(media)) },
            ["addresses"] => Address::Addresses,
            _ => return Err(UnknownRoute),
        })
    }

    /// The resource type as it is signed: `docs`, `colls`, …; empty for the account.
    pub fn resource_type(&self) -> &str {
        signed_type(&self.segments())
    }

    /// The resource link as it is signed by name: the resource, or the owner of a feed, without slashes around.
    pub fn resource_link(&self) -> String {
        signed_link(&self.segments())
    }

    /// The container this address is, or is inside of.
    pub fn container(&self) -> Option<&ContainerRef<'a>> {
        use Address::*;
        match self {
            Container(container)
            | Documents(container)
            | PartitionKeyRanges(container)
            | Conflicts(container)
            | PartitionKeyDelete(container)
            | Document { container, .. }
            | PartitionKeyRange { container, .. }
            | Scripts { container, .. }
            | Script { container, .. }
            | Conflict { container, .. }
            | Attachments { container, .. }
            | Attachment { container, .. } => Some(container),
            _ => None,
        }
    }

    /// The path again, decoded; the inverse of the parse.
    fn segments(&self) -> Vec<&str> {
        use Address::*;
        fn within<'a>(container: &ContainerRef<'a>, rest: &[&'a str]) -> Vec<&'a str> {
            [&["dbs", container.db.name(), "colls", container.coll.name()], rest].concat()
        }
        match self {
            Account => vec![],
            Databases => vec!["dbs"],
            Database { db } => vec!["dbs", db.name()],
            Containers { db } => vec!["dbs", db.name(), "colls"],
            Container(container) => within(container, &[]),
            Documents(container) => within(container, &["docs"]),
            Document { container, id } => within(container, &["docs", id.name()]),
            PartitionKeyRanges(container) => within(container, &["pkranges"]),
            PartitionKeyRange { container, id } => within(container, &["pkranges", id.name()]),
            Scripts { container, kind } => within(container, &[kind.segment()]),
            Script { container, kind, id } => within(container, &[kind.segment(), id.name()]),
            Conflicts(container) => within(container, &["conflicts"]),
            Conflict { container, id } => within(container, &["conflicts", id.name()]),
            PartitionKeyDelete(container) => within(container, &["operations", "partitionkeydelete"]),
            Users { db } => vec!["dbs", db.name(), "users"],
            User { db, user } => vec!["dbs", db.name(), "users", user.name()],
            Permissions { db, user } => vec!["dbs", db.name(), "users", user.name(), "permissions"],
            Permission { db, user, permission } => {
                vec!["dbs", db.name(), "users", user.name(), "permissions", permission.name()]
            }
            ClientEncryptionKeys { db } => vec!["dbs", db.name(), "clientencryptionkeys"],
            ClientEncryptionKey { db, key } => vec!["dbs", db.name(), "clientencryptionkeys", key.name()],
            Offers => vec!["offers"],
            Offer { rid } => vec!["offers", rid.name()],
            Attachments { container, document } => {
                within(container, &["docs", document.name(), "attachments"])
            }
            Attachment { container, document, id } => {
                within(container, &["docs", document.name(), "attachments", id.name()])
            }
            Media { id: None } => vec!["media"],
            Media { id: Some(id) } => vec!["media", id.name()],
            Addresses => vec!["addresses"],
        }
    }
}

/// The part of the parse below a container.
fn in_container<'a>(
    container: ContainerRef<'a>,
    rest: &[&'a str],
    id: impl Fn(&'a str) -> Ref<'a>,
) -> Result<Address<'a>, UnknownRoute> {
    use ScriptKind::*;
    let script = |word: &str| {
        [StoredProcedure, Trigger, UserDefinedFunction].into_iter().find(|kind| kind.segment() == word)
    };
    Ok(match *rest {
        [] => Address::Container(container),
        ["docs"] => Address::Documents(container),
        ["docs", doc] => Address::Document { container, id: id(doc) },
        ["docs", doc, "attachments"] => Address::Attachments { container, document: id(doc) },
        ["docs", doc, "attachments", attachment] => {
            Address::Attachment { container, document: id(doc), id: id(attachment) }
        }
        ["pkranges"] => Address::PartitionKeyRanges(container),
        ["pkranges", range] => Address::PartitionKeyRange { container, id: id(range) },
        ["conflicts"] => Address::Conflicts(container),
        ["conflicts", conflict] => Address::Conflict { container, id: id(conflict) },
        ["operations", "partitionkeydelete"] => Address::PartitionKeyDelete(container),
        [word] => Address::Scripts { kind: script(word).ok_or(UnknownRoute)?, container },
        [word, name] => Address::Script { kind: script(word).ok_or(UnknownRoute)?, container, id: id(name) },
        _ => return Err(UnknownRoute),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> Ref<'_> {
        Ref { text, rid: None }
    }

    fn container<'a>(db: &'a str, coll: &'a str) -> ContainerRef<'a> {
        ContainerRef { db: name(db), coll: name(coll) }
    }

    fn parsed(path: &str) -> Path<'_> {
        Path::parse(path).unwrap()
    }

    #[test]
    fn names_are_positional() {
        use Address::*;
        for (path, address) in [
            ("/", Account),
            ("//dbs", Databases),
            ("/dbs/colls", Database { db: name("colls") }),
            ("/dbs/dbs/colls", Containers { db: name("dbs") }),
            ("/dbs/d/colls/docs/docs/docs", Document { container: container("d", "docs"), id: name("docs") }),
            ("/dbs/d/colls/c/docs/a%2Fb/", Document { container: container("d", "c"), id: name("a/b") }),
            ("/dbs/d/colls/c/operations/partitionkeydelete", PartitionKeyDelete(container("d", "c"))),
            (
                "/dbs/d/colls/c/udfs/f",
                Script {
                    container: container("d", "c"),
                    kind: ScriptKind::UserDefinedFunction,
                    id: name("f"),
                },
            ),
            ("/dbs/d/users/u/permissions", Permissions { db: name("d"), user: name("u") }),
            ("/offers/rod1/", Offer { rid: name("rod1") }),
        ] {
            assert_eq!(Address::from_path(&parsed(path)), Ok(address), "{path}");
        }
    }

    #[test]
    fn every_route_knows_its_type_and_link() {
        for (path, resource_type, link) in [
            ("", "", ""),
            ("dbs", "dbs", ""),
            ("dbs/d", "dbs", "dbs/d"),
            ("dbs/d/colls", "colls", "dbs/d"),
            ("dbs/d/colls/c", "colls", "dbs/d/colls/c"),
            ("dbs/d/colls/c/docs", "docs", "dbs/d/colls/c"),
            ("dbs/d/colls/c/docs/i", "docs", "dbs/d/colls/c/docs/i"),
            ("dbs/d/colls/c/docs/i/attachments", "attachments", "dbs/d/colls/c/docs/i"),
            ("dbs/d/colls/c/docs/i/attachments/a", "attachments", "dbs/d/colls/c/docs/i/attachments/a"),
            ("dbs/d/colls/c/pkranges", "pkranges", "dbs/d/colls/c"),
            ("dbs/d/colls/c/pkranges/0", "pkranges", "dbs/d/colls/c/pkranges/0"),
            ("dbs/d/colls/c/sprocs", "sprocs", "dbs/d/colls/c"),
            ("dbs/d/colls/c/sprocs/s", "sprocs", "dbs/d/colls/c/sprocs/s"),
            ("dbs/d/colls/c/triggers/t", "triggers", "dbs/d/colls/c/triggers/t"),
            ("dbs/d/colls/c/udfs/u", "udfs", "dbs/d/colls/c/udfs/u"),
            ("dbs/d/colls/c/conflicts", "conflicts", "dbs/d/colls/c"),
            ("dbs/d/colls/c/conflicts/x", "conflicts", "dbs/d/colls/c/conflicts/x"),
            ("dbs/d/colls/c/operations/partitionkeydelete", "colls", "dbs/d/colls/c"),
            ("dbs/d/users", "users", "dbs/d"),
            ("dbs/d/users/u", "users", "dbs/d/users/u"),
            ("dbs/d/users/u/permissions", "permissions", "dbs/d/users/u"),
            ("dbs/d/users/u/permissions/p", "permissions", "dbs/d/users/u/permissions/p"),
            ("dbs/d/clientencryptionkeys", "clientencryptionkeys", "dbs/d"),
            ("dbs/d/clientencryptionkeys/k", "clientencryptionkeys", "dbs/d/clientencryptionkeys/k"),
            ("offers", "offers", ""),
            ("offers/aaaa", "offers", "offers/aaaa"),
            ("media", "media", ""),
            ("media/m", "media", "media/m"),
            ("addresses", "addresses", ""),
        ] {
            let parsed = parsed(path);
            let address = Address::from_path(&parsed).unwrap();
            assert_eq!((address.resource_type(), address.resource_link().as_str()), (resource_type, link));
            assert_eq!(address.segments().join("/"), path);
        }
    }

    #[test]
    fn a_path_in_rids_keeps_both_readings() {
        let path = parsed("/dbs/AAASAA==/colls/AAASAIAAACM=/pkranges");
        let Ok(Address::PartitionKeyRanges(container)) = Address::from_path(&path) else {
            panic!("is a pkranges feed");
        };
        assert_eq!(container.db.rid(), Some(Rid::Database { db: 0x1200 }));
        assert_eq!(container.coll.rid(), Some(Rid::Container { db: 0x1200, coll: 0x23 }));
        assert_eq!(container.coll.name(), "AAASAIAAACM=");
        // Only the database segment decides: the same container text under a name is a name.
        let path = parsed("/dbs/d/colls/AAASAIAAACM=");
        let Ok(Address::Container(container)) = Address::from_path(&path) else {
            panic!("is a container");
        };
        assert_eq!(container.coll.rid(), None);
    }

    #[test]
    fn what_is_no_route_is_refused() {
        for path in
            ["/x", "/dbs/d/x", "/dbs/d/colls/c/x", "/dbs/d/colls/c/operations/x", "/offers/a/b", "/DBS"]
        {
            assert_eq!(Address::from_path(&parsed(path)), Err(UnknownRoute), "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_panics(
            path in "(/|dbs|colls|docs|users|permissions|operations|partitionkeydelete|offers|%|AAASAA==|\\PC)*"
        ) {
            let path = Path::parse(&path);
            if let Some(Ok(address)) = path.as_ref().ok().map(Address::from_path) {
                let _ = (address.resource_type(), address.resource_link(), address.container());
            }
        }
    }
}
