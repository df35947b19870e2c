//! Who does the background work of which slots.
//!
//! Nodes share it out by rows: each takes its part of the groups for half a minute and renews what it has; what a dead
//! node had falls free by itself. All times are the server's. Nothing rests on it but effort: two nodes that purge one
//! slot undo nothing of each other's, they only conflict.

use std::{collections::HashSet, sync::Arc};

use deadpool_postgres::Object;
use parking_lot::RwLock;

use super::server::Server;
use crate::Result;

const TEND: &str = "SELECT mayfly_tend($1)";

/// Renewals that may fail before a node holds itself for one that lost its part. They come every few seconds, and a
/// lease lasts for half a minute.
const FAILURES_MAX: u32 = 4;

/// The groups of this node.
#[derive(Default)]
pub struct Tending {
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    /// None until the node takes part: then it tends everything.
    groups: Option<HashSet<u32>>,
    failures: u32,
}

impl Tending {
    pub fn has(&self, group: u32) -> bool {
        self.state.read().groups.as_ref().is_none_or(|groups| groups.contains(&group))
    }

    /// Takes and renews this node's part, and gives back what is more.
    pub async fn renew(&self, control: &Arc<Server>, node: &str) -> Result<usize> {
        let asked = control.write(async |connection: Object| {
            let statement = connection.prepare_cached(TEND).await?;
            connection.query_one(&statement, &[&node]).await
        });
        let asked = asked.await;
        let mut state = self.state.write();
        match asked {
            Ok(row) => {
                let groups: HashSet<u32> =
                    row.get::<_, Vec<i32>>(0).into_iter().map(|group| group as u32).collect();
                let count = groups.len();
                *state = State { groups: Some(groups), failures: 0 };
                Ok(count)
            }
            Err(error) => {
                state.failures += 1;
                if state.failures > FAILURES_MAX {
                    state.groups = Some(HashSet::new());
                }
                Err(error)
            }
        }
    }
}
