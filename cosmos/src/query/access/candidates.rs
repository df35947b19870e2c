//! The indexes that a filter can use: single paths, and composite ones whose first parts it fixes.

use mayfly_engine::{IndexName, ValueRange};
use mayfly_sql::Hint;

use super::{Planner, names};
use crate::query::spans;

/// An index that the filter can use.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub index: IndexName,
    pub ranges: Vec<ValueRange>,
    /// Whether it has exactly what its hints say.
    pub exact: bool,
    /// Whether each range is one value.
    pub single: bool,
    /// The hints it serves.
    pub hints: Vec<usize>,
    /// The paths of the index.
    pub paths: Vec<Vec<String>>,
}

impl Planner<'_> {
    /// The indexes that the filter can use, in the order of the filter, then composite ones.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        /// Choices are numbers of six bits.
        const CANDIDATES_MAX: usize = 32;
        let single = self.hints.all.iter().enumerate().filter_map(|(place, hint)| {
            let path = self.index_path(&hint.path, hint.of_item)?;
            let ranges = spans::ranges(&hint.spans)?;
            Some(Candidate {
                index: IndexName::Path(path),
                ranges: ranges.ranges,
                exact: ranges.exact && hint.exact,
                single: ranges.single,
                hints: vec![place],
                paths: vec![names(&hint.path)?.into_iter().map(str::to_owned).collect()],
            })
        });
        let composite = self.container.composite_indexes().enumerate();
        let composite =
            composite.filter_map(|(number, parts)| self.composite(number as u16, &parts, 2).map(|(c, _)| c));
        single.chain(composite).take(CANDIDATES_MAX).collect()
    }

    /// A composite index whose first parts the filter fixes, and the next of which it may bound: `least` parts at
    /// least. Also says how many parts are fixed.
    pub(super) fn composite(
        &self,
        number: u16,
        parts: &[(&[String], bool)],
        least: usize,
    ) -> Option<(Candidate, usize)> {
        let mut prefix = Vec::new();
        let (mut used, mut exact, mut fixed) = (Vec::new(), true, 0);
        let mut range = None;
        for (segments, descending) in parts {
            let about = |hint: &&(usize, &Hint)| {
                let is_path = self.stored(&hint.1.path).is_some_and(|names| names.iter().eq(segments.iter()));
                is_path && !hint.1.of_item
            };
            let hints: Vec<_> = self.hints.all.iter().enumerate().collect();
            let hints: Vec<_> = hints.iter().filter(about).collect();
            let one = hints.iter().find_map(|(place, hint)| {
                spans::one(&hint.spans).map(|(bytes, whole)| (*place, bytes, whole && hint.exact))
            });
            if let Some((place, bytes, whole)) = one {
                prefix.extend(bytes.iter().map(|byte| if *descending { !*byte } else { *byte }));
                used.push(place);
                exact &= whole;
                fixed += 1;
                continue;
            }
            if let Some((place, hint)) = hints.first()
                && let Some(found) = spans::ranges(&hint.spans)
            {
                used.push(*place);
                exact &= found.exact && hint.exact;
                let mut ranges: Vec<_> =
                    found.ranges.iter().map(|range| spans::component(&prefix, range, *descending)).collect();
                if *descending {
                    ranges.reverse();
                }
                range = Some(ranges);
            }
            break;
        }
        let covered = fixed + usize::from(range.is_some());
        if covered < least {
            return None;
        }
        let ranges = range.unwrap_or_else(|| match prefix.is_empty() {
            true => vec![ValueRange::all()],
            false => vec![ValueRange::one(prefix)],
        });
        let paths = parts.iter().map(|(segments, _)| segments.to_vec()).collect();
        let index = IndexName::Composite(number);
        Some((Candidate { index, ranges, exact, single: false, hints: used, paths }, fixed))
    }
}
