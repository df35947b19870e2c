//! What a writer knows about a document: what was acknowledged, and what may have happened since.

use std::fmt;

use super::BRIEF_TTL;

/// A version that was written, or is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub number: u64,
    /// The document's own `ttl`; 0 is none, so that the container's default applies.
    pub ttl: i64,
    /// The second of the write; 0 while it is not known.
    pub ts: u64,
}

impl Version {
    /// The first second at which this version is gone, in a container that expires documents.
    pub fn deadline(&self) -> Option<u64> {
        match self.ttl {
            -1 => None,
            0 => Some(self.ts + BRIEF_TTL),
            seconds => Some(self.ts + seconds as u64),
        }
    }
}

/// One document. `None` is: not there.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub acknowledged: Option<Version>,
    /// What the request that got no answer would have made of it.
    pub attempted: Option<Option<Version>>,
}

impl Entry {
    /// What an answer to the request under way says.
    pub fn acknowledge(&mut self, version: Option<Version>) {
        self.acknowledged = version;
        self.attempted = None;
    }

    /// Takes note of what was found, or says why it cannot be. `second` is the server's; `expires` whether the
    /// container expires documents.
    pub fn settle(&mut self, found: Option<Version>, second: u64, expires: bool) -> Result<(), String> {
        let possible = [Some(self.acknowledged), self.attempted];
        let gone = |version: &Version| expires && version.deadline().is_some_and(|at| second >= at);
        let explained = match found {
            Some(found) if gone(&found) => {
                return Err(format!("{found:?} is visible at {second}: it had expired"));
            }
            Some(found) => {
                possible.iter().flatten().flatten().any(|version| {
                    // The second of an unanswered write is only known now.
                    version.number == found.number && (version.ts == 0 || version.ts == found.ts)
                })
            }
            None => possible.iter().flatten().any(|version| match version {
                None => true,
                Some(version) if version.ts == 0 => expires && version.ttl != -1,
                Some(version) => gone(version),
            }),
        };
        if !explained {
            return Err(format!("found {found:?} at {second}, but {self:?}"));
        }
        self.acknowledge(found);
        Ok(())
    }
}

/// What was done and seen, for the last line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub writes: u64,
    pub batches: u64,
    pub reads: u64,
    pub expired: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.writes += other.writes;
        self.batches += other.batches;
        self.reads += other.reads;
        self.expired += other.expired;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, batches, reads, expired } = self;
        write!(f, "{writes} writes and {batches} batches acknowledged, {reads} reads, {expired} expiries")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: Version = Version { number: 1, ttl: 0, ts: 100 };
    const V2: Version = Version { number: 2, ttl: -1, ts: 0 };

    fn check(entry: &Entry, found: Option<Version>, second: u64, allowed: bool) {
        let settled = entry.clone().settle(found, second, true);
        assert_eq!(settled.is_ok(), allowed, "{entry:?} {found:?} {second} {settled:?}");
    }

    #[test]
    fn an_acknowledged_version_is_there_until_its_deadline_and_not_after() {
        let entry = Entry { acknowledged: Some(V1), attempted: None };
        check(&entry, Some(V1), 101, true);
        check(&entry, Some(V1), 102, false);
        check(&entry, None, 101, false);
        check(&entry, None, 102, true);
        check(&entry, Some(Version { number: 3, ..V1 }), 101, false);
    }

    #[test]
    fn an_unanswered_request_may_have_happened_or_not() {
        let entry = Entry { acknowledged: Some(V1), attempted: Some(Some(V2)) };
        check(&entry, Some(V1), 101, true);
        check(&entry, Some(Version { ts: 101, ..V2 }), 101, true);
        check(&entry, None, 101, false);
        let entry = Entry { acknowledged: Some(V1), attempted: Some(None) };
        check(&entry, None, 101, true);
    }
}
