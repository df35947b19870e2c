//! A value for each thread, for what every request counts.
//!
//! A number that all threads add to goes from processor to processor with each of them, which takes longer than many a lookup.
//! So each thread has a place of its own, far enough from the others', and who asks for the sum looks at all places.
//!
//! Holds: threads may share a place, so what is there is atomic or behind a lock.

use std::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Places. Threads take them in turns: of those that serve connections there is one per processor.
const PLACES: usize = 32;

/// A value at each place.
pub struct PerThread<T>(Box<[Apart<T>]>);

/// Processors hand each other memory in lines of 64 bytes, and fetch two at a time.
#[derive(Default)]
#[repr(align(128))]
struct Apart<T>(T);

impl<T> PerThread<T> {
    /// The value of this thread.
    pub fn mine(&self) -> &T {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static PLACE: usize = NEXT.fetch_add(1, Relaxed) % PLACES;
        }
        // A thread that is ending may have let go of its place.
        let place = PLACE.try_with(|place| *place).unwrap_or_default();
        &self.0[place].0
    }

    /// The values of all threads.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|apart| &apart.0)
    }
}

impl<T: Default> Default for PerThread<T> {
    fn default() -> Self {
        Self((0..PLACES).map(|_| Apart::default()).collect())
    }
}

impl<T: fmt::Debug> fmt::Debug for PerThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn nothing_is_lost_of_what_threads_count() {
        let counts = PerThread::<AtomicUsize>::default();
        thread::scope(|scope| {
            // More than there are places.
            for _ in 0..2 * PLACES + 1 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        counts.mine().fetch_add(1, Relaxed);
                    }
                });
            }
        });
        assert_eq!(counts.all().map(|count| count.load(Relaxed)).sum::<usize>(), (2 * PLACES + 1) * 1000);
        assert!(counts.all().filter(|count| count.load(Relaxed) > 0).count() > 1, "each has its place");
    }

    #[test]
    fn places_are_apart() {
        let counts = PerThread::<u8>::default();
        let addresses: Vec<_> = counts.all().map(|count| &raw const *count as usize).collect();
        assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] >= 128), "{addresses:?}");
    }
}
