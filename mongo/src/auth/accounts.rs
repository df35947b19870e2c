//! The account as a user, and what users may do.

use std::collections::HashMap;

use bson::{Bson, Document, doc};
use parking_lot::Mutex;

use super::scram::{Credentials, Mechanism, Verifier};

/// What a user may do, as far as Mayfly tells users apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look.
    Read,
    /// Look and write.
    ReadWrite,
    /// Everything.
    Admin,
}

/// What may be done with what others do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// See it.
    Watch,
    /// Stop it.
    Stop,
}

/// The roles that every database has, and what they let do in it.
const ROLES: &[(&str, Option<Role>)] = &[
    ("read", Some(Role::Read)),
    ("readWrite", Some(Role::ReadWrite)),
    ("dbAdmin", Some(Role::ReadWrite)),
    ("userAdmin", Some(Role::Admin)),
    ("dbOwner", Some(Role::Admin)),
    ("enableSharding", None),
];

/// Those of the database `admin` alone, which hold in all.
const ADMIN_ROLES: &[(&str, Option<Role>)] = &[
    ("readAnyDatabase", Some(Role::Read)),
    ("readWriteAnyDatabase", Some(Role::ReadWrite)),
    ("dbAdminAnyDatabase", Some(Role::ReadWrite)),
    ("userAdminAnyDatabase", Some(Role::Admin)),
    ("root", Some(Role::Admin)),
    ("__system", Some(Role::Admin)),
    ("backup", Some(Role::Read)),
    ("restore", Some(Role::ReadWrite)),
    ("clusterAdmin", None),
    ("clusterManager", None),
    ("clusterMonitor", None),
    ("hostManager", None),
    ("directShardOperations", None),
    ("searchCoordinator", None),
];

/// What a role lets do in the database it is granted in; nothing, if there is no such role.
pub fn built_in_role(role: &str, database: &str) -> Option<Option<Role>> {
    let admin = if database == "admin" { ADMIN_ROLES } else { &[] };
    ROLES.iter().chain(admin).find(|(name, _)| *name == role).map(|(_, allowed)| *allowed)
}

/// The names of the roles of a database.
pub fn built_in_roles(database: &str) -> impl Iterator<Item = &'static str> {
    let admin = if database == "admin" { ADMIN_ROLES } else { &[] };
    ROLES.iter().chain(admin).map(|(name, _)| *name)
}

/// Somebody a connection speaks for.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The database it belongs to.
    pub database: String,
    /// Roles as they were granted: pairs of role and database.
    pub roles: Vec<(String, String)>,
}

impl User {
    /// What it may do in a database.
    pub fn role_in(&self, database: &str) -> Option<Role> {
        let role = |(role, of): &(String, String)| {
            let everywhere = of == "admin" && ADMIN_ROLES.iter().any(|(name, _)| name == role);
            if !everywhere && of != database {
                return None;
            }
            built_in_role(role, of).flatten()
        };
        self.roles.iter().filter_map(role).max()
    }

    /// Whether it may see, or stop, what others do.
    pub fn may(&self, right: Right) -> bool {
        let roles: &[&str] = match right {
            Right::Watch => &["clusterMonitor", "clusterAdmin"],
            Right::Stop => &["hostManager", "clusterAdmin"],
        };
        let grants = |(role, of): &(String, String)| of == "admin" && roles.contains(&role.as_str());
        self.role_in("admin") == Some(Role::Admin) || self.roles.iter().any(grants)
    }

    /// The entry in answers about who is authenticated.
    pub fn to_document(&self) -> Document {
        doc! { "user": &self.name, "db": &self.database }
    }

    /// The roles as they appear in answers.
    pub fn roles_document(&self) -> Vec<Bson> {
        self.roles.iter().map(|(role, db)| Bson::from(doc! { "role": role, "db": db })).collect()
    }
}

/// One of the account's passwords and what it lets do.
#[derive(Clone)]
pub struct Account {
    /// The key's text.
    pub password: String,
    /// What whoever has it may do.
    pub role: Role,
}

/// The account's passwords, ready to be checked.
pub struct Accounts {
    name: String,
    passwords: Vec<Account>,
    required: bool,
    /// Derivation takes milliseconds: once per mechanism.
    derived: Mutex<HashMap<Mechanism, Verifier<User>>>,
    secret: [u8; 16],
}

impl Accounts {
    /// The account `name` with these passwords; with `required`, nobody gets in without one.
    pub fn new(name: &str, passwords: Vec<Account>, required: bool, secret: [u8; 16]) -> Self {
        Self { name: name.to_owned(), passwords, required, derived: Mutex::default(), secret }
    }

    /// Whether commands need a user.
    pub fn required(&self) -> bool {
        self.required
    }

    /// Whether this is the account itself.
    pub fn is_account(&self, user: &str) -> bool {
        user == self.name
    }

    /// The account as a user that may do this much.
    pub fn user(&self, role: Role) -> User {
        let role = match role {
            Role::Read => "readAnyDatabase",
            Role::ReadWrite => "readWriteAnyDatabase",
            Role::Admin => "root",
        };
        let roles = vec![(role.to_owned(), "admin".to_owned())];
        User { name: self.name.clone(), database: "admin".into(), roles }
    }

    /// What to check the account's proofs against.
    pub fn verifier(&self, mechanism: Mechanism) -> Option<Verifier<User>> {
        if let Some(verifier) = self.derived.lock().get(&mechanism) {
            return Some(verifier.clone());
        }
        // One salt for all passwords: a client proves one of them without saying which.
        let salt: Vec<u8> = self.secret.iter().copied().cycle().take(mechanism.salt_len()).collect();
        let candidates = self.passwords.iter().map(|account| {
            let credentials = Credentials::derive(mechanism, &self.name, &account.password, &salt)?;
            Some((credentials, self.user(account.role)))
        });
        let verifier = Verifier { candidates: candidates.collect::<Option<_>>()? };
        self.derived.lock().insert(mechanism, verifier.clone());
        Some(verifier)
    }

    /// A salt that looks like that of a user who does not exist, so that asking does not tell.
    pub fn pretended_salt(&self, mechanism: Mechanism, user: &str) -> Vec<u8> {
        let mut seed = self.secret.to_vec();
        seed.extend_from_slice(user.as_bytes());
        let made = Credentials {
            salt: <sha2::Sha256 as sha2::Digest>::digest(&seed).to_vec(),
            rounds: 0,
            stored_key: Vec::new(),
            server_key: Vec::new(),
        };
        made.salt.into_iter().take(mechanism.salt_len()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_reach_their_database_or_all() {
        let user = |role: &str, db: &str| User {
            name: "u".into(),
            database: "admin".into(),
            roles: vec![(role.into(), db.into())],
        };
        assert_eq!(user("read", "shop").role_in("shop"), Some(Role::Read));
        assert_eq!(user("read", "shop").role_in("other"), None);
        assert_eq!(user("readWriteAnyDatabase", "admin").role_in("other"), Some(Role::ReadWrite));
        assert_eq!(user("root", "admin").role_in("other"), Some(Role::Admin));
        assert_eq!(user("dbOwner", "shop").role_in("shop"), Some(Role::Admin));
        assert_eq!(user("restore", "admin").role_in("shop"), Some(Role::ReadWrite));
        for nothing in ["clusterMonitor", "raed", ""] {
            assert_eq!(user(nothing, "admin").role_in("admin"), None, "{nothing}");
        }
        assert_eq!(user("root", "shop").role_in("shop"), None);
    }
}
