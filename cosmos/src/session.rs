//! Session tokens and consistency levels: what a client has seen already, and how fresh an answer it asks for.
//!
//! A token names commits, `{range}:{version}#{commit}` for each partition key range, joined by commas. The version is
//! the container's number: clients take the higher version for the newer one, and some keep the tokens of a container
//! that was made again, or of one whose RID they do not know, under the wrong name. So a token of another container is
//! known as such and passed over. Answers carry the last commit of the ranges they come from; a read that brings a token is refused if a range it looks at has not
//! got that far. On one node that happens only if data was lost or the token is somebody else's, and then the refusal
//! is what keeps the client from taking old data for new.
//!
//! Holds: a token that cannot be read is refused, never guessed at; writes are not held back by one.

use mayfly_engine::{Container, PartitionKeyRange};
use mayfly_value::json::write_int;

use crate::{
    address::Address, auth::Intent, call::Call, error::ApiError, handlers::is_item_route, headers,
    reply::Reply,
};

/// The consistency of the account, which a request may weaken and not strengthen.
const ACCOUNT_LEVEL: Level = Level::Session;

/// What a client says it has seen of one range.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    range: u32,
    /// None where the client says nothing about the container.
    container: Option<u32>,
    commit: u64,
}

/// What a client has seen, as it was sent.
#[derive(Debug, PartialEq, Eq)]
struct SessionToken(Vec<Seen>);

impl SessionToken {
    fn parse(text: &str) -> Result<Self, ApiError> {
        let invalid = || ApiError::invalid_session_token(text);
        let part = |part: &str| {
            let (range, progress) = part.trim().split_once(':')?;
            let (container, commit) = progress_of(progress)?;
            Some(Seen { range: range.parse().ok()?, container, commit })
        };
        text.split(',').map(|text| part(text).ok_or_else(invalid)).collect::<Result<_, _>>().map(Self)
    }
}

/// Version and commit in `version#commit[#region=commit…]`, or in the oldest clients' bare number.
fn progress_of(progress: &str) -> Option<(Option<u32>, u64)> {
    let mut parts = progress.split('#');
    let first = parts.next()?;
    let Some(commit) = parts.next() else { return Some((None, first.parse().ok()?)) };
    let container = match first.parse::<i64>().ok()? {
        -1 => None,
        version => Some(u32::try_from(version).unwrap_or(u32::MAX)),
    };
    let region = |text: &str| {
        let (region, commit) = text.split_once('=')?;
        Some((region.parse::<u32>().ok()?, commit.parse::<i64>().ok()?))
    };
    parts.all(|text| region(text).is_some()).then_some((container, commit.parse().ok()?))
}

/// Consistency levels, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Strong,
    BoundedStaleness,
    Session,
    ConsistentPrefix,
    Eventual,
}

impl Level {
    const ALL: [Self; 5] =
        [Self::Strong, Self::BoundedStaleness, Self::Session, Self::ConsistentPrefix, Self::Eventual];

    fn name(self) -> &'static str {
        match self {
            Self::Strong => "Strong",
            Self::BoundedStaleness => "BoundedStaleness",
            Self::Session => "Session",
            Self::ConsistentPrefix => "ConsistentPrefix",
            Self::Eventual => "Eventual",
        }
    }

    /// The level a request asks for, at most the account's.
    fn of(call: &Call<'_>) -> Result<Self, ApiError> {
        let Some(text) = call.text(&headers::CONSISTENCY_LEVEL)?.filter(|text| !text.is_empty()) else {
            return Ok(ACCOUNT_LEVEL);
        };
        let level = Self::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(text));
        match level {
            None => Err(headers::invalid(&headers::CONSISTENCY_LEVEL)),
            Some(level) if level < ACCOUNT_LEVEL => {
                Err(ApiError::consistency_too_strong(level.name(), ACCOUNT_LEVEL.name()))
            }
            Some(level) => Ok(level),
        }
    }
}

/// Refuses a read of items that wants more than there is.
pub async fn check(call: &Call<'_>, intent: Intent) -> Result<(), ApiError> {
    let level = Level::of(call)?;
    let Some(text) = call.text(&headers::SESSION_TOKEN)?.filter(|text| !text.is_empty()) else {
        return Ok(());
    };
    if intent == Intent::Write || level != Level::Session || !is_item_route(call.address) {
        return Ok(());
    }
    let token = SessionToken::parse(text)?;
    let name = call.address.container().ok_or_else(ApiError::internal)?;
    let place = call.owner(name)?;
    let container = &place.container;
    let ranges = ranges(call, container)?;
    for seen in token.0 {
        // What a client has seen of a range that has split since it has seen of those that came of it.
        let range = ranges.iter().find(|range| range.is_of(seen.range));
        let here = range.filter(|_| seen.container.is_none_or(|id| id == container.id));
        if let Some(range) = here
            && seen.commit > call.engine.lsn(container, range.slot).await?
        {
            return Err(ApiError::read_session_not_available());
        }
    }
    Ok(())
}

/// Puts the progress of all ranges into the answer of a request that looked at several.
pub async fn stamp(call: &Call<'_>, reply: &mut Reply) -> Result<(), ApiError> {
    let Address::Documents(name) = call.address else { return Ok(()) };
    if !reply.has(&headers::SESSION_TOKEN) {
        return Ok(());
    }
    let place = call.owner(name)?;
    let container = &place.container;
    let ranges = ranges(call, container)?;
    if ranges.len() < 2 {
        return Ok(());
    }
    let mut token = Vec::new();
    for range in ranges {
        if !token.is_empty() {
            token.push(b',');
        }
        push_part(container, range.id, call.engine.lsn(container, range.slot).await?, &mut token);
    }
    reply.set_written(&headers::SESSION_TOKEN, |out| out.extend_from_slice(&token));
    Ok(())
}

/// Appends what an answer says about one range.
pub fn push_part(container: &Container, range: u32, lsn: u64, token: &mut Vec<u8>) {
    write_int(range.into(), token);
    token.push(b':');
    write_int(container.id.into(), token);
    token.push(b'#');
    write_int(lsn as i64, token);
}

/// The ranges a request looks at.
fn ranges<'c>(call: &Call<'_>, container: &'c Container) -> Result<Vec<&'c PartitionKeyRange>, ApiError> {
    match container.ranges() {
        [one] => Ok(vec![one]),
        _ => Ok(call.scope(container)?.ranges(container).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_written_form_is_read() {
        for (text, parts) in [
            ("0:-1#5", vec![(0, None, 5)]),
            ("0:12", vec![(0, None, 12)]),
            ("3:1#9#2=7#5=-1", vec![(3, Some(1), 9)]),
            ("0:7#5, 1:7#0", vec![(0, Some(7), 5), (1, Some(7), 0)]),
        ] {
            let seen = SessionToken::parse(text).unwrap().0;
            let seen: Vec<_> = seen.iter().map(|seen| (seen.range, seen.container, seen.commit)).collect();
            assert_eq!(seen, parts, "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_the_text() {
        for text in [
            "x",
            "0",
            "0:",
            ":5",
            "0:-1#",
            "0:-1#x",
            "0:1#2#3",
            "0:1#2#a=3",
            "0:-1#-5",
            "0:1,",
            "5000000000:1",
        ] {
            let error = SessionToken::parse(text).unwrap_err();
            assert_eq!(error.status, 400, "{text}");
            assert_eq!(error.message, format!("The session token provided '{text}' is invalid."));
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9a:#=,-]{0,30}") {
            let _ = SessionToken::parse(&text);
        }
    }
}
