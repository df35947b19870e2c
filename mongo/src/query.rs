//! A find: where to look, what passes, in which order, how much, and what of it.
//!
//! Documents are streamed where no order is asked for that the walk does not have, or an index has it; otherwise all that pass
//! are gathered and sorted, with no more kept than are wanted.

use std::{cmp::Ordering, collections::VecDeque, sync::Arc};

use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, raw::cstr};
use mayfly_engine::{Direction, Timestamp};

use crate::{
    bounds::IndexBounds,
    capped::is_capped,
    covered::{Covered, covered},
    cursor::{Pull, Pulled, Source},
    derived::place_paths,
    disclosed::{self, Disclosed, KeyField, Metadata, key_fields},
    failure::{Failure, Result},
    filter::{Filter, NO_TEXT_INDEX},
    filtering::Surroundings,
    namespace::Collection,
    origin::{Judge, Origin},
    pipeline::Provenance,
    planner::{Plan, in_order, plan},
    projection::Projection,
    reader::{Body, Found, Reader},
    runs::Runs,
    service::Mongo,
    session::Txn,
    sort::SortPattern,
    text::asks_for_score,
};

/// The most bytes that a sort holds.
pub const SORT_BYTES_MAX: usize = 100 * 1024 * 1024;

/// What is asked of a collection.
pub struct Query {
    /// The collection; `None` if there is none, and nothing to find.
    pub collection: Option<Collection>,
    /// Which documents.
    pub filter: Filter,
    /// In which order.
    pub sort: Option<SortPattern>,
    /// How many to leave out first.
    pub skip: u64,
    /// How many at most.
    pub limit: Option<u64>,
    /// What of each.
    pub projection: Option<Projection>,
    /// Everything else.
    pub surroundings: Surroundings,
    /// The transaction it is part of.
    pub txn: Option<Arc<Txn>>,
    /// The name of the index to use.
    pub hint: Option<String>,
    /// Against the order of the walk.
    pub reverse: bool,
    /// The part of the index to look at.
    pub bounds: Option<IndexBounds>,
    /// What is told of how documents are kept.
    pub disclosed: Option<Disclosed>,
    /// What else of that a projection or a stage asks for.
    pub asked: Metadata,
}

impl Query {
    /// A query for all documents of a filter.
    pub fn new(
        collection: Option<Collection>,
        filter: Filter,
        surroundings: Surroundings,
        txn: Option<Arc<Txn>>,
    ) -> Self {
        Self {
            collection,
            filter,
            sort: None,
            skip: 0,
            limit: None,
            projection: None,
            surroundings,
            txn,
            hint: None,
            reverse: false,
            bounds: None,
            disclosed: None,
            asked: Metadata::default(),
        }
    }

    /// Refuses what only an index can say, where there is none.
    fn check_searchable(&self) -> Result<()> {
        if self.filter.mentions_text() {
            if self.hint.is_some() {
                return Err(Failure::bad_value("text and hint not allowed in same query"));
            }
            if self.surroundings.text.is_none() {
                return Err(Failure::new(27, NO_TEXT_INDEX));
            }
            if self.filter.text().is_some() && matches!(self.plan(), Plan::Scan) {
                let message = "error processing query: planner returned error :: caused by :: failed to use text index to \
                               satisfy $text query (if text index is compound, are equality predicates given for all prefix \
                               fields?)";
                return Err(Failure::new(291, message));
            }
        }
        if let (Some((path, near)), Some(collection)) = (self.filter.near_path(), &self.collection)
            && collection.container.is_collection()
            && !place_paths(collection).iter().any(|(at, surface)| at == path && near.is_on(*surface))
        {
            let message = "error processing query: planner returned error :: caused by :: unable to find index for \
                           $geoNear query";
            return Err(Failure::new(291, message));
        }
        Ok(())
    }

    /// Where it looks.
    pub fn plan(&self) -> Plan {
        match &self.collection {
            Some(collection) => {
                plan(collection, &self.filter, self.surroundings.collation.as_ref(), self.hint.as_deref())
            }
            None => Plan::Ids(Vec::new()),
        }
    }

    /// Along which index it comes in order, if it does. In a transaction its own writes come last.
    pub fn plan_in_order(&self) -> Option<(Plan, Direction)> {
        let (Some(sort), Some(collection), None, None) =
            (&self.sort, &self.collection, &self.txn, &self.bounds)
        else {
            return None;
        };
        let collated = self.surroundings.collation.is_some();
        in_order(collection, &self.filter, &sort.paths()?, collated, self.hint.as_deref())
    }

    /// How many there are, up to the limit: by the entries of an index alone, where one has what the filter asks for.
    pub async fn count(self, mongo: &Mongo, now: Timestamp) -> Result<u64> {
        let collated = self.surroundings.collation.is_some();
        if let (Some(collection), None, None) = (&self.collection, &self.txn, &self.bounds)
            && let Some(Covered { index, ranges, repeats }) =
                covered(collection, &self.filter, collated, self.hint.as_deref())
        {
            mongo.operations.usage.look_into(collection.container.id, &index);
            let most = self.limit.unwrap_or(u64::MAX).saturating_add(self.skip);
            let count = mongo
                .engine
                .count_collection(&collection.container, &ranges, repeats, most, None, now)
                .await?;
            return Ok(count.saturating_sub(self.skip));
        }
        let mut source = self.open(mongo).await?.reading_ahead();
        let mut count = 0;
        while source.next(mongo, now).await?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Runs it, document by document.
    pub async fn open(self, mongo: &Mongo) -> Result<QuerySource> {
        self.check_searchable()?;
        if let Some((plan, direction)) = self.plan_in_order() {
            self.note_use(mongo, &plan);
            let reader = self.collection.as_ref().map(|found| Reader::new(found, &plan, direction, None));
            let key = self.key_shown(&plan)?;
            return Ok(QuerySource { key, ..QuerySource::new(self, reader, true, Some(Runs::default())) });
        }
        let plan = self.plan();
        self.note_use(mongo, &plan);
        let key = self.key_shown(&plan)?;
        let mut direction = if self.reverse { Direction::Reverse } else { Direction::Forward };
        // Documents stand in the order of `_id`, unless some id is too long to stand where it belongs.
        let mut in_order = self.sort.is_none() && !self.filter.is_by_distance();
        if let (Some(sort), Some(collection), None) = (&self.sort, &self.collection, &self.txn)
            && let Some([("_id", down)]) = sort.paths().as_deref()
            && !matches!(plan, Plan::Index { .. })
            && self.surroundings.collation.is_none()
            && collection.container.is_collection()
            && !(matches!(plan, Plan::Scan) && is_capped(collection))
        {
            in_order = !mongo.engine.has_ids_out_of_order(&collection.container, None).await?;
            if in_order && *down {
                direction = Direction::Reverse;
            }
            // Ids looked up one by one go up.
            in_order &= !(matches!(plan, Plan::Ids(_)) && *down);
        }
        let reader = self
            .collection
            .as_ref()
            .map(|collection| Reader::new(collection, &plan, direction, self.txn.clone()));
        Ok(QuerySource { key, ..QuerySource::new(self, reader, in_order, None) })
    }

    fn note_use(&self, mongo: &Mongo, plan: &Plan) {
        let Some(collection) = &self.collection else { return };
        mongo.operations.usage.note(collection, plan);
    }

    fn is_sorted_by_id(&self) -> bool {
        self.sort.as_ref().and_then(SortPattern::paths).is_some_and(|paths| matches!(paths[..], [("_id", _)]))
    }

    /// The fields of the index that are shown instead of documents.
    fn key_shown(&self, plan: &Plan) -> Result<Option<Vec<KeyField>>> {
        // Documents stand in the order of `_id`: where MongoDB walks that index, they are walked.
        let by_id = || self.is_sorted_by_id() || self.hint.as_deref() == Some("_id_");
        match (self.disclosed, plan) {
            (Some(Disclosed::Key), Plan::Scan) if by_id() => Ok(Some(vec![KeyField::ascending("_id")])),
            (Some(Disclosed::Key), _) => key_fields(plan).map(Some),
            (_, Plan::Scan) if self.asked.index_key && by_id() => Ok(Some(vec![KeyField::ascending("_id")])),
            // An index of words or places has no key to show.
            (_, plan) if self.asked.index_key => {
                Ok(key_fields(plan).ok().filter(|fields| !fields.is_empty()))
            }
            _ => Ok(None),
        }
    }
}

/// The documents of a query.
pub struct QuerySource {
    query: Query,
    reader: Option<Reader>,
    in_order: bool,
    /// Where the order is that of an index.
    runs: Option<Runs>,
    sorted: Option<VecDeque<Found>>,
    skip: u64,
    left: Option<u64>,
    /// Who says what has expired since it was read.
    judge: Judge,
    /// What the document given last to a cursor was read from.
    last: Option<Origin>,
    /// The fields of the index that are shown instead of documents, or beside them.
    key: Option<Vec<KeyField>>,
}

impl QuerySource {
    fn new(query: Query, reader: Option<Reader>, in_order: bool, runs: Option<Runs>) -> Self {
        let (skip, left) = (query.skip, query.limit);
        let judge = Judge::default();
        Self { skip, left, reader, in_order, runs, sorted: None, query, judge, last: None, key: None }
    }

    /// The same for who takes all documents at once: a page is read while the one before is worked on.
    pub fn reading_ahead(mut self) -> Self {
        if let Some(reader) = &mut self.reader {
            reader.read_ahead();
        }
        self
    }

    /// The next document with what names it, before the projection.
    pub async fn next(&mut self, mongo: &Mongo, now: Timestamp) -> Result<Option<Found>> {
        if self.left == Some(0) {
            return Ok(None);
        }
        if !self.in_order && self.sorted.is_none() {
            self.sorted = Some(self.gather(mongo, now).await?);
        }
        loop {
            let found = match &mut self.sorted {
                Some(sorted) => sorted.pop_front(),
                None if self.runs.is_some() => self.next_of_runs(mongo, now).await?,
                None => self.next_match(mongo, now).await?,
            };
            let Some(found) = found else { return Ok(None) };
            if !self.is_alive(&found, mongo, now) {
                continue;
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            if let Some(left) = &mut self.left {
                *left -= 1;
            }
            return Ok(Some(found));
        }
    }

    /// Whether a document is still there. It may have been read for a batch of before and held since.
    fn is_alive(&mut self, found: &Found, mongo: &Mongo, now: Timestamp) -> bool {
        let Some(collection) = &self.query.collection else { return true };
        let record = found.document.record();
        record.is_none_or(|record| self.judge.shows_record(&collection.container, record, mongo, now))
    }

    async fn next_of_runs(&mut self, mongo: &Mongo, now: Timestamp) -> Result<Option<Found>> {
        loop {
            if let Some(found) = self.runs.as_mut().and_then(Runs::take) {
                return Ok(Some(found));
            }
            let (next, wanted) = (self.next_match(mongo, now).await?, self.wanted());
            let Query { sort: Some(sort), surroundings, .. } = &self.query else { return Ok(next) };
            let Some(runs) = &mut self.runs else { return Ok(next) };
            match next {
                Some(found) => runs.add(found, sort, surroundings, wanted)?,
                None => {
                    runs.settle(sort, surroundings);
                    return Ok(runs.take());
                }
            }
        }
    }

    /// How many more are asked for, with those that are left out first.
    fn wanted(&self) -> Option<usize> {
        self.left.map(|left| left.saturating_add(self.skip)).and_then(|n| usize::try_from(n).ok())
    }

    async fn next_match(&mut self, mongo: &Mongo, now: Timestamp) -> Result<Option<Found>> {
        let Some(reader) = self.reader.as_mut() else { return Ok(None) };
        while let Some(found) = reader.next(mongo, now).await? {
            let Query { filter, surroundings, bounds, .. } = &self.query;
            let within = match bounds {
                Some(bounds) => bounds.admits(&found.document, surroundings)?,
                None => true,
            };
            if within && surroundings.matches(filter, &found.document)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    async fn gather(&mut self, mongo: &Mongo, now: Timestamp) -> Result<VecDeque<Found>> {
        let wanted = self.wanted();
        let mut rows: Vec<(Vec<RawBson>, Found)> = Vec::new();
        let mut bytes = 0;
        while let Some(found) = self.next_match(mongo, now).await? {
            let key = match &self.query.sort {
                Some(sort) => {
                    let metadata = self.metadata(&found.document)?;
                    let surroundings = &self.query.surroundings;
                    surroundings.with_metadata(metadata, |context| sort.key(&found.document, context))?
                }
                None => {
                    self.query.filter.distance(&found.document).map(RawBson::Double).into_iter().collect()
                }
            };
            bytes += found.document.as_bytes().len();
            rows.push((key, found));
            // Twice as many as are wanted, then only those that are: each is compared a few times at most.
            if let Some(wanted) = wanted
                && rows.len() > wanted.saturating_mul(2).max(1000)
            {
                self.sort(&mut rows);
                rows.truncate(wanted);
                bytes = rows.iter().map(|(_, found)| found.document.as_bytes().len()).sum();
            }
            if bytes > SORT_BYTES_MAX {
                let message =
                    "Sort exceeded memory limit of 104857600 bytes, and there is no index for its order.";
                return Err(Failure::new(292, message));
            }
        }
        self.sort(&mut rows);
        if let Some(wanted) = wanted {
            rows.truncate(wanted);
        }
        Ok(rows.into_iter().map(|(_, found)| found).collect())
    }

    fn sort(&self, rows: &mut [(Vec<RawBson>, Found)]) {
        let Some(sort) = &self.query.sort else {
            let distance =
                |row: &(Vec<RawBson>, Found)| row.0.first().and_then(RawBson::as_f64).unwrap_or_default();
            rows.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
            return;
        };
        self.query.surroundings.with(|context| {
            rows.sort_by(|(a, _), (b, _)| -> Ordering { sort.compare(a, b, context) });
        });
    }

    /// Entries looked at so far.
    pub fn scanned(&self) -> usize {
        self.reader.as_ref().map_or(0, |reader| reader.scanned)
    }

    /// The next documents: those that are there without asking the engine again, and one at least until the end.
    pub async fn next_few(&mut self, mongo: &Mongo, now: Timestamp) -> Result<Vec<Found>> {
        let mut few = Vec::new();
        while few.is_empty() || self.reader.as_ref().is_some_and(Reader::has_ready) {
            match self.next(mongo, now).await? {
                Some(found) => few.push(found),
                None => break,
            }
        }
        Ok(few)
    }

    /// What a document of it was read from.
    pub fn provenance<'a>(&'a self, found: &'a Found) -> Provenance<'a> {
        let container = self.query.collection.as_ref().map(|collection| &collection.container);
        Provenance::of(container, found.document.record())
    }

    /// How far a document is from where distances are measured.
    pub fn distance(&self, document: &RawDocument) -> Option<f64> {
        self.query.filter.distance(document)
    }

    /// What `$meta` gives of a document: its score in a text search or its distance, and how it is kept.
    pub fn metadata(&self, document: &Body) -> Result<Option<RawDocumentBuf>> {
        let Query { filter, surroundings, asked, .. } = &self.query;
        let mut metadata = RawDocumentBuf::new();
        if let Some(distance) = filter.distance(document) {
            metadata.append(cstr!("geoNearDistance"), distance);
        } else if filter.text().is_some() {
            let score = surroundings.with(|context| filter.text_score(document, context));
            score.into_iter().for_each(|score| metadata.append(cstr!("textScore"), score));
        }
        if let Some(fields) = self.key.as_ref().filter(|_| asked.index_key) {
            metadata.append(cstr!("indexKey"), disclosed::key(document, fields, filter, surroundings)?);
        }
        if asked.record_id && document.record().is_some() {
            metadata.append(cstr!("recordId"), disclosed::record_id(document)?);
        }
        if let Some(sort) = self.query.sort.as_ref().filter(|_| asked.sort_key) {
            let own = (!metadata.is_empty()).then(|| metadata.clone());
            let key = surroundings.with_metadata(own, |context| sort.key(document, context))?;
            metadata.append(cstr!("sortKey"), key.into_iter().collect::<RawArrayBuf>());
        }
        Ok((!metadata.is_empty()).then_some(metadata))
    }

    /// What of a document is shown.
    pub fn project(&self, document: Body) -> Result<RawDocumentBuf> {
        if let Some(fields) = self.key.as_ref().filter(|_| self.query.disclosed == Some(Disclosed::Key)) {
            return disclosed::key(&document, fields, &self.query.filter, &self.query.surroundings);
        }
        let id = match self.query.disclosed {
            Some(Disclosed::RecordId) => Some(disclosed::record_id(&document)?),
            _ => None,
        };
        let shown = match &self.query.projection {
            Some(projection) => {
                let (metadata, surroundings) = (self.metadata(&document)?, &self.query.surroundings);
                surroundings.with_metadata(metadata, |context| projection.apply(&document, context))?
            }
            None => document.into_owned(),
        };
        Ok(match id {
            Some(id) => disclosed::with_record_id(shown, id),
            None => shown,
        })
    }
}

impl Source for QuerySource {
    fn pull<'a>(&'a mut self, mongo: &'a Mongo, now: Timestamp) -> Pull<'a> {
        Box::pin(async move {
            match self.next(mongo, now).await? {
                Some(found) => {
                    self.last = self.query.collection.as_ref().and_then(|collection| {
                        found.document.record().map(|record| Origin::of(&collection.container, record))
                    });
                    Ok(Pulled::Document(self.project(found.document)?))
                }
                None => Ok(Pulled::End),
            }
        })
    }

    fn shows_last(&mut self, mongo: &Mongo, now: Timestamp) -> bool {
        self.last.as_ref().is_none_or(|origin| self.judge.shows(origin, mongo, now))
    }

    fn is_done(&self) -> bool {
        self.left == Some(0) || self.sorted.as_ref().is_some_and(VecDeque::is_empty)
    }
}

/// Refuses to tell scores where no text is searched for.
pub fn check_scores<'a>(filter: &Filter, askers: impl IntoIterator<Item = RawBsonRef<'a>>) -> Result<()> {
    if !filter.mentions_text() && askers.into_iter().any(asks_for_score) {
        return Err(Failure::new(40218, "query requires text score metadata, but it is not available"));
    }
    Ok(())
}

/// The name of the index that a hint means: a name, or a key pattern.
pub fn hint_name(
    collection: Option<&Collection>,
    hint: Option<bson::RawBsonRef<'_>>,
) -> Result<Option<String>> {
    let Some(hint) = hint else { return Ok(None) };
    let unknown = || {
        Failure::bad_value(
            "error processing query: planner returned error :: caused by :: hint provided does not correspond to an existing index",
        )
    };
    let Some(collection) = collection else { return Ok(None) };
    let shown = crate::indexes::shown(collection);
    match hint {
        bson::RawBsonRef::String(name) => {
            let found = shown.iter().any(|index| index.get_str("name").ok() == Some(name));
            if found { Ok(Some(name.to_owned())) } else { Err(unknown()) }
        }
        bson::RawBsonRef::Document(key) => {
            if is_natural(key) {
                return Ok(Some("$natural".into()));
            }
            if key.is_empty() {
                return Ok(None);
            }
            let key = bson::Document::try_from(key)?;
            let same = |index: &&bson::Document| {
                index.get_document("key").is_ok_and(|other| crate::indexes::same_key(other, &key))
            };
            let mut alike = shown.iter().filter(same);
            let found = alike.next().ok_or_else(unknown)?;
            let is_hidden = |index: &bson::Document| index.get_bool("hidden").unwrap_or(false);
            if !is_hidden(found) && alike.any(|index| !is_hidden(index)) {
                let message = "error processing query: planner returned error :: caused by :: Hint matches multiple \
                               indexes, must hint by index name.";
                return Err(Failure::new(27, message));
            }
            Ok(Some(found.get_str("name").unwrap_or_default().to_owned()))
        }
        other => Err(Failure::new(
            9,
            format!("hint must be a string or an object, not {}", crate::call::type_name(other)),
        )),
    }
}

/// Whether a hint says that documents come in the order against their own.
pub fn is_backward(hint: Option<bson::RawBsonRef<'_>>) -> bool {
    let Some(bson::RawBsonRef::Document(key)) = hint else { return false };
    let direction = key.get("$natural").ok().flatten().and_then(crate::call::integer);
    direction.is_some_and(|direction| direction < 0)
}

fn is_natural(key: &RawDocument) -> bool {
    matches!(key.get("$natural"), Ok(Some(_)))
}
