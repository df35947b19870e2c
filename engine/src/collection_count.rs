//! Counting documents of a collection by the entries of an index, without reading the documents.
//!
//! Each entry says by itself whether its document is alive, so what is counted is exact at this second. Whoever asks has
//! made sure that the ranges hold the entries of the wanted documents and no others.

use std::collections::HashSet;

use mayfly_storage::store::{Direction, PageLimit};

use crate::{
    clock::Timestamp,
    collection_walk::{CollectionRange, key_range},
    container::Container,
    engine::Engine,
    error::Result,
    index::read_secondary_life,
    view::View,
};

/// Entries looked at in one go. As many as the store reads without leaving its thread.
const ENTRIES: PageLimit = PageLimit { rows: 1024, bytes: 1 << 20 };

/// Whether a document may have several entries in the ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// It may, and counts once.
    Possible,
    /// It has one at most.
    Never,
}

impl Engine {
    /// How many living documents have an entry in the ranges, at most `most`.
    pub async fn count_collection(
        &self,
        container: &Container,
        ranges: &[CollectionRange],
        repeats: Repeats,
        most: u64,
        view: Option<&View>,
        now: Timestamp,
    ) -> Result<u64> {
        let (snapshot, now) = match view {
            Some(view) => (view.snapshot.clone(), view.now),
            None => (self.store().snapshot().await?, now),
        };
        let container = self.reload(container)?;
        let cuts = container.ttl().cuts(now);
        let mut seen = HashSet::new();
        let mut count = 0;
        'ranges: for range in ranges {
            let mut keys = key_range(&container, range)?;
            while !keys.is_empty() {
                let page = snapshot.scan(&keys, Direction::Forward, ENTRIES).await?;
                for (_, value) in &page.rows {
                    let (document, life) = read_secondary_life(value)?;
                    let counts =
                        cuts.is_live(&life) && (repeats == Repeats::Never || seen.insert(document.to_vec()));
                    count += u64::from(counts);
                }
                if count >= most {
                    count = most;
                    break 'ranges;
                }
                let Some((last, _)) = page.rows.last().filter(|_| page.more) else { break };
                keys.start = [last, &[0][..]].concat();
                // Others get their turn, also where the store never waits.
                tokio::task::yield_now().await;
            }
        }
        // A view has the rules of its own moment.
        if view.is_none() && self.is_behind(&container) {
            let container = self.renewed(&container).await?;
            return Box::pin(self.count_collection(&container, ranges, repeats, most, view, now)).await;
        }
        Ok(count)
    }
}
