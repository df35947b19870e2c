//! The run that `crashes` and `faults` cut short: every kind of change the engine makes, one after the other.

use mayfly_testkit::model::{Body, How, Indexing, Step};

fn body(unique: u8, ttl: Option<i64>) -> Body {
    Body { ttl, dates: Vec::new(), unique, payload: unique }
}

fn dated(unique: u8, date: i64) -> Body {
    Body { dates: vec![date], ..body(unique, None) }
}

/// Writes, batches, transactions over two containers, deletes, changed rules and policies, expiry, purge, index building and reaping.
pub fn steps() -> Vec<Step> {
    vec![
        Step::Write(How::Create, (0, 0), body(0, None)),
        Step::Write(How::Create, (0, 1), body(1, Some(3))),
        Step::Write(How::Create, (1, 0), dated(0, 1004)),
        Step::Write(How::Upsert, (0, 0), body(2, None)),
        Step::Batch(
            0,
            vec![
                (How::Create, 2, body(0, Some(-1))),
                (How::Create, 3, body(3, Some(5))),
                (How::Replace, 0, dated(4, 1010)),
            ],
        ),
        Step::CreateRule(2),
        Step::Across(1, vec![(How::Create, 1, body(1, Some(2))), (How::Upsert, 2, body(2, None))]),
        Step::Across(1, vec![(How::Upsert, 2, body(3, None)), (How::Create, 3, body(1, None))]),
        Step::Advance(3),
        // The owner of this unique value has expired.
        Step::Across(1, vec![(How::Create, 3, body(1, Some(3)))]),
        Step::Delete((1, 3)),
        Step::Delete((1, 2)),
        Step::Write(How::Create, (0, 1), body(1, None)),
        Step::Write(How::Patch, (0, 1), body(1, Some(8))),
        Step::SetIndexing(Indexing::WithoutPayload),
        Step::BuildTick,
        Step::ReapTick,
        Step::Advance(2),
        Step::PurgeTick,
        Step::Compact,
        Step::SetDefault(Some(4)),
        Step::Write(How::Create, (1, 1), body(1, None)),
        Step::SetIndexing(Indexing::Lazy),
        Step::Write(How::Upsert, (1, 2), body(2, None)),
        Step::BuildTick,
        Step::Delete((0, 2)),
        Step::ChangeRule(0, Some(20)),
        Step::Advance(4),
        Step::Write(How::Create, (1, 3), body(1, None)),
        Step::Purge,
        Step::Write(How::Create, (1, 3), body(1, Some(2))),
        Step::Compact,
        Step::SetDefault(None),
        Step::ChangeRule(0, None),
        Step::SetIndexing(Indexing::Whole),
        Step::BuildTick,
        Step::ReapTick,
        Step::Batch(1, vec![(How::Upsert, 0, body(0, None)), (How::Upsert, 3, body(4, None))]),
        Step::Advance(1),
        Step::Purge,
    ]
}
