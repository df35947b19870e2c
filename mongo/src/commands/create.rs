//! `create`: makes a collection or a view.

use bson::{Bson, Document, RawBsonRef, RawDocumentBuf, doc};

use super::reply;
use crate::{
    arguments::{Argument, Kind, check_command, check_fields, may, must},
    call::{Call, integer, wrong_type},
    collations,
    failure::{Failure, Result},
    namespace,
    values::is_truthy,
};

/// Arguments.
pub const FIELDS: &[&str] = &[
    "capped",
    "size",
    "max",
    "validator",
    "validationLevel",
    "validationAction",
    "collation",
    "viewOn",
    "pipeline",
    "timeseries",
    "expireAfterSeconds",
    "clusteredIndex",
    "changeStreamPreAndPostImages",
    "idIndex",
    "storageEngine",
    "indexOptionDefaults",
    "encryptedFields",
    "temp",
    "flags",
    "recordIdsReplicated",
];

/// The largest capped collection, as MongoDB has it.
pub(super) const SIZE_MAX: i64 = 1 << 50;

/// Options of documents before and after a change.
pub(super) const IMAGES: &[Argument] = &[must("enabled", Kind::Strict)];

/// Types of the arguments.
const ARGUMENTS: &[Argument] = &[
    may("capped", Kind::Truth),
    may("size", Kind::Number(1, SIZE_MAX)),
    may("max", Kind::Number(i64::MIN, i32::MAX as i64)),
    may("validator", Kind::Object),
    may("validationLevel", Kind::Text),
    may("validationAction", Kind::Text),
    may("collation", Kind::Object),
    may("viewOn", Kind::Text),
    may("pipeline", Kind::Array),
    may("expireAfterSeconds", Kind::Number(i64::MIN, i64::MAX)),
    may("changeStreamPreAndPostImages", Kind::Fields(IMAGES)),
    may("idIndex", Kind::Object),
    may("storageEngine", Kind::Object),
    may("indexOptionDefaults", Kind::Fields(&[may("storageEngine", Kind::Object)])),
];

/// Fields of `clusteredIndex`.
const CLUSTERED: &[Argument] = &[
    must("key", Kind::Object),
    must("unique", Kind::Truth),
    may("name", Kind::Text),
    may("v", Kind::Number(i64::MIN, i64::MAX)),
];

/// Refuses a clustered index that is not on `_id`, or not unique.
fn check_clustered(call: &Call<'_>) -> Result<()> {
    let index = match call.request.body.get("clusteredIndex")? {
        None => return Ok(()),
        Some(RawBsonRef::Document(index)) => index,
        Some(value) if is_truthy(Some(value)) && is_truth(value) => {
            return Err(Failure::new(5979703, "a clustered collection cannot be made by a Boolean"));
        }
        Some(value) if is_truth(value) => return Ok(()),
        Some(other) => return Err(wrong_type("create.clusteredIndex", other, "[bool, object]")),
    };
    check_fields("create.clusteredIndex", index, CLUSTERED)?;
    let key = index.get_document("key")?;
    let on_id = key.iter().count() == 1 && key.get("_id")?.and_then(integer) == Some(1);
    if !on_id {
        return Err(Failure::new(197, "The clusteredIndex option is only supported for key: {_id: 1}"));
    }
    if !is_truthy(index.get("unique")?) {
        return Err(Failure::new(5979700, "The clusteredIndex option requires unique: true to be specified"));
    }
    match index.get("v")?.and_then(integer) {
        None | Some(2) => Ok(()),
        Some(_) => Err(Failure::new(5979704, "The clusteredIndex option only supports v: 2")),
    }
}

fn is_truth(value: RawBsonRef<'_>) -> bool {
    matches!(value, RawBsonRef::Boolean(_)) || integer(value).is_some()
}

/// Arguments that are kept and shown again.
const KEPT: &[&str] = &[
    "capped",
    "size",
    "max",
    "validator",
    "validationLevel",
    "validationAction",
    "collation",
    "viewOn",
    "pipeline",
    "changeStreamPreAndPostImages",
    "clusteredIndex",
];

/// Makes it; the same again with the same options is fine.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    if name.starts_with("system.") && name != "system.js" {
        return Err(Failure::new(73, format!("Invalid system namespace: {}.{name}", call.db)));
    }
    check_command("create", &call.request.body, ARGUMENTS)?;
    check_clustered(call)?;
    for refused in ["timeseries", "encryptedFields"] {
        if call.get(refused)?.is_some() {
            return Err(Failure::new(238, format!("create with {refused} is not supported")));
        }
    }
    let clustered = call.document("clusteredIndex").is_ok_and(|index| index.is_some());
    if call.get("expireAfterSeconds")?.is_some() {
        let why =
            if clustered { "of a clustered collection" } else { "on a collection without a clustered index" };
        return Err(Failure::new(
            72,
            format!("'expireAfterSeconds' {why} is not supported: use a TTL index"),
        ));
    }
    if call.get("temp")?.is_some() {
        return Err(Failure::new(72, "the 'temp' field is an invalid option"));
    }
    let mut options = Document::new();
    for name in KEPT {
        if let Some(value) = call.get(name)? {
            options.insert(*name, Bson::try_from(value)?);
        }
    }
    if let Ok(collation) = options.get_document("collation") {
        match collations::parse(collation)? {
            Some(collation) => options.insert("collation", collation.spec().clone()),
            None => options.remove("collation"),
        };
    }
    if !clustered {
        options.remove("clusteredIndex");
    }
    if let Ok(index) = options.get_document("clusteredIndex") {
        let name = index.get_str("name").unwrap_or("_id_");
        let index = doc! { "v": 2, "key": { "_id": 1 }, "name": name, "unique": true };
        options.insert("clusteredIndex", index);
    }
    if call.flag("capped")? && call.integer("size")?.is_none() {
        return Err(Failure::new(72, "the 'size' field is required when 'capped' is true"));
    }
    if !call.flag("capped")? {
        if call.get("size")?.is_some() || call.get("max")?.is_some() {
            return Err(Failure::new(
                72,
                "the 'size' and 'max' fields are only allowed when 'capped' is true",
            ));
        }
        options.remove("capped");
    }
    check_options(call, &options)?;
    if let Some(existing) = namespace::seen(call, &call.db, name) {
        if existing.options() == options && !call.in_transaction() {
            return reply(Document::new());
        }
        let message =
            format!("namespace {} already exists, but with different options", existing.namespace());
        return Err(Failure::new(48, message));
    }
    let made = namespace::create(call, &call.db, name, &options).await;
    let is_same = || namespace::seen(call, &call.db, name).is_some_and(|found| found.options() == options);
    match made {
        // Somebody was quicker.
        Err(failure) if failure.code == 48 && !call.in_transaction() && is_same() => {}
        made => drop(made?),
    }
    reply(Document::new())
}

/// Refuses options that cannot be right, and those that would be kept without an effect.
pub fn check_options(call: &Call<'_>, options: &Document) -> Result<()> {
    if let Ok(validator) = options.get_document("validator") {
        crate::validation::check(validator)?;
    }
    match options.get("validationLevel").map(|level| level.as_str()) {
        None | Some(Some("off" | "strict" | "moderate")) => {}
        _ => return Err(Failure::bad_value("validationLevel must be off, strict or moderate")),
    }
    match options.get("validationAction").map(|action| action.as_str()) {
        None | Some(Some("error" | "warn" | "errorAndLog")) => {}
        _ => return Err(Failure::bad_value("validationAction must be error, warn or errorAndLog")),
    }
    if options.contains_key("pipeline") && !options.contains_key("viewOn") {
        return Err(Failure::new(72, "'pipeline' requires 'viewOn' to also be specified"));
    }
    if let Ok(source) = options.get_str("viewOn") {
        crate::call::check_collection_name(&call.db, source)?;
        let stages = options.get_array("pipeline").map(Vec::as_slice).unwrap_or_default();
        let names = stages.iter().filter_map(|stage| stage.as_document()?.keys().next());
        for name in names {
            if matches!(name.as_str(), "$out" | "$merge" | "$changeStream") {
                let message =
                    format!("The aggregation stage {name} cannot be used in the definition of a view");
                return Err(Failure::new(167, message));
            }
        }
    }
    Ok(())
}
