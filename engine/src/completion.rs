//! Work that is never left half-way: it runs in a task of its own, and the caller only waits for its result.
//!
//! A server drops the future of a request when its client hangs up, at whichever `await` it is. Between a
//! commit and what has to follow from it there must be none, or the work has to go on without the request.
//! What consists of several steps, or changes memory after the store, goes through here; a read or a write of
//! documents, which is one commit with nothing to follow, need not.
//!
//! Holds: `work` that has begun ends, unless the process does; [`Engine::close`] waits for it.

use std::{panic::resume_unwind, sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{clock::pause, engine::Engine, error::Error};

/// How long the end of an engine waits for work that is under way. What takes longer, such as an index of many
/// documents, is left as a crash would leave it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The work that is under way.
#[derive(Default)]
pub(crate) struct Completions {
    count: watch::Sender<usize>,
}

/// A piece of work, until it is let go.
struct UnderWay(Arc<Completions>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count -= 1);
    }
}

impl Completions {
    /// Carries out `work`, also if nobody waits for it any more.
    pub async fn run<T, E>(
        self: &Arc<Self>,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.count.send_modify(|count| *count += 1);
        let under_way = UnderWay(self.clone());
        #[expect(clippy::disallowed_methods, reason = "the engine's end waits for it")]
        let task = tokio::spawn(async move {
            let _under_way = under_way;
            work.await
        });
        match task.await {
            Ok(done) => done,
            Err(ended) => match ended.try_into_panic() {
                // The caller hears of a panic as if it had happened here.
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(Error::internal("the server stops").into()),
            },
        }
    }

    /// Waits until nothing is under way, for as long as there is patience.
    pub async fn ended(&self) {
        let mut count = self.count.subscribe();
        tokio::select! {
            biased;
            _ = count.wait_for(|count| *count == 0) => {}
            () = pause(PATIENCE) => tracing::warn!("work is under way at the end, and is left where it is"),
        }
    }
}

impl Engine {
    /// Carries out `work` of several steps, also if nobody waits for it any more.
    pub async fn to_completion<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.completions().run(work).await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::{sync::oneshot, task::yield_now};

    use super::*;

    #[tokio::test]
    async fn work_goes_on_without_its_caller() {
        let completions = Arc::new(Completions::default());
        let (told, mut heard) = oneshot::channel();
        let work = async {
            yield_now().await;
            let _ = told.send(());
            Ok::<_, Error>(())
        };
        let waiting = Box::pin(completions.run(work));
        assert!(waiting.now_or_never().is_none(), "polled once, and dropped");
        completions.ended().await;
        assert!(heard.try_recv().is_ok());
    }

    #[tokio::test]
    async fn a_panic_reaches_the_caller_and_is_an_end() {
        let completions = Arc::new(Completions::default());
        let work = completions.run::<(), Error>(async { panic!("no") });
        let panic = std::panic::AssertUnwindSafe(work).catch_unwind().await.unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"no"));
        completions.ended().await;
    }
}
