//! What the server itself asks, for somebody who has shown an account key already.
//!
//! Commands take the way of every other command from the table on; only the wire and the authentication are
//! left out. What the protocol has no word for is a function here.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use bson::{Bson, Document, RawDocumentBuf};
use mayfly_engine::{DocumentId, Error, Fate, Resource};

use crate::{
    auth::Role,
    connection::Connection,
    failure::Failure,
    namespace,
    service::Mongo,
    wire::{Request, check_document},
};

impl Mongo {
    /// Runs one command on a database, as the account with this role. A refusal is an answer too: its `ok` is
    /// 0.
    pub async fn run_as_account(&self, database: &str, command: &Document, role: Role) -> Document {
        let body = RawDocumentBuf::try_from(command).map_err(|error| error.to_string());
        let body = body.and_then(|body| check_document(&body).map(|()| body));
        let body = match body {
            Ok(body) => body,
            Err(message) => return Failure::new(22, message).to_reply(),
        };
        let request = Arc::new(Request::without_wire(database, body));
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let connection = Arc::new(Connection::new(nowhere, nowhere).held_to(self.accounts.user(role)));
        let reply = self.answer(&connection, &request).await;
        let mut reply = Document::try_from(reply).unwrap_or_default();
        // Times that clients of the protocol hand on to each other.
        reply.remove("$clusterTime");
        reply.remove("operationTime");
        reply
    }

    /// When each document of a collection goes whose `_id` stands in `ids`, a list; none for those that are
    /// not there.
    pub async fn fates(
        &self,
        database: &str,
        collection: &str,
        wanted: &Document,
    ) -> mayfly_engine::Result<Vec<Option<Fate>>> {
        let found = namespace::find(&self.engine, database, collection);
        let found = found.filter(|collection| collection.container.is_collection());
        let container = found.ok_or(Error::NotFound(Resource::Container))?.container;
        let Some(Bson::Array(ids)) = wanted.get("ids") else {
            return Err(Error::bad_request("`ids` is a list of ids."));
        };
        let now = self.engine.now().await?;
        let mut fates = Vec::with_capacity(ids.len());
        for id in ids {
            let id = RawDocumentBuf::try_from(&bson::doc! { "_id": id.clone() })?;
            let id = id.get("_id")?.map(DocumentId::value);
            let record = match &id {
                Some(id) => self.engine.read_collection(&container, id, None, now).await?,
                None => None,
            };
            fates.push(record.map(|record| self.engine.fate(&container, &record)));
        }
        Ok(fates)
    }
}
