//! The URL path as segments, and what of it a client signs.
//!
//! SDKs disagree about slashes (`//dbs`, `/dbs/x/`), so repeated and trailing ones mean nothing. Segments are
//! percent-decoded once, after splitting: an encoded slash stays inside its segment. `address` gives the
//! segments a meaning, `auth` signs them; both start from the same `Path`, so they cannot disagree.
//!
//! The protocol has no query strings but that of replica addresses. An item's id may have a question mark,
//! which the SDK for JavaScript does not encode: so what follows one in the path of an item is the rest of
//! its id.
//!
//! Holds: no segment is empty, and raw and decoded segments correspond one to one.

use crate::rid::is_database_rid;
use memchr::{memchr, memchr_iter};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// Segments of the path of an item, so that the list of them does not grow step by step.
const SEGMENTS: usize = 6;

/// A path that was split and decoded, but not yet understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    /// Without slashes around it.
    text: &'a str,
    raw: Vec<&'a str>,
    /// None where nothing is encoded, as in most requests.
    decoded: Option<Vec<Cow<'a, str>>>,
}

/// A segment did not decode to UTF-8. The client has to encode its names as UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Server could not parse the Url.")]
pub struct NotUtf8;

impl<'a> Path<'a> {
    /// Splits and decodes; a query string, if still attached, is left out, unless it is the rest of an item's
    /// id.
    pub fn parse(target: &'a str) -> Result<Path<'a>, NotUtf8> {
        let mut path = target.trim_matches('/');
        let mut raw = Vec::with_capacity(SEGMENTS);
        let (mut start, question) = (0, memchr(b'?', path.as_bytes()));
        let end = question.unwrap_or(path.len());
        let before = path.get(..end).unwrap_or(path);
        for end in memchr_iter(b'/', before.as_bytes()).chain([before.len()]) {
            raw.extend(before.get(start..end).filter(|segment| !segment.is_empty()));
            start = end + 1;
        }
        if question.is_some() {
            match raw.as_mut_slice() {
                ["dbs", _, "colls", _, "docs", id] if before.ends_with(&**id) => {
                    *id = path.get(end - id.len()..).unwrap_or(id);
                }
                _ => path = before.trim_matches('/'),
            }
        }
        let decode = |segment: &&'a str| percent_decode_str(segment).decode_utf8().map_err(|_| NotUtf8);
        let decoded = match memchr(b'%', path.as_bytes()).is_some() {
            true => Some(raw.iter().map(decode).collect::<Result<_, _>>()?),
            false => None,
        };
        Ok(Path { text: path, raw, decoded })
    }

    /// The decoded segments.
    pub fn segments(&self) -> Cow<'_, [&str]> {
        match &self.decoded {
            Some(decoded) => decoded.iter().map(AsRef::as_ref).collect(),
            None => Cow::Borrowed(&self.raw),
        }
    }

    /// Whether the path is written in RIDs rather than names.
    pub fn is_rid_based(&self) -> bool {
        matches!(*self.segments(), ["dbs", database, ..] if is_database_rid(database))
    }

    /// Every (type, link) pair a client may have signed for this path. The first is what the service names
    /// when it refuses a signature.
    pub fn signing_candidates(&self) -> Vec<(String, String)> {
        let segments = self.segments();
        let resource_type = signed_type(&segments).to_lowercase();
        let mut links: Vec<Cow<'_, str>> = Vec::with_capacity(3);
        for link in self.signed_links(&segments) {
            if !links.contains(&link) {
                links.push(link);
            }
        }
        links.into_iter().map(|link| (resource_type.clone(), link.into_owned())).collect()
    }

    /// The links of these candidates, each made when it is asked for: nearly always the first is the one. Some may be equal.
    pub(crate) fn signed_links<'s>(
        &'s self,
        segments: &'s [&str],
    ) -> impl Iterator<Item = Cow<'s, str>> + 's {
        let is_encoded = || self.segments() != self.raw;
        let as_sent = move || is_encoded().then(|| Cow::Owned(signed_link(&self.raw)));
        let by_name = std::iter::once_with(|| self.name_link(segments));
        let by_rid = self.rid_link(segments).map(Cow::Owned);
        by_rid.into_iter().chain(by_name).chain(std::iter::once_with(as_sent).flatten())
    }

    /// The link by names: of most paths, the beginning.
    fn name_link(&self, segments: &[&str]) -> Cow<'_, str> {
        let bytes = |segments: &[&str]| {
            segments.iter().map(|segment| segment.len() + 1).sum::<usize>().saturating_sub(1)
        };
        let is_plain = self.decoded.is_none() && bytes(segments) == self.text.len();
        let beginning = self.text.get(..bytes(signed_segments(segments))).filter(|_| is_plain);
        beginning.map_or_else(|| Cow::Owned(signed_link(segments)), Cow::Borrowed)
    }

    /// The RID form: only the last id, in lower case.
    fn rid_link(&self, segments: &[&str]) -> Option<String> {
        if !self.is_rid_based() && segments.first() != Some(&"offers") {
            return None;
        }
        let signed = signed_segments(segments);
        // Ids stand at odd positions; a feed's parent link ends in one, the link of `dbs` or `offers` is empty.
        Some(signed.last().map(|id| id.to_lowercase()).unwrap_or_default())
    }
}

/// The resource type of a path: its last collection word.
pub(crate) fn signed_type<'a>(segments: &[&'a str]) -> &'a str {
    match segments {
        [] => "",
        _ if is_partition_key_delete(segments) => segments[2],
        _ if segments.len() % 2 == 1 => segments[segments.len() - 1],
        _ => segments[segments.len() - 2],
    }
}

/// The link of a path: the resource itself, or for a feed its owner.
pub(crate) fn signed_link(segments: &[&str]) -> String {
    signed_segments(segments).join("/")
}

fn signed_segments<'s, 'a>(segments: &'s [&'a str]) -> &'s [&'a str] {
    match segments {
        _ if is_partition_key_delete(segments) => &segments[..4],
        [owner @ .., _] if segments.len() % 2 == 1 => owner,
        _ => segments,
    }
}

/// The one path with a verb in it; it is signed as the container it works on.
fn is_partition_key_delete(segments: &[&str]) -> bool {
    matches!(segments, ["dbs", _, "colls", _, "operations", "partitionkeydelete"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_signed(path: &str, resource_type: &str, links: &[&str]) {
        let candidates = Path::parse(path).unwrap().signing_candidates();
        let expected: Vec<_> = links.iter().map(|link| (resource_type.into(), (*link).into())).collect();
        assert_eq!(candidates, expected, "{path}");
    }

    #[test]
    fn slashes_mean_nothing_and_escapes_are_decoded_once() {
        for (path, segments) in [
            ("/", vec![]),
            ("", vec![]),
            ("//dbs", vec!["dbs"]),
            ("/dbs/x/", vec!["dbs", "x"]),
            ("/dbs/a%20b/colls/%C3%B4", vec!["dbs", "a b", "colls", "ô"]),
            ("/dbs/a%252Fb", vec!["dbs", "a%2Fb"]),
            ("/dbs/a%2Fb", vec!["dbs", "a/b"]),
            ("/dbs/100%", vec!["dbs", "100%"]),
            ("/dbs?x=/y", vec!["dbs"]),
            ("/dbs/?x", vec!["dbs"]),
            ("/?x", vec![]),
            ("/dbs/d/colls/c/docs?x=1", vec!["dbs", "d", "colls", "c", "docs"]),
            ("/dbs/d/colls/c/docs/a?b%3F/c/", vec!["dbs", "d", "colls", "c", "docs", "a?b?/c"]),
            ("/dbs/d/colls/c/docs/a/?b", vec!["dbs", "d", "colls", "c", "docs", "a"]),
        ] {
            assert_eq!(Path::parse(path).unwrap().segments(), segments, "{path}");
        }
        assert_eq!(Path::parse("/dbs/%ff"), Err(NotUtf8));
    }

    #[test]
    fn feeds_sign_their_owner_and_resources_themselves() {
        check_signed("/", "", &[""]);
        check_signed("/dbs", "dbs", &[""]);
        check_signed("/dbs/ToDoList", "dbs", &["dbs/ToDoList"]);
        check_signed("/dbs/d/colls/c/docs/", "docs", &["dbs/d/colls/c"]);
        check_signed("/dbs/d/colls/c/docs/I", "docs", &["dbs/d/colls/c/docs/I"]);
        check_signed("/dbs/d/colls/c/docs/I?J", "docs", &["dbs/d/colls/c/docs/I?J"]);
        check_signed("/dbs/colls/colls/dbs", "colls", &["dbs/colls/colls/dbs"]);
        check_signed("/dbs/d/colls/c/operations/partitionkeydelete", "colls", &["dbs/d/colls/c"]);
    }

    #[test]
    fn rids_and_encoded_names_have_further_forms() {
        check_signed("/dbs/a%20b", "dbs", &["dbs/a b", "dbs/a%20b"]);
        check_signed("/offers", "offers", &[""]);
        check_signed("/offers/RoD1/", "offers", &["rod1", "offers/RoD1"]);
        check_signed(
            "/dbs/AAASAA==/colls/AAASAIAAACM=/pkranges",
            "pkranges",
            &["aaasaiaaacm=", "dbs/AAASAA==/colls/AAASAIAAACM="],
        );
    }

    proptest! {
        #[test]
        fn no_path_panics(path in "(/|%|[ -~]|\\PC)*") {
            if let Ok(path) = Path::parse(&path) {
                prop_assert!(!path.signing_candidates().is_empty());
            }
        }

        #[test]
        fn a_link_is_its_segments(path in "(/|//|%20|é|a|dbs|colls|operations/partitionkeydelete){0,12}") {
            let path = Path::parse(&path).unwrap();
            prop_assert_eq!(path.name_link(&path.segments()), signed_link(&path.segments()));
        }
    }
}
