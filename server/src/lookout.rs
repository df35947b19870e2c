//! Looking for the next request for a moment, before sleeping until it comes.
//!
//! A client that asks one thing after the other sends its next request some microseconds after it has the answer, if it is
//! near. To lay a thread to rest and to wake it takes as much processor time as to look for that long, and the client waits
//! for the waking. So the thread that has answered looks whether there is more, for a moment. It is kept from other
//! connections meanwhile: it looks only where nobody else has asked for anything since the answer before, and who finds nothing
//! looks less and less often.
//!
//! Holds: a connection looks only if it is the only one that is served; one that never finds anything looks after one answer
//! in 1024.

use std::{
    hint::spin_loop,
    mem::{self, MaybeUninit},
    time::Duration,
};

use mayfly_engine::clock::Stopwatch;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// How long a look takes at most. To fall asleep and be woken takes half of that, and an answer then comes that much later.
const MOMENT: Duration = Duration::from_micros(50);

/// How often the number of answers between looks is doubled at most.
const MISSES_MAX: u32 = 10;

/// What a connection has learnt from looking.
#[derive(Debug, Default)]
pub struct Lookout {
    /// Looks in a row that found nothing, or would have been in somebody's way.
    misses: u32,
    /// Answers to come before the next look.
    rest: u32,
    /// Answers of this connection since it last looked around.
    own: u64,
    /// All requests that had come by then.
    all: u64,
}

/// What can be asked for news without waiting for any.
pub trait Watched {
    /// Whether bytes have come that nobody has read.
    fn has_news(&self) -> bool;
}

impl Watched for TcpStream {
    fn has_news(&self) -> bool {
        // The end of a connection is news too; whoever reads will see.
        SockRef::from(self).peek(&mut [MaybeUninit::uninit()]).is_ok()
    }
}

impl<S: Watched> Watched for TlsStream<S> {
    fn has_news(&self) -> bool {
        self.get_ref().0.has_news()
    }
}

impl Lookout {
    /// Looks until there are news, for a moment at most; not if this was in vain too often, or others are served. To be called after
    /// each answer. `all_answered` tells how many requests have come to the server, if all are answered.
    pub fn look(&mut self, all_answered: impl FnOnce() -> Option<u64>, watched: &impl Watched) {
        self.own += 1;
        if self.rest > 0 {
            self.rest -= 1;
            return;
        }
        let found = self.is_alone(all_answered()) && comes_soon(watched);
        self.misses = if found { 0 } else { MISSES_MAX.min(self.misses + 1) };
        self.rest = (1 << self.misses) - 1;
    }

    /// Whether all requests since the last time were this connection's.
    fn is_alone(&mut self, all_answered: Option<u64>) -> bool {
        let own = mem::take(&mut self.own);
        let Some(all) = all_answered else { return false };
        let before = mem::replace(&mut self.all, all);
        all.saturating_sub(before) <= own
    }
}

fn comes_soon(watched: &impl Watched) -> bool {
    let watch = Stopwatch::start();
    loop {
        if watched.has_news() {
            return true;
        }
        if watch.elapsed() >= MOMENT {
            return false;
        }
        spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Has news at the look of this number, and counts looks.
    struct Bell {
        at: usize,
        looks: Cell<usize>,
    }

    impl Bell {
        fn new(at: usize) -> Self {
            Self { at, looks: Cell::new(0) }
        }
    }

    impl Watched for Bell {
        fn has_news(&self) -> bool {
            self.looks.set(self.looks.get() + 1);
            self.looks.get() >= self.at
        }
    }

    /// How often it looks after an answer, when so many have been answered in all.
    fn looks(lookout: &mut Lookout, all_answered: Option<u64>, news_at: usize) -> usize {
        let bell = Bell::new(news_at);
        lookout.look(|| all_answered, &bell);
        bell.looks.get()
    }

    #[test]
    fn who_finds_something_looks_again() {
        let mut lookout = Lookout::default();
        assert!((1..=100).all(|answer| looks(&mut lookout, Some(answer), 3) == 3));
    }

    #[test]
    fn who_finds_nothing_looks_less_and_less_often() {
        let mut lookout = Lookout::default();
        let looked = |answer: &u64| looks(&mut lookout, Some(*answer), usize::MAX) > 0;
        let answers: Vec<_> = (1..4000).filter(looked).collect();
        assert_eq!(answers, [1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 2047, 3071]);
        // And as often as at first once it finds something.
        let next = (4000..).find(|answer| looks(&mut lookout, Some(*answer), 1) > 0).unwrap();
        assert_eq!(next, 4095);
        assert_eq!(looks(&mut lookout, Some(4096), 1), 1);
    }

    #[test]
    fn nobody_looks_who_is_in_the_way_of_others() {
        // One other request for each of its own, or one that is still running.
        let busy: [fn(u64) -> Option<u64>; 2] = [|answer| Some(answer * 2), |_| None];
        for all_answered in busy {
            let mut lookout = Lookout::default();
            let looked = (2..5000).any(|answer| looks(&mut lookout, all_answered(answer), 1) > 0);
            assert!(!looked);
        }
    }
}
