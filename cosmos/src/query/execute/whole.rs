//! Queries whose rows are all computed for every page: what is about all documents at once, or about none.

use mayfly_engine::{Access, PageLimit};
use mayfly_sql::Progress;

use super::{PAGE_BYTES_MAX, PageRun, SCAN_ROWS, rows::Rows};
use crate::{
    error::ApiError,
    query::{
        access::Reading,
        request::{failed, fingerprint},
        source::{Item, Items, text_of},
        token::{ANCHORS_MAX, From, Token},
    },
};

impl PageRun<'_> {
    /// No row is known before the last document; later pages run the query again and go on where the last one ended.
    pub(super) async fn whole(&self, token: Token, mut page: Rows) -> Result<Rows, ApiError> {
        let rows = self.all_rows(&mut page).await?;
        let start = match &token.from {
            From::Start => 0,
            From::Rows(anchors) => resume_after(&rows, anchors, token.progress.given as usize)
                .ok_or_else(ApiError::rows_changed)?,
            _ => return Err(ApiError::invalid_continuation()),
        };
        let end = rows.len().min(start + page.rows_max);
        let bytes = rows[start..end].iter().scan(0, |sum, row| {
            let before = *sum;
            *sum += row.len();
            Some(before)
        });
        let end = start + bytes.take_while(|before| *before < PAGE_BYTES_MAX).count();
        let anchors = rows[..end].iter().rev().take(ANCHORS_MAX).map(|row| fingerprint(row));
        let from = (end < rows.len()).then(|| From::Rows(anchors.collect()));
        rows[start..end].iter().for_each(|row| page.add_text(row));
        Ok(page.ended(Progress { skipped: 0, given: end as u64 }, from))
    }

    async fn all_rows(&self, page: &mut Rows) -> Result<Vec<Vec<u8>>, ApiError> {
        let plan = &self.request.plan;
        let counted = match (&self.access.reading, &self.access.access) {
            (Reading::DocumentCount, _) => {
                Some(self.engine.count_documents(self.container, self.scope, self.now).await?)
            }
            (Reading::EntryCount, Access::Index(index)) => {
                Some(self.engine.count_entries(self.container, index, self.now).await?)
            }
            _ => None,
        };
        if let Some(count) = counted {
            let context = self.context();
            let rows = plan.counted(&context, count).map_err(failed)?;
            return Ok(rows.iter().map(text_of).collect());
        }
        if let Some(ranks) = &self.access.ranks
            && let Some(rows) = self.ranked(ranks, page).await?
        {
            return Ok(rows);
        }
        let source = self.source(self.access);
        let mut run = self.run(Progress::default())?;
        let mut push = |items: Vec<Item>, page: &mut Rows| {
            for item in &items {
                page.looks_at(item);
                source
                    .with_document(item, |document| run.push_times(document, item.times))
                    .map_err(failed)?;
            }
            Ok::<_, ApiError>(run.is_done())
        };
        if let Reading::Ends(_) = self.access.reading {
            push(source.ends().await?, page)?;
        } else if plan.reads_documents() {
            let limit = PageLimit { rows: SCAN_ROWS, bytes: PAGE_BYTES_MAX };
            let mut at = None;
            loop {
                let pulled = source.pull(at, limit).await?;
                page.passes_over(&pulled);
                let Items { items, next, .. } = pulled;
                match (push(items, page)?, next) {
                    (false, Some(next)) => at = Some(next),
                    _ => break,
                }
            }
        }
        Ok(run.finish().map_err(failed)?.iter().map(text_of).collect())
    }
}

/// The place after the latest anchor that is still among the rows: of equal rows, the one nearest to where it was.
fn resume_after(rows: &[Vec<u8>], anchors: &[u64], given: usize) -> Option<usize> {
    anchors.iter().enumerate().find_map(|(back, anchor)| {
        let expected = given.checked_sub(back + 1)?;
        let same = rows.iter().enumerate().filter(|(_, row)| fingerprint(row) == *anchor);
        same.map(|(n, _)| n).min_by_key(|n| n.abs_diff(expected)).map(|n| n + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_resume(given: &[&str], now: &[&str], expected: Option<usize>) {
        let anchors: Vec<_> = given.iter().rev().map(|row| fingerprint(row.as_bytes())).collect();
        let rows: Vec<_> = now.iter().map(|row| row.as_bytes().to_vec()).collect();
        assert_eq!(resume_after(&rows, &anchors, given.len()), expected);
    }

    #[test]
    fn a_page_goes_on_after_the_last_row_that_is_left() {
        check_resume(&["0", "1", "2"], &["0", "1", "2", "3"], Some(3));
        check_resume(&["0", "1", "2"], &["2", "3"], Some(1));
        check_resume(&["0", "1", "2"], &["1", "3"], Some(1));
        check_resume(&["0", "1", "2"], &["a", "0", "1", "2", "3"], Some(4));
        check_resume(&["5", "5"], &["5", "5", "5"], Some(2));
        check_resume(&["0", "1", "2"], &["3", "4"], None);
    }
}
