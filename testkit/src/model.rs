//! What a container must answer, said as simply as possible.
//!
//! A [`Model`] holds the living documents and nothing else. When time moves, whatever has reached its deadline under
//! the present rules is dropped, and what is dropped cannot come back: that expiry is final needs no further word
//! here. It knows no purge, no index, no watermark and no store; it was written from the contract about time to live,
//! not from the engine, and the two must never share code.
//!
//! A [`Step`] is something a client, the clock or the background may do. Steps print as the lines of a golden script,
//! so a failing trace can be kept as one.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

/// A document's name: its partition and its id.
pub type Name = (u8, u8);

/// What a document holds, as far as anybody cares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// The root `ttl`; may be invalid.
    pub ttl: Option<i64>,
    /// The seconds of the dates at `/d`; with one it is a date, with several an array of them.
    pub dates: Vec<i64>,
    /// The value at `/u`, unique in a partition.
    pub unique: u8,
    /// Anything.
    pub payload: u8,
}

/// A living document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Living {
    /// What it holds.
    pub body: Body,
    /// The second of its last write.
    pub written: i64,
    /// Which write that was, counting all.
    pub version: u64,
    /// Which write made it.
    pub birth: u64,
}

/// A rule that documents expire so many seconds after their earliest date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateRule {
    /// `None` once dropped.
    pub seconds: Option<i64>,
}

/// One container: its rules and its living documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// The default: off, -1, or seconds.
    pub default: Option<i64>,
    /// In the order they were made; all on `/d`.
    pub rules: Vec<DateRule>,
    /// Whether two documents may have the same `/u`.
    is_plain: bool,
    /// What is there.
    pub living: BTreeMap<Name, Living>,
    /// How many transactions over this container and another were committed: the other's only document says so.
    pub across: u64,
    /// What has expired so far, and the second it did.
    pub expired: Vec<(Name, i64)>,
    /// Up to when that is known, in milliseconds.
    settled: i64,
    writes: u64,
}

/// How a write ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is a new document.
    Created,
    /// There is a new version.
    Replaced,
    /// There is no document any more.
    Deleted,
    /// There is one already.
    Exists,
    /// There is none.
    NotFound,
    /// Another living one has the same unique value.
    UniqueViolation,
    /// The ttl is neither -1 nor from 1 to 2147483647.
    InvalidTtl,
}

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// There may be none.
    Create,
    /// Whether or not there is one.
    Upsert,
    /// There must be one.
    Replace,
    /// There must be one; changes `ttl` and `payload` alone.
    Patch,
}

impl Model {
    /// An empty container with this default.
    pub fn new(default: Option<i64>) -> Self {
        Self { default, ..Self::default() }
    }

    /// The same where nothing is unique.
    pub fn plain(default: Option<i64>) -> Self {
        Self { is_plain: true, ..Self::new(default) }
    }

    /// The milliseconds at which a document goes, if it ever does.
    pub fn deadline(&self, document: &Living) -> Option<i64> {
        let by_ttl = match (self.default, document.body.ttl.filter(|ttl| is_valid_ttl(*ttl))) {
            (None, _) => None,
            (Some(_), Some(-1)) => None,
            (Some(_), Some(own)) => Some((document.written + own) * 1000),
            (Some(-1), None) => None,
            (Some(default), None) => Some((document.written + default) * 1000),
        };
        let earliest = document.body.dates.iter().min();
        let by_date = self.rules.iter().filter_map(|rule| Some((earliest? + rule.seconds?) * 1000));
        by_date.chain(by_ttl).min()
    }

    /// Time has come to `now`, in milliseconds: what is due is gone.
    pub fn settle(&mut self, now: i64) {
        let dead: Vec<_> = self
            .living
            .iter()
            .filter(|(_, document)| self.deadline(document).is_some_and(|deadline| deadline <= now))
            .map(|(name, _)| *name)
            .collect();
        for name in dead {
            let Some(document) = self.living.remove(&name) else { continue };
            // It was alive when last looked at. A deadline before that is one of a rule that has come since.
            let deadline = self.deadline(&document).unwrap_or(now);
            self.expired.push((name, deadline.max(self.settled) / 1000));
        }
        self.settled = now;
    }

    /// Writes a document at `now`, in milliseconds.
    pub fn write(&mut self, how: How, name: Name, body: Body, now: i64) -> Verdict {
        self.batch(name.0, &[(how, name.1, body)], now).map_or_else(|(_, refusal)| refusal, |done| done[0])
    }

    /// Writes several documents of one partition at `now`: all of them, or none, by which step and why.
    ///
    /// Unique values are compared at the end, so that documents may swap theirs. A step that cannot be taken ends the
    /// batch there; if values collide by then, an earlier step is to blame. A version that is over when it is written may not
    /// have another's value either, and keeps none from those after it.
    pub fn batch(
        &mut self,
        partition: u8,
        steps: &[(How, u8, Body)],
        now: i64,
    ) -> Result<Vec<Verdict>, (usize, Verdict)> {
        let mut next = self.clone();
        let mut verdicts = Vec::new();
        let mut refused = None;
        let mut over = BTreeMap::new();
        for (number, (how, id, body)) in steps.iter().enumerate() {
            match next.put(*how, (partition, *id), body.clone(), now) {
                Ok((verdict, is_over)) => {
                    verdicts.push(verdict);
                    over.remove(id);
                    over.extend(is_over.map(|unique| (*id, (number, unique))));
                }
                Err(verdict) => {
                    refused = Some((number, verdict));
                    break;
                }
            }
        }
        let done = &steps[..verdicts.len()];
        let over: Vec<(usize, u8)> = over.into_values().collect();
        if let Some(step) = next.first_collision(partition, done, &over).filter(|_| !self.is_plain) {
            return Err((step, Verdict::UniqueViolation));
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        *self = next;
        Ok(verdicts)
    }

    /// The first of the steps whose document has a unique value that another had before it.
    fn first_collision(
        &self,
        partition: u8,
        steps: &[(How, u8, Body)],
        over: &[(usize, u8)],
    ) -> Option<usize> {
        let of_partition = self.living.iter().filter(|(name, _)| name.0 == partition);
        let mut holders: Vec<(u8, Option<usize>)> = of_partition
            .map(|(name, document)| {
                let step = steps.iter().rposition(|(_, id, _)| *id == name.1);
                (document.body.unique, step)
            })
            .collect();
        holders.sort_unstable();
        let later = holders.windows(2).filter(|pair| pair[0].0 == pair[1].0).filter_map(|pair| pair[1].1);
        let is_taken = |(step, unique): &&(usize, u8)| {
            holders
                .iter()
                .any(|(value, holder)| value == unique && holder.is_none_or(|holder| holder < *step))
        };
        later.chain(over.iter().filter(is_taken).map(|(step, _)| *step)).min()
    }

    /// What becomes of a document; and its unique value, if it is over already.
    fn put(
        &mut self,
        how: How,
        name: Name,
        mut body: Body,
        now: i64,
    ) -> Result<(Verdict, Option<u8>), Verdict> {
        let there = self.living.get(&name).cloned();
        let invalid = |body: &Body| body.ttl.is_some_and(|ttl| !is_valid_ttl(ttl));
        match (how, &there) {
            (How::Create, Some(_)) if invalid(&body) => return Err(Verdict::InvalidTtl),
            (How::Create, Some(_)) => return Err(Verdict::Exists),
            (How::Replace | How::Patch, None) => return Err(Verdict::NotFound),
            (How::Patch, Some(there)) => {
                body = Body { ttl: body.ttl, payload: body.payload, ..there.body.clone() };
            }
            _ => {}
        }
        if invalid(&body) {
            return Err(Verdict::InvalidTtl);
        }
        self.writes += 1;
        let birth = there.as_ref().map_or(self.writes, |there| there.birth);
        let living = Living { body, written: now / 1000, version: self.writes, birth };
        let verdict = if there.is_some() { Verdict::Replaced } else { Verdict::Created };
        if self.deadline(&living).is_some_and(|deadline| deadline <= now) {
            self.living.remove(&name);
            self.expired.push((name, now / 1000));
            return Ok((verdict, Some(living.body.unique)));
        }
        self.living.insert(name, living);
        Ok((verdict, None))
    }

    /// Deletes a document.
    pub fn delete(&mut self, name: Name) -> Verdict {
        match self.living.remove(&name) {
            Some(_) => Verdict::Deleted,
            None => Verdict::NotFound,
        }
    }

    /// All deadlines ahead, in seconds, for whoever wants to step right before, on or after one.
    pub fn deadlines(&self) -> Vec<i64> {
        let mut deadlines: Vec<_> =
            self.living.values().filter_map(|document| self.deadline(document)).map(|ms| ms / 1000).collect();
        deadlines.sort_unstable();
        deadlines.dedup();
        deadlines
    }
}

fn is_valid_ttl(ttl: i64) -> bool {
    ttl == -1 || (1..=2_147_483_647).contains(&ttl)
}

/// When an index is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// With the document, all paths.
    Whole,
    /// With the document, one path less.
    WithoutPayload,
    /// In the background.
    Lazy,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A client writes a document.
    Write(How, Name, Body),
    /// A client writes several documents of one partition at once.
    Batch(u8, Vec<(How, u8, Body)>),
    /// The same in one transaction with a document of another container.
    Across(u8, Vec<(How, u8, Body)>),
    /// A client deletes a document.
    Delete(Name),
    /// The default changes.
    SetDefault(Option<i64>),
    /// A date rule on `/d` is made.
    CreateRule(u32),
    /// One of the rules, by a number to be taken modulo how many there are, gets other seconds or goes.
    ChangeRule(usize, Option<u32>),
    /// What is indexed, and when, changes.
    SetIndexing(Indexing),
    /// The clock moves on.
    Advance(u64),
    /// The clock moves to a deadline ahead (by a number modulo how many there are), or a second before or after.
    AdvanceTo(usize, i64),
    /// The clock is set back.
    StepBack(u64),
    /// A page of a list is taken, from where the last one ended.
    Page,
    /// One tick of purge.
    PurgeTick,
    /// Purge, to the end.
    Purge,
    /// The store compacts, and drops what is dead.
    Compact,
    /// One tick of building indexes.
    BuildTick,
    /// One tick of reaping.
    ReapTick,
    /// The engine is closed and opened.
    Reopen,
    /// The engine is dropped and opened.
    Crash,
}

impl Step {
    /// Whether it must change no answer, wherever it stands in a trace.
    pub fn is_background(&self) -> bool {
        matches!(self, Self::PurgeTick | Self::Purge | Self::Compact | Self::BuildTick | Self::ReapTick)
    }
}

/// A document as JSON text, in a form [`crate::world::document`] reads.
pub struct Json<'a>(pub Name, pub &'a Body);

impl Display for Json<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self((partition, id), Body { ttl, dates, unique, payload }) = self;
        write!(
            f,
            r#"{{"id":"d{id}","pk":{partition},"u":{unique},"n":{payload},"t":"winged insect of kind {unique}""#
        )?;
        write!(f, r#","v":[{unique},1]"#)?;
        if let Some(ttl) = ttl {
            write!(f, r#","ttl":{ttl}"#)?;
        }
        match dates[..] {
            [] => {}
            [date] => write!(f, r#","d":{{"$date":{date}}}"#)?,
            _ => {
                let dates: Vec<_> = dates.iter().map(|date| format!(r#"{{"$date":{date}}}"#)).collect();
                write!(f, r#","d":[{}]"#, dates.join(","))?;
            }
        }
        f.write_str("}")
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ttl = |ttl: &Option<i64>| ttl.map_or("off".to_owned(), |ttl| ttl.to_string());
        match self {
            Self::Write(How::Patch, (partition, id), body) => {
                write!(f, "patch c d{id} pk={partition} set /n {}", body.payload)?;
                match body.ttl {
                    Some(ttl) => write!(f, " set /ttl {ttl}"),
                    None => write!(f, " set /ttl 1 remove /ttl"),
                }
            }
            Self::Write(how, name, body) => {
                let verb = match how {
                    How::Create => "create",
                    How::Upsert => "put",
                    How::Replace | How::Patch => "replace",
                };
                write!(f, "{verb} c {}", Json(*name, body))
            }
            Self::Batch(partition, steps) | Self::Across(partition, steps) => {
                if matches!(self, Self::Across(..)) {
                    writeln!(f, "# In one transaction with a document of another container:")?;
                }
                let step = |(how, id, body): &(How, u8, Body)| {
                    let verb = match how {
                        How::Create => "create",
                        How::Upsert | How::Patch => "put",
                        How::Replace => "replace",
                    };
                    format!(r#"{{"{verb}":{}}}"#, Json((*partition, *id), body))
                };
                let steps: Vec<_> = steps.iter().map(step).collect();
                write!(f, "batch c pk={partition} [{}]", steps.join(","))
            }
            Self::Delete((partition, id)) => write!(f, "delete c d{id} pk={partition}"),
            Self::SetDefault(default) => write!(f, "replace-container c ttl={}", ttl(default)),
            Self::CreateRule(seconds) => write!(f, "date-rule c /d {seconds}"),
            Self::ChangeRule(rule, Some(seconds)) => write!(f, "change-date-rule c {rule} {seconds}"),
            Self::ChangeRule(rule, None) => write!(f, "drop-date-rule c {rule}"),
            Self::SetIndexing(Indexing::Whole) => write!(f, "replace-container c mode=consistent exclude="),
            Self::SetIndexing(Indexing::WithoutPayload) => {
                write!(f, "replace-container c mode=consistent exclude=/n/?")
            }
            Self::SetIndexing(Indexing::Lazy) => write!(f, "replace-container c mode=lazy exclude="),
            Self::Advance(seconds) => write!(f, "advance {seconds}"),
            Self::AdvanceTo(which, offset) => write!(f, "# advance to deadline {which}, {offset:+}"),
            Self::StepBack(seconds) => write!(f, "# the clock goes back by {seconds}"),
            Self::Page => write!(f, "page c"),
            Self::PurgeTick => write!(f, "purge tick"),
            Self::Purge => write!(f, "purge"),
            Self::Compact => write!(f, "compact"),
            Self::BuildTick => write!(f, "build-indexes tick"),
            Self::ReapTick => write!(f, "reap tick"),
            Self::Reopen => write!(f, "reopen"),
            Self::Crash => write!(f, "crash"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_ttl(ttl: Option<i64>) -> Body {
        Body { ttl, ..Body::default() }
    }

    /// The table of the contract.
    #[test]
    fn the_matrix() {
        let deadline = |default, ttl| {
            let mut model = Model::new(default);
            model.write(How::Create, (0, 0), with_ttl(ttl), 7_900);
            model.deadline(&model.living[&(0, 0)])
        };
        assert_eq!(deadline(None, None), None);
        assert_eq!(deadline(None, Some(-1)), None);
        assert_eq!(deadline(None, Some(5)), None);
        assert_eq!(deadline(Some(-1), None), None);
        assert_eq!(deadline(Some(-1), Some(-1)), None);
        assert_eq!(deadline(Some(-1), Some(5)), Some(12_000));
        assert_eq!(deadline(Some(10), None), Some(17_000));
        assert_eq!(deadline(Some(10), Some(-1)), None);
        assert_eq!(deadline(Some(10), Some(5)), Some(12_000));
    }

    /// Gone at the deadline, not before, and for good.
    #[test]
    fn expiry_is_final() {
        let mut model = Model::new(Some(10));
        model.write(How::Create, (0, 0), Body::default(), 0);
        model.settle(9_999);
        assert_eq!(model.living.len(), 1);
        model.settle(10_000);
        model.default = None;
        assert!(model.living.is_empty());
    }
}
