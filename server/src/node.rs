//! A node: the engine on its store, with its front-ends and its background work.
//!
//! What the server runs behind its port. Requests go to the REST front-end, administration under `/_mayfly/` to
//! `admin.rs`; the background loops call the engine's ticks and give way while clients are being served.
//!
//! Holds: the loops decide nothing. What a tick does is a function of the store and a time, and tested without them.

use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use mayfly_cosmos::{Cosmos, Options, Served, auth::Keys, http_date};
use mayfly_engine::{
    AdjustableClock, Clock, Engine, Error, Purged, SystemClock, aside,
    clock::{Stopwatch, pause},
    ids::{self, Ids, RandomIds},
};
use mayfly_mongo::{
    Mongo, Options as MongoOptions, Topology,
    auth::{Account, Accounts},
};
use mayfly_storage::{
    embedded::{self, EmbeddedOptions, EmbeddedStore},
    memory::MemoryStore,
    postgres::PostgresStore,
    store::Store,
};
use tokio::sync::Notify;

use parking_lot::Mutex;

use crate::{
    admin::{self, clock::spelled},
    backend::{Answer, Asked, Backend, BackendError},
    config::Config,
    data_dir, disk,
    gauges::Gauges,
    metrics::{Metrics, MetricsSource},
    request::Request,
    ripening::Ripening,
    samples::{self, Samples},
    server_clock::ServerClock,
    settings::{Compression, Durability, MongoTopology, Store as StoreKind},
    tasks::{Stopping, TaskSet},
};

/// How often the time horizon is moved on, ahead of the requests that need it.
const HORIZON_EVERY: Duration = Duration::from_millis(400);

/// The longest rest of a background loop that found nothing to do. A new deadline can be no nearer than this without
/// being noticed late, and being late costs nothing but space.
const REST_MAX: Duration = Duration::from_millis(1000);

/// How often a node that shares its store asks for the time and for changes of the catalog, if nobody says that there are
/// any. Nothing waits for it: whoever decides by old rules is told so by the store.
const SHARE_EVERY: Duration = Duration::from_millis(450);

/// How often it renews its part of the background work; a part lasts for half a minute.
const TEND_EVERY_SECONDS: u64 = 5;

/// Index building and removal rest as work that is a little behind: somebody waits for the index.
const UPKEEP_BEHIND: Duration = Duration::from_secs(2);

/// How often to look whether space is worth giving back while purge does not catch up.
const SPACE_EVERY: Duration = Duration::from_secs(5);

/// How often to look whether writers have left.
const SETTLE_EVERY: Duration = Duration::from_secs(1);

/// Purge that has been behind for so long is done as a request is: a thread of low priority gets next to nothing where
/// processors are short, however much it is given in turns.
const ASIDE_MAX: Duration = Duration::from_secs(1);

/// How much of a tick of purge is in somebody's way where the store is a server: for the most part it waits, for the network
/// and behind writers for their slot, and what the server does for it takes one of its processes.
const WORK_OF_SHARED: u32 = 64;

/// Rest per unit of time spent on looking at a backlog, and the longest: figures are to be at most two seconds old.
const LOOK_REST: u32 = 50;
const LOOK_AGE: Duration = Duration::from_millis(500);
const LOOK_REST_MAX: Duration = Duration::from_millis(1200);

/// After a crash, or where other nodes tell the time already, the engine's may be this far ahead of the clock: the horizon is
/// moved on by half of its lead before it is reached. More than that, the clock was set back.
const SETTLE_MAX: Duration = mayfly_engine::HORIZON_LEAD.saturating_mul(2);

/// The account's name, which is the name of its user in the MongoDB protocol.
const ACCOUNT: &str = mayfly_cosmos::ACCOUNT;

/// The engine and everything around it.
pub struct Node {
    pub(crate) engine: Engine,
    pub(crate) keys: Keys,
    pub(crate) dev_clock: Option<Arc<AdjustableClock>>,
    cosmos: Cosmos,
    pub(crate) mongo: Arc<Mongo>,
    /// Where MongoDB's protocol is spoken; 0 is nowhere.
    pub(crate) mongo_port: u16,
    /// Who clients of it sign in as, if they have to.
    pub(crate) mongo_user: Option<&'static str>,
    /// Where the store's files are, if it has any.
    store_path: Option<PathBuf>,
    /// Since when purge has had more to do than it has done.
    behind: Mutex<Option<Stopwatch>>,
    gauges: Gauges,
    metrics: Arc<Metrics>,
    pub(crate) samples: Samples,
    pub(crate) uptime: Stopwatch,
    /// The kind of store, for people.
    pub(crate) store: String,
    /// Told by the purge loop when nothing is left to purge.
    caught_up: Notify,
    /// What it has in common with other nodes, if there may be any.
    shared: Option<Shared>,
}

/// A store that other nodes use as well.
struct Shared {
    store: Arc<PostgresStore>,
    clock: Arc<ServerClock>,
    /// This node, among the others.
    name: String,
}

impl Backend for Node {
    async fn open(config: &Config, metrics: &Arc<Metrics>) -> Result<Self, BackendError> {
        let dev_clock = config.dev_clock.then(|| Arc::new(AdjustableClock::running()));
        let (store, shared) = open_store(config).await?;
        let clock: Arc<dyn Clock> = match (&dev_clock, &shared) {
            (_, Some(shared)) => shared.clock.clone(),
            (Some(clock), None) => clock.clone(),
            (None, None) => Arc::new(SystemClock),
        };
        let builder = Engine::builder(store).clock(clock).predicates(Arc::new(mayfly_mongo::Filters));
        let engine = builder.open().await.map_err(cannot_open)?;
        if shared.is_some() {
            engine.enlist().await.map_err(cannot_open)?;
        }
        settle(&engine, dev_clock.as_deref()).await?;
        Ok(Self {
            cosmos: Cosmos::new(
                engine.clone(),
                Options {
                    any_entra_token: config.dev_entra,
                    throttle: config.throttle,
                    ..Options::new(config.keys.clone())
                },
            ),
            mongo: open_mongo(config, &engine),
            mongo_port: config.mongo_port,
            mongo_user: config.mongo_auth.then_some(ACCOUNT),
            keys: config.keys.clone(),
            dev_clock,
            store_path: (config.store == StoreKind::Embedded).then(|| data_dir::store(&config.data_dir)),
            behind: Mutex::new(None),
            gauges: Gauges::default(),
            metrics: metrics.clone(),
            samples: Samples::default(),
            uptime: Stopwatch::start(),
            store: config.store.to_string(),
            caught_up: Notify::new(),
            shared,
            engine,
        })
    }

    // Boxed, or everything around it would make and move room for its state: some kilobytes, a dozen times.
    fn serve(&self, asked: Asked) -> impl Future<Output = Answer> + Send {
        let Asked { request, from, watch } = asked;
        // Whoever looks on, as the portal does all the time, must not hold up what is looked at.
        let answer: BoxFuture<'_, Answer> = match request.heading.path().starts_with(admin::PREFIX) {
            true => Box::pin(async move {
                let response = admin::serve(self, request).await;
                Answer::free("Administration", response, watch)
            }),
            false => Box::pin(async move {
                let Request { heading, body } = request;
                let (reply, served) =
                    self.cosmos.serve(heading.head(), body, from.scheme.as_str(), watch).await;
                let Served { operation, charge, took } = served;
                Answer { operation, response: reply.into(), charge, took }
            }),
        };
        answer
    }

    fn all_answered(&self) -> Option<u64> {
        self.engine.load().all_answered()
    }

    fn mongo(&self) -> Option<Arc<Mongo>> {
        Some(self.mongo.clone())
    }

    fn start_background(self: &Arc<Self>, tasks: &TaskSet, stopping: &Stopping) {
        let node = self.clone();
        tasks.spawn(until(stopping.clone(), async move {
            loop {
                node.log_failure("time", node.engine.renew_horizon().await);
                if let Some(path) = &node.store_path {
                    disk::watch(&node.engine, path);
                }
                pause(HORIZON_EVERY).await;
            }
        }));
        if self.shared.is_some() {
            let node = self.clone();
            tasks.spawn(until(stopping.clone(), async move {
                loop {
                    node.share_round().await;
                    node.next_share_round().await;
                }
            }));
            let (node, taken) = (self.clone(), tasks.clone());
            tasks.spawn(until(stopping.clone(), async move {
                loop {
                    node.errand_round(&taken).await;
                }
            }));
        }
        let node = self.clone();
        tasks.spawn(until(stopping.clone(), async move { node.purge_rounds().await }));
        let node = self.clone();
        tasks.spawn(aside(until(stopping.clone(), async move {
            // Giving space back is beside the purge: on a large store it takes minutes, and expired documents would pile up.
            tokio::join!(node.upkeep_rounds(), node.space_rounds(), node.settle_rounds());
        })));
        let node = self.clone();
        tasks.spawn(until(stopping.clone(), async move {
            loop {
                node.log_failure("upkeep of MongoDB sessions", node.mongo.sweep().await);
                pause(REST_MAX).await;
            }
        }));
        let node = self.clone();
        // A look at a large backlog takes a while, and the purge does not wait for it. A thread of low priority would wake
        // up seconds late where writers take the processors.
        tasks.spawn(until(stopping.clone(), async move {
            loop {
                node.sample_round().await;
            }
        }));
    }

    async fn close(&self) -> Result<(), BackendError> {
        self.engine
            .close()
            .await
            .map_err(|error| BackendError(format!("the store did not close well: {error}")))
    }
}

impl Node {
    /// Keeps in step with the nodes that share the store: the time, the catalog, and who does which background work.
    async fn share_round(&self) {
        let Some(shared) = &self.shared else { return };
        if let Err(error) = shared.clock.sample().await {
            tracing::warn!("the database server does not tell the time: {error}");
        }
        self.log_failure("reading the catalog", self.engine.refresh().await);
        if self.uptime.elapsed().as_secs().is_multiple_of(TEND_EVERY_SECONDS)
            && let Err(error) = shared.store.renew_tending(&shared.name).await
        {
            tracing::warn!("background work is not shared out: {error}");
        }
    }

    /// Waits for what other nodes ask of this one, and does each thing as a task of its own.
    async fn errand_round(self: &Arc<Self>, tasks: &TaskSet) {
        match self.mongo.errands().await {
            Ok(errands) => {
                for errand in errands {
                    let node = self.clone();
                    tasks.spawn(async move {
                        if let Err(error) = node.mongo.run_errand(&errand).await {
                            tracing::warn!("another node was not answered: {error}");
                        }
                    });
                }
            }
            failed => {
                self.log_failure("looking for what other nodes ask", failed);
                pause(REST_MAX).await;
            }
        }
    }

    /// Waits for the next round: less where another node says that it has changed the catalog.
    async fn next_share_round(&self) {
        let Some(shared) = &self.shared else { return };
        tokio::select! {
            () = pause(SHARE_EVERY) => {}
            () = shared.store.told() => {}
        }
    }

    async fn purge_rounds(self: Arc<Self>) {
        let mut ripening = Ripening::default();
        loop {
            self.purge_round(&mut ripening).await;
        }
    }

    async fn upkeep_rounds(&self) {
        loop {
            self.upkeep_round().await;
        }
    }

    /// Gives space back whenever purge has caught up, or has not for a while.
    async fn space_rounds(&self) {
        loop {
            tokio::select! {
                () = self.caught_up.notified() => {}
                () = pause(SPACE_EVERY) => {}
            }
            self.log_failure("giving space back", self.engine.reclaim().await);
        }
    }

    /// Puts in order what was written, once writers have left and nobody asks for anything.
    async fn settle_rounds(&self) {
        loop {
            pause(SETTLE_EVERY).await;
            self.log_failure("putting tables in order", self.engine.settle_store().await);
        }
    }

    /// One tick of purge, and the rest after it.
    async fn purge_round(self: &Arc<Self>, ripening: &mut Ripening) {
        let watch = Stopwatch::start();
        match self.purge(ripening).await {
            Ok(purged) if purged.more => {
                let behind = self.behind.lock().get_or_insert_with(Stopwatch::start).elapsed();
                let worked = match self.shared.is_some() {
                    true => watch.elapsed() / WORK_OF_SHARED,
                    false => watch.elapsed(),
                };
                self.engine.load().give_way(worked, behind).await;
            }
            Ok(purged) => {
                *self.behind.lock() = None;
                self.caught_up.notify_one();
                self.gauges.refresh(&self.engine).await;
                let next = purged.next.map_or(REST_MAX, |at| {
                    let ahead = Duration::from_millis(at.0.saturating_sub(self.engine.clock().now().0));
                    ripening.until(at, self.uptime.elapsed()).unwrap_or(ahead)
                });
                pause(next.clamp(Duration::from_millis(20), REST_MAX)).await;
            }
            failed => {
                self.log_failure("purge", failed);
                pause(REST_MAX).await;
            }
        }
    }

    async fn purge(self: &Arc<Self>, ripening: &mut Ripening) -> Result<Purged, Error> {
        ripening.add(self.engine.now().await?, self.uptime.elapsed());
        match ripening.ripe(self.uptime.elapsed()) {
            Some(ripe) => {
                let behind = self.behind.lock().map(Stopwatch::elapsed).unwrap_or_default();
                let pace = self.engine.load().purge_pace(behind);
                // Where the store is a server, the work is not done here.
                if behind >= ASIDE_MAX || self.shared.is_some() {
                    return self.engine.purge(ripe, pace).await;
                }
                let (node, (tell, told)) = (self.clone(), tokio::sync::oneshot::channel());
                let tick = async move { drop(tell.send(node.engine.purge(ripe, pace).await)) };
                aside(tick).await;
                told.await.unwrap_or(Ok(Purged::default()))
            }
            None => Ok(Purged::default()),
        }
    }

    /// Two looks at the containers, then a sample of the counters.
    async fn sample_round(&self) {
        self.look().await;
        self.look().await;
        self.samples.take(&self.metrics, &self.gauges.usages(), &self.engine);
    }

    /// Looks at the containers, unless purge did so a moment ago, and rests. A look takes as long as the backlog is; after a
    /// long one the rest is longer.
    async fn look(&self) {
        let watch = Stopwatch::start();
        if self.gauges.age().is_none_or(|age| age >= LOOK_AGE) {
            self.gauges.refresh(&self.engine).await;
        }
        let rest = (watch.elapsed() * LOOK_REST).min(LOOK_REST_MAX);
        pause(rest.max(samples::EVERY / 2)).await;
    }

    /// Whether what is stored, and the time with it, outlives the server.
    pub(crate) fn keeps_data(&self) -> bool {
        self.store_path.is_some() || self.shared.is_some()
    }

    /// What is free where the store is.
    pub(crate) fn disk_free_bytes(&self) -> Option<u64> {
        self.store_path.as_deref().and_then(disk::free_bytes)
    }

    /// One tick of index building and of removing what was dropped, and the rest after it.
    async fn upkeep_round(&self) {
        if !self.engine.tends_catalog() {
            return pause(REST_MAX).await;
        }
        let watch = Stopwatch::start();
        let built = self.engine.build_indexes().await;
        let reaped = self.engine.reap().await;
        let more = matches!(built, Ok(true)) || matches!(reaped, Ok(true));
        self.log_failure("index building", built);
        self.log_failure("removal of dropped containers", reaped);
        if more {
            self.engine.load().give_way(watch.elapsed(), UPKEEP_BEHIND).await
        } else {
            pause(REST_MAX).await
        }
    }

    fn log_failure<T>(&self, what: &str, result: Result<T, Error>) {
        match result {
            Ok(_) => {}
            // As it happens when an operator moves slots; the next attempt finds them where they are now.
            Err(Error::Unavailable(mayfly_storage::Error::Moved)) => {
                tracing::debug!("{what} met a slot on its way to another server, and will be tried again");
            }
            Err(error) => tracing::error!("{what} failed and will be tried again: {error}"),
        }
    }
}

/// Runs `work` until the server stops.
async fn until(mut stopping: Stopping, work: impl Future<Output = ()> + Send) {
    tokio::select! {
        () = work => {}
        () = stopping.requested() => {}
    }
}

/// The MongoDB front-end, with the account's keys as its passwords.
fn open_mongo(config: &Config, engine: &Engine) -> Arc<Mongo> {
    let passwords = config.mongo_passwords.iter();
    let passwords = passwords.map(|(key, role)| Account { password: key.0.clone(), role: *role });
    let secret = engine.ids().unique();
    let accounts = Accounts::new(ACCOUNT, passwords.collect(), config.mongo_auth, secret);
    let topology = match config.mongo_topology {
        MongoTopology::Router => Topology::Router,
        MongoTopology::ReplicaSet => Topology::ReplicaSet { name: ACCOUNT.into() },
    };
    let options = MongoOptions { topology, advertise: String::new(), test_commands: config.dev_clock };
    Mongo::new(engine.clone(), accounts, options)
}

async fn open_store(config: &Config) -> Result<(Arc<dyn Store>, Option<Shared>), BackendError> {
    match &config.store {
        StoreKind::Memory => Ok((Arc::new(MemoryStore::new()), None)),
        StoreKind::Embedded => Ok((open_embedded(config).await?, None)),
        StoreKind::Postgres(url) => {
            let refused = |error: mayfly_storage::Error| BackendError(error.to_string());
            let store = Arc::new(PostgresStore::open(&url.0).await.map_err(refused)?);
            let clock = ServerClock::start(store.time()).await.map_err(refused)?;
            let name = ids::to_uuid(RandomIds.unique());
            // Before any background work: what is not this node's it leaves to the others.
            store.renew_tending(&name).await.map_err(refused)?;
            store.listen();
            Ok((store.clone(), Some(Shared { store, clock, name })))
        }
    }
}

async fn open_embedded(config: &Config) -> Result<Arc<dyn Store>, BackendError> {
    let options = EmbeddedOptions {
        durability: match config.durability {
            Durability::Fsync => embedded::Durability::Fsync,
            Durability::Interval => embedded::Durability::Interval(Duration::from_millis(100)),
            Durability::None => embedded::Durability::None,
        },
        compression: match config.compression {
            Compression::None => embedded::Compression::None,
            Compression::Lz4 => embedded::Compression::Lz4,
        },
        cache_bytes: config.cache_mb << 20,
    };
    let path = data_dir::store(&config.data_dir);
    // Recovery reads the journal, which may take a while; `/alive` answers meanwhile.
    let opened = tokio::task::spawn_blocking(move || EmbeddedStore::open(&path, options)).await;
    match opened {
        Ok(Ok(store)) => Ok(Arc::new(store)),
        Ok(Err(error)) => Err(BackendError(error.to_string())),
        Err(_) => Err(BackendError("opening the store panicked; the log says more".into())),
    }
}

fn cannot_open(error: Error) -> BackendError {
    BackendError(format!("the data cannot be read: {error}. Run `mayfly check` on a copy of the directory"))
}

/// Lets time go on where this data was left, and says so if that is far from the machine's time.
///
/// A clock that can be moved goes on at once, from the latest time that was told. The machine's clock has to
/// get there first: shortly after a crash, but years later if the data was moved ahead, and until then time
/// stands still.
async fn settle(engine: &Engine, dev_clock: Option<&AdjustableClock>) -> Result<(), BackendError> {
    if let Some(clock) = dev_clock {
        clock.catch_up(engine.now().await.map_err(cannot_open)?);
        let ahead = clock.ahead_of_machine();
        if ahead > SETTLE_MAX {
            tracing::warn!(
                "time goes on where this data was left: {} ahead of the machine's clock",
                spelled(ahead)
            );
        }
        return Ok(());
    }
    let ahead = engine.ahead_of_clock();
    if ahead > SETTLE_MAX {
        let until = http_date::format(engine.now().await.map_err(cannot_open)?.seconds());
        tracing::warn!(
            seconds = ahead.as_secs(),
            "THE TIME OF THIS DATA IS {} AHEAD OF THE MACHINE'S CLOCK. It was moved with --dev-clock, or the machine's \
             clock was set back. Time never goes back: it stands still, and nothing more expires, until {until}. \
             With --dev-clock it goes on at once; a new data directory begins with the machine's time",
            spelled(ahead)
        );
    } else if !ahead.is_zero() {
        pause(ahead).await;
    }
    Ok(())
}

impl MetricsSource for Node {
    fn render(&self, out: &mut String) {
        self.gauges.render(&self.engine, out);
    }
}
