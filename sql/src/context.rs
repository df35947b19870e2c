//! The context of a run: everything a query may know that is neither its text nor a document.
//!
//! Time, randomness and the container's settings come in here, so that the same inputs always give the same
//! rows. One context belongs to one run; its cache keeps what is expensive to build from constant arguments,
//! such as compiled patterns.

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use mayfly_value::text::Language;

/// What a run takes from the outside.
#[derive(Debug)]
pub struct Context<'c> {
    /// The time of the query in milliseconds since 1970. It does not move while the query runs.
    pub now_ms: i64,
    /// The most a query may keep to sort, group or remove duplicates.
    pub memory_bytes_max: usize,
    /// What the container says about its texts, vectors and shapes.
    pub settings: &'c Settings,
    random: Cell<u64>,
    cache: Cache,
}

/// The settings of the container that change the meaning of functions.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// How spatial functions measure.
    pub space: Space,
    /// The vectors of the container's vector policy.
    pub embeddings: Vec<Embedding>,
    /// The languages of the texts.
    pub languages: Languages,
}

/// What a full-text policy says about languages.
#[derive(Debug, Clone, Default)]
pub struct Languages {
    /// The language of all other texts.
    pub default: Language,
    /// The languages of the texts at some paths: `/a/b` is `["a", "b"]`.
    pub by_path: Vec<(Vec<String>, Language)>,
}

impl Languages {
    /// The language of a text by where it comes from, if that is a path.
    pub fn of(&self, path: Option<&[String]>) -> Language {
        let named = self.by_path.iter().find(|(known, _)| path == Some(known));
        named.map_or(self.default, |(_, language)| *language)
    }
}

/// The shape of space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Space {
    /// Longitude and latitude on the earth, distances in metres.
    #[default]
    Geography,
    /// A plane without units.
    Geometry,
}

/// One entry of a vector policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embedding {
    /// The names on the way to the vector: `/a/b` is `["a", "b"]`.
    pub path: Vec<String>,
    /// `cosine`, `dotproduct` or `euclidean`.
    pub distance_function: String,
    /// Whether an index lists the vectors.
    pub is_indexed: bool,
}

impl Settings {
    /// The distance function the vector policy names for a path.
    pub fn distance_function(&self, path: &[String]) -> Option<&str> {
        let embedding = self.embeddings.iter().find(|embedding| embedding.path == path);
        embedding.map(|embedding| embedding.distance_function.as_str())
    }

    /// Whether an index lists the vectors of a path.
    pub fn is_indexed(&self, path: &[String]) -> bool {
        self.embeddings.iter().any(|embedding| embedding.is_indexed && embedding.path == path)
    }
}

/// The settings of a container that has none.
pub static DEFAULT_SETTINGS: Settings = Settings {
    space: Space::Geography,
    embeddings: Vec::new(),
    languages: Languages { default: Language::English, by_path: Vec::new() },
};

impl Context<'static> {
    /// A context with default settings.
    pub fn new(now_ms: i64, seed: u64) -> Context<'static> {
        Context::with_settings(now_ms, seed, &DEFAULT_SETTINGS)
    }
}

impl<'c> Context<'c> {
    /// A context; `seed` is where RAND() starts.
    pub fn with_settings(now_ms: i64, seed: u64, settings: &'c Settings) -> Context<'c> {
        /// Enough to sort some hundred thousand small rows; a few such queries fit a small machine.
        const MEMORY_BYTES_MAX: usize = 128 * 1024 * 1024;
        let memory_bytes_max = MEMORY_BYTES_MAX;
        Context { now_ms, memory_bytes_max, settings, random: Cell::new(seed), cache: Cache::default() }
    }

    /// The next random number, evenly spread over [0, 1).
    pub fn random(&self) -> f64 {
        /// Half of 2^64 times the golden ratio's fraction: visits every state, neighbours far apart.
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let state = self.random.get().wrapping_add(STEP);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let bits = (mixed ^ (mixed >> 31)) >> 11;
        bits as f64 / (1_u64 << 53) as f64
    }

    /// What `make` builds from `key`, built once per run and type. For compiled patterns and the like.
    pub fn cached<T: Send + Sync + 'static>(&self, key: &str, make: impl FnOnce() -> T) -> Arc<T> {
        self.cache.get(key, make)
    }
}

#[derive(Debug, Default)]
struct Cache {
    entries: RefCell<HashMap<(TypeId, String), Arc<dyn Any + Send + Sync>>>,
}

impl Cache {
    /// Constant arguments make a handful of entries; more means they change from row to row.
    const ENTRIES_MAX: usize = 256;

    fn get<T: Send + Sync + 'static>(&self, key: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let place = (TypeId::of::<T>(), key.to_owned());
        let known = self.entries.borrow().get(&place).cloned();
        if let Some(Ok(value)) = known.map(Arc::downcast::<T>) {
            return value;
        }
        let value = Arc::new(make());
        let mut entries = self.entries.borrow_mut();
        if entries.len() >= Self::ENTRIES_MAX {
            entries.clear();
        }
        entries.insert(place, value.clone());
        value
    }
}
