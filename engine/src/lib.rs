//! Documents over bytes: containers, items, indexes, time to live, purge, feed. The only place where a rule
//! lives.
//!
//! ```text
//!   front-ends ──▶ Engine ─┬─ catalog    names and policies; kept: small resources
//!                          ├─ write      operations ─▶ changes ─▶ one guarded batch
//!                          ├─ scan feed  pages of living records
//!                          ├─ ttl        what is gone at `now`      timeline: now never goes back
//!                          └─ purge indexer reap                    ticks for the background
//! ```
//!
//! A record is visible iff [`ttl::Cuts::is_live`] says so, and whatever looks at a record asks it. Front-ends
//! see neither keys nor deadlines. All nondeterminism enters through the store, [`clock`] and [`ids`].

mod access;
mod aside;
mod catalog;
pub mod charge;
mod check;
pub mod clock;
pub mod collection;
mod collection_count;
mod collection_index;
mod collection_walk;
mod completion;
mod container;
mod coverage;
mod definition;
mod engine;
mod errands;
mod error;
mod etag;
mod feed;
mod forecast;
pub mod ids;
mod index;
mod indexer;
mod kept;
mod keys;
pub mod load;
mod log;
mod long_work;
mod metrics;
mod moment;
mod names;
mod notes;
pub mod patch;
mod per_thread;
mod position;
mod purge;
mod ranges;
mod reap;
mod record;
mod scan;
pub mod secondary;
mod text;
mod timeline;
pub mod ttl;
mod usage;
mod vector;
mod view;
mod watch;
mod write;

pub use access::{Access, Across, HashRange, IndexAccess, IndexName, Lookup, Reliance, ValueRange};
pub use aside::aside;
pub use catalog::Database;
pub use check::Report;
pub use clock::{AdjustableClock, Clock, SystemClock, Timestamp};
pub use collection_count::Repeats;
pub use collection_index::IndexRefused;
pub use collection_walk::{CollectionPage, CollectionRange};
pub use container::{Container, IndexState, Partition};
pub use definition::{
    CompositePath, ContainerDefinition, IndexingMode, IndexingPolicy, ROOT_PATTERN, TextLanguages,
};
pub use engine::{Builder, Engine};
pub use errands::{Answer, Errand};
pub use error::{Error, Resource, Result};
pub use etag::{Etag, IfMatch};
pub use feed::{FeedPage, FeedStart, LogForgotten, LogPage};
pub use forecast::{DateProposal, Fate, Forecast};
pub use kept::{Kept, KeptKind};
pub use keys::DocumentId;
pub use log::{Event, EventKind};
pub use long_work::Elsewhere;
pub use mayfly_storage::store::{Direction, PageLimit};
pub use metrics::{ContainerMetrics, Metrics};
pub use names::Place;
pub use notes::{Note, Notes};
pub use per_thread::PerThread;
pub use position::Position;
pub use purge::{Pace, Purged};
pub use ranges::{PartitionKeyRange, RANGES_MAX};
pub use record::{Birth, Lifetime, Record};
pub use scan::{
    Content, DocumentFilter, DocumentPlace, Entry, EntryPage, Found, Merged, Neighbours, ScanPage, Search,
    TextAnswer, TextQuestion, Wanted,
};
pub use timeline::LEAD as HORIZON_LEAD;
pub use ttl::{DefaultTtl, OwnTtl, TtlChange};
pub use usage::{Amount, Usage};
pub use view::View;
pub use watch::Watched;
pub use write::{
    Decide, Decision, Effect, InvalidTtl, Modify, Operation, Outcome, Part, Receipt, Refused, Results,
    StatementList, Statements, Transaction, UniqueRow,
};
