//! `createIndexes`, `listIndexes`, `dropIndexes` and `collMod`.

use bson::{Bson, Document, RawBsonRef, RawDocumentBuf, doc};
use mayfly_engine::{DefaultTtl, IndexRefused};

use super::create::{IMAGES, SIZE_MAX};
use super::reply;
use crate::{
    arguments::{Argument, Kind, check_command, may},
    call::Call,
    change_stream::{Definition, Happening},
    cursor::{Cursor, Ready},
    duplicates,
    failure::{Failure, Result},
    indexes::{self, INDEXES_MAX, Wanted, expire_after},
    namespace::{self, Collection, not_found},
    predicates,
    service::to_raw,
};

/// `createIndexes`.
pub async fn create(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let specs = call.documents("indexes")?.ok_or_else(|| Failure::missing("createIndexes.indexes"))?;
    if specs.is_empty() {
        return Err(Failure::bad_value("Must specify at least one index to create"));
    }
    let lenient = call.flag("ignoreUnknownIndexOptions")?;
    let mut wanted = Vec::new();
    let existing = namespace::seen(call, &call.db, name);
    let options = existing.as_ref().map(Collection::options).unwrap_or_default();
    for spec in &specs {
        let mut spec = Document::try_from(spec.as_ref())?;
        if let (None, Some(collation)) = (spec.get("collation"), options.get("collation")) {
            spec.insert("collation", collation.clone());
        }
        let index = indexes::parse(&spec, lenient)?;
        if !index.rule.filter.is_empty() {
            predicates::check(&index.rule.filter)?;
        }
        wanted.push(index);
    }
    if let Some(existing) = existing {
        if existing.view().is_some() {
            return Err(Failure::new(
                166,
                format!("Namespace {} is a view, not a collection", existing.namespace()),
            ));
        }
        // All of them are looked at before any is made.
        let mut all_there = true;
        for index in &wanted {
            all_there &= is_there(&existing, index)?;
        }
        let drafts = &call.mongo.sessions.drafts;
        if let (false, Some(session)) = (all_there, call.transaction_session())
            && !drafts.is_own(&call.db, name, session)
        {
            let message = format!(
                "Cannot create new indexes on existing collection {} in a multi-document transaction.",
                existing.namespace()
            );
            return Err(Failure::new(263, message));
        }
    }
    let (collection, made) = namespace::ensure(call, &call.db, name).await?;
    let before = indexes::shown(&collection).len();
    let mut current = collection;
    // Nobody writes while an index is built.
    let _alone = call.mongo.gates.close(current.container.id).await;
    let (mut built, mut outcome) = (Vec::new(), Ok(()));
    for index in wanted {
        if is_there(&current, &index)? {
            continue;
        }
        let spec = index.spec.clone();
        match build(call, &current, index).await {
            Ok(with_index) => current = with_index,
            Err(failure) => {
                outcome = Err(failure);
                break;
            }
        }
        built.push(spec);
    }
    tell_built(call, &current, built).await?;
    outcome?;
    let after = indexes::shown(&current).len();
    // Of a collection that the same transaction made MongoDB says that this did.
    let drafts = &call.mongo.sessions.drafts;
    let own = call.transaction_session().is_some_and(|session| drafts.is_own(&call.db, name, session));
    let mut answer = doc! {
        "numIndexesBefore": before as i32,
        "numIndexesAfter": after as i32,
        "createdCollectionAutomatically": made || own,
        "commitQuorum": "votingMembers",
    };
    if before == after {
        answer.insert("note", "all indexes already exist");
    }
    reply(answer)
}

/// Tells streams of indexes that were made: of all at once if there was something to index, or else, as MongoDB does, of each.
async fn tell_built(call: &Call<'_>, collection: &Collection, built: Vec<Document>) -> Result<()> {
    let at_once = match built.len() {
        0 => return Ok(()),
        1 => true,
        _ => call.mongo.engine.usage(&collection.container, call.now).await?.live.documents > 0,
    };
    let groups = if at_once { vec![built] } else { built.into_iter().map(|index| vec![index]).collect() };
    let drafts = &call.mongo.sessions.drafts;
    for indexes in groups {
        let told = Definition::indexes(collection, "createIndexes", indexes);
        if let Some(told) = drafts.tell_later(&collection.db, &collection.name, told) {
            tell(call, told).await?;
        }
    }
    Ok(())
}

async fn tell(call: &Call<'_>, definition: Definition) -> Result<()> {
    call.mongo.streams.tell(call.mongo, Happening::Define(Box::new(definition)), call.now).await
}

/// Whether the collection has this index; refuses one that is like another and not the same.
fn is_there(collection: &Collection, wanted: &Wanted) -> Result<bool> {
    let key = wanted.spec.get_document("key").cloned().unwrap_or_default();
    for existing in indexes::shown(collection) {
        let same_key = existing.get_document("key").is_ok_and(|other| indexes::same_key(other, &key));
        let same_name = existing.get_str("name").ok() == Some(wanted.rule.name.as_str());
        let on_id = same_key && key.len() == 1 && key.contains_key("_id");
        if on_id {
            return Ok(true);
        }
        let distinct = |name: &str| existing.get(name) != wanted.spec.get(name);
        // Indexes of one key are different ones if these are.
        let same_key = same_key
            && !["collation", "partialFilterExpression", "unique", "sparse", "wildcardProjection"]
                .into_iter()
                .any(distinct);
        match (same_key, same_name) {
            (true, true) if existing == wanted.spec => return Ok(true),
            (true, true) if distinct("expireAfterSeconds") => {
                let message = format!(
                    "An equivalent index already exists with the same name but different options. Requested index: {}, \
                     existing index: {existing}",
                    wanted.spec
                );
                return Err(Failure::new(85, message));
            }
            (true, true) => return Ok(true),
            (true, false) => {
                let message = format!(
                    "Index already exists with a different name: {}",
                    existing.get_str("name").unwrap_or_default()
                );
                return Err(Failure::new(85, message));
            }
            (false, true) => {
                let message = format!(
                    "An existing index has the same name as the requested index. When index names are not specified, \
                     they are auto generated and can cause conflicts. Please refer to our documentation. Requested \
                     index: {}, existing index: {existing}",
                    wanted.spec
                );
                return Err(Failure::new(86, message));
            }
            (false, false) => {}
        }
    }
    Ok(false)
}

/// Makes one index.
pub async fn build(call: &Call<'_>, collection: &Collection, wanted: Wanted) -> Result<Collection> {
    let engine = &call.mongo.engine;
    if indexes::shown(collection).len() >= INDEXES_MAX {
        let message = format!("add index fails, too many indexes for {}", collection.namespace());
        return Err(Failure::new(67, message));
    }
    let expires = wanted.expire_after;
    let is_text = |spec: &Document| spec.contains_key("textIndexVersion");
    if is_text(&wanted.spec)
        && let Some(existing) = indexes::shown(collection).iter().find(|existing| is_text(existing))
    {
        let name = existing.get_str("name").unwrap_or_default();
        let message =
            format!("only one text index per collection allowed, found existing text index \"{name}\"");
        return Err(Failure::new(67, message));
    }
    if !collection.container.is_collection() && !wanted.rule.is_default_ttl && expires.is_none() {
        let message = format!(
            "{} was made through the NoSQL API and is indexed by its indexing policy; only TTL indexes can be added here",
            collection.namespace()
        );
        return Err(Failure::new(67, message));
    }
    let container = if wanted.rule.is_default_ttl {
        let seconds = DefaultTtl::try_from(expires.unwrap_or(-1)).map_err(Failure::bad_value)?;
        engine.create_default_ttl_index(&collection.container, wanted.rule.clone(), seconds, call.now).await?
    } else {
        let kinds = wanted.rule.has_entries();
        let seconds = expires.filter(|_| kinds).and_then(|seconds| u32::try_from(seconds).ok());
        match engine.create_index(&collection.container, wanted.rule.clone(), seconds, call.now).await {
            Ok(container) => container,
            Err(IndexRefused::Duplicate(document)) => {
                return Err(duplicates::failure(collection, &wanted.rule.name, &wanted.spec, &document));
            }
            Err(IndexRefused::Other(error)) => return Err(error.into()),
        }
    };
    Ok(Collection { container, ..collection.clone() })
}

/// `listIndexes`.
pub async fn list(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let collection = namespace::seen(call, &call.db, name).ok_or_else(|| not_found(&call.db, name))?;
    if collection.view().is_some() {
        return Err(Failure::new(
            166,
            format!("Namespace {} is a view, not a collection", collection.namespace()),
        ));
    }
    let shown = indexes::shown(&collection).iter().map(to_raw).collect();
    let size = match call.document("cursor")? {
        Some(cursor) => {
            cursor.get("batchSize")?.and_then(crate::call::integer).map(|size| size.max(0) as usize)
        }
        None => None,
    };
    let cursor = Cursor::new(call, collection.namespace(), Ready(shown));
    call.mongo.cursors.first(call.mongo, cursor, size, false, call.now).await
}

/// `dropIndexes`.
pub async fn drop(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let collection = namespace::seen(call, &call.db, name)
        .ok_or_else(|| Failure::new(26, format!("ns not found {}.{name}", call.db)))?;
    collection.check_writable()?;
    let shown = indexes::shown(&collection);
    let rules = collection.container.definition().index_rules.clone();
    let by_name = |name: &str| -> Result<Vec<u32>> {
        if name == "_id_" {
            return Err(Failure::new(72, "cannot drop _id index"));
        }
        let found = rules.iter().find(|rule| rule.name == name);
        let implied = || shown.iter().any(|index| index.get_str("name").ok() == Some(name)).then(Vec::new);
        match found.map(|rule| vec![rule.number]).or_else(implied) {
            Some(found) => Ok(found),
            None => Err(Failure::new(27, format!("index not found with name [{name}]"))),
        }
    };
    let mut drops_default = false;
    let (numbers, all) = match call.get("index")? {
        Some(RawBsonRef::String("*")) => (rules.iter().map(|rule| rule.number).collect(), true),
        Some(RawBsonRef::String(name)) => {
            drops_default = !rules.iter().any(|rule| rule.name == name) && name == "_ts_1";
            (by_name(name)?, false)
        }
        Some(RawBsonRef::Array(names)) => {
            let mut numbers = Vec::new();
            for name in names {
                numbers.extend(by_name(name?.as_str().unwrap_or_default())?);
            }
            (numbers, false)
        }
        Some(RawBsonRef::Document(key)) => {
            let key = Document::try_from(key)?;
            let same =
                |spec: &Document| spec.get_document("key").is_ok_and(|other| indexes::same_key(other, &key));
            if key.len() == 1 && key.contains_key("_id") {
                return Err(Failure::new(72, "cannot drop _id index"));
            }
            let named: Vec<&Document> = shown.iter().filter(|spec| same(spec)).collect();
            match named.as_slice() {
                [] => return Err(Failure::new(27, format!("can't find index with key: {key}"))),
                [index] => (by_name(index.get_str("name").unwrap_or_default())?, false),
                _ => return Err(Failure::new(181, format!("{} indexes found for key: {key}", named.len()))),
            }
        }
        Some(other) => return Err(crate::call::wrong_type("dropIndexes.index", other, "string")),
        None => {
            return Err(Failure::new(
                40414,
                "BSON field 'dropIndexes.index' is missing but a required field",
            ));
        }
    };
    let mut container = collection.container.clone();
    for number in numbers {
        container = call.mongo.engine.drop_index(&container, number, call.now).await?;
    }
    if drops_default {
        let mut definition = container.definition().clone();
        definition.default_ttl = None;
        container = call.mongo.engine.replace_container(&container, definition, None, call.now).await?;
    }
    let left = indexes::shown(&Collection { container, ..collection.clone() });
    for index in shown.iter().filter(|index| !left.contains(index)) {
        tell(call, Definition::indexes(&collection, "dropIndexes", vec![index.clone()])).await?;
    }
    let mut answer = doc! { "nIndexesWas": shown.len() as i32 };
    if all {
        answer.insert("msg", "non-_id indexes dropped for collection");
    }
    reply(answer)
}

/// Types of the arguments of `collMod`.
const MODIFY_ARGUMENTS: &[Argument] = &[
    may(
        "index",
        Kind::Fields(&[
            may("name", Kind::Text),
            may("keyPattern", Kind::Object),
            may("expireAfterSeconds", Kind::Number(i64::MIN, i64::MAX)),
            may("hidden", Kind::Truth),
            may("unique", Kind::Truth),
            may("prepareUnique", Kind::Truth),
        ]),
    ),
    may("validator", Kind::Object),
    may("validationLevel", Kind::Text),
    may("validationAction", Kind::Text),
    may("viewOn", Kind::Text),
    may("pipeline", Kind::Array),
    may("changeStreamPreAndPostImages", Kind::Fields(IMAGES)),
    may("expireAfterSeconds", Kind::TextOrNumber),
    may("timeseries", Kind::Object),
    may("cappedSize", Kind::Number(1, SIZE_MAX)),
    may("cappedMax", Kind::Number(i64::MIN, i32::MAX as i64)),
    may("dryRun", Kind::Truth),
];

fn number_of(value: &Bson) -> Option<f64> {
    match value {
        Bson::Int32(number) => Some(f64::from(*number)),
        Bson::Int64(number) => Some(*number as f64),
        Bson::Double(number) => Some(*number),
        Bson::Decimal128(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// `collMod`.
pub async fn modify(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let collection = namespace::seen(call, &call.db, name).ok_or_else(|| not_found(&call.db, name))?;
    let (mut answer, mut asked, mut index_before) = (Document::new(), Document::new(), None);
    check_command("collMod", &call.request.body, MODIFY_ARGUMENTS)?;
    if call.flag("dryRun")? {
        let message = "dry run mode requires an index modification with unique: true.";
        return Err(Failure::new(72, message));
    }
    if let Some(index) = call.document("index")? {
        let given = Document::try_from(index)?.into_iter().filter(|(_, value)| *value != Bson::Null);
        let mut index: Document = given.collect();
        if let Some(hidden) = index.get_mut("hidden") {
            *hidden =
                Bson::Boolean(!matches!(hidden, Bson::Boolean(false)) && number_of(hidden) != Some(0.0));
        }
        let name = modify_index(call, &collection, &index, &mut answer).await?;
        if let Some((change, before)) = told_index(&name, &index, &answer) {
            asked.insert("index", change);
            index_before = Some(before);
        }
    }
    for refused in ["cappedSize", "cappedMax", "timeseries"] {
        if call.get(refused)?.is_some() {
            return Err(Failure::new(238, format!("collMod with {refused} is not supported")));
        }
    }
    if call.get("expireAfterSeconds")?.is_some() {
        return Err(Failure::new(
            72,
            "'expireAfterSeconds' is only supported on clustered and time-series collections",
        ));
    }
    let mut options = collection.options();
    let before = options.clone();
    for name in [
        "validator",
        "validationLevel",
        "validationAction",
        "viewOn",
        "pipeline",
        "changeStreamPreAndPostImages",
    ] {
        if let Some(value) = call.get(name)? {
            let value = Bson::try_from(value)?;
            asked.insert(name, value.clone());
            options.insert(name, value);
        }
    }
    if ["validator", "validationLevel", "validationAction"].into_iter().any(|name| asked.contains_key(name)) {
        // From now on what was never said is written down, as MongoDB does.
        options.entry("validationLevel".to_owned()).or_insert("strict".into());
        options.entry("validationAction".to_owned()).or_insert("error".into());
    }
    if options.contains_key("viewOn") {
        asked.entry("pipeline".to_owned()).or_insert(Bson::Array(Vec::new()));
    }
    let told = Definition::modify(&collection, asked, index_before);
    if options.get_document("validator").is_ok_and(Document::is_empty) {
        options.remove("validator");
    }
    if options != before {
        if !collection.container.is_collection() {
            return Err(Failure::new(72, "a container of the NoSQL API has no such options"));
        }
        super::create::check_options(call, &options)?;
        let fresh = namespace::seen(call, &call.db, name).unwrap_or(collection);
        namespace::set_options(call.mongo, &fresh, &options, call.now).await?;
        let images = options.get_document("changeStreamPreAndPostImages");
        if images.is_ok_and(|images| images.get_bool("enabled").unwrap_or(false)) {
            call.mongo.streams.begin_log(call.mongo, &call.db, Some(name), call.now).await?;
        }
    }
    tell(call, told).await?;
    reply(answer)
}

/// What streams tell of a change to an index, and of what it was before; nothing, if it was hidden or not already.
fn told_index(name: &str, asked: &Document, answer: &Document) -> Option<(Document, Document)> {
    let (mut change, mut before) = (doc! { "name": name }, Document::new());
    if let Some(seconds) = asked.get("expireAfterSeconds") {
        change.insert("expireAfterSeconds", seconds.clone());
        if let Some(old) = answer.get("expireAfterSeconds_old") {
            before.insert("expireAfterSeconds", old.clone());
        }
    }
    let (old, new) = (answer.get("hidden_old"), answer.get("hidden_new"));
    if let (Some(old), Some(new)) = (old, new)
        && old != new
    {
        change.insert("hidden", new.clone());
        before.insert("hidden", old.clone());
    }
    (change.len() > 1).then_some((change, before))
}

/// Changes an index and gives its name.
async fn modify_index(
    call: &Call<'_>,
    collection: &Collection,
    asked: &Document,
    answer: &mut Document,
) -> Result<String> {
    let (by_name, by_key) = (asked.get_str("name").ok(), asked.get_document("keyPattern").ok());
    let changes = ["expireAfterSeconds", "hidden", "unique", "prepareUnique"];
    if by_name.is_some() == by_key.is_some() {
        return Err(Failure::new(72, "must specify either index name or key pattern, but not both"));
    }
    if !changes.iter().any(|name| asked.contains_key(name)) {
        return Err(Failure::new(72, "no expireAfterSeconds, hidden, unique, or prepareUnique field"));
    }
    let is_id =
        by_name == Some("_id_") || by_key.is_some_and(|key| key.len() == 1 && key.contains_key("_id"));
    if is_id && asked.contains_key("hidden") {
        return Err(Failure::bad_value("can't hide _id index"));
    }
    if is_id {
        return Err(Failure::new(72, "the _id field does not support TTL indexes, nor can it be changed"));
    }
    let rules = &collection.container.definition().index_rules;
    let spec_of = |rule: &mayfly_engine::collection::IndexRule| {
        Document::from_reader(rule.spec.as_slice()).unwrap_or_default()
    };
    let mut found = rules.iter().filter(|rule| match (by_name, by_key) {
        (Some(name), _) => rule.name == name,
        (_, Some(key)) => spec_of(rule).get_document("key").is_ok_and(|other| indexes::same_key(other, key)),
        _ => false,
    });
    let rule = found.next();
    let several = 1 + found.count();
    if several > 1 {
        let key = by_key.map(Document::to_string).unwrap_or_default();
        let message = format!("index keyPattern {key} matches {several} indexes, must use index name.");
        return Err(Failure::new(181, message));
    }
    let mut rule = rule.cloned().ok_or_else(|| {
        let wanted =
            by_name.map_or_else(|| by_key.map_or_else(String::new, Document::to_string), str::to_owned);
        Failure::new(27, format!("cannot find index {wanted} for ns {}", collection.namespace()))
    })?;
    let mut spec = spec_of(&rule);
    let mut ttl = None;
    if let Some(value) = asked.get("expireAfterSeconds") {
        if rule.fields.len() > 1 {
            return Err(Failure::new(
                72,
                "TTL indexes are single-field indexes, compound indexes do not support TTL",
            ));
        }
        let value = match value {
            Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) | Bson::Decimal128(_) => value,
            other => {
                let message = format!(
                    "BSON field 'collMod.index.expireAfterSeconds' is the wrong type {:?}, expected types '[double, long, decimal, int]'",
                    other.element_type()
                );
                return Err(Failure::new(14, message));
            }
        };
        let seconds = match value {
            // MongoDB takes more than fits for the most that does.
            Bson::Int64(number) if *number > i64::from(i32::MAX) => i64::from(i32::MAX),
            Bson::Double(number) if *number > f64::from(i32::MAX) => i64::from(i32::MAX),
            other => expire_after(other, rule.is_default_ttl)
                .map_err(|failure| Failure::new(72, failure.message))?,
        };
        if let Some(old) = spec.get("expireAfterSeconds") {
            let old = old.as_i32().map_or(0, i64::from);
            answer.insert("expireAfterSeconds_old", old);
        }
        answer.insert("expireAfterSeconds_new", seconds);
        spec.insert("expireAfterSeconds", seconds as i32);
        ttl = Some(seconds);
    }
    if let Ok(hidden) = asked.get_bool("hidden") {
        let before = spec.get_bool("hidden").unwrap_or(false);
        // What is so already is not told.
        if hidden != before {
            answer.insert("hidden_old", before);
            answer.insert("hidden_new", hidden);
        }
        match hidden {
            true => spec.insert("hidden", true),
            false => spec.remove("hidden"),
        };
    }
    if asked.contains_key("unique") || asked.contains_key("prepareUnique") {
        return Err(Failure::new(238, "an index cannot be made unique: drop it and create it again"));
    }
    rule.spec = to_raw(&spec).into_bytes();
    let name = rule.name.clone();
    let _alone = call.mongo.gates.close(collection.container.id).await;
    call.mongo.engine.change_index(&collection.container, rule, ttl, call.now).await?;
    Ok(name)
}
