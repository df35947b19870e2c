//! Messages as bytes: what is read, what is refused, what is closed.

use super::*;
use bson::rawdoc;
use proptest::prelude::*;

fn framed(opcode: i32, payload: &[u8]) -> (Header, Vec<u8>) {
    (Header { length: HEADER_LEN + payload.len(), request_id: 7, response_to: 0, opcode }, payload.to_vec())
}

fn msg(flags: u32, sections: &[Vec<u8>]) -> Vec<u8> {
    let mut payload = flags.to_le_bytes().to_vec();
    sections.iter().for_each(|section| payload.extend_from_slice(section));
    payload
}

fn body(document: RawDocumentBuf) -> Vec<u8> {
    [&[0][..], document.as_bytes()].concat()
}

fn sequence(name: &str, documents: &[RawDocumentBuf]) -> Vec<u8> {
    let mut inside = name.as_bytes().to_vec();
    inside.push(0);
    documents.iter().for_each(|document| inside.extend_from_slice(document.as_bytes()));
    [&[1][..], &(inside.len() as i32 + 4).to_le_bytes(), &inside].concat()
}

fn read(payload: &[u8]) -> Result<Request, WireError> {
    let (header, payload) = framed(opcode::MSG, payload);
    parse(&header, &payload)
}

fn code(result: Result<Request, WireError>) -> i32 {
    match result {
        Err(WireError::Refuse { code, .. }) => code,
        Err(WireError::Close(_)) => -1,
        Ok(_) => 0,
    }
}

#[test]
fn a_body_and_a_sequence_in_either_order() {
    let command = body(rawdoc! { "insert": "c", "$db": "d" });
    let documents = sequence("documents", &[rawdoc! { "a": 1 }, rawdoc! {}]);
    for sections in [[command.clone(), documents.clone()], [documents, command]] {
        let request = read(&msg(0, &sections)).unwrap();
        assert_eq!(request.name(), "insert");
        assert_eq!(request.sequences, [("documents".to_owned(), vec![rawdoc! { "a": 1 }, rawdoc! {}])]);
    }
}

#[test]
fn wrong_sections_have_their_codes() {
    let command = body(rawdoc! { "ping": 1 });
    assert_eq!(code(read(&msg(0, &[command.clone(), command.clone()]))), 40430);
    let twice = [command.clone(), sequence("x", &[]), sequence("x", &[])];
    assert_eq!(code(read(&msg(0, &twice))), 40431);
    assert_eq!(code(read(&msg(0, &[command.clone(), sequence("ping", &[])]))), 40433);
    assert_eq!(code(read(&msg(0, &[]))), 40587);
    assert_eq!(code(read(&msg(0, &[vec![2]]))), 13);
    assert_eq!(code(read(&msg(0, &[vec![9]]))), 40432);
    assert_eq!(code(read(&msg(1 << 2, std::slice::from_ref(&command)))), -1);
    assert_eq!(code(read(&msg(1 << 20, &[command]))), 0);
}

#[test]
fn checksums_are_verified_and_given() {
    let form = Form::Msg { checksum: true, more_to_come: false, exhaust_allowed: false };
    let reply = encode_reply(form, None, 1, 2, &rawdoc! { "ok": 1.0 }, false);
    let mut start = [0; HEADER_LEN];
    start.copy_from_slice(&reply[..HEADER_LEN]);
    let header = Header::parse(&start).unwrap();
    assert_eq!(header.length, reply.len());
    let request = parse(&header, &reply[HEADER_LEN..]).unwrap();
    assert_eq!(request.body, rawdoc! { "ok": 1.0 });
    let mut broken = reply;
    let end = broken.len() - 1;
    broken[end] ^= 1;
    assert_eq!(code(parse(&header, &broken[HEADER_LEN..])), -1);
}

#[test]
fn answers_are_compressed_like_their_requests() {
    let form = Form::Msg { checksum: false, more_to_come: false, exhaust_allowed: false };
    for (_, compressor) in Compressor::ALL {
        let reply = encode_reply(form, Some(compressor), 1, 2, &rawdoc! { "text": "x".repeat(500) }, true);
        let mut start = [0; HEADER_LEN];
        start.copy_from_slice(&reply[..HEADER_LEN]);
        let header = Header::parse(&start).unwrap();
        assert_eq!((header.opcode, header.length), (opcode::COMPRESSED, reply.len()));
        let read = parse(&header, &reply[HEADER_LEN..]).unwrap();
        assert_eq!(read.compressor, Some(compressor));
        assert!(read.is_silent());
    }
}

#[test]
fn old_queries_are_for_the_handshake() {
    let query = |namespace: &str| {
        let mut payload = vec![0; 4];
        payload.extend_from_slice(namespace.as_bytes());
        payload.push(0);
        payload.extend_from_slice(&[0; 8]);
        payload.extend_from_slice(rawdoc! { "isMaster": 1 }.as_bytes());
        let (header, payload) = framed(opcode::QUERY, &payload);
        parse(&header, &payload)
    };
    assert_eq!(query("admin.$cmd").unwrap().database.as_deref(), Some("admin"));
    assert_eq!(code(query("test.c")), 5_739_101);
}

proptest! {
    /// Whatever comes, the answer is a request or an error.
    #[test]
    fn nothing_panics(opcode in prop::sample::select(vec![1, 2004, 2012, 2013]), bytes: Vec<u8>) {
        let (header, payload) = framed(opcode, &bytes);
        let _ = parse(&header, &payload);
    }

    #[test]
    fn damaged_messages_do_not_panic(at in 0usize..90, byte: u8) {
        let mut payload = msg(0, &[body(rawdoc! { "insert": "c", "x": { "y": [1, "z"] } }),
            sequence("documents", &[rawdoc! { "a": "b" }])]);
        if let Some(place) = payload.get_mut(at) {
            *place = byte;
        }
        let _ = read(&payload);
    }
}
