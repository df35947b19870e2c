//! One test per golden script, on memory and files side by side.

use std::{collections::BTreeSet, path::PathBuf};

use mayfly_testkit::{Backend, Commands, World, script};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

/// Declares a test for each script: its name, and its file under `tests/scripts`.
macro_rules! scripts {
    ($($topic:ident { $($name:ident)* })*) => {
        $(mod $topic {
            $(#[tokio::test]
            async fn $name() {
                super::run(concat!(stringify!($topic), "/", stringify!($name))).await;
            })*
        })*

        const LISTED: &[&str] = &[$($(concat!(stringify!($topic), "/", stringify!($name)),)*)*];
    };
}

async fn run(name: &str) {
    let mut commands = Commands::new(World::new(Backend::Mirrored).await);
    script::check(&folder().join(name), &mut commands).await;
}

/// A script that is not listed below would never run.
#[test]
fn every_script_is_listed() {
    let mut found = BTreeSet::new();
    for topic in std::fs::read_dir(folder()).unwrap() {
        let topic = topic.unwrap();
        for script in std::fs::read_dir(topic.path()).unwrap() {
            let name = script.unwrap().file_name();
            found.insert(format!("{}/{}", topic.file_name().to_str().unwrap(), name.to_str().unwrap()));
        }
    }
    assert_eq!(found, LISTED.iter().map(|name| name.to_string()).collect());
}

scripts! {
    dates {
        change
        rule
        with_ttl
    }
    feed {
        expired_documents
        log
        positions
    }
    index {
        composite
        hierarchical_keys
        modes
        paths
        policy_change
        several_slots
    }
    life {
        batches
        drop
        etags
        patches
        ranges
        read_only
        reopen
    }
    regressions {
        batches_are_refused_by_their_first
        batches_longer_than_a_tick
        dropped_date_rule_forgets_nothing
        feed_ends_where_the_slot_does
        index_switched_off
        pages_while_an_index_is_built
        reads_in_a_batch_have_versions
        unique_long_values
    }
    texts {
        expiry
        policy
        words
    }
    ttl {
        boundary_second
        change_default
        clock_steps_back
        far_future
        finality
        forecast
        invalid_values
        many_at_once
        matrix
        own_ttl_and_the_switch
        own_ttl_as_data
        pages_and_time
        purge_in_order
        recreate_before_purge
        restart_countdown
        usage
        writes_to_the_expired
    }
    unique {
        freed_by_expiry
        keys
    }
    vectors {
        expiry
        index
        policy
    }
}
