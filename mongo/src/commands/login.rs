//! Authentication: the SASL conversation, who is in, and out again.

use bson::{Binary, Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc, spec::BinarySubtype};

use super::reply;
use crate::{
    auth::{Credentials, Mechanism, ScramServer, Step, User, Verifier},
    call::Call,
    connection::{Conversation, Stage},
    failure::{Failure, Result},
    users,
};

fn failed() -> Failure {
    Failure::new(18, "Authentication failed.")
}

fn payload_of(document: &RawDocument) -> Result<&[u8]> {
    match document.get("payload")? {
        Some(RawBsonRef::Binary(binary)) => Ok(binary.bytes),
        Some(RawBsonRef::String(text)) => Ok(text.as_bytes()),
        _ => Err(Failure::new(40414, "BSON field 'saslStart.payload' is missing but a required field")),
    }
}

fn answer(conversation: i32, done: bool, payload: &str) -> Document {
    let payload = Binary { subtype: BinarySubtype::Generic, bytes: payload.as_bytes().to_vec() };
    doc! { "conversationId": conversation, "done": done, "payload": payload }
}

/// `saslStart`.
pub async fn start(call: &Call<'_>) -> Result<RawDocumentBuf> {
    reply(begin(call, call.body(), &call.db).await?)
}

/// The same inside of `hello`, to save a round trip.
pub async fn speculative(call: &Call<'_>, start: &RawDocument) -> Result<Document> {
    let db = start.get_str("db").unwrap_or("admin");
    begin(call, start, db).await
}

async fn begin(call: &Call<'_>, start: &RawDocument, db: &str) -> Result<Document> {
    let name = start.get_str("mechanism").unwrap_or_default();
    let mechanism = Mechanism::from_name(name).ok_or_else(|| {
        Failure::new(334, format!("Received authentication for mechanism {name} which is not supported"))
    })?;
    let step = Step::client_first(payload_of(start)?).ok_or_else(failed)?;
    let random = [call.mongo.engine.ids().unique(), call.mongo.engine.ids().unique()].concat();
    let verifier = verifier(call, db, &step.user, mechanism).await?;
    let known = verifier.is_some();
    let verifier = verifier.unwrap_or_else(|| {
        // Nobody learns before the proof that there is no such user.
        let salt = call.mongo.accounts.pretended_salt(mechanism, &step.user);
        let credentials = Credentials {
            salt,
            rounds: mechanism.rounds(),
            stored_key: random.clone(),
            server_key: random.clone(),
        };
        let user = User { name: String::new(), database: String::new(), roles: Vec::new() };
        Verifier { candidates: vec![(credentials, user)] }
    });
    let server = ScramServer::start(mechanism, step, verifier, &random[..24]).ok_or_else(failed)?;
    let first = server.server_first().to_owned();
    let skip_empty = start
        .get_document("options")
        .is_ok_and(|options| options.get_bool("skipEmptyExchange").unwrap_or(false));
    call.connection.set_conversation(Some(Conversation {
        id: 1,
        database: db.to_owned(),
        skip_empty,
        stage: Stage::Proof(known.then_some(server)),
    }));
    Ok(answer(1, false, &first))
}

/// What to check a user's proof against.
async fn verifier(
    call: &Call<'_>,
    db: &str,
    user: &str,
    mechanism: Mechanism,
) -> Result<Option<Verifier<User>>> {
    if call.mongo.accounts.is_account(user) {
        return Ok(call.mongo.accounts.verifier(mechanism));
    }
    Ok(users::find(call.mongo, db, user, call.now).await?.and_then(|user| user.verifier(mechanism)))
}

/// `saslContinue`.
pub async fn go_on(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let Some(mut conversation) = call.connection.conversation() else {
        return Err(Failure::new(17, "No SASL session state found"));
    };
    if call.integer("conversationId")? != Some(i64::from(conversation.id)) {
        return Err(Failure::new(17, "sasl: Mismatched conversation id"));
    }
    match conversation.stage {
        Stage::Empty => {
            call.connection.set_conversation(None);
            reply(answer(conversation.id, true, ""))
        }
        Stage::Proof(server) => {
            call.connection.set_conversation(None);
            let finished = server.and_then(|server| server.finish(payload_of(call.body()).ok()?));
            let (last, user) = finished.ok_or_else(failed)?;
            call.connection.let_in(user);
            let (id, done) = (conversation.id, conversation.skip_empty);
            if !done {
                conversation.stage = Stage::Empty;
                call.connection.set_conversation(Some(conversation));
            }
            reply(answer(id, done, &last))
        }
    }
}

/// The mechanisms of `db.user`, if there is such a user.
pub async fn mechanisms(call: &Call<'_>, user: &str) -> Result<Option<Vec<Bson>>> {
    let (db, name) = user.split_once('.').unwrap_or(("admin", user));
    let known = if call.mongo.accounts.is_account(name) {
        Mechanism::ALL.to_vec()
    } else {
        match users::find(call.mongo, db, name, call.now).await? {
            Some(user) => user.mechanisms(),
            None => return Ok(None),
        }
    };
    Ok(Some(known.into_iter().rev().map(|mechanism| Bson::from(mechanism.name())).collect()))
}

/// Who a client is, by its certificate. There are no certificates of clients.
pub async fn authenticate(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let mechanism = call.text("mechanism")?.unwrap_or("MONGODB-X509");
    Err(Failure::new(334, format!("Received authentication for mechanism {mechanism} which is not enabled")))
}

/// `logout`.
pub async fn logout(call: &Call<'_>) -> Result<RawDocumentBuf> {
    call.connection.log_out(&call.db);
    reply(Document::new())
}

/// `connectionStatus`.
pub async fn connection_status(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let who = call.connection.who();
    let users = &who.users;
    let names: Vec<Bson> = users.iter().map(|user| Bson::from(user.to_document())).collect();
    let roles: Vec<Bson> = users.iter().flat_map(User::roles_document).collect();
    let mut info = doc! { "authenticatedUsers": names, "authenticatedUserRoles": roles };
    if call.flag("showPrivileges")? {
        info.insert("authenticatedUserPrivileges", Vec::<Bson>::new());
    }
    reply(doc! { "authInfo": info })
}
