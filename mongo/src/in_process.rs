//! Commands from inside the server, of somebody who has shown an account key already.
//!
//! They take the way of every other command from the table on; only the wire and the authentication are left out.

use std::net::{Ipv4Addr, SocketAddr};

use bson::{Document, RawDocumentBuf};

use crate::{
    auth::Role,
    connection::Connection,
    failure::Failure,
    service::Mongo,
    wire::{Form, Request, check_document},
};

impl Mongo {
    /// Runs one command on a database, as the account with this role. A refusal is an answer too: its `ok` is 0.
    pub async fn run_as_account(&self, database: &str, command: &Document, role: Role) -> Document {
        let body = RawDocumentBuf::try_from(command).map_err(|error| error.to_string());
        let body = body.and_then(|body| check_document(&body).map(|()| body));
        let body = match body {
            Ok(body) => body,
            Err(message) => return Failure::new(22, message).to_reply(),
        };
        let request = Request {
            id: 0,
            form: Form::Msg { checksum: false, more_to_come: false, exhaust_allowed: false },
            compressor: None,
            body,
            sequences: Vec::new(),
            database: Some(database.to_owned()),
        };
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let connection = Connection::new(nowhere, nowhere).held_to(self.accounts.user(role));
        let reply = self.answer(&connection, &request).await;
        let mut reply = Document::try_from(reply).unwrap_or_default();
        // Times that clients of the protocol hand on to each other.
        reply.remove("$clusterTime");
        reply.remove("operationTime");
        reply
    }
}
