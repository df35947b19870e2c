//! Expiry: when a record stops being visible.
//!
//! A document has a base time and a rule; at base + rule it is gone, not a moment before and not a moment later.
//! The base is `_ts`, the second of its last write (or, for a date rule, a date in the document); the rule is its
//! own `ttl`, else the container's default (or the rule's seconds).
//!
//! ```text
//!   base ────────── rule ─────────▶ deadline
//!   visible ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│ gone, even if still stored
//! ```
//!
//! Read backwards it is cheaper: at `now`, everything whose base is at or before a *cut* is gone. A policy and a
//! `now` give one cut for documents that inherit the default, one for those with their own deadline and one per
//! date rule ([`Cuts`]), computed once per page; hiding a document costs a comparison and nothing is ever written
//! for it.
//!
//! Cuts never go back. Whenever a policy changes, the cuts it had at that moment are kept in it as watermarks
//! ([`Watermark`]), so what had expired stays gone whatever the next policy says, and the change is one small
//! write however many documents there are.
//!
//! Holds: purge at any moment, or never, changes no answer. `docs/ttl.md` has the rules with their boundary cases.

use bson::{RawBsonRef, RawDocument};
use mayfly_value::path::Path;
use serde::{Deserialize, Serialize};

use crate::{
    clock::Timestamp,
    error::{Error, Result},
};

/// The largest number of seconds a rule may have.
pub const SECONDS_MAX: u32 = i32::MAX as u32;

/// What a document's own `ttl` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnTtl {
    /// No (valid) `ttl`: the container's default applies.
    #[default]
    Inherit,
    /// `-1`: never expires.
    Never,
    /// Expires this many seconds after `_ts`, if time to live is on.
    Seconds(u32),
}

impl OwnTtl {
    /// Reads the root `ttl` of a document; the error is an invalid value, as JSON text.
    pub fn of(document: &RawDocument) -> Result<std::result::Result<Self, String>> {
        let Some(value) = document.get("ttl")? else { return Ok(Ok(Self::Inherit)) };
        let number = match value {
            RawBsonRef::Int32(n) => Some(i64::from(n)),
            RawBsonRef::Int64(n) => Some(n),
            RawBsonRef::Double(n) if n.fract() == 0.0 && n.abs() < 1e10 => Some(n as i64),
            _ => None,
        };
        Ok(match number {
            Some(-1) => Ok(Self::Never),
            Some(n) if (1..=i64::from(SECONDS_MAX)).contains(&n) => Ok(Self::Seconds(n as u32)),
            _ => {
                let mut text = Vec::new();
                mayfly_value::json::write_value(value, &mut text)?;
                Err(String::from_utf8_lossy(&text).into_owned())
            }
        })
    }
}

/// A container's default, when time to live is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub enum DefaultTtl {
    /// `-1`: only documents with their own `ttl` expire.
    Never,
    /// Documents without their own `ttl` expire this many seconds after `_ts`.
    Seconds(u32),
}

impl TryFrom<i64> for DefaultTtl {
    type Error = String;

    fn try_from(n: i64) -> std::result::Result<Self, String> {
        match n {
            -1 => Ok(Self::Never),
            1.. if n <= i64::from(SECONDS_MAX) => Ok(Self::Seconds(n as u32)),
            _ => Err(format!("{n} is neither -1 nor a number of seconds from 1 to {SECONDS_MAX}")),
        }
    }
}

impl From<DefaultTtl> for i64 {
    fn from(ttl: DefaultTtl) -> i64 {
        match ttl {
            DefaultTtl::Never => -1,
            DefaultTtl::Seconds(n) => i64::from(n),
        }
    }
}

/// What is stored about a document's life, beside its record and in each of its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// The second of the last write.
    pub ts: u64,
    /// The document's own rule.
    pub own: OwnTtl,
    /// The earliest date under each date rule that found one, in milliseconds.
    pub dates: Vec<(u16, i64)>,
}

const OWN_NEVER: u8 = 0x80;
const OWN_SECONDS: u8 = 0x40;
const DATES_MAX: usize = 0x3F;

/// Date rules in one container at a time. A life has room for a date under each.
const DATE_RULES_MAX: usize = DATES_MAX;

/// Date rules in one container over time, each as often as it was made longer.
const GENERATIONS_MAX: u16 = 10_000;

impl Life {
    /// The second the document's own `ttl` ends, if it has one.
    pub fn own_deadline(&self) -> Option<i64> {
        match self.own {
            OwnTtl::Seconds(n) => Some(self.ts as i64 + i64::from(n)),
            OwnTtl::Inherit | OwnTtl::Never => None,
        }
    }

    /// Appends the stored form: flags, `_ts`, own seconds if any, dates.
    pub fn encode(&self, out: &mut Vec<u8>) {
        assert!(self.dates.len() <= DATES_MAX, "a life has at most {DATES_MAX} dates");
        let own = match self.own {
            OwnTtl::Inherit => 0,
            OwnTtl::Never => OWN_NEVER,
            OwnTtl::Seconds(_) => OWN_SECONDS,
        };
        out.push(own | self.dates.len() as u8);
        out.extend_from_slice(&self.ts.to_be_bytes());
        if let OwnTtl::Seconds(n) = self.own {
            out.extend_from_slice(&n.to_be_bytes());
        }
        for (rule, date) in &self.dates {
            out.extend_from_slice(&rule.to_be_bytes());
            out.extend_from_slice(&date.to_be_bytes());
        }
    }

    /// Reads the stored form and says how long it was.
    pub fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let flags = *bytes.first()?;
        let ts = u64::from_be_bytes(bytes.get(1..9)?.try_into().ok()?);
        let mut at = 9;
        let own = match flags & (OWN_NEVER | OWN_SECONDS) {
            0 => OwnTtl::Inherit,
            OWN_NEVER => OwnTtl::Never,
            OWN_SECONDS => {
                let n = u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
                at += 4;
                OwnTtl::Seconds(n)
            }
            _ => return None,
        };
        let count = usize::from(flags) & DATES_MAX;
        let mut dates = Vec::with_capacity(count);
        for _ in 0..count {
            let rule = u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?);
            let date = i64::from_be_bytes(bytes.get(at + 2..at + 10)?.try_into().ok()?);
            dates.push((rule, date));
            at += 10;
        }
        Some((Self { ts, own, dates }, at))
    }
}

/// A cut that stays: everything with its base at or before `through` is gone for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watermark {
    /// The last base that is gone.
    pub through: i64,
    /// The rule that was in force when the cut was kept; base + `after` is when it happened.
    pub after: i64,
}

impl Watermark {
    const NONE: Self = Self { through: i64::MIN, after: 0 };

    /// Keeps the later cut of the two.
    fn raise(&mut self, through: i64, after: i64) {
        if through > self.through {
            *self = Self { through, after };
        }
    }
}

impl Default for Watermark {
    fn default() -> Self {
        Self::NONE
    }
}

/// Documents expire `seconds` after the earliest date they have at `path`.
///
/// A rule that is made longer goes on in a second generation, for documents written from then on: the watermark it
/// leaves is about documents of the first one only. Unlike `_ts`, a date may lie before it in a document that comes
/// after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DateRule {
    /// Names the generation in stored lives. Never reused in a container.
    pub id: u16,
    /// Names the rule: the number of its first generation.
    pub rule: u16,
    /// Where the date or dates are; arrays on the way are looked into.
    pub path: Vec<String>,
    /// The rule's length; `None` once it has been dropped (its watermark stays).
    pub seconds: Option<u32>,
    /// What had expired when the rule was last changed, in milliseconds.
    pub dead: Watermark,
    /// Whether documents that are written now belong to this generation.
    pub open: bool,
    /// Documents are still being given their dates; nothing expires by the rule yet.
    pub building: bool,
}

impl DateRule {
    /// The rule's length, if documents expire by it.
    pub fn in_force(&self) -> Option<u32> {
        self.seconds.filter(|_| !self.building)
    }
}

/// A change of a container's default, for people who ask what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TtlChange {
    /// The second it was made.
    pub at: u64,
    /// The default before; none is off.
    pub from: Option<DefaultTtl>,
    /// The default from then on.
    pub to: Option<DefaultTtl>,
}

/// All rules about time to live in one container, and the watermarks of the rules before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TtlPolicy {
    /// The default; `None` is off: nothing expires but by date rules.
    pub default: Option<DefaultTtl>,
    /// For documents that inherit, by `_ts`.
    #[serde(default)]
    pub inherited_dead: Watermark,
    /// For documents with their own `ttl`, by deadline.
    #[serde(default)]
    pub own_dead: Watermark,
    /// Date rules, all generations of them, dropped ones included.
    #[serde(default)]
    pub date_rules: Vec<DateRule>,
}

impl TtlPolicy {
    /// A policy with nothing behind it.
    pub fn new(default: Option<DefaultTtl>) -> Self {
        Self { default, ..Self::default() }
    }

    /// The policy after the default is changed at `now`. What has expired by then stays expired.
    pub fn with_default(&self, default: Option<DefaultTtl>, now: Timestamp) -> Self {
        let mut next = self.clone();
        let now_seconds = now.seconds() as i64;
        if let Some(DefaultTtl::Seconds(n)) = self.default {
            next.inherited_dead.raise(now_seconds - i64::from(n), i64::from(n));
        }
        if self.default.is_some() {
            next.own_dead.raise(now_seconds, 0);
        }
        next.default = default;
        next
    }

    /// The policy with another date rule, and the rule's number. It is in force once every document has its date.
    pub fn with_date_rule(&self, path: &Path, seconds: u32) -> Result<(Self, u16)> {
        if self.date_rules.iter().filter(|rule| rule.open).count() >= DATE_RULES_MAX {
            return Err(Error::bad_request(format!("a container has at most {DATE_RULES_MAX} date rules")));
        }
        let mut next = self.clone();
        let id = next.next_generation()?;
        let path = path.segments().to_vec();
        let dead = Watermark::NONE;
        let rule = DateRule { id, rule: id, path, seconds: Some(seconds), dead, open: true, building: true };
        next.date_rules.push(rule);
        Ok((next, id))
    }

    fn next_generation(&self) -> Result<u16> {
        match self.date_rules.iter().map(|rule| rule.id + 1).max().unwrap_or(0) {
            id if id < GENERATIONS_MAX => Ok(id),
            _ => Err(Error::bad_request("the date rules of this container were changed too often")),
        }
    }

    /// The policy after every document has its date under a rule.
    pub fn with_date_rule_built(&self, rule: u16) -> Result<Self> {
        let mut next = self.clone();
        let built = next.date_rules.iter_mut().find(|each| each.rule == rule && each.building);
        built.ok_or_else(|| Error::bad_request("there is no such date rule"))?.building = false;
        Ok(next)
    }

    /// The policy after a date rule gets another length at `now`, or none (dropped).
    pub fn with_date_rule_seconds(&self, rule: u16, seconds: Option<u32>, now: Timestamp) -> Result<Self> {
        let mut next = self.clone();
        let mut last: Option<DateRule> = None;
        for generation in next.date_rules.iter_mut().filter(|each| each.rule == rule) {
            let Some(old) = generation.in_force() else { continue };
            last = Some(generation.clone());
            let after = i64::from(old) * 1000;
            generation.dead.raise(now.0 as i64 - after, after);
            generation.seconds = seconds;
            generation.open &= seconds.is_some_and(|new| new <= old);
        }
        let last = last.ok_or_else(|| Error::bad_request("there is no such date rule"))?;
        let is_open = next.date_rules.iter().any(|each| each.rule == rule && each.open);
        if let (Some(_), false) = (seconds, is_open) {
            let id = next.next_generation()?;
            next.date_rules.push(DateRule { id, seconds, dead: Watermark::NONE, open: true, ..last });
        }
        Ok(next)
    }

    /// What is gone at `now`.
    pub fn cuts(&self, now: Timestamp) -> Cuts {
        let now_seconds = now.seconds() as i64;
        let mut inherited = self.inherited_dead;
        if let Some(DefaultTtl::Seconds(n)) = self.default {
            inherited.raise(now_seconds - i64::from(n), i64::from(n));
        }
        let mut own = self.own_dead;
        if self.default.is_some() {
            own.raise(now_seconds, 0);
        }
        let dates = self.date_rules.iter().map(|rule| {
            let mut dead = rule.dead;
            if let Some(seconds) = rule.in_force() {
                let after = i64::from(seconds) * 1000;
                dead.raise(now.0 as i64 - after, after);
            }
            (rule.id, dead)
        });
        Cuts { inherited, own, dates: dates.collect() }
    }

    /// When a document that is live now will be gone under this policy, if ever.
    pub fn expires_at(&self, life: &Life) -> Option<Timestamp> {
        let by_ttl = match (self.default, life.own) {
            (None, _) | (_, OwnTtl::Never) | (Some(DefaultTtl::Never), OwnTtl::Inherit) => None,
            (Some(_), OwnTtl::Seconds(_)) => life.own_deadline(),
            (Some(DefaultTtl::Seconds(n)), OwnTtl::Inherit) => Some(life.ts as i64 + i64::from(n)),
        };
        let by_date = life.dates.iter().filter_map(|(id, date)| {
            let rule = self.date_rules.iter().find(|rule| rule.id == *id)?;
            Some(date.saturating_add(i64::from(rule.in_force()?) * 1000))
        });
        by_ttl
            .map(|seconds| seconds * 1000)
            .into_iter()
            .chain(by_date)
            .min()
            .map(|ms| Timestamp(ms.max(0) as u64))
    }

    /// The earliest date of `document` under each rule, as it is written now.
    pub fn dates_of(&self, document: &RawDocument) -> Result<Vec<(u16, i64)>> {
        let mut dates = Vec::new();
        for rule in self.date_rules.iter().filter(|rule| rule.open) {
            if let Some(date) = earliest_date(RawBsonRef::Document(document), &rule.path)? {
                dates.push((rule.id, date));
            }
        }
        Ok(dates)
    }

    /// The dates of a document that was written before: those it has, as far as they still mean something, and those
    /// under rules that came later.
    pub fn redated(&self, life: &Life, document: &RawDocument) -> Result<Vec<(u16, i64)>> {
        let generation = |id: u16| self.date_rules.iter().find(|rule| rule.id == id);
        if let Some(dead) = life.dates.iter().find(|(id, date)| {
            generation(*id).is_some_and(|rule| rule.seconds.is_none() && *date <= rule.dead.through)
        }) {
            // Gone by a rule that has been dropped, and to stay so. No other rule matters any more.
            return Ok(vec![*dead]);
        }
        let mut dates = life.dates.clone();
        dates.retain(|(id, _)| generation(*id).is_some_and(|rule| rule.seconds.is_some()));
        for (id, date) in self.dates_of(document)? {
            let rule_of = |id: u16| generation(id).map(|rule| rule.rule);
            if dates.iter().all(|(other, _)| rule_of(*other) != rule_of(id)) {
                dates.push((id, date));
            }
        }
        dates.sort_unstable();
        Ok(dates)
    }

    /// Whether anything in this container can expire, or is waiting to be purged.
    pub fn can_expire(&self) -> bool {
        self.default.is_some()
            || self.inherited_dead != Watermark::NONE
            || self.own_dead != Watermark::NONE
            || !self.date_rules.is_empty()
    }
}

/// What is gone at one moment: everything at or before each cut.
#[derive(Clone, Debug)]
pub struct Cuts {
    /// By `_ts`, for documents that inherit.
    pub inherited: Watermark,
    /// By deadline, for documents with their own `ttl`.
    pub own: Watermark,
    dates: Vec<(u16, Watermark)>,
}

impl Cuts {
    /// Whether a document with this life is visible.
    pub fn is_live(&self, life: &Life) -> bool {
        let by_ttl = match life.own {
            OwnTtl::Never => true,
            OwnTtl::Inherit => life.ts as i64 > self.inherited.through,
            OwnTtl::Seconds(n) => life.ts as i64 + i64::from(n) > self.own.through,
        };
        by_ttl && life.dates.iter().all(|(rule, date)| *date > self.date(*rule).through)
    }

    /// The cut of one date rule.
    pub fn date(&self, rule: u16) -> Watermark {
        self.dates.iter().find(|(id, _)| *id == rule).map_or(Watermark::NONE, |(_, cut)| *cut)
    }

    /// The numbers of the date rules that have a cut.
    pub fn date_rules(&self) -> impl Iterator<Item = u16> + '_ {
        self.dates.iter().map(|(id, _)| *id)
    }

    /// When a document that is gone went: the earliest of its deadlines that has passed.
    pub fn expired_at(&self, life: &Life) -> Option<Timestamp> {
        let ts = life.ts as i64;
        let by_ttl = match life.own {
            OwnTtl::Inherit if ts <= self.inherited.through => Some((ts + self.inherited.after) * 1000),
            OwnTtl::Seconds(n) if ts + i64::from(n) <= self.own.through => Some((ts + i64::from(n)) * 1000),
            _ => None,
        };
        let by_date = life.dates.iter().filter_map(|(rule, date)| {
            let cut = self.date(*rule);
            (*date <= cut.through).then(|| date.saturating_add(cut.after))
        });
        by_ttl.into_iter().chain(by_date).min().map(|ms| Timestamp(ms.max(0) as u64))
    }
}

/// The earliest date at `path`, looking into arrays on the way and at its end.
fn earliest_date(value: RawBsonRef<'_>, path: &[String]) -> Result<Option<i64>> {
    match (value, path.split_first()) {
        (RawBsonRef::DateTime(date), None) => Ok(Some(date.timestamp_millis())),
        (RawBsonRef::Array(items), _) => {
            let mut earliest = None;
            for item in items {
                // An array inside an array is not looked into: a document is one level of items away.
                let found = match item? {
                    RawBsonRef::Array(_) => None,
                    item => earliest_date(item, path)?,
                };
                earliest = match (earliest, found) {
                    (Some(a), Some(b)) => Some(std::cmp::min::<i64>(a, b)),
                    (a, b) => a.or(b),
                };
            }
            Ok(earliest)
        }
        (RawBsonRef::Document(document), Some((name, rest))) => match document.get(name)? {
            Some(value) => earliest_date(value, rest),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}
