//! Collections that a transaction has made: its own until it commits, and gone after it was aborted.
//!
//! The engine makes such a collection at once, because the transaction writes to it. Its name stands here
//! until the commit, and whoever looks for collections asks here whether to show it. Whoever makes one of the
//! same name meanwhile, outside of transactions, gets this one, which is everybody's from then on; another
//! transaction is refused.

use std::collections::HashMap;

use mayfly_engine::{Error as EngineError, Timestamp};
use parking_lot::Mutex;

use crate::{
    change_stream::{Definition, Happening},
    failure::Result,
    namespace,
    service::Mongo,
};

/// A database and a collection in it.
type Name = (String, String);

/// All collections that are not there yet.
#[derive(Default)]
pub struct Drafts(Mutex<HashMap<Name, Draft>>);

struct Draft {
    /// The session whose transaction made it; none after an abort.
    owner: Option<Vec<u8>>,
    /// What change streams are told once it is there.
    told: Vec<Definition>,
}

/// Who wants to make a collection that another transaction is making.
pub enum Claim {
    /// It is not being made.
    None,
    /// It is the asker's now, and everybody's.
    Taken,
    /// It stays the other's.
    Refused,
}

impl Drafts {
    /// Whether a collection that the engine has is shown to a transaction of this session, or to anybody
    /// else.
    pub fn shows(&self, db: &str, name: &str, session: Option<&[u8]>) -> bool {
        let drafts = self.0.lock();
        if drafts.is_empty() {
            return true;
        }
        match drafts.get(&named(db, name)) {
            Some(draft) => session.is_some() && draft.owner.as_deref() == session,
            None => true,
        }
    }

    /// Whether this session's transaction has made it.
    pub fn is_own(&self, db: &str, name: &str, session: &[u8]) -> bool {
        self.0.lock().get(&named(db, name)).is_some_and(|draft| draft.owner.as_deref() == Some(session))
    }

    /// Hides a collection that a transaction is about to make; false if it is hidden already.
    pub fn begin(&self, db: &str, name: &str, session: &[u8]) -> bool {
        let mut drafts = self.0.lock();
        let place = named(db, name);
        let free = !drafts.contains_key(&place);
        if free {
            drafts.insert(place, Draft { owner: Some(session.to_vec()), told: Vec::new() });
        }
        free
    }

    /// Forgets one that was not made after all.
    pub fn cancel(&self, db: &str, name: &str) {
        self.0.lock().remove(&named(db, name));
    }

    /// Keeps what streams are to be told until the commit; gives it back if the collection is no draft.
    pub fn tell_later(&self, db: &str, name: &str, definition: Definition) -> Option<Definition> {
        match self.0.lock().get_mut(&named(db, name)) {
            Some(draft) => {
                draft.told.push(definition);
                None
            }
            None => Some(definition),
        }
    }

    /// The collection is wanted by somebody else.
    pub async fn claim(
        &self,
        mongo: &Mongo,
        db: &str,
        name: &str,
        in_transaction: bool,
        now: Timestamp,
    ) -> Result<Claim> {
        let is_open = match self.0.lock().get(&named(db, name)) {
            None => return Ok(Claim::None),
            Some(draft) => draft.owner.is_some(),
        };
        if in_transaction || !is_open {
            return Ok(Claim::Refused);
        }
        let (engine, mongo, name) = (&mongo.engine, mongo.shared()?, named(db, name));
        // Once it is everybody's, streams are told, also if who wanted it has left.
        let told = engine.to_completion(async move {
            let drafts = &mongo.sessions.drafts;
            let notes = mongo.streams.notes(&mongo, &drafts.told(std::slice::from_ref(&name)), now).await?;
            drafts.cancel(&name.0, &name.1);
            mongo.streams.write(&mongo, &notes).await
        });
        told.await.map(|()| Claim::Taken)
    }

    /// The names of what a session's transaction has made.
    fn of(&self, session: &[u8]) -> Vec<Name> {
        let drafts = self.0.lock();
        let own = drafts.iter().filter(|(_, draft)| draft.owner.as_deref() == Some(session));
        own.map(|(name, _)| name.clone()).collect()
    }

    /// What to note of all that a transaction has made, from before its documents.
    pub async fn notes(&self, mongo: &Mongo, session: &[u8], now: Timestamp) -> Result<Vec<Vec<u8>>> {
        let told = self.told(&self.of(session));
        mongo.streams.notes(mongo, &told, now).await
    }

    fn told(&self, names: &[Name]) -> Vec<Happening> {
        let drafts = self.0.lock();
        let definitions = names.iter().filter_map(|name| drafts.get(name)).flat_map(|draft| &draft.told);
        definitions.map(|definition| Happening::Define(Box::new(definition.clone()))).collect()
    }

    /// The transaction has committed: what it made is there.
    pub async fn commit(&self, mongo: &Mongo, session: &[u8], notes: &[Vec<u8>]) -> Result<()> {
        for name in self.of(session) {
            self.0.lock().remove(&name);
        }
        mongo.streams.write(mongo, notes).await
    }

    /// The transaction has been aborted: nobody sees what it made any more.
    pub fn abort(&self, session: &[u8]) {
        for draft in self.0.lock().values_mut() {
            if draft.owner.as_deref() == Some(session) {
                draft.owner = None;
            }
        }
    }

    /// Drops what aborted transactions have made; unless another node, from which it was not hidden, has
    /// written to it.
    pub async fn clear(&self, mongo: &Mongo) -> mayfly_engine::Result<()> {
        let aborted: Vec<Name> = {
            let drafts = self.0.lock();
            drafts.iter().filter(|(_, draft)| draft.owner.is_none()).map(|(name, _)| name.clone()).collect()
        };
        for (db, name) in aborted {
            if let Some(collection) = namespace::find(&mongo.engine, &db, &name) {
                match mongo.engine.delete_unwritten_container(&collection.container).await {
                    Ok(_) | Err(EngineError::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            self.cancel(&db, &name);
        }
        Ok(())
    }
}

fn named(db: &str, name: &str) -> Name {
    (db.to_owned(), name.to_owned())
}
