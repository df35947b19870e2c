//! What stays of a rule that is over: how far it had cut, and when what it cut went.
//!
//! While a rule is in force its cut rises with the time. When it ends, the cut stays as a [`Watermark`], so that what
//! had expired stays gone. A later rule adds another one if it cuts further; bases between two watermarks went by the
//! later of the two rules:
//!
//! ```text
//!   base  ──────────┬───────────────────┬──────────▶
//!          first    │ second            │ alive
//!          rule     through             through
//! ```
//!
//! The last watermark alone decides what is gone. Those before it only say *when*: a document goes at base + rule, or
//! at the moment the rule came if that was later. There is at most one more of them for each change of a rule; those
//! whose documents have been purged can be forgotten, and [`PAST_MAX`] are kept in any case.

use serde::{Deserialize, Serialize};

/// A cut that stays: everything with its base at or before `through` is gone for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watermark {
    /// The last base that is gone.
    pub through: i64,
    /// The length of the rule that cut; base + `after` is the deadline under it.
    pub after: i64,
    /// When that rule came. What was due by then went then.
    #[serde(default = "always")]
    pub since: i64,
}

fn always() -> i64 {
    i64::MIN
}

impl Watermark {
    /// No cut at all.
    pub const NONE: Self = Self { through: i64::MIN, after: 0, since: i64::MIN };

    /// The cut at `now` of a rule that came at `since`.
    pub fn at(now: i64, after: i64, since: i64) -> Self {
        Self { through: now.saturating_sub(after), after, since }
    }

    /// When a base that this rule cut was gone.
    fn gone_at(&self, base: i64) -> i64 {
        base.saturating_add(self.after).max(self.since)
    }

    /// Keeps the later cut of the two.
    pub fn raise(&mut self, other: Self) {
        if other.through > self.through {
            *self = other;
        }
    }
}

impl Default for Watermark {
    fn default() -> Self {
        Self::NONE
    }
}

/// When a base went, if it is at or before one of these: the watermarks of earlier rules, then the last.
pub fn gone_at(base: i64, past: &[Watermark], last: [Watermark; 2]) -> Option<i64> {
    let first = past.partition_point(|mark| mark.through < base);
    past[first..].iter().chain(&last).find(|mark| base <= mark.through).map(|mark| mark.gone_at(base))
}

/// Watermarks kept of one kind. A container that shows when documents went is purged before it would need more.
pub const PAST_MAX: usize = 64;

/// Puts another cut behind the last one, which joins the past if it is of another rule.
pub fn keep(past: &mut Vec<Watermark>, last: &mut Watermark, next: Watermark) {
    if next.through <= last.through {
        return;
    }
    let same_rule = (last.after, last.since) == (next.after, next.since);
    if *last != Watermark::NONE && !same_rule {
        past.push(*last);
    }
    if past.len() > PAST_MAX {
        past.remove(0);
    }
    *last = next;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule of 10 from 0 to 100, one of 50 until 200, and 20 since: each base went by the rule that reached it first.
    #[test]
    fn each_base_went_by_its_own_rule() {
        let (mut past, mut last) = (Vec::new(), Watermark::NONE);
        keep(&mut past, &mut last, Watermark::at(100, 10, 0));
        keep(&mut past, &mut last, Watermark::at(200, 50, 100));
        let now = Watermark::at(210, 20, 200);
        let went = |base| gone_at(base, &past, [last, now]);
        assert_eq!(went(0), Some(10));
        assert_eq!(went(90), Some(100));
        assert_eq!(went(91), Some(141));
        assert_eq!(went(150), Some(200));
        // Due at 171 under the rule that came at 200.
        assert_eq!(went(151), Some(200));
        assert_eq!(went(185), Some(205));
        assert_eq!(went(191), None);
    }

    /// A rule that cut less than one before leaves nothing, and one that goes on leaves one.
    #[test]
    fn the_past_is_short() {
        let (mut past, mut last) = (Vec::new(), Watermark::NONE);
        keep(&mut past, &mut last, Watermark::at(100, 10, 0));
        keep(&mut past, &mut last, Watermark::at(101, 50, 100));
        keep(&mut past, &mut last, Watermark::at(102, 10, 0));
        assert_eq!((past.len(), last), (0, Watermark::at(102, 10, 0)));
    }
}
