//! Which core a helper of a scan runs on.
//!
//! A thread that is started while the other cores are busy for a moment, as they are when a worker wakes another one, shares the
//! core of who started it, and is left there for longer than a page takes. So it leaves that one by itself.

#[cfg(target_os = "linux")]
mod linux {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// The one that this thread runs on.
    pub fn current() -> usize {
        sched_getcpu()
    }

    /// Moves this thread to any core but this one, if it may use another.
    pub fn leave(core: usize) {
        let Ok(mut others) = sched_getaffinity(None) else { return };
        if core < CpuSet::MAX_CPU {
            others.unset(core);
        }
        if others.count() > 0 {
            // Where that is refused, pages take longer.
            let _ = sched_setaffinity(None, &others);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    pub fn current() {}

    pub fn leave((): ()) {}
}

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{current, leave};
#[cfg(target_os = "linux")]
pub use linux::{current, leave};
