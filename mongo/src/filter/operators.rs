//! The table of query operators, from which the documentation is made.

/// An operator of the match language.
#[derive(Debug, Clone, Copy)]
pub struct QueryOperator {
    /// With its dollar sign.
    pub name: &'static str,
    /// What it asks.
    pub help: &'static str,
    /// Refused, and why.
    pub refused: bool,
}

const fn operator(name: &'static str, help: &'static str) -> QueryOperator {
    QueryOperator { name, help, refused: false }
}

const fn refused(name: &'static str, help: &'static str) -> QueryOperator {
    QueryOperator { name, help, refused: true }
}

/// All operators.
pub const OPERATORS: &[QueryOperator] = &[
    operator("$eq", "equal, or an item is"),
    operator("$ne", "not `$eq`"),
    operator("$gt", "greater, within the type"),
    operator("$gte", "greater or equal, within the type"),
    operator("$lt", "less, within the type"),
    operator("$lte", "less or equal, within the type"),
    operator("$in", "equal to one of these, or matching one of these patterns"),
    operator("$nin", "not `$in`"),
    operator("$and", "all of these"),
    operator("$or", "one of these"),
    operator("$nor", "none of these"),
    operator("$not", "not this"),
    operator("$exists", "the field is there"),
    operator("$type", "of one of these types"),
    operator("$expr", "an aggregation expression is true"),
    operator("$jsonSchema", "the document follows a schema"),
    operator("$mod", "remainder of a division"),
    operator("$regex", "a string matches a pattern (`$options`: i, m, s, x)"),
    operator("$all", "all of these are items"),
    operator("$elemMatch", "one item passes all conditions"),
    operator("$size", "an array of this many items"),
    operator("$bitsAllSet", "these bits are 1"),
    operator("$bitsAllClear", "these bits are 0"),
    operator("$bitsAnySet", "one of these bits is 1"),
    operator("$bitsAnyClear", "one of these bits is 0"),
    operator("$geoWithin", "a place inside a region"),
    operator("$geoIntersects", "a shape that touches a region"),
    operator("$near", "places by distance (the caller sorts by it)"),
    operator("$nearSphere", "places by distance on the sphere"),
    operator("$comment", "nothing"),
    operator("$sampleRate", "a share of the documents by chance"),
    operator("$alwaysTrue", "every document"),
    operator("$alwaysFalse", "no document"),
    operator("$text", "documents with words of a search; needs a text index"),
    refused("$where", "JavaScript is not run, 2"),
];
