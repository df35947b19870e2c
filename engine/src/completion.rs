//! Work that is never left half-way: it runs in a task of its own, and the caller only waits for its result.
//!
//! A server drops the future of a request when its client hangs up, at whichever `await` it is. Between a
//! commit and what has to follow from it there must be none, or the work has to go on without the request.
//! What consists of several steps, or changes memory after the store, goes through here; a read or a write of
//! documents, which is one commit with nothing to follow, need not.
//!
//! Holds: `work` that has begun ends, unless the process does.

use std::panic::resume_unwind;

use crate::error::Error;

/// Carries out `work`, also if nobody waits for it any more.
pub async fn to_completion<T, E>(work: impl Future<Output = Result<T, E>> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            // The caller hears of a panic as if it had happened here.
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(Error::internal("the server stops").into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::{sync::oneshot, task::yield_now};

    use super::*;

    #[tokio::test]
    async fn work_goes_on_without_its_caller() {
        let (told, heard) = oneshot::channel();
        let work = async {
            yield_now().await;
            let _ = told.send(());
            Ok::<_, Error>(())
        };
        let waiting = Box::pin(to_completion(work));
        assert!(waiting.now_or_never().is_none(), "polled once, and dropped");
        assert!(heard.await.is_ok());
    }

    #[tokio::test]
    async fn a_panic_reaches_the_caller() {
        let work = to_completion::<(), Error>(async { panic!("no") });
        let panic = std::panic::AssertUnwindSafe(work).catch_unwind().await.unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"no"));
    }
}
