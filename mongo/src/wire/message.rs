//! A message as a request, and an answer as a message.
//!
//! The arguments of a command come as one document and any number of *sequences*: arrays of documents that stand
//! beside it. A handler asks for either under the same name.

use bson::{RawDocument, RawDocumentBuf};

use super::{
    compress::Compressor,
    frame::{HEADER_LEN, Header, MESSAGE_BYTES_MAX, opcode, word},
    validate::check_document,
};

const CHECKSUM_PRESENT: u32 = 1;
const MORE_TO_COME: u32 = 1 << 1;
const EXHAUST_ALLOWED: u32 = 1 << 16;
/// Of these a receiver must understand every one that is set.
const REQUIRED_BITS: u32 = 0xFFFF;

/// How the request came, and so how it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// OP_MSG.
    Msg {
        /// The answer carries a checksum, because the request did.
        checksum: bool,
        /// Nobody waits for an answer.
        more_to_come: bool,
        /// The client takes a stream of answers.
        exhaust_allowed: bool,
    },
    /// OP_QUERY on `admin.$cmd` or another database's.
    Query,
}

/// What a client asks.
#[derive(Clone, Debug)]
pub struct Request {
    /// The client's number for it.
    pub id: i32,
    /// How it came.
    pub form: Form,
    /// How it was compressed.
    pub compressor: Option<Compressor>,
    /// The command with its arguments.
    pub body: RawDocumentBuf,
    /// Arguments that came as sequences.
    pub sequences: Vec<(String, Vec<RawDocumentBuf>)>,
    /// The database, for a query; commands have it among their arguments.
    pub database: Option<String>,
}

impl Request {
    /// One that did not come by the wire: of the server itself, or of another node.
    pub fn without_wire(database: &str, body: RawDocumentBuf) -> Self {
        Self {
            id: 0,
            form: Form::Msg { checksum: false, more_to_come: false, exhaust_allowed: false },
            compressor: None,
            body,
            sequences: Vec::new(),
            database: Some(database.to_owned()),
        }
    }

    /// The name of the command: the first field.
    pub fn name(&self) -> &str {
        self.body.iter_elements().next().and_then(Result::ok).map_or("", |element| element.key().as_str())
    }

    /// Whether nobody waits for an answer.
    pub fn is_silent(&self) -> bool {
        matches!(self.form, Form::Msg { more_to_come: true, .. })
    }

    /// Whether a stream of answers is welcome.
    pub fn is_exhaust(&self) -> bool {
        matches!(self.form, Form::Msg { exhaust_allowed: true, .. })
    }
}

/// Why a message is no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The connection cannot go on: what follows cannot be trusted.
    Close(&'static str),
    /// The client gets an error with this code.
    Refuse {
        /// How it would have been answered.
        form: Form,
        /// The error's code.
        code: i32,
        /// What is wrong.
        message: String,
    },
}

/// Reads the message behind a header.
pub fn parse(header: &Header, payload: &[u8]) -> Result<Request, WireError> {
    match header.opcode {
        opcode::MSG => parse_msg(header, header.opcode, payload, None),
        opcode::QUERY => parse_query(header, payload),
        opcode::COMPRESSED => {
            let (inner, id) = (word(payload, 0), payload.get(8));
            let length = word(payload, 4).and_then(|length| usize::try_from(length).ok());
            let (Some(inner), Some(length), Some(id)) = (inner, length, id) else {
                return Err(WireError::Close("a compressed message without its header"));
            };
            if length > MESSAGE_BYTES_MAX - HEADER_LEN {
                return Err(WireError::Close("a compressed message that is too long"));
            }
            let compressor =
                Compressor::from_wire(*id).ok_or(WireError::Close("a compression nobody offered"))?;
            let unpacked = compressor
                .decompress(&payload[9..], length)
                .ok_or(WireError::Close("a compressed message that cannot be read"))?;
            match inner {
                opcode::MSG => parse_msg(header, inner, &unpacked, Some(compressor)),
                opcode::QUERY => parse_query(header, &unpacked),
                _ => Err(WireError::Close("an unknown kind of message")),
            }
        }
        _ => Err(WireError::Close("an unknown kind of message")),
    }
}

fn parse_msg(
    header: &Header,
    opcode: i32,
    payload: &[u8],
    compressor: Option<Compressor>,
) -> Result<Request, WireError> {
    let flags = word(payload, 0).ok_or(WireError::Close("a message without flags"))? as u32;
    if flags & REQUIRED_BITS & !(CHECKSUM_PRESENT | MORE_TO_COME) != 0 {
        return Err(WireError::Close("a message with unknown flags"));
    }
    let mut sections = &payload[4..];
    if flags & CHECKSUM_PRESENT != 0 {
        let Some((rest, checksum)) = sections.split_last_chunk::<4>() else {
            return Err(WireError::Close("a message without its checksum"));
        };
        let mut covered = Vec::with_capacity(HEADER_LEN);
        Header { length: payload.len() + HEADER_LEN, opcode, ..*header }.write(&mut covered);
        let sum = crc32c::crc32c(&covered);
        let sum = crc32c::crc32c_append(sum, &payload[..payload.len() - 4]);
        if sum != u32::from_le_bytes(*checksum) {
            return Err(WireError::Close("a message with a wrong checksum"));
        }
        sections = rest;
    }
    let form = Form::Msg {
        checksum: flags & CHECKSUM_PRESENT != 0,
        more_to_come: flags & MORE_TO_COME != 0,
        exhaust_allowed: flags & EXHAUST_ALLOWED != 0,
    };
    let refuse = |code: i32, message: String| WireError::Refuse { form, code, message };
    let mut body: Option<RawDocumentBuf> = None;
    let mut sequences: Vec<(String, Vec<RawDocumentBuf>)> = Vec::new();
    while let Some((kind, rest)) = sections.split_first() {
        match kind {
            0 => {
                let (document, rest) = take_document(rest).map_err(|text| refuse(INVALID_BSON, text))?;
                if body.replace(document).is_some() {
                    return Err(refuse(40430, "Multiple body sections in message".into()));
                }
                sections = rest;
            }
            1 => {
                let (name, documents, rest) =
                    take_sequence(rest).map_err(|text| refuse(INVALID_BSON, text))?;
                if sequences.iter().any(|(other, _)| *other == name) {
                    return Err(refuse(40431, format!("Duplicate document sequence: {name}")));
                }
                sequences.push((name, documents));
                sections = rest;
            }
            2 => return Err(refuse(13, "Unsupported Security Token provided".into())),
            other => return Err(refuse(40432, format!("Unknown section kind {other}"))),
        }
    }
    let body = body.ok_or_else(|| refuse(40587, "OP_MSG messages must have a body".into()))?;
    for (name, _) in &sequences {
        if matches!(body.get(name), Ok(Some(_))) {
            let message = format!("Duplicate field between body and document sequence {name}");
            return Err(refuse(40433, message));
        }
    }
    Ok(Request { id: header.request_id, form, compressor, body, sequences, database: None })
}

const INVALID_BSON: i32 = 22;

fn take_document(bytes: &[u8]) -> Result<(RawDocumentBuf, &[u8]), String> {
    const CUT: &str = "a document that ends too early";
    let length = word(bytes, 0).and_then(|length| usize::try_from(length).ok()).ok_or(CUT)?;
    let (document, rest) = bytes.split_at_checked(length).ok_or(CUT)?;
    let checked = RawDocument::from_bytes(document).map_err(|error| error.to_string())?;
    check_document(checked)?;
    Ok((checked.to_owned(), rest))
}

type Sequence<'a> = (String, Vec<RawDocumentBuf>, &'a [u8]);

fn take_sequence(bytes: &[u8]) -> Result<Sequence<'_>, String> {
    const CUT: &str = "a document sequence that ends too early";
    let length = word(bytes, 0).and_then(|length| usize::try_from(length).ok()).ok_or(CUT)?;
    let (section, rest) = bytes.split_at_checked(length).ok_or(CUT)?;
    let section = section.get(4..).ok_or(CUT)?;
    let (name, mut documents) = take_cstring(section).ok_or(CUT)?;
    let mut found = Vec::new();
    while !documents.is_empty() {
        let (document, rest) = take_document(documents)?;
        found.push(document);
        documents = rest;
    }
    Ok((name.to_owned(), found, rest))
}

fn take_cstring(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

fn parse_query(header: &Header, payload: &[u8]) -> Result<Request, WireError> {
    const DAMAGED: WireError = WireError::Close("a query that cannot be read");
    let rest = payload.get(4..).ok_or(DAMAGED)?;
    let (namespace, rest) = take_cstring(rest).ok_or(DAMAGED)?;
    let refuse = |code, message: String| WireError::Refuse { form: Form::Query, code, message };
    let (body, _) =
        take_document(rest.get(8..).ok_or(DAMAGED)?).map_err(|text| refuse(INVALID_BSON, text))?;
    let Some(database) = namespace.strip_suffix(".$cmd") else {
        let message = "OP_QUERY is no longer supported. The client driver may require an upgrade.";
        return Err(refuse(5_739_101, message.into()));
    };
    Ok(Request {
        id: header.request_id,
        form: Form::Query,
        compressor: None,
        body,
        sequences: Vec::new(),
        database: Some(database.to_owned()),
    })
}

/// The bytes of an answer.
///
/// `more` says that another answer to the same request follows.
pub fn encode_reply(
    form: Form,
    compressor: Option<Compressor>,
    id: i32,
    response_to: i32,
    body: &RawDocument,
    more: bool,
) -> Vec<u8> {
    let document = body.as_bytes();
    let mut out = Vec::with_capacity(HEADER_LEN + document.len() + 32);
    out.resize(HEADER_LEN, 0);
    let opcode = match form {
        Form::Query => {
            const AWAIT_CAPABLE: i32 = 8;
            out.extend_from_slice(&AWAIT_CAPABLE.to_le_bytes());
            out.extend_from_slice(&0_i64.to_le_bytes());
            out.extend_from_slice(&0_i32.to_le_bytes());
            out.extend_from_slice(&1_i32.to_le_bytes());
            out.extend_from_slice(document);
            opcode::REPLY
        }
        Form::Msg { checksum, .. } => {
            // What is compressed is protected by its own format, and the checksum would have to cover two headers.
            let checksum = checksum && compressor.is_none();
            let flags = if checksum { CHECKSUM_PRESENT } else { 0 } | if more { MORE_TO_COME } else { 0 };
            out.extend_from_slice(&flags.to_le_bytes());
            out.push(0);
            out.extend_from_slice(document);
            if checksum {
                out.extend_from_slice(&[0; 4]);
            }
            opcode::MSG
        }
    };
    let mut header = Header { length: out.len(), request_id: id, response_to, opcode };
    if let Some((compressor, packed)) = compressor.and_then(|c| Some((c, c.compress(&out[HEADER_LEN..])?))) {
        let unpacked = out.len() - HEADER_LEN;
        out.truncate(0);
        header.length = HEADER_LEN + 9 + packed.len();
        header.opcode = opcode::COMPRESSED;
        header.write(&mut out);
        out.extend_from_slice(&opcode.to_le_bytes());
        out.extend_from_slice(&(unpacked as i32).to_le_bytes());
        out.push(compressor as u8);
        out.extend_from_slice(&packed);
        return out;
    }
    let mut start = Vec::with_capacity(HEADER_LEN);
    header.write(&mut start);
    out[..HEADER_LEN].copy_from_slice(&start);
    if matches!(form, Form::Msg { checksum: true, .. }) {
        let end = out.len() - 4;
        let sum = crc32c::crc32c(&out[..end]);
        out[end..].copy_from_slice(&sum.to_le_bytes());
    }
    out
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
