//! One order of the logs of collections and the notes about them.
//!
//! Each of them comes in its own order, which is exact. A note has its place among the commits of its collection, which is exact
//! too. Beyond that the earliest moment is first. A log of which only a part has been read ends it all where that part ends, as
//! nobody knows what comes after.

use std::collections::{HashMap, VecDeque};

use super::Told;

/// What is left to give of a collection.
pub(super) struct Queue<T> {
    /// The collection's number.
    pub container: u32,
    /// Events: commit, moment, and what it is.
    pub events: VecDeque<(u64, u64, T)>,
    /// Whether the log goes on.
    pub more: bool,
}

/// What comes next.
pub(super) enum Next<'a, T> {
    /// A change: container, commit, moment.
    Change(u32, u64, u64, T),
    /// A happening.
    Happening(&'a Told),
}

/// Everything that was read and not given yet.
pub(super) struct Merge<'a, T> {
    queues: Vec<Queue<T>>,
    told: VecDeque<(&'a Told, Places)>,
    /// By container, the places of the happenings that are left.
    left: HashMap<u32, VecDeque<u64>>,
}

/// After which commits of which containers something comes.
type Places = Vec<(u32, u64)>;

impl<'a, T> Merge<'a, T> {
    pub fn new(queues: Vec<Queue<T>>, told: &'a [Told]) -> Self {
        let mut left: HashMap<u32, VecDeque<u64>> = HashMap::new();
        let places = |told: &'a Told| {
            let subject = told.happening.subject().map(|subject| (subject.container, told.after));
            let gone = told.happening.gone().map(|gone| (gone.container, u64::MAX));
            let mut places: Places = subject.into_iter().chain(gone).collect();
            // Two nodes may note something about one collection in the other order than they looked at it.
            for (container, after) in &mut places {
                let left = left.entry(*container).or_default();
                *after = left.back().copied().unwrap_or_default().max(*after);
                left.push_back(*after);
            }
            (told, places)
        };
        let told = told.iter().map(places).collect();
        Self { queues, told, left }
    }

    /// What comes next, if it is not later than `through`.
    pub fn next(&mut self, through: u64) -> Option<Next<'a, T>> {
        if self.queues.iter().any(|queue| queue.more && queue.events.is_empty()) {
            return None;
        }
        let change = self.earliest_change();
        let happening =
            self.told.front().filter(|(_, places)| self.has_come(places)).map(|(told, _)| told.moment);
        match (change, happening) {
            (Some((at, moment)), other) if moment <= through && other.is_none_or(|other| moment <= other) => {
                let queue = &mut self.queues[at];
                let (commit, moment, what) = queue.events.pop_front()?;
                Some(Next::Change(queue.container, commit, moment, what))
            }
            (_, Some(moment)) if moment <= through => {
                let (told, places) = self.told.pop_front()?;
                for (container, _) in places {
                    self.left.get_mut(&container).and_then(VecDeque::pop_front);
                }
                Some(Next::Happening(told))
            }
            _ => None,
        }
    }

    /// The queue with the earliest change that no happening comes before, and its moment.
    fn earliest_change(&self) -> Option<(usize, u64)> {
        let mut earliest: Option<(usize, u64)> = None;
        for (at, queue) in self.queues.iter().enumerate() {
            let Some((commit, moment, _)) = queue.events.front() else { continue };
            let first = self.left.get(&queue.container).and_then(VecDeque::front);
            let is_free = first.is_none_or(|after| commit <= after);
            if is_free && earliest.is_none_or(|(_, other)| *moment < other) {
                earliest = Some((at, *moment));
            }
        }
        earliest
    }

    /// Whether all that comes before a happening has been given.
    fn has_come(&self, places: &[(u32, u64)]) -> bool {
        let is_before = |queue: &Queue<T>| {
            let place = places.iter().find(|(container, _)| *container == queue.container);
            let first = queue.events.front();
            place.is_some_and(|(_, after)| first.is_some_and(|(commit, _, _)| commit <= after))
        };
        !self.queues.iter().any(is_before)
    }
}

#[cfg(test)]
mod tests {
    use mayfly_engine::Timestamp;

    use super::*;
    use crate::change_stream::{Happening, Subject};

    fn told(number: u64, moment: u64, container: u32, after: u64) -> Told {
        let collection = Subject {
            db: "db".to_owned(),
            name: "c".to_owned(),
            container,
            is_view: false,
            has_images: false,
            has_log: true,
        };
        let to = ("db".to_owned(), "d".to_owned());
        let happening = Happening::Rename { collection, to, replaced: None };
        Told { number: (number, 0), moment, wall: Timestamp(0), after, happening }
    }

    /// A container, its events (commit and moment), and whether there are more.
    type Log<'a> = (u32, &'a [(u64, u64)], bool);

    fn order(queues: &[Log<'_>], told: &[Told], through: u64) -> String {
        let queue = |(container, events, more): &Log<'_>| Queue {
            container: *container,
            events: events.iter().map(|(commit, moment)| (*commit, *moment, ())).collect(),
            more: *more,
        };
        let mut merge = Merge::new(queues.iter().map(queue).collect(), told);
        let mut order = Vec::new();
        while let Some(next) = merge.next(through) {
            order.push(match next {
                Next::Change(container, commit, _, ()) => format!("{container}.{commit}"),
                Next::Happening(told) => format!("n{}", told.number.0),
            });
        }
        order.join(" ")
    }

    #[test]
    fn the_earliest_is_first() {
        let queues: [Log<'_>; 2] = [(1, &[(1, 10), (2, 30)], false), (2, &[(1, 20)], false)];
        assert_eq!(order(&queues, &[], 100), "1.1 2.1 1.2");
        assert_eq!(order(&queues, &[], 20), "1.1 2.1");
    }

    #[test]
    fn a_note_stands_among_the_commits_of_its_collection_whatever_the_clocks_say() {
        let queues: [Log<'_>; 1] = [(1, &[(1, 10), (2, 20), (3, 30)], false)];
        assert_eq!(order(&queues, &[told(5, 99, 1, 1)], 100), "1.1 n5 1.2 1.3");
        assert_eq!(order(&queues, &[told(5, 1, 1, 2)], 100), "1.1 1.2 n5 1.3");
        assert_eq!(order(&queues, &[told(5, 25, 9, 0)], 100), "1.1 1.2 n5 1.3");
    }

    #[test]
    fn notes_keep_their_order_also_if_they_were_looked_up_in_another() {
        let queues: [Log<'_>; 1] = [(1, &[(1, 10), (2, 20), (3, 30)], false)];
        assert_eq!(order(&queues, &[told(5, 15, 1, 2), told(6, 15, 1, 1)], 100), "1.1 1.2 n5 n6 1.3");
    }

    #[test]
    fn nothing_comes_after_the_end_of_what_was_read_of_a_log() {
        let queues: [Log<'_>; 2] = [(1, &[(1, 10)], true), (2, &[(1, 5), (2, 20)], false)];
        assert_eq!(order(&queues, &[], 100), "2.1 1.1");
    }
}
