//! A MongoDB server to compare with: started from a binary that is there, in a directory of its own, and stopped again.

use std::{
    io::{Error, Result},
    ops::{Deref, DerefMut},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use mayfly_engine::clock::pause;

use crate::mongo::Client;

/// A running server and a connection to it.
pub struct Mongod {
    child: Child,
    client: Client,
    dir: tempfile::TempDir,
}

impl Mongod {
    /// Starts `binary` on `port`, with its TTL monitor switched off.
    pub async fn start(binary: &Path, port: u16) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let mut child = Command::new(binary)
            .args(["--bind_ip", "127.0.0.1", "--port", &port.to_string(), "--dbpath"])
            .arg(dir.path())
            .args(["--setParameter", "ttlMonitorEnabled=false", "--setParameter", "ttlMonitorSleepSecs=1"])
            .args(["--wiredTigerCacheSizeGB", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()?;
        for _ in 0..300 {
            match Client::connect(port) {
                Ok(client) => return Ok(Self { child, client, dir }),
                Err(error) => match child.try_wait()? {
                    Some(status) => return Err(Error::other(format!("it ended: {status}: {error}"))),
                    None => pause(Duration::from_millis(100)).await,
                },
            }
        }
        let _ = child.kill();
        Err(Error::other("it did not answer in half a minute"))
    }

    /// The folder of its files.
    pub fn data(&self) -> &Path {
        self.dir.path()
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Deref for Mongod {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Mongod {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl Drop for Mongod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
