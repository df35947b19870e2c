//! The indexes that a filter can use: single paths, and composite ones whose first parts it fixes.

use mayfly_engine::{IndexName, ValueRange};
use mayfly_sql::{Hint, PathStep, hints::Selects};

use super::{Planner, names};
use crate::query::spans::{self, Ranges};

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
    /// How many of its entries are wanted.
    pub selects: Selects,
    /// Whether documents are wanted that no index lists, so that every document must be known to have an entry.
    pub beyond_scalars: bool,
}

impl Planner<'_> {
    /// The indexes that the filter can use, in the order of the filter, then composite ones. Those that have to cover
    /// the documents come last: whether they do may change between two pages, and the others keep their numbers.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        /// Choices are numbers of six bits.
        const CANDIDATES_MAX: usize = 32;
        let places = 0..self.hints.all.len();
        let single = places.filter_map(|place| self.single(place));
        let (covering, single): (Vec<_>, Vec<_>) = single.partition(|candidate| candidate.beyond_scalars);
        let composite = self.container.composite_indexes().enumerate();
        let composite =
            composite.filter_map(|(number, parts)| self.composite(number as u16, &parts, 2).map(|(c, _)| c));
        let words = self.by_words();
        single.into_iter().chain(composite).chain(words).chain(covering).take(CANDIDATES_MAX).collect()
    }

    /// The index of the path of a hint, for all hints about that path. They are one candidate: the first one's.
    fn single(&self, place: usize) -> Option<Candidate> {
        let hint = self.hints.all.get(place)?;
        let path = self.index_path(&hint.path, hint.of_item)?;
        // Two items of an array may have what two conditions ask for.
        let (ranges, hints) = match hint.of_item {
            true => (spans::ranges(&hint.spans)?, vec![place]),
            false => self.ranges_at(&hint.path)?,
        };
        if hints.first() != Some(&place) {
            return None;
        }
        let of = |place: &usize| self.hints.all.get(*place);
        let beyond_scalars = hints.iter().filter_map(of).all(|hint| hint.beyond_scalars);
        if beyond_scalars {
            self.covered(&path, self.container.complete_index()?)?;
        }
        let is_few = hints.iter().filter_map(of).any(|hint| hint.selects == Selects::Few);
        Some(Candidate {
            index: IndexName::Path(path),
            exact: ranges.exact && hints.iter().filter_map(of).all(|hint| hint.exact),
            ranges: ranges.ranges,
            single: ranges.single,
            hints,
            paths: vec![names(&hint.path)?.into_iter().map(str::to_owned).collect()],
            selects: if is_few { Selects::Few } else { Selects::Many },
            beyond_scalars,
        })
    }

    /// What all hints about a path leave of its values, and which hints these are.
    pub(super) fn ranges_at(&self, path: &[PathStep]) -> Option<(Ranges, Vec<usize>)> {
        let hints = self.hints.all.iter().enumerate();
        let mut found: Option<(Ranges, Vec<usize>)> = None;
        for (place, hint) in hints.filter(|(_, hint)| hint.path == path && !hint.of_item) {
            let Some(ranges) = spans::ranges(&hint.spans) else { continue };
            found = Some(match found {
                None => (ranges, vec![place]),
                Some((others, mut places)) => {
                    places.push(place);
                    (others.and(ranges), places)
                }
            });
        }
        found
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
                is_path && !hint.1.of_item && hint.1.selects == Selects::Few
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
        let (single, selects, beyond_scalars) = (false, Selects::Few, false);
        let candidate =
            Candidate { index, ranges, exact, single, hints: used, paths, selects, beyond_scalars };
        Some((candidate, fixed))
    }
}
