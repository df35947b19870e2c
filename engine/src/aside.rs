//! A thread of its own for background work, behind everybody else.
//!
//! On a worker of the runtime a slice of background work is in the way of every request that the worker would have
//! served next, however short it is. On a thread of its own only the processor is shared, and where the system can do so, this one gets what others leave:
//! who serves a request is put in its place at once. So a slice that meets requests takes longer, and with it the rest
//! after it (`load.rs`), by itself.
//!
//! Holds: nothing is decided here, and work that is dropped stops at its next wait.

use std::{future::Future, thread::Builder};

use tokio::{runtime::Handle, sync::oneshot};

/// How far behind others, in the terms of `nice`. A tenth of the weight of who serves requests; with less it would wait for whatever
/// else runs on the machine.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Carries out `work` on a thread of its own, with the timers and connections of the runtime it is called from. Threads
/// that are started from there are behind others as well.
pub async fn aside(work: impl Future<Output = ()> + Send + 'static) {
    let runtime = Handle::current();
    let (mut running, ended) = oneshot::channel::<()>();
    let here = move || {
        give_precedence();
        runtime.block_on(async {
            tokio::select! {
                () = work => {}
                // Nobody waits for the end any more.
                () = running.closed() => {}
            }
        });
    };
    match Builder::new().name("mayfly-aside".to_owned()).spawn(here) {
        // The sender is dropped at the end, which is all there is to hear.
        Ok(_) => drop(ended.await),
        Err(error) => tracing::error!("no background work is done: no thread could be started: {error}"),
    }
}

/// Puts this thread behind the others, unless the whole server is further behind already. Where it cannot be, rests alone
/// have to do.
fn give_precedence() {
    // Elsewhere the same calls are for the whole process.
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        let put_behind = |nice: i32| setpriority_process(None, nice.max(NICE));
        if let Err(error) = getpriority_process(None).and_then(put_behind) {
            tracing::debug!("background work has no lower priority: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work goes on elsewhere, with the runtime's timers, and its end is waited for.
    #[tokio::test]
    async fn work_is_done_aside() {
        let (told, heard) = oneshot::channel();
        aside(async move {
            crate::clock::pause(std::time::Duration::from_millis(1)).await;
            let name = std::thread::current().name().map(str::to_owned);
            let _ = told.send(name);
        })
        .await;
        assert_eq!(heard.await.unwrap().as_deref(), Some("mayfly-aside"));
    }

    /// Who does not wait to the end stops it.
    #[tokio::test]
    async fn work_that_is_dropped_stops() {
        let (told, heard) = oneshot::channel::<()>();
        let work = aside(async move {
            let _told = told;
            std::future::pending::<()>().await;
        });
        tokio::select! {
            biased;
            () = work => unreachable!("it never ends"),
            () = tokio::task::yield_now() => {}
        }
        assert!(heard.await.is_err(), "dropped with the work");
    }

    /// The thread is behind others, and nobody else is.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_that_thread_is_behind() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        let (told, heard) = oneshot::channel();
        aside(async move {
            let _ = told.send(nice());
        })
        .await;
        assert_eq!(heard.await.unwrap(), before.max(NICE));
        assert_eq!(nice(), before);
    }
}
