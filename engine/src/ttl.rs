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
//! write however many documents there are. The watermarks of earlier rules are kept as well, for they say when each
//! document went ([`TtlPolicy::expired_at`]).
//!
//! Holds: purge at any moment, or never, changes no answer. `docs/ttl.md` has the rules with their boundary cases.

mod watermark;

use bson::{RawBsonRef, RawDocument};
use mayfly_value::path::Path;
use serde::{Deserialize, Serialize};

use crate::{
    clock::Timestamp,
    error::{Error, Result},
};

pub use watermark::Watermark;
use watermark::{PAST_MAX, gone_at, keep};

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

    /// How long the stored form is.
    pub fn encoded_len(&self) -> usize {
        let own = if matches!(self.own, OwnTtl::Seconds(_)) { 4 } else { 0 };
        9 + own + 10 * self.dates.len()
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
    /// When it got this length, in milliseconds.
    #[serde(default)]
    pub since: i64,
    /// What had expired when the rule was last changed, in milliseconds.
    pub dead: Watermark,
    /// The watermarks before that one.
    #[serde(default)]
    pub past: Vec<Watermark>,
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

    /// What is gone at `now`.
    fn cut(&self, now: Timestamp) -> Watermark {
        let mut cut = self.dead;
        if let Some(seconds) = self.in_force() {
            cut.raise(Watermark::at(now.0 as i64, i64::from(seconds) * 1000, self.since));
        }
        cut
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
    /// The second the default was set.
    #[serde(default)]
    pub since: i64,
    /// The second time to live was switched on.
    #[serde(default)]
    pub on_since: i64,
    /// For documents that inherit, by `_ts`.
    #[serde(default)]
    pub inherited_dead: Watermark,
    /// The watermarks before that one.
    #[serde(default)]
    pub inherited_past: Vec<Watermark>,
    /// For documents with their own `ttl`, by deadline.
    #[serde(default)]
    pub own_dead: Watermark,
    /// The watermarks before that one.
    #[serde(default)]
    pub own_past: Vec<Watermark>,
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
        let seconds = now.seconds() as i64;
        if let Some(cut) = self.inherited_cut(now) {
            keep(&mut next.inherited_past, &mut next.inherited_dead, cut);
        }
        if let Some(cut) = self.own_cut(now) {
            keep(&mut next.own_past, &mut next.own_dead, cut);
        }
        if self.default.is_none() {
            next.on_since = seconds;
        }
        next.since = seconds;
        next.default = default;
        next
    }

    /// How far the default reaches at `now`, if there is one.
    fn inherited_cut(&self, now: Timestamp) -> Option<Watermark> {
        match self.default {
            Some(DefaultTtl::Seconds(n)) => {
                Some(Watermark::at(now.seconds() as i64, i64::from(n), self.since))
            }
            Some(DefaultTtl::Never) | None => None,
        }
    }

    /// How far deadlines of documents' own have come at `now`, if they count.
    fn own_cut(&self, now: Timestamp) -> Option<Watermark> {
        self.default.map(|_| Watermark::at(now.seconds() as i64, 0, self.on_since))
    }

    /// Whether the next change would forget when the oldest of what is gone went.
    pub fn past_is_full(&self) -> bool {
        let dates = self.date_rules.iter().map(|rule| &rule.past);
        [&self.inherited_past, &self.own_past].into_iter().chain(dates).any(|past| past.len() >= PAST_MAX)
    }

    /// Forgets when documents went that were gone by `cuts`. For when all of them have been purged.
    pub fn forget_past(&mut self, cuts: &Cuts) {
        self.inherited_past.retain(|mark| mark.through > cuts.inherited.through);
        self.own_past.retain(|mark| mark.through > cuts.own.through);
        for rule in &mut self.date_rules {
            rule.past.retain(|mark| mark.through > cuts.date(rule.id).through);
        }
    }

    /// The policy with another date rule, and the rule's number. It is in force once every document has its date. One
    /// whose making was cut short is taken up again.
    pub fn with_date_rule(&self, path: &Path, seconds: u32) -> Result<(Self, u16)> {
        let cut_short = self
            .date_rules
            .iter()
            .find(|rule| rule.building && rule.seconds == Some(seconds) && rule.path == path.segments());
        if let Some(rule) = cut_short {
            return Ok((self.clone(), rule.rule));
        }
        if self.date_rules.iter().filter(|rule| rule.open).count() >= DATE_RULES_MAX {
            return Err(Error::bad_request(format!("a container has at most {DATE_RULES_MAX} date rules")));
        }
        let mut next = self.clone();
        let id = next.next_generation()?;
        let path = path.segments().to_vec();
        next.date_rules.push(DateRule {
            id,
            rule: id,
            path,
            seconds: Some(seconds),
            since: 0,
            dead: Watermark::NONE,
            past: Vec::new(),
            open: true,
            building: true,
        });
        Ok((next, id))
    }

    fn next_generation(&self) -> Result<u16> {
        match self.date_rules.iter().map(|rule| rule.id + 1).max().unwrap_or(0) {
            id if id < GENERATIONS_MAX => Ok(id),
            _ => Err(Error::bad_request("the date rules of this container were changed too often")),
        }
    }

    /// The policy after every document has its date under a rule. It is in force from `now` on.
    pub fn with_date_rule_built(&self, rule: u16, now: Timestamp) -> Result<Self> {
        let mut next = self.clone();
        let built = next.date_rules.iter_mut().find(|each| each.rule == rule && each.seconds.is_some());
        let built = built.ok_or_else(|| Error::bad_request("there is no such date rule"))?;
        if std::mem::take(&mut built.building) {
            built.since = now.0 as i64;
        }
        Ok(next)
    }

    /// The policy after a date rule gets another length at `now`, or none (dropped).
    pub fn with_date_rule_seconds(&self, rule: u16, seconds: Option<u32>, now: Timestamp) -> Result<Self> {
        let mut next = self.clone();
        let mut last: Option<DateRule> = None;
        for generation in next.date_rules.iter_mut().filter(|each| each.rule == rule) {
            let Some(old) = generation.in_force() else { continue };
            last = Some(generation.clone());
            let cut = generation.cut(now);
            keep(&mut generation.past, &mut generation.dead, cut);
            generation.seconds = seconds;
            generation.since = now.0 as i64;
            generation.open &= seconds.is_some_and(|new| new <= old);
        }
        let last = last.ok_or_else(|| Error::bad_request("there is no such date rule"))?;
        let is_open = next.date_rules.iter().any(|each| each.rule == rule && each.open);
        if let (Some(_), false) = (seconds, is_open) {
            let id = next.next_generation()?;
            let (since, dead, past) = (now.0 as i64, Watermark::NONE, Vec::new());
            next.date_rules.push(DateRule { id, seconds, since, dead, past, open: true, ..last });
        }
        Ok(next)
    }

    /// The policy without a date rule, also one that was never in force.
    pub fn with_date_rule_dropped(&self, rule: u16, now: Timestamp) -> Result<Self> {
        if self.date_rules.iter().any(|each| each.rule == rule && each.in_force().is_some()) {
            return self.with_date_rule_seconds(rule, None, now);
        }
        let mut next = self.clone();
        for generation in next.date_rules.iter_mut().filter(|each| each.rule == rule) {
            (generation.seconds, generation.open) = (None, false);
        }
        Ok(next)
    }

    /// What is gone at `now`.
    pub fn cuts(&self, now: Timestamp) -> Cuts {
        let mut inherited = self.inherited_dead;
        inherited.raise(self.inherited_cut(now).unwrap_or_default());
        let mut own = self.own_dead;
        own.raise(self.own_cut(now).unwrap_or_default());
        let dates = self.date_rules.iter().map(|rule| (rule.id, rule.cut(now)));
        Cuts { inherited, own, dates: dates.collect() }
    }

    /// When a document that is gone by these cuts went: by its first deadline that a rule in force let pass, or when
    /// that rule came if the deadline was behind it already.
    pub fn expired_at(&self, life: &Life, cuts: &Cuts) -> Option<Timestamp> {
        let ts = life.ts as i64;
        let by_ttl = match life.own {
            OwnTtl::Never => None,
            OwnTtl::Inherit => gone_at(ts, &self.inherited_past, [self.inherited_dead, cuts.inherited]),
            OwnTtl::Seconds(n) => self.own_expired_at(ts + i64::from(n), cuts),
        };
        let by_date = life.dates.iter().filter_map(|(id, date)| self.date_expired_at(*id, *date, cuts));
        // A date may have been over when the document was written.
        let ms = by_ttl.map(|seconds| seconds * 1000).into_iter().chain(by_date).min()?.max(ts * 1000);
        Some(Timestamp(ms.max(0) as u64))
    }

    /// The second a document went that has this deadline of its own, if it did by that.
    pub fn own_expired_at(&self, deadline: i64, cuts: &Cuts) -> Option<i64> {
        gone_at(deadline, &self.own_past, [self.own_dead, cuts.own])
    }

    /// The millisecond a document went that has this date under a rule, if it did by that.
    pub fn date_expired_at(&self, rule: u16, date: i64, cuts: &Cuts) -> Option<i64> {
        let generation = self.date_rules.iter().find(|each| each.id == rule)?;
        gone_at(date, &generation.past, [generation.dead, cuts.date(rule)])
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

    /// The earliest date of `document` under each rule that admits it, as it is written now.
    pub fn dates_of(&self, document: &RawDocument, admits: &dyn Fn(u16) -> bool) -> Result<Vec<(u16, i64)>> {
        let mut dates = Vec::new();
        for rule in self.date_rules.iter().filter(|rule| rule.open && admits(rule.rule)) {
            if let Some(date) = earliest_date(RawBsonRef::Document(document), &rule.path)? {
                dates.push((rule.id, date));
            }
        }
        Ok(dates)
    }

    /// The dates of a document that was written before: those it has, as far as they still mean something, and those
    /// under rules that came later.
    pub fn redated(
        &self,
        life: &Life,
        document: &RawDocument,
        admits: &dyn Fn(u16) -> bool,
    ) -> Result<Vec<(u16, i64)>> {
        let generation = |id: u16| self.date_rules.iter().find(|rule| rule.id == id);
        if let Some(dead) = life.dates.iter().find(|(id, date)| {
            generation(*id).is_some_and(|rule| rule.seconds.is_none() && *date <= rule.dead.through)
        }) {
            // Gone by a rule that has been dropped, and to stay so. No other rule matters any more.
            return Ok(vec![*dead]);
        }
        let mut dates = life.dates.clone();
        dates.retain(|(id, _)| generation(*id).is_some_and(|rule| rule.seconds.is_some()));
        for (id, date) in self.dates_of(document, admits)? {
            let rule_of = |id: u16| generation(id).map(|rule| rule.rule);
            if dates.iter().all(|(other, _)| rule_of(*other) != rule_of(id)) {
                dates.push((id, date));
            }
        }
        dates.sort_unstable();
        Ok(dates)
    }

    /// A rule that not every document has its date under yet.
    pub fn unbuilt(&self) -> Option<u16> {
        self.date_rules.iter().find(|rule| rule.building && rule.seconds.is_some()).map(|rule| rule.rule)
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
