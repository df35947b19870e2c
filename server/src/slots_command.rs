//! `mayfly slots`: which database server holds what, and moving it while it is used.
//!
//! Works on the database servers themselves; nodes may run or not. Nodes find out by the next commit that is refused.

use clap::Subcommand;
use mayfly_storage::{Error, PostgresStore, postgres::Placed};

use crate::settings::{Secret, Store};

/// What to do with slots.
#[derive(Subcommand)]
pub enum SlotsCommand {
    /// Show the servers and how many groups of slots each holds
    Show {
        /// Which store
        #[command(flatten)]
        at: At,
    },
    /// Take in another server, which must be empty; it holds nothing until groups are moved to it
    Add {
        /// Which store
        #[command(flatten)]
        at: At,
        /// The new server: postgres://user:password@host/database
        server: Secret,
    },
    /// Move groups of slots to a server, while everything goes on
    Move {
        /// Which store
        #[command(flatten)]
        at: At,
        /// Number of the server, as `show` tells it
        #[arg(long, value_name = "NUMBER")]
        to: i32,
        /// Groups: one, or several as FIRST-LAST; without it as many as make an equal share
        #[arg(long, value_name = "GROUPS")]
        groups: Option<String>,
    },
}

/// Where the store is.
#[derive(clap::Args)]
pub struct At {
    /// The store, as nodes are given it: postgres://user:password@host/database
    #[arg(long, env = "MAYFLY_STORE", value_name = "STORE", hide_env_values = true)]
    store: Store,
}

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum SlotsError {
    #[error("only a store on PostgreSQL servers has slots to place; --store postgres://…")]
    NotShared,
    #[error("{0}")]
    Store(#[from] Error),
    #[error("`{0}` are no groups; give a number, or two with a `-` between them, up to 255")]
    Groups(String),
}

/// Does it; the text is for the person who asked.
pub async fn run(command: SlotsCommand) -> Result<String, SlotsError> {
    match command {
        SlotsCommand::Show { at } => show(&open(&at).await?).await,
        SlotsCommand::Add { at, server } => {
            let number = open(&at).await?.add_server(&server.0).await?;
            Ok(format!("server {number} was added; `mayfly slots move --to {number}` gives it its share"))
        }
        SlotsCommand::Move { at, to, groups } => {
            let store = open(&at).await?;
            let members = store.members().await?;
            let groups = match groups {
                Some(text) => parse_groups(&text)?,
                None => share(&store.placed(), members.len(), to),
            };
            for group in &groups {
                store.move_group(*group, to).await?;
                eprintln!("group {group} is on server {to}");
            }
            show(&store).await
        }
    }
}

async fn open(at: &At) -> Result<PostgresStore, SlotsError> {
    match &at.store {
        Store::Postgres(url) => Ok(PostgresStore::open(&url.0).await?),
        _ => Err(SlotsError::NotShared),
    }
}

async fn show(store: &PostgresStore) -> Result<String, SlotsError> {
    let mut lines = vec!["server  groups        rows  encrypted  where".to_owned()];
    for member in store.members().await? {
        let (number, groups, rows) = (member.number, member.groups, member.rows);
        let encrypted = if member.is_encrypted { "yes" } else { "no" };
        lines.push(format!("{number:6}  {groups:6}  {rows:10}  {encrypted:9}  {}", member.name));
    }
    Ok(lines.join("\n"))
}

fn parse_groups(text: &str) -> Result<Vec<u32>, SlotsError> {
    let wrong = || SlotsError::Groups(text.to_owned());
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|group| *group < 256).ok_or_else(wrong);
    match text.split_once('-') {
        Some((first, last)) => Ok((number(first)?..=number(last)?).collect()),
        None => Ok(vec![number(text)?]),
    }
}

/// Groups that bring a server up to an equal share, taken from whoever has most.
fn share(placed: &[Placed], servers: usize, to: i32) -> Vec<u32> {
    let wanted = placed.len() / servers.max(1);
    let mut now: Vec<Placed> = placed.to_vec();
    let mut moved = Vec::new();
    let count = |now: &[Placed], server: i32| now.iter().filter(|placed| placed.server == server).count();
    while count(&now, to) < wanted {
        let others = now.iter().filter(|placed| placed.server != to);
        let Some(from) = others.map(|placed| placed.server).max_by_key(|server| count(&now, *server)) else {
            break;
        };
        let Some(one) = now.iter_mut().rev().find(|placed| placed.server == from) else { break };
        one.server = to;
        moved.push(one.group);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_server_gets_its_share_from_who_has_most() {
        let placed = |servers: &[i32]| -> Vec<Placed> {
            let groups = servers.iter().enumerate();
            groups.map(|(group, server)| Placed { group: group as u32, server: *server, epoch: 1 }).collect()
        };
        assert_eq!(share(&placed(&[1, 1, 1, 1]), 2, 2), [3, 2]);
        assert_eq!(share(&placed(&[1, 1, 1, 1, 2, 2]), 3, 3), [3, 2]);
        assert!(share(&placed(&[1, 1, 2, 2]), 2, 2).is_empty());
    }

    #[test]
    fn groups_are_one_or_a_range() {
        assert_eq!(parse_groups("7").unwrap(), [7]);
        assert_eq!(parse_groups("3-5").unwrap(), [3, 4, 5]);
        for wrong in ["", "x", "256", "1-", "1-300", "-1"] {
            assert!(parse_groups(wrong).is_err(), "{wrong}");
        }
    }
}
