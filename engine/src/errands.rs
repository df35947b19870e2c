//! Errands: what one node asks another to do, where they share a store.
//!
//! Some things are in the memory of one node, and a client may come to another for them. Nodes do not know each other's addresses, only
//! the store, so an errand is a row there: whoever it is for takes it by removing it, does it and leaves the answer as another row.
//! What it says means nothing to the engine. Where the store passes words on, whoever waits hears at once; otherwise it looks now and
//! then.
//!
//! ```text
//!   0                                ─▶   counter                   numbers nodes
//!   1  whom:u16  second:u64  n:u64   ─▶   0:u64  bytes              asked
//!   2            second:u64  n:u64   ─▶   0:u64  how often:u64      answered: being done, still
//!                                    ─▶   1:u64  bytes              answered
//! ```
//!
//! Nobody misses these rows after a crash of the store, so no commit of theirs waits for the disk; but a node's number does, that it
//! stays its own.
//!
//! Holds: an errand is taken once, or withdrawn by who asked, never both.

use std::{
    pin::pin,
    sync::atomic::{AtomicU16, AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::join_all;
use mayfly_storage::{
    Error as StoreError,
    store::{Advance, Batch, Expect, Guard, Key, Put, Urgency},
};

use crate::{
    clock::{Stopwatch, Timestamp, pause},
    engine::Engine,
    error::{Error, Result},
    keys::{self, ERRANDS, be_u64},
};

/// How long an errand waits for its node to take it. It does so at once if it hears of it, and looks twice a second if it does not; but
/// it may be busy, and to be taken for gone is worse than to be waited for.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);

/// How often a node that works on an errand says that it still does, and how long it may say nothing.
const SIGN_EVERY: Duration = Duration::from_secs(4);
const SIGN_WITHIN: Duration = Duration::from_secs(15);

/// Looks for an answer that is not heard of: the first after so long, each twice as long after the one before, up to the last.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LOOK_MAX: Duration = Duration::from_millis(500);

/// What nobody came back for is removed after this long.
const KEPT_SECONDS: u64 = 3600;

/// Errands read at a time. They are commands, which may be long.
const PAGE: usize = 16;

/// Answers removed at a time.
const FORGOTTEN_MAX: usize = 1000;

/// What rows begin with: the version of an errand, which nobody changes, and whether an answer is one already.
const ASKED: u64 = 0;
const UNDER_WAY: u64 = 0;
const ANSWERED: u64 = 1;

/// What a node has to know of errands.
#[derive(Default)]
pub(crate) struct Errands {
    /// Its number; 0 if it is alone.
    number: AtomicU16,
    /// When it last looked for what nobody came back for.
    forgotten: AtomicU64,
}

/// The name of an errand: the second it was asked in, and a number.
type Id = [u8; 16];

/// Something that another node asks for, and this one has taken.
#[derive(Debug)]
pub struct Errand {
    id: Id,
    /// What it says.
    pub bytes: Bytes,
}

/// What became of an errand.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done, and this is the answer.
    Given(Bytes),
    /// Nobody has taken it, and nobody will.
    Withdrawn,
    /// It was taken and nothing was heard of it since: it may have been done.
    Lost,
}

impl Engine {
    /// Gives this node a number among those that share the store. Without it, it neither asks nor is asked.
    pub async fn enlist(&self) -> Result<()> {
        let advance = Advance { counter: keys::errand_nodes(), stamp: 0, tally: [0; 2] };
        let committed = self.store().commit(Batch { advances: vec![advance], ..Batch::default() }).await?;
        let seq = committed.counters.first().map_or(0, |counter| counter.seq);
        // They come round after so many starts that nobody is left of the last time. There is no 0.
        let number = (seq.wrapping_sub(1) % u64::from(u16::MAX)) as u16 + 1;
        self.own_errands().number.store(number, Ordering::Release);
        Ok(())
    }

    /// This node's number among those that share the store; 0 if it has none.
    pub fn node_number(&self) -> u16 {
        self.own_errands().number.load(Ordering::Acquire)
    }

    /// Asks a node to do something, and waits for its answer.
    pub async fn ask(&self, whom: u16, bytes: &[u8]) -> Result<Answer> {
        let id = self.errand_id().await?;
        let answer = keys::errand_answer(&id);
        let mut heard = self.store().heard(word(&id));
        self.leave_errand(whom, &id, bytes).await?;
        let (watch, mut rest) = (Stopwatch::start(), FIRST_LOOK);
        // What was last seen of whoever has taken it, and when.
        let mut sign = None;
        loop {
            tokio::select! {
                () = &mut heard => {}
                () = pause(rest) => {}
            }
            // Before the look: what is said after it is not missed.
            heard = self.store().heard(word(&id));
            rest = (rest * 2).min(LOOK_MAX);
            let found = self.store().get(&answer).await?;
            let elapsed = watch.elapsed();
            if let Some(row) = found {
                if row.get(..8).map(be_u64) == Some(ANSWERED) {
                    // One that stays is forgotten later.
                    let _ = self.commit_errand(Vec::new(), vec![answer]).await;
                    return Ok(Answer::Given(row.slice(8..)));
                }
                if sign.as_ref().is_none_or(|(_, last)| *last != row) {
                    sign = Some((elapsed, row));
                }
            }
            match &sign {
                None if elapsed < TAKEN_WITHIN => {}
                None if self.remove_errand(&keys::errand(whom, &id)).await? => return Ok(Answer::Withdrawn),
                None => sign = Some((elapsed, Bytes::new())),
                Some((at, _)) if elapsed.saturating_sub(*at) < SIGN_WITHIN => {}
                Some(_) => return Ok(Answer::Lost),
            }
        }
    }

    /// Asks a node to do something, without waiting for it.
    pub async fn tell(&self, whom: u16, bytes: &[u8]) -> Result<()> {
        let id = self.errand_id().await?;
        self.leave_errand(whom, &id, bytes).await
    }

    /// Waits until something is asked of this node, and takes it. `is_expected` says whether to look although nothing was heard.
    pub async fn errands(&self, is_expected: impl Fn() -> bool) -> Result<Vec<Errand>> {
        let number = self.node_number();
        loop {
            let mut heard = self.store().heard(u64::from(number));
            let taken = self.take_errands(number).await?;
            if !taken.is_empty() {
                return Ok(taken);
            }
            loop {
                tokio::select! {
                    () = &mut heard => break,
                    () = pause(LOOK_MAX) => if is_expected() { break },
                }
            }
        }
    }

    async fn take_errands(&self, number: u16) -> Result<Vec<Errand>> {
        let mut asked = Vec::new();
        for (key, value) in self.store().peek(&keys::errands(Some(number)), PAGE).await? {
            let (Some(id), Some(_)) = (key.last_chunk(), value.get(..8)) else {
                return Err(Error::Corrupt("an errand"));
            };
            asked.push(Errand { id: *id, bytes: value.slice(8..) });
        }
        let keys: Vec<_> = asked.iter().map(|errand| keys::errand(number, &errand.id)).collect();
        let removed = join_all(keys.iter().map(|key| self.remove_errand(key))).await;
        let mut taken = Vec::with_capacity(asked.len());
        for (errand, is_removed) in asked.into_iter().zip(removed) {
            if is_removed? {
                taken.push(errand);
            }
        }
        Ok(taken)
    }

    /// Answers an errand with what `work` comes to, and says now and then that it is still being done.
    pub async fn answer_errand(&self, errand: &Errand, work: impl Future<Output = Vec<u8>>) -> Result<()> {
        let mut work = pin!(work);
        let key = keys::errand_answer(&errand.id);
        let mut signs = 0_u64;
        let answer = loop {
            tokio::select! {
                answer = &mut work => break answer,
                () = pause(SIGN_EVERY) => {}
            }
            signs += 1;
            // Waited for, so that it is not behind the answer. One that does not get through is one sign less.
            let _ = self
                .commit_errand(vec![(key.clone(), UNDER_WAY, &signs.to_be_bytes()[..])], Vec::new())
                .await;
        };
        self.commit_errand(vec![(key, ANSWERED, &answer[..])], Vec::new()).await?;
        self.store().say(word(&errand.id)).await;
        Ok(())
    }

    /// Removes errands and answers that nobody came back for. Call as often as you like.
    pub async fn forget_errands(&self, now: Timestamp) -> Result<()> {
        let (second, last) = (now.seconds(), &self.own_errands().forgotten);
        let is_due = second >= last.load(Ordering::Acquire) + KEPT_SECONDS;
        if self.node_number() == 0 || !is_due || !self.store().tends(ERRANDS.place()) {
            return Ok(());
        }
        last.store(second, Ordering::Release);
        let before = second.saturating_sub(KEPT_SECONDS);
        while self.store().clear(&keys::errand_answers_before(before), FORGOTTEN_MAX).await?.more {}
        let mut range = keys::errands(None);
        loop {
            let page = self.store().peek(&range, PAGE).await?;
            let old = |key: &Bytes| key.last_chunk::<16>().is_some_and(|id| be_u64(&id[..8]) < before);
            let of_key = |key: &Bytes| Key { space: range.space, slot: range.slot, bytes: key.to_vec() };
            let deletes: Vec<_> =
                page.iter().map(|(key, _)| key).filter(|key| old(key)).map(of_key).collect();
            if !deletes.is_empty() {
                self.commit_errand(Vec::new(), deletes).await?;
            }
            let Some((last, _)) = page.last().filter(|_| page.len() == PAGE) else { return Ok(()) };
            range.start = [last, &[0][..]].concat();
        }
    }

    async fn errand_id(&self) -> Result<Id> {
        let mut id = self.ids().unique();
        id[..8].copy_from_slice(&self.now().await?.seconds().to_be_bytes());
        Ok(id)
    }

    async fn leave_errand(&self, whom: u16, id: &Id, bytes: &[u8]) -> Result<()> {
        self.commit_errand(vec![(keys::errand(whom, id), ASKED, bytes)], Vec::new()).await?;
        self.store().say(u64::from(whom)).await;
        Ok(())
    }

    /// Takes a row that was asked away; false if somebody has.
    async fn remove_errand(&self, key: &Key) -> Result<bool> {
        let guards = vec![Guard { key: key.clone(), expect: Expect::Version(ASKED) }];
        let urgency = Urgency::Background;
        let batch = Batch { guards, deletes: vec![key.clone()], urgency, ..Batch::default() };
        match self.store().commit(batch).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn commit_errand(&self, puts: Vec<(Key, u64, &[u8])>, deletes: Vec<Key>) -> Result<()> {
        let put = |(key, state, bytes): (Key, u64, &[u8])| Put {
            key,
            value: [&state.to_be_bytes()[..], bytes].concat(),
            marks: Vec::new(),
        };
        let puts = puts.into_iter().map(put).collect();
        let batch = Batch { puts, deletes, urgency: Urgency::Background, ..Batch::default() };
        self.store().commit(batch).await?;
        Ok(())
    }
}

/// What is said when an errand is answered.
fn word(id: &Id) -> u64 {
    be_u64(&id[8..])
}
