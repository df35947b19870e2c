//! Where connections are served: in lanes, one for each core, each a runtime with one worker.
//!
//! Workers that share their tasks wake each other whenever there are two things to do, and who is woken takes one of them
//! along, away from all that it had near. That is nothing beside work of milliseconds; but most answers take microseconds.
//! So a connection stays in the lane it was given: one thread reads what it asks for, answers and sends.
//!
//! What takes long does not hold up the rest of its lane: it is done with `block_in_place`, and another thread goes on with
//! the lane meanwhile. Background work has a runtime of its own, the one that the server was started in.
//!
//! Holds: a connection goes where the fewest are. A lane outlives what was begun in it; connections to a store belong to
//! the lane that opened them, so lanes end after the store is closed.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use tokio::runtime::{Builder, Handle, Runtime};

/// All lanes of a server.
#[derive(Debug)]
pub struct Lanes(Vec<Lane>);

#[derive(Debug)]
struct Lane {
    /// Taken at its end.
    runtime: Option<Runtime>,
    handle: Handle,
    connections: Arc<AtomicUsize>,
}

/// A connection's place in a lane, until it is dropped.
#[derive(Debug)]
pub struct Place {
    connections: Arc<AtomicUsize>,
}

impl Lanes {
    /// One for each core.
    pub fn new() -> io::Result<Self> {
        let count = thread::available_parallelism().map_or(1, usize::from);
        (0..count).map(|_| Lane::new()).collect::<io::Result<_>>().map(Self)
    }

    /// A place where the fewest connections are, and the runtime to serve it in.
    pub fn place(&self) -> (Place, &Handle) {
        let fewest = self.0.iter().min_by_key(|lane| lane.connections.load(Relaxed));
        let lane = fewest.expect("there is at least one core");
        lane.connections.fetch_add(1, Relaxed);
        (Place { connections: lane.connections.clone() }, &lane.handle)
    }
}

impl Lane {
    fn new() -> io::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("mayfly-lane").enable_all().build()?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Some(runtime), handle, connections: Arc::default() })
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // To wait for it here would hold up whoever drops it, which is a task.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_goes_where_the_fewest_are() {
        let lanes = Lanes((0..3).map(|_| Lane::new().unwrap()).collect());
        let counts = || lanes.0.iter().map(|lane| lane.connections.load(Relaxed)).collect::<Vec<_>>();
        let mut places: Vec<_> = (0..7).map(|_| lanes.place().0).collect();
        assert_eq!(counts(), [3, 2, 2]);
        // Those of the second lane leave.
        drop(places.remove(4));
        drop(places.remove(1));
        assert_eq!(counts(), [3, 0, 2]);
        places.extend([lanes.place().0, lanes.place().0]);
        assert_eq!(counts(), [3, 2, 2]);
    }

    #[tokio::test]
    async fn what_takes_long_does_not_hold_up_its_lane() {
        let lanes = Lanes(vec![Lane::new().unwrap()]);
        let (_place, lane) = lanes.place();
        let (done, wait) = std::sync::mpsc::channel();
        let long = lane.spawn(async move { tokio::task::block_in_place(|| wait.recv()) });
        let short = lane.spawn(async move { done.send(()) });
        assert!(short.await.unwrap().is_ok());
        assert!(long.await.unwrap().is_ok());
    }
}
