//! `listDatabases` and `listCollections`.

use bson::{Bson, Document, RawDocumentBuf, doc};

use super::reply;
use crate::{
    call::Call,
    cursor::{Cursor, Ready},
    failure::Result,
    filtering::{Surroundings, parse_filter},
    namespace::{self, Collection, id_index},
    service::to_raw,
};

/// Databases that clients expect though nothing is in them.
const ALWAYS: [&str; 3] = ["admin", "config", "local"];

/// `listDatabases`.
pub async fn databases(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let filter = parse_filter(call.document("filter")?)?;
    let names_only = call.flag("nameOnly")?;
    let engine = &call.mongo.engine;
    let mut names: Vec<String> = engine
        .databases()
        .iter()
        .map(|database| database.name.clone())
        .filter(|name| !namespace::all_seen(call, name).is_empty())
        .collect();
    names.extend(
        ALWAYS
            .iter()
            .filter(|name| !names.iter().any(|other| other == **name))
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>(),
    );
    names.sort();
    let surroundings = Surroundings::of(call)?;
    let (mut shown, mut total) = (Vec::new(), 0_i64);
    for name in names {
        let mut size = 0;
        for collection in namespace::all_seen(call, &name) {
            size += engine.usage(&collection.container, call.now).await?.live.bytes as i64;
        }
        let whole =
            doc! { "name": &name, "sizeOnDisk": size, "empty": size == 0 && ALWAYS.contains(&name.as_str()) };
        if !surroundings.matches(&filter, &to_raw(&whole))? {
            continue;
        }
        total += size;
        shown.push(Bson::from(if names_only {
            doc! { "name": name }
        } else {
            whole
        }));
    }
    let mut answer = doc! { "databases": shown };
    if !names_only {
        answer.extend(doc! { "totalSize": total, "totalSizeMb": total / (1024 * 1024) });
    }
    reply(answer)
}

/// `listCollections`.
pub async fn collections(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let filter = parse_filter(call.document("filter")?)?;
    let names_only = call.flag("nameOnly")?;
    let surroundings = Surroundings::of(call)?;
    let all = namespace::all_seen(call, &call.db);
    let mut shown = std::collections::VecDeque::new();
    let mut entries: Vec<Document> = all.iter().map(entry).collect();
    if all.iter().any(|collection| collection.view().is_some()) {
        let uuid = all.first().map_or(Bson::Null, Collection::uuid);
        let info = doc! { "readOnly": false, "uuid": uuid };
        entries.push(doc! { "name": "system.views", "type": "collection", "options": {}, "info": info, "idIndex": id_index() });
    }
    for whole in entries {
        if surroundings.matches(&filter, &to_raw(&whole))? {
            let name = whole.get_str("name").unwrap_or_default();
            let kind = whole.get_str("type").unwrap_or_default();
            let brief = doc! { "name": name, "type": kind };
            shown.push_back(to_raw(if names_only { &brief } else { &whole }));
        }
    }
    let size = match call.document("cursor")? {
        Some(cursor) => {
            cursor.get("batchSize")?.and_then(crate::call::integer).map(|size| size.max(0) as usize)
        }
        None => None,
    };
    let cursor = Cursor::new(call, format!("{}.$cmd.listCollections", call.db), Ready(shown));
    call.mongo.cursors.first(call.mongo, cursor, size, false, call.now).await
}

fn entry(collection: &Collection) -> Document {
    let options = collection.options();
    if collection.view().is_some() {
        return doc! {
            "name": &collection.name, "type": "view", "options": options, "info": { "readOnly": true },
        };
    }
    let info = doc! { "readOnly": false, "uuid": collection.uuid() };
    let clustered = options.contains_key("clusteredIndex");
    let mut entry = doc! { "name": &collection.name, "type": "collection", "options": options, "info": info };
    if !clustered {
        entry.insert("idIndex", id_index());
    }
    entry
}
