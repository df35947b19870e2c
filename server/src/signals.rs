//! Requests to stop, from the system or from a test.
//!
//! SIGTERM and SIGINT mean the same: the first asks, the second insists. What that leads to is in `run`.
//!
//! Holds: waiting may be given up and taken up again without losing a signal.

use std::io;
use tokio::sync::mpsc;

/// A source of requests to stop.
#[derive(Debug)]
pub struct Signals(Source);

#[derive(Debug)]
enum Source {
    #[cfg(unix)]
    Unix {
        terminate: tokio::signal::unix::Signal,
        interrupt: tokio::signal::unix::Signal,
    },
    #[cfg(not(unix))]
    CtrlC,
    Channel(mpsc::Receiver<()>),
}

impl Signals {
    /// SIGTERM and SIGINT; on other systems Ctrl-C. Has to be called inside the runtime.
    pub fn of_the_system() -> io::Result<Signals> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
            Ok(Signals(Source::Unix { terminate, interrupt }))
        }
        #[cfg(not(unix))]
        Ok(Signals(Source::CtrlC))
    }

    /// Signals that the holder of the sender gives.
    pub fn by_hand() -> (mpsc::Sender<()>, Signals) {
        let (sender, receiver) = mpsc::channel(2);
        (sender, Signals(Source::Channel(receiver)))
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        let came = match &mut self.0 {
            #[cfg(unix)]
            Source::Unix { terminate, interrupt } => tokio::select! {
                came = terminate.recv() => came.is_some(),
                came = interrupt.recv() => came.is_some(),
            },
            #[cfg(not(unix))]
            Source::CtrlC => tokio::signal::ctrl_c().await.is_ok(),
            Source::Channel(receiver) => receiver.recv().await.is_some(),
        };
        if !came {
            // The source is closed: no signal will ever come.
            std::future::pending::<()>().await;
        }
    }
}
