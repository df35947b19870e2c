//! The vectors of the protocol both ways, and round trips with an encoder and a decoder that only the tests need.

use proptest::prelude::*;

use super::primitives::{OPERATION, RESULT, Reader, put_binary};
use super::*;

const REQUEST: &str = "81 F0 D8 FF 7F 01 0A 00 00 00 81 F1 D8 FF 7F 19 00 00 00 33 01 71 95 81 70 54 E1 7F 43 00 00 \
                       00 00 02 00 00 00 0A 7B 22 69 64 22 3A 22 61 22 7D";
const RESPONSE: &str = "81 F0 D8 FF 7F 01 0A 00 00 00 81 F1 D8 FF 7F 27 00 00 00 87 82 87 50 81 71 54 E1 7F 0F C9 00 \
                        00 00 00 00 00 00 03 22 65 22 0A 7B 22 69 64 22 3A 22 61 22 7D 10 06 00 00 00 00 00 00 16 40";

fn bytes(hex: &str) -> Bytes {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn create() -> BatchOperation {
    BatchOperation {
        operation_type: OperationType::Create,
        id: None,
        resource_body: Some(Bytes::from_static(br#"{"id":"a"}"#)),
        partition_key: None,
        if_match: None,
        if_none_match: None,
        indexing_directive: None,
        ttl: None,
        minimal_return: false,
    }
}

fn created() -> BatchResult {
    BatchResult {
        status: 201,
        substatus: 0,
        etag: Some("\"e\"".into()),
        resource_body: Some(Bytes::from_static(br#"{"id":"a"}"#)),
        request_charge: 5.5,
        retry_after_ms: None,
    }
}

fn encode_operation(operation: &BatchOperation) -> Vec<u8> {
    use OperationType::*;
    let mut out = OPERATION.to_vec();
    let bit = |present: bool, place: u8| u8::from(present) << place;
    out.push(
        0b11 | bit(operation.partition_key.is_some(), 2)
            | bit(operation.id.is_some(), 4)
            | bit(operation.resource_body.is_some(), 6),
    );
    let number = match operation.operation_type {
        Create => 0,
        Patch => 1,
        Read => 2,
        Delete => 4,
        Replace => 5,
        Upsert => 20,
    };
    out.extend_from_slice(&i32::to_le_bytes(number));
    out.extend_from_slice(&2_i32.to_le_bytes());
    for column in [
        operation.partition_key.as_ref().map(String::as_bytes),
        operation.id.as_ref().map(String::as_bytes),
        operation.resource_body.as_deref(),
    ] {
        column.into_iter().for_each(|column| put_binary(&mut out, column));
    }
    let texts =
        [(8, &operation.indexing_directive), (9, &operation.if_match), (10, &operation.if_none_match)];
    for (token, text) in texts {
        if let Some(text) = text {
            out.extend_from_slice(&[0x14, token]);
            put_binary(&mut out, text.as_bytes());
        }
    }
    if let Some(ttl) = operation.ttl {
        out.extend_from_slice(&[0x07, 11]);
        out.extend_from_slice(&ttl.to_le_bytes());
    }
    if operation.minimal_return {
        out.extend_from_slice(&[0x03, 12]);
    }
    out
}

fn encode_operations(operations: &[BatchOperation]) -> Bytes {
    records::write(operations.iter().map(encode_operation))
}

fn decode_results(body: &Bytes) -> Vec<BatchResult> {
    let decode = |row: Bytes| {
        let mut row = Reader(row);
        assert_eq!(row.array().unwrap(), RESULT);
        let mask = row.byte().unwrap();
        let (status, substatus) = (row.i32().unwrap() as u16, row.u32().unwrap());
        let etag = (mask & 4 != 0).then(|| row.text("eTag").unwrap());
        let resource_body = (mask & 8 != 0).then(|| row.binary().unwrap());
        assert_eq!(row.array().unwrap(), [0x10, 6]);
        let request_charge = f64::from_le_bytes(row.array().unwrap());
        let retry_after_ms = (!row.is_empty()).then(|| {
            assert_eq!(row.array().unwrap(), [0x0B, 5]);
            row.u32().unwrap()
        });
        assert!(row.is_empty());
        BatchResult { status, substatus, etag, resource_body, request_charge, retry_after_ms }
    };
    records::read(body).unwrap().into_iter().map(decode).collect()
}

#[test]
fn the_vectors_of_the_protocol() {
    assert!(is_hybrid_row(&bytes(REQUEST)));
    assert!(!is_hybrid_row(b"[]"));
    assert_eq!(parse_operations(&bytes(REQUEST)), Ok(vec![create()]));
    assert_eq!(encode_operations(&[create()]), bytes(REQUEST));
    assert_eq!(encode_results(&[created()]), bytes(RESPONSE));
    assert_eq!(decode_results(&bytes(RESPONSE)), [created()]);
}

/// A request whose only record is this row; the checksum is right.
fn with_row(row: &str) -> Result<Vec<BatchOperation>, HybridRowError> {
    parse_operations(&records::write([bytes(row).to_vec()].into_iter()))
}

#[test]
fn segments_may_repeat_and_carry_more() {
    let one = bytes(REQUEST);
    let twice = Bytes::from([&one[..], &one[..]].concat());
    assert_eq!(parse_operations(&twice), Ok(vec![create(), create()]));
    let commented = bytes("81 F0 D8 FF 7F 03 0C 00 00 00 01 78");
    assert_eq!(parse_operations(&Bytes::from([&commented[..], &one[10..]].concat())), Ok(vec![create()]));
    assert_eq!(parse_operations(&encode_results(&[])), Ok(vec![]));
}

#[test]
fn properties_without_a_number_are_passed_over() {
    // A property "ab" of each type, then the one that matters.
    let head = "81 70 54 E1 7F 03 02 00 00 00 02 00 00 00";
    let unknown = "14 0F 61 62 01 78 07 0F 61 62 00 00 00 00 0B 0F 61 62 00 00 00 00 02 0F 61 62 \
                   10 0F 61 62 00 00 00 00 00 00 00 00";
    let operations = with_row(&format!("{head} {unknown} 07 0B 0A 00 00 00 02 0C")).unwrap();
    assert_eq!((operations[0].ttl, operations[0].minimal_return), (Some(10), false));
}

#[test]
fn what_is_wrong_is_named() {
    use HybridRowError::*;
    let head = "81 70 54 E1 7F 03 02 00 00 00 02 00 00 00";
    for (row, error) in [
        ("", Truncated),
        ("81 71 54 E1 7F 03 02 00 00 00 02 00 00 00", UnexpectedRow),
        ("81 70 54 E1 7F 03 03 00 00 00 02 00 00 00", InvalidValue { field: "operationType" }),
        ("81 70 54 E1 7F 02 02 00 00 00 02 00 00 00", InvalidValue { field: "operationType" }),
        ("81 70 54 E1 7F 03 02 00 00 00 03 00 00 00", InvalidValue { field: "resourceType" }),
        ("81 70 54 E1 7F 13 02 00 00 00 02 00 00 00 01 FF", InvalidValue { field: "id" }),
        ("81 70 54 E1 7F 23 02 00 00 00 02 00 00 00 01 00", Unsupported { feature: "binary ids" }),
        ("81 70 54 E1 7F 43 02 00 00 00 02 00 00 00 05 00", Truncated),
        (&format!("{head} 07 09 00 00 00 00"), UnexpectedType { code: 7 }),
        (&format!("{head} FF 09"), UnexpectedType { code: 0xFF }),
        (&format!("{head} 03 01"), InvalidValue { field: "a property's name" }),
        (&format!("{head} 03 FF FF FF FF FF FF FF FF FF FF"), InvalidValue { field: "a length" }),
        (&format!("{head} 03 FF FF FF FF FF FF FF FF 7F"), Truncated),
    ] {
        assert_eq!(with_row(row), Err(error), "{row}");
    }
    for (body, error) in [
        ("", Truncated),
        ("81 F1 D8 FF 7F", UnexpectedRow),
        ("81 F0 D8 FF 7F 01 09 00 00 00", InvalidValue { field: "a segment's length" }),
        ("81 F0 D8 FF 7F 00 0A 00 00 00", InvalidValue { field: "a segment's length" }),
        ("81 F0 D8 FF 7F 01 FF FF FF 7F", Truncated),
        (
            "81 F0 D8 FF 7F 01 0A 00 00 00 81 F1 D8 FF 7F FF FF FF FF 00 00 00 00",
            InvalidValue { field: "a record's length" },
        ),
        ("81 F0 D8 FF 7F 01 0A 00 00 00 81 F1 D8 FF 7F FF FF FF 7F 00 00 00 00", Truncated),
        ("81 F0 D8 FF 7F 01 0A 00 00 00 81 F1 D8 FF 7F 01 00 00 00 00 00 00 00 01", WrongChecksum),
        ("81 F0 D8 FF 7F 01 0A 00 00 00 81", Truncated),
    ] {
        assert_eq!(parse_operations(&bytes(body)), Err(error), "{body}");
    }
    let error = ApiError::from(WrongChecksum);
    assert_eq!(
        (error.status, error.message.as_str()),
        (400, "The batch request is invalid: the checksum of a record is wrong.")
    );
}

fn any_operation() -> impl Strategy<Value = BatchOperation> {
    use OperationType::*;
    let text = || prop::option::of("\\PC{0,200}");
    let kind = prop::sample::select(vec![Create, Patch, Read, Delete, Replace, Upsert]);
    let body = prop::option::of(prop::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from));
    let ttl = prop::option::of(any::<i32>());
    (kind, text(), body, text(), text(), text(), text(), ttl, any::<bool>()).prop_map(
        |(
            operation_type,
            id,
            resource_body,
            partition_key,
            if_match,
            if_none_match,
            indexing,
            ttl,
            minimal,
        )| {
            BatchOperation {
                operation_type,
                id,
                resource_body,
                partition_key,
                if_match,
                if_none_match,
                indexing_directive: indexing,
                ttl,
                minimal_return: minimal,
            }
        },
    )
}

fn any_result() -> impl Strategy<Value = BatchResult> {
    let body = prop::option::of(prop::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from));
    let rest = (prop::option::of("\\PC{0,200}"), body, 0.0..1e6, prop::option::of(any::<u32>()));
    (any::<u16>(), 0..=i32::MAX as u32, rest).prop_map(|(status, substatus, rest)| {
        let (etag, resource_body, request_charge, retry_after_ms) = rest;
        BatchResult { status, substatus, etag, resource_body, request_charge, retry_after_ms }
    })
}

proptest! {
    #[test]
    fn operations_are_read_as_written(operations in prop::collection::vec(any_operation(), 0..5)) {
        prop_assert_eq!(parse_operations(&encode_operations(&operations)), Ok(operations));
    }

    #[test]
    fn results_are_written_as_read(results in prop::collection::vec(any_result(), 0..5)) {
        prop_assert_eq!(decode_results(&encode_results(&results)), results);
    }

    #[test]
    fn no_bytes_panic(tail in prop::collection::vec(any::<u8>(), 0..100)) {
        for head in [&b""[..], &bytes(REQUEST)[..10], &bytes(REQUEST)[..15]] {
            let _ = parse_operations(&[head, &tail[..]].concat().into());
        }
        // With the right frame and checksum, so that the row itself is read.
        for head in [&b""[..], &bytes(REQUEST)[23..28], &bytes(REQUEST)[23..37]] {
            let _ = parse_operations(&records::write([[head, &tail[..]].concat()].into_iter()));
        }
    }

    #[test]
    fn no_damage_goes_unseen(operation in any_operation(), at in any::<prop::sample::Index>(), bit in 0..8) {
        let mut body = encode_operations(&[operation]).to_vec();
        // Behind the segment's header, which only says its own length.
        let at = 10 + at.index(body.len() - 10);
        body[at] ^= 1_u8 << bit;
        prop_assert!(parse_operations(&body.into()).is_err());
    }
}
