//! Signals to processes by their number, and whether we are root: system calls, because small systems have no
//! program `kill`.

use crate::shell::Result;

/// What a process can be told.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// End in good order.
    Terminate,
    /// PostgreSQL: end now, in good order.
    Interrupt,
    /// Gone, without a chance to do anything.
    Kill,
}

#[cfg(unix)]
pub fn send(process: u32, signal: Signal) -> Result<()> {
    use rustix::process::{Pid, kill_process};

    let signal = match signal {
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Interrupt => rustix::process::Signal::INT,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| crate::shell::Failure("no process has this number".into()))?;
    Ok(kill_process(process, signal)?)
}

#[cfg(unix)]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
pub fn send(_: u32, _: Signal) -> Result<()> {
    crate::shell::failure("signals are Unix's")
}

#[cfg(not(unix))]
pub fn is_root() -> bool {
    false
}
