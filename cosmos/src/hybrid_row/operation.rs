//! One operation of a batch.
//!
//! ```text
//!   81 70 54 E1 7F │ mask:1 │ operationType:4 │ resourceType:4 │ columns of the mask │ optional properties
//! ```
//!
//! The mask says which columns of variable length follow, each with its length; the optional properties fill the rest
//! of the row, each a type, a number for its name, and a value.

use bytes::Bytes;

use super::HybridRowError;
use super::primitives::{OPERATION, Reader};

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum OperationType {
    Create,
    Patch,
    Read,
    Delete,
    Replace,
    Upsert,
}

impl OperationType {
    fn from_number(number: i32) -> Option<OperationType> {
        use OperationType::*;
        [(0, Create), (1, Patch), (2, Read), (4, Delete), (5, Replace), (20, Upsert)]
            .into_iter()
            .find_map(|(own, kind)| (own == number).then_some(kind))
    }

    /// The name in a batch that is written in JSON.
    pub fn name(self) -> &'static str {
        match self {
            OperationType::Create => "Create",
            OperationType::Patch => "Patch",
            OperationType::Read => "Read",
            OperationType::Delete => "Delete",
            OperationType::Replace => "Replace",
            OperationType::Upsert => "Upsert",
        }
    }
}

/// One operation, with the names that the JSON form has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchOperation {
    /// What to do.
    pub operation_type: OperationType,
    /// The item, if it is named apart from the body.
    pub id: Option<String>,
    /// The item or the patch: JSON text, or binary JSON.
    pub resource_body: Option<Bytes>,
    /// The partition key as the header writes it; only operations of a bulk request have their own.
    pub partition_key: Option<String>,
    /// The ETag the item must have.
    pub if_match: Option<String>,
    /// The ETag the item must not have.
    pub if_none_match: Option<String>,
    /// `Default`, `Include` or `Exclude`.
    pub indexing_directive: Option<String>,
    /// The item's time to live in seconds.
    pub ttl: Option<i32>,
    /// Whether the answer is to leave the item out.
    pub minimal_return: bool,
}

// The bits of the mask.
const OPERATION_TYPE: u8 = 1 << 0;
const RESOURCE_TYPE: u8 = 1 << 1;
const PARTITION_KEY: u8 = 1 << 2;
const EFFECTIVE_PARTITION_KEY: u8 = 1 << 3;
const ID: u8 = 1 << 4;
const BINARY_ID: u8 = 1 << 5;
const RESOURCE_BODY: u8 = 1 << 6;

/// The resource type of items, the only one that batches know.
const DOCUMENT: i32 = 2;

impl BatchOperation {
    pub(super) fn parse(row: &Bytes) -> Result<BatchOperation, HybridRowError> {
        let mut row = Reader(row.clone());
        if row.array()? != OPERATION {
            return Err(HybridRowError::UnexpectedRow);
        }
        let mask = row.byte()?;
        let (operation_type, resource_type) = (row.i32()?, row.i32()?);
        let operation_type =
            OperationType::from_number(operation_type).filter(|_| mask & OPERATION_TYPE != 0);
        if mask & RESOURCE_TYPE != 0 && resource_type != DOCUMENT {
            return Err(HybridRowError::InvalidValue { field: "resourceType" });
        }
        let mut operation = BatchOperation {
            operation_type: operation_type.ok_or(HybridRowError::InvalidValue { field: "operationType" })?,
            id: None,
            resource_body: None,
            partition_key: None,
            if_match: None,
            if_none_match: None,
            indexing_directive: None,
            ttl: None,
            minimal_return: false,
        };
        operation.columns(mask, &mut row)?;
        while !row.is_empty() {
            operation.property(&mut row)?;
        }
        Ok(operation)
    }

    fn columns(&mut self, mask: u8, row: &mut Reader) -> Result<(), HybridRowError> {
        let has = |bit: u8| mask & bit != 0;
        if has(PARTITION_KEY) {
            self.partition_key = Some(row.text("partitionKey")?);
        }
        if has(EFFECTIVE_PARTITION_KEY) {
            // Follows from the partition key, which has to be there anyway.
            row.binary()?;
        }
        if has(ID) {
            self.id = Some(row.text("id")?);
        }
        if has(BINARY_ID) {
            return Err(HybridRowError::Unsupported { feature: "binary ids" });
        }
        if has(RESOURCE_BODY) {
            self.resource_body = Some(row.binary()?);
        }
        Ok(())
    }

    /// One optional property. Those without a number are named in full; none of these means anything here.
    fn property(&mut self, row: &mut Reader) -> Result<(), HybridRowError> {
        const FIRST_NAMED_IN_FULL: usize = 13;
        let code = row.byte()?;
        let token = row.varuint()?;
        if let Some(name_len) = token.checked_sub(FIRST_NAMED_IN_FULL) {
            row.take(name_len)?;
        }
        let value = Value::read(code, row)?;
        match (token, value) {
            (8, Value::Text(directive)) => self.indexing_directive = Some(directive),
            (9, Value::Text(etag)) => self.if_match = Some(etag),
            (10, Value::Text(etag)) => self.if_none_match = Some(etag),
            (11, Value::Int32(seconds)) => self.ttl = Some(seconds),
            (12, Value::Bool(minimal)) => self.minimal_return = minimal,
            (8..FIRST_NAMED_IN_FULL, _) => return Err(HybridRowError::UnexpectedType { code }),
            (..8, _) => return Err(HybridRowError::InvalidValue { field: "a property's name" }),
            _ => {}
        }
        Ok(())
    }
}

/// The value of an optional property, as far as its type matters here.
enum Value {
    Bool(bool),
    Int32(i32),
    Text(String),
    Other,
}

impl Value {
    fn read(code: u8, row: &mut Reader) -> Result<Value, HybridRowError> {
        Ok(match code {
            0x02 => Value::Bool(false),
            0x03 => Value::Bool(true),
            0x07 => Value::Int32(row.i32()?),
            0x0B => row.take(4).map(|_| Value::Other)?,
            0x10 => row.take(8).map(|_| Value::Other)?,
            0x14 => Value::Text(row.text("a property")?),
            code => return Err(HybridRowError::UnexpectedType { code }),
        })
    }
}
