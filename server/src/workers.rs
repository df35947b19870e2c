//! Where connections are served: a runtime of their own, with a worker for each core.
//!
//! Workers share connections: whoever has nothing to do takes one that has something to say. What takes long leaves them
//! (`Elsewhere`), so that what is quick need not wait behind it, or is done with `block_in_place`, and another thread takes the
//! worker's place meanwhile. Long work and background work are in the runtime that the server was started in.
//!
//! Holds: workers outlive what was begun in them; connections to a store belong to the runtime that opened them, so workers end
//! after the store is closed.

use std::{io, thread};

use tokio::runtime::{Builder, Handle, Runtime};

/// The workers of a server.
#[derive(Debug)]
pub struct Workers {
    /// Taken at its end.
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Workers {
    /// One for each core.
    pub fn new() -> io::Result<Self> {
        Self::with(thread::available_parallelism().map_or(1, usize::from))
    }

    fn with(count: usize) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(count)
            .thread_name("mayfly-worker")
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Some(runtime), handle })
    }

    /// The runtime they are in.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // To wait for them here would hold up whoever drops this, which is a task.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_blocks_does_not_hold_up_its_worker() {
        let workers = Workers::with(1).unwrap();
        let (done, wait) = std::sync::mpsc::channel();
        let long = workers.handle().spawn(async move { tokio::task::block_in_place(|| wait.recv()) });
        let short = workers.handle().spawn(async move { done.send(()) });
        assert!(short.await.unwrap().is_ok());
        assert!(long.await.unwrap().is_ok());
    }
}
