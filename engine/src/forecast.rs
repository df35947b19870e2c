//! What will expire when: under the rules as they are, and under one that somebody thinks of setting.
//!
//! A rule is looked at before it is set: the policy that it would give is made, and every living document is asked by it.
//! The feed has each document's size and life, dates included, so no document is read; only a date that no rule has
//! looked for yet stands nowhere but in the documents.

use bson::RawDocument;
use mayfly_value::path::Path;

use crate::{
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::Family,
    record::{FeedEntry, Record},
    scan::each_row,
    ttl::{Cuts, DefaultTtl, Life, OwnTtl, TtlPolicy},
    usage::Amount,
};

/// A TTL index of a collection that is to be looked at.
#[derive(Clone, Copy, Debug)]
pub enum DateProposal<'a> {
    /// One that is there, by its name: it would get another length.
    Change(&'a str),
    /// A new one, on the dates at a path: names with dots between.
    New(&'a str),
}

/// What a rule would do to the documents that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// Living now.
    pub live: Amount,
    /// Of those: gone the moment the rule is set.
    pub at_once: Amount,
    /// Gone within an hour, not at once.
    pub within_hour: Amount,
    /// Gone within a day, not within an hour.
    pub within_day: Amount,
    /// Gone within 30 days, not within a day.
    pub within_month: Amount,
    /// Gone later than that.
    pub later: Amount,
    /// Never gone.
    pub never: Amount,
    /// Of the living: pinned by `ttl: -1`.
    pub pinned: Amount,
    /// Of the living: with seconds of their own.
    pub own: Amount,
    /// What goes in each of the next hours, not at once.
    pub hourly: [Amount; HOURS],
    /// What goes in each of the next days, the hours of the first one included.
    pub daily: [Amount; DAYS],
}

/// How far a forecast counts hour by hour, and day by day.
pub const HOURS: usize = 48;
/// See [`HOURS`].
pub const DAYS: usize = 60;

impl Default for Forecast {
    fn default() -> Self {
        let none = Amount::default();
        Self {
            live: none,
            at_once: none,
            within_hour: none,
            within_day: none,
            within_month: none,
            later: none,
            never: none,
            pinned: none,
            own: none,
            hourly: [none; HOURS],
            daily: [none; DAYS],
        }
    }
}

impl Forecast {
    /// Counts a document that goes in so many seconds.
    fn goes_in(&mut self, seconds: u64, bytes: u32) {
        let bucket = match seconds {
            left if left <= HOUR => &mut self.within_hour,
            left if left <= DAY => &mut self.within_day,
            left if left <= MONTH => &mut self.within_month,
            _ => &mut self.later,
        };
        bucket.add(bytes);
        // A document that goes at the end of an hour belongs to it, as above.
        let number = |length: u64| (seconds.saturating_sub(1) / length) as usize;
        if let Some(hour) = self.hourly.get_mut(number(HOUR)) {
            hour.add(bytes);
        }
        if let Some(day) = self.daily.get_mut(number(DAY)) {
            day.add(bytes);
        }
    }
}

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
const MONTH: u64 = 30 * DAY;

/// A walk of living documents that counts what becomes of each.
struct Tally<'a> {
    present: Cuts,
    policy: &'a TtlPolicy,
    proposed: Cuts,
    now: Timestamp,
    forecast: Forecast,
}

impl<'a> Tally<'a> {
    fn new(container: &Container, policy: &'a TtlPolicy, now: Timestamp) -> Self {
        let (present, proposed) = (container.ttl().cuts(now), policy.cuts(now));
        Self { present, policy, proposed, now, forecast: Forecast::default() }
    }

    /// Counts a document that is visible now, by the life it would have.
    fn count(&mut self, life: &Life, size: u32) {
        let forecast = &mut self.forecast;
        forecast.live.add(size);
        match life.own {
            OwnTtl::Never => forecast.pinned.add(size),
            OwnTtl::Seconds(_) => forecast.own.add(size),
            OwnTtl::Inherit => {}
        }
        match self.policy.expires_at(life) {
            _ if !self.proposed.is_live(life) => forecast.at_once.add(size),
            None => forecast.never.add(size),
            Some(at) => forecast.goes_in(at.seconds().saturating_sub(self.now.seconds()), size),
        }
    }
}

impl Engine {
    /// What setting a default at `now` would do. Reads the feed, no documents, and changes nothing.
    pub async fn forecast(
        &self,
        container: &Container,
        default: Option<DefaultTtl>,
        now: Timestamp,
    ) -> Result<Forecast> {
        let policy = match container.ttl().default == default {
            true => container.ttl().clone(),
            false => container.ttl().with_default(default, now),
        };
        self.forecast_by_feed(container, &policy, now).await
    }

    /// What a TTL index would do that gets this length at `now`. Changes nothing. Documents are read only for a new one.
    pub async fn forecast_dates(
        &self,
        container: &Container,
        proposal: DateProposal<'_>,
        seconds: u32,
        now: Timestamp,
    ) -> Result<Forecast> {
        let path = match proposal {
            DateProposal::New(path) => Path::from_segments(path.split('.')),
            DateProposal::Change(name) => {
                let index = container.definition().index_rules.iter().find(|index| index.name == name);
                let rule = index.and_then(|index| index.date_rule);
                let rule =
                    rule.ok_or_else(|| Error::bad_request(format!("There is no TTL index {name}.")))?;
                let policy = container.ttl().with_date_rule_seconds(rule, Some(seconds), now)?;
                return self.forecast_by_feed(container, &policy, now).await;
            }
        };
        let path = path.ok_or_else(|| Error::bad_request("A TTL index needs a field."))?;
        let (policy, rule) = container.ttl().with_date_rule(&path, seconds)?;
        let policy = policy.with_date_rule_built(rule, now)?;
        let mut tally = Tally::new(container, &policy, now);
        for shard in container.shards() {
            let snapshot = self.store().snapshot().await?;
            each_row(&*snapshot, shard.range(Family::Record, &[]), &mut |_, value| {
                let (mut life, document) = Record::decode_life(value)?;
                if tally.present.is_live(&life) {
                    let size = document.len() as u32;
                    let document = RawDocument::from_bytes(document)?;
                    life.dates = policy.redated(&life, document, &container.admission(document))?;
                    tally.count(&life, size);
                }
                Ok(())
            })
            .await?;
        }
        Ok(tally.forecast)
    }

    async fn forecast_by_feed(
        &self,
        container: &Container,
        policy: &TtlPolicy,
        now: Timestamp,
    ) -> Result<Forecast> {
        let mut tally = Tally::new(container, policy, now);
        for shard in container.shards() {
            let snapshot = self.store().snapshot().await?;
            each_row(&*snapshot, shard.range(Family::Feed, &[]), &mut |_, value| {
                let (size, life) = FeedEntry::decode_life(value)?;
                if tally.present.is_live(&life) {
                    tally.count(&life, size);
                }
                Ok(())
            })
            .await?;
        }
        Ok(tally.forecast)
    }

    /// When a document that is visible goes, and by which rule.
    pub fn fate(&self, container: &Container, record: &Record) -> Fate {
        let (policy, life) = (container.ttl(), &record.life);
        let expires_at = policy.expires_at(life);
        let rule = expires_at.and_then(|at| date_rule_ending(policy, life, at));
        let indexes = &container.definition().index_rules;
        let index = rule.and_then(|rule| indexes.iter().find(|index| index.date_rule == Some(rule)));
        Fate { last_write: life.ts, own: life.own, expires_at, index: index.map(|index| index.name.clone()) }
    }
}

/// When a document goes, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The second of its last write.
    pub last_write: u64,
    /// What its own `ttl` says.
    pub own: OwnTtl,
    /// When it will be gone, if ever.
    pub expires_at: Option<Timestamp>,
    /// The TTL index whose date decides; without one, it is the time since the last write.
    pub index: Option<String>,
}

/// The date rule by which a document goes at `at`; none if the time since its last write ends then.
fn date_rule_ending(policy: &TtlPolicy, life: &Life, at: Timestamp) -> Option<u16> {
    let undated = Life { dates: Vec::new(), ..life.clone() };
    if policy.expires_at(&undated) == Some(at) {
        return None;
    }
    let ends = |dated: &&(u16, i64)| {
        let alone = Life { ts: life.ts, own: OwnTtl::Never, dates: vec![**dated] };
        policy.expires_at(&alone) == Some(at)
    };
    let (id, _) = life.dates.iter().find(ends)?;
    policy.date_rules.iter().find(|rule| rule.id == *id).map(|rule| rule.rule)
}
