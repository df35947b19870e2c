//! Updates and deletes as statements: what they match, what they make of it, and what they answer.
//!
//! `update`, `delete`, `findAndModify` and `bulkWrite` say the same things in different words; this is what they mean.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use bson::{Bson, Document, RawArray, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use mayfly_engine::DocumentId;

use crate::{
    call::Call,
    commands::{DOCUMENT_BYTES_MAX, check_id},
    failure::{Failure, Result},
    filter::{Details, Filter},
    filtering::Surroundings,
    namespace::Collection,
    planner::Plan,
    query::Query,
    reader::Found,
    service::new_object_id,
    sort::SortPattern,
    update::Update,
    validation::Validator,
    writer::{Change, Decide, Done, Order, Statement, Target, Writer},
};

/// What to do with what is found.
#[derive(Clone)]
pub enum Action {
    /// Change it.
    Update {
        /// How.
        update: Arc<Update>,
        /// Whether to insert what the filter and the update describe, if nothing is found.
        upsert: bool,
        /// What documents must be like.
        validator: Option<Arc<Validator>>,
    },
    /// Remove it.
    Delete,
}

/// A statement.
pub struct ChangeStatement<'a> {
    /// Which documents.
    pub filter: Arc<Filter>,
    /// All of them, or the first.
    pub multi: bool,
    /// Which is the first.
    pub sort: Option<SortPattern>,
    /// Which index to use.
    pub hint: Option<String>,
    /// What to do.
    pub action: Action,
    /// Collation, variables, time.
    pub surroundings: Surroundings,
    /// The number of the statement in a numbered write, and what to remember of it.
    pub statement: Option<Statement>,
    /// The place.
    pub writer: &'a Writer<'a>,
    /// The collection.
    pub collection: &'a Collection,
}

/// What a statement did.
#[derive(Clone, Debug, Default)]
pub struct Changed {
    /// Documents that matched.
    pub matched: u64,
    /// Documents that are different now.
    pub modified: u64,
    /// Documents that are gone.
    pub removed: u64,
    /// The `_id` of the document that was inserted instead.
    pub upserted: Option<Bson>,
    /// What the first document was.
    pub before: Option<RawDocumentBuf>,
    /// What it is.
    pub after: Option<RawDocumentBuf>,
}

impl Changed {
    fn add(&mut self, done: &Done) {
        match &done.change {
            Change::Skip => return,
            Change::Keep => {
                self.matched += 1;
                self.after = done.before.clone();
            }
            Change::Put(after) | Change::Modify(after) => {
                match &done.before {
                    Some(_) => {
                        self.matched += 1;
                        self.modified += 1;
                    }
                    None => {
                        self.upserted = after.get("_id").ok().flatten().and_then(|id| Bson::try_from(id).ok())
                    }
                }
                self.after = Some(after.clone());
            }
            Change::Remove => self.removed += 1,
        }
        self.before = done.before.clone();
    }

    /// What a numbered write remembers.
    pub fn to_note(&self) -> Document {
        let mut note = doc! { "m": self.matched as i64, "d": self.modified as i64, "r": self.removed as i64 };
        if let Some(id) = &self.upserted {
            note.insert("u", id.clone());
        }
        note
    }

    /// From what a numbered write remembers.
    pub fn from_note(note: &Document) -> Self {
        let count = |name: &str| note.get_i64(name).unwrap_or_default() as u64;
        Self {
            matched: count("m"),
            modified: count("d"),
            removed: count("r"),
            upserted: note.get("u").cloned(),
            ..Self::default()
        }
    }
}

/// The note of a statement, made from what was done.
pub fn note_of(done: &[Done]) -> Document {
    let mut changed = Changed::default();
    done.iter().for_each(|one| changed.add(one));
    changed.to_note()
}

/// Documents changed in one step.
const STEP: usize = 200;

/// How often a document that somebody else changed is looked for again.
const ATTEMPTS_MAX: usize = 100;

impl ChangeStatement<'_> {
    /// Carries it out.
    pub async fn run(&self, call: &Call<'_>) -> Result<Changed> {
        if matches!(self.action, Action::Update { upsert: true, .. }) && self.filter.has_expression() {
            return Err(Failure::new(224, "$expr is not allowed in the query predicate for an upsert"));
        }
        for _ in 0..ATTEMPTS_MAX {
            let (changed, lost) = if self.multi { self.many(call).await? } else { self.one(call).await? };
            let found = changed.matched + changed.removed > 0;
            if !found && lost {
                continue;
            }
            if found || !matches!(self.action, Action::Update { upsert: true, .. }) {
                self.count(call, &changed);
                return Ok(changed);
            }
            if let Some(changed) = self.insert(call).await? {
                self.count(call, &changed);
                return Ok(changed);
            }
        }
        Err(Failure::new(112, "the document changes too often"))
    }

    fn count(&self, call: &Call<'_>, changed: &Changed) {
        call.mongo.counters.updated.fetch_add(changed.modified, Relaxed);
        call.mongo.counters.deleted.fetch_add(changed.removed, Relaxed);
    }

    fn query(&self) -> Query {
        let mut query = Query::new(
            Some(self.collection.clone()),
            (*self.filter).clone(),
            self.surroundings.clone(),
            self.writer.txn(),
        );
        query.sort = self.sort.clone();
        query.hint = self.hint.clone();
        query
    }

    /// Changes the first that matches; says whether one was found that did not match any more.
    async fn one(&self, call: &Call<'_>) -> Result<(Changed, bool)> {
        let query = self.query();
        if let Some(target) = self.named(&query) {
            // The decision looks at the document anyway, so it need not be found first.
            let changed = self.change(target).await?;
            let found = changed.matched + changed.removed > 0;
            return Ok((if found { changed } else { Changed::default() }, false));
        }
        let mut source = query.open(call.mongo).await?;
        let mut lost = false;
        while let Some(found) = source.next(call.mongo, call.now).await? {
            let changed = self.change(target(&found)).await?;
            if changed.matched + changed.removed > 0 {
                return Ok((changed, false));
            }
            lost = true;
        }
        Ok((Changed::default(), lost))
    }

    /// The one document that can match, if the filter names it by its `_id`.
    fn named(&self, query: &Query) -> Option<Target> {
        match query.plan() {
            Plan::Ids(ids) => match <[DocumentId; 1]>::try_from(ids) {
                Ok([id]) => Some(Target { id, partition: mayfly_engine::collection::whole() }),
                Err(_) => None,
            },
            _ => None,
        }
    }

    async fn change(&self, target: Target) -> Result<Changed> {
        let done = self.writer.decide_one(target, self.decision(), self.statement.as_ref()).await?;
        let mut changed = Changed::default();
        changed.add(&done);
        Ok(changed)
    }

    async fn many(&self, call: &Call<'_>) -> Result<(Changed, bool)> {
        // All are found before the first is changed: what is changed might come by again.
        let mut source = self.query().open(call.mongo).await?;
        let mut targets: Vec<(Target, Decide)> = Vec::new();
        while let Some(found) = source.next(call.mongo, call.now).await? {
            targets.push((target(&found), self.decision()));
        }
        let mut changed = Changed::default();
        let mut rest = targets.as_slice();
        while let Some((first, _)) = rest.first() {
            let together = rest.iter().take_while(|(target, _)| target.partition == first.partition);
            let (now, later) = rest.split_at(together.take(STEP).count());
            // If one of them fails, those before it are changed.
            for done in self.writer.decide(now, &[], Order::Ordered).await {
                changed.add(&done?);
            }
            rest = later;
        }
        Ok((changed, false))
    }

    /// What becomes of a document that was found: nothing if it does not match any more.
    fn decision(&self) -> Decide {
        let (filter, action, surroundings) =
            (self.filter.clone(), self.action.clone(), self.surroundings.clone());
        Arc::new(move |before: Option<&RawDocument>| {
            let Some(before) = before else { return Ok(Change::Skip) };
            let mut details = Details::default();
            if !surroundings.with(|context| filter.matches_with(before, context, &mut details))? {
                return Ok(Change::Skip);
            }
            match &action {
                Action::Delete => Ok(Change::Remove),
                Action::Update { update, validator, .. } => {
                    let after =
                        surroundings.with(|context| update.apply(before, details.position, context))?;
                    let Some(after) = after else { return Ok(Change::Keep) };
                    check_size(&after)?;
                    if let Some(validator) = validator {
                        validator.admit(&surroundings, Some(before), &after)?;
                    }
                    Ok(if update.is_replacement() { Change::Put(after) } else { Change::Modify(after) })
                }
            }
        })
    }

    /// Inserts what the filter and the update describe; nothing if somebody else did meanwhile.
    async fn insert(&self, call: &Call<'_>) -> Result<Option<Changed>> {
        let Action::Update { update, validator, .. } = &self.action else { return Ok(None) };
        let id = new_object_id(&call.mongo.engine, call.now.seconds());
        let document = self.surroundings.with(|context| update.upsert(&self.filter, id, context))?;
        if let Some(id) = document.get("_id")? {
            check_id(id)?;
        }
        check_size(&document)?;
        if let Some(validator) = validator {
            validator.admit(&self.surroundings, None, &document)?;
        }
        let target = self.writer.target(&document)?;
        let collection = self.collection.clone();
        let matches = self.surroundings.matches(&self.filter, &document)?;
        let put = document.clone();
        let decide = move |before: Option<&RawDocument>| match before {
            // One with this `_id` came meanwhile: it may be the one that was looked for.
            Some(_) if matches => Ok(Change::Skip),
            Some(_) => Err(crate::duplicates::id_taken(&collection, &put)),
            None => Ok(Change::Put(put.clone())),
        };
        let done = self.writer.decide_one(target, Arc::new(decide), self.statement.as_ref()).await?;
        let mut changed = Changed::default();
        changed.add(&done);
        Ok(changed.upserted.is_some().then_some(changed))
    }
}

fn target(found: &Found) -> Target {
    Target { id: found.id.clone(), partition: found.partition.clone() }
}

/// Refuses what an update has made too large.
pub fn check_size(document: &RawDocument) -> Result<()> {
    let bytes = document.as_bytes().len();
    if bytes > DOCUMENT_BYTES_MAX {
        let message = format!("Resulting document after update is larger than {DOCUMENT_BYTES_MAX}");
        return Err(Failure::new(17419, message));
    }
    Ok(())
}

/// Reads an update with its constants and array filters.
pub fn parse_update(
    update: RawBsonRef<'_>,
    array_filters: Option<&RawArray>,
    constants: Option<&RawDocument>,
    surroundings: &mut Surroundings,
) -> Result<Arc<Update>> {
    if let Some(constants) = constants {
        if !matches!(update, RawBsonRef::Array(_)) {
            return Err(Failure::new(51198, "Constant values may only be specified for pipeline updates"));
        }
        surroundings.define(constants)?;
    }
    Ok(Arc::new(Update::parse(update, array_filters, &surroundings.names())?))
}
