//! JSON members whose value may be null, told from members that are not there.
//!
//! A query parameter or a patch value of null is a value. serde reads an `Option` that is null as `None`, as
//! if the member were missing, so such members are read by [`some_value`].

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A member that is there, be it null. Use it together with `default`, for members that are not.
pub(crate) fn some_value<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
