//! What a user says about a container, and whether it can be right.
//!
//! Plain data, the same for both APIs. Policies that the engine only keeps (vectors, full text, conflicts, …) are
//! carried as JSON under the name the front-end gave them.

use std::collections::BTreeMap;

use mayfly_value::{
    partition::KeyDefinition,
    path::{Path, PathPattern},
    text::Language,
};
use serde::{Deserialize, Serialize};

use crate::{
    collection::{CollectionRules, IndexRule},
    error::{Error, Result},
    ttl::DefaultTtl,
};

/// A container as its owner describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContainerDefinition {
    /// The name.
    pub name: String,
    /// How documents are spread. Cannot be changed.
    pub partition_key: KeyDefinition,
    /// What is indexed.
    #[serde(default)]
    pub indexing: IndexingPolicy,
    /// Combinations of values that may occur once per logical partition. Cannot be changed.
    #[serde(default)]
    pub unique_keys: Vec<Vec<String>>,
    /// Time to live: off, on, or on with seconds.
    #[serde(default)]
    pub default_ttl: Option<DefaultTtl>,
    /// Keep all versions and deletes for this many minutes.
    #[serde(default)]
    pub log_minutes: Option<u32>,
    /// Set if the container follows MongoDB's rules. Cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<CollectionRules>,
    /// Indexes in the sense of MongoDB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub index_rules: Vec<IndexRule>,
    /// Policies kept as data.
    #[serde(default)]
    pub others: serde_json::Map<String, serde_json::Value>,
}

/// When index entries are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexingMode {
    /// With the document.
    #[default]
    Consistent,
    /// A little later; answers are right all the same.
    Lazy,
    /// Never.
    None,
}

/// What is indexed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexingPolicy {
    /// When.
    pub mode: IndexingMode,
    /// Whether documents are indexed unless a request says otherwise.
    pub automatic: bool,
    /// Path patterns that are indexed.
    pub included: Vec<String>,
    /// Path patterns that are not, where they are more precise.
    pub excluded: Vec<String>,
    /// Indexes over several paths.
    #[serde(default)]
    pub composites: Vec<Vec<CompositePath>>,
    /// Paths of texts whose words are indexed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<String>,
    /// The languages of texts, indexed or not.
    #[serde(default, skip_serializing_if = "TextLanguages::is_english")]
    pub languages: TextLanguages,
    /// Paths of vectors that are indexed by their codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<String>,
    /// Spatial, vector and full-text indexes as the front-end wrote them.
    #[serde(default)]
    pub others: serde_json::Map<String, serde_json::Value>,
}

/// Which language the texts of a container are written in. A text is analysed in it, wherever it is searched or
/// indexed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextLanguages {
    /// The language of all other texts.
    #[serde(default)]
    pub default: Language,
    /// The languages of the texts at some paths.
    #[serde(default)]
    pub by_path: BTreeMap<String, Language>,
}

impl TextLanguages {
    /// The language of the text at a path.
    pub fn of(&self, path: &str) -> Language {
        self.by_path.get(path).copied().unwrap_or(self.default)
    }

    fn is_english(&self) -> bool {
        *self == Self::default()
    }
}

/// One path of a composite index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompositePath {
    /// Which property.
    pub path: String,
    /// Whether it is kept in descending order.
    pub descending: bool,
}

/// The path that stands for everything.
pub const ROOT_PATTERN: &str = "/*";

impl Default for IndexingPolicy {
    fn default() -> Self {
        Self {
            mode: IndexingMode::Consistent,
            automatic: true,
            included: vec![ROOT_PATTERN.into()],
            excluded: vec!["/\"_etag\"/?".into()],
            composites: Vec::new(),
            texts: Vec::new(),
            languages: TextLanguages::default(),
            vectors: Vec::new(),
            others: serde_json::Map::new(),
        }
    }
}

const UNIQUE_KEYS_MAX: usize = 10;
const UNIQUE_PATHS_MAX: usize = 16;
const COMPOSITES_MAX: usize = 100;
const COMPOSITE_PATHS_MAX: usize = 8;
const TEXTS_MAX: usize = 100;
const VECTORS_MAX: usize = 100;
const PATTERNS_MAX: usize = 1500;

impl ContainerDefinition {
    /// A container with defaults for everything but its name and partition key.
    pub fn new(name: impl Into<String>, partition_key: KeyDefinition) -> Self {
        Self {
            name: name.into(),
            partition_key,
            indexing: IndexingPolicy::default(),
            unique_keys: Vec::new(),
            default_ttl: None,
            log_minutes: None,
            collection: None,
            index_rules: Vec::new(),
            others: serde_json::Map::new(),
        }
    }

    /// Refuses what cannot be right, with a message for the caller.
    pub fn validate(&self) -> Result<()> {
        self.partition_key.validate()?;
        self.validate_unique_keys()?;
        self.indexing.validate()?;
        // A collection's own indexes are kept whatever the policy says.
        let no_index = self.indexing.mode == IndexingMode::None && self.collection.is_none();
        if no_index && self.default_ttl.is_some() {
            return Err(Error::bad_request(
                "Indexing mode value cannot be 'none' when 'defaultTtl' is specified in the collection",
            ));
        }
        Ok(())
    }

    fn validate_unique_keys(&self) -> Result<()> {
        if self.unique_keys.len() > UNIQUE_KEYS_MAX {
            return Err(Error::bad_request(format!(
                "A container has at most {UNIQUE_KEYS_MAX} unique keys."
            )));
        }
        if self.unique_keys.iter().map(Vec::len).sum::<usize>() > UNIQUE_PATHS_MAX {
            return Err(Error::bad_request(format!(
                "The unique keys of a container have at most {UNIQUE_PATHS_MAX} paths together."
            )));
        }
        for key in &self.unique_keys {
            if key.is_empty() {
                return Err(Error::bad_request("A unique key must have at least one path."));
            }
            for path in key {
                parse_path(path)?;
            }
        }
        Ok(())
    }

    /// Refuses a replacement that changes what cannot be changed.
    pub(crate) fn validate_replacement(&self, next: &Self) -> Result<()> {
        if next.name != self.name {
            return Err(Error::bad_request("The id of a container cannot be changed."));
        }
        if next.partition_key != self.partition_key {
            return Err(Error::bad_request("Document collection partition key cannot be changed."));
        }
        if next.collection.is_some() != self.collection.is_some() {
            return Err(Error::bad_request(
                "A container does not become a collection, nor the other way round.",
            ));
        }
        if next.unique_keys != self.unique_keys {
            return Err(Error::bad_request(
                "Unique index cannot be changed: the unique key policy of a container is set when it is made.",
            ));
        }
        next.validate()
    }
}

impl IndexingPolicy {
    fn validate(&self) -> Result<()> {
        if self.mode == IndexingMode::None && self.automatic {
            return Err(Error::bad_request(
                "Indexing mode value cannot be 'none' when automatic indexing is specified as 'true'.",
            ));
        }
        if self.included.len() > PATTERNS_MAX || self.excluded.len() > PATTERNS_MAX {
            return Err(Error::bad_request(format!(
                "An indexing policy has at most {PATTERNS_MAX} included and {PATTERNS_MAX} excluded paths."
            )));
        }
        for pattern in self.included.iter().chain(&self.excluded) {
            parse_pattern(pattern)?;
        }
        let root = |patterns: &[String]| patterns.iter().any(|pattern| pattern == ROOT_PATTERN);
        if self.mode != IndexingMode::None && !root(&self.included) && !root(&self.excluded) {
            return Err(Error::bad_request(format!(
                "The special mandatory indexing path \"{ROOT_PATTERN}\" is in neither list. Please ensure that the \
                 path is included or excluded."
            )));
        }
        if self.composites.len() > COMPOSITES_MAX {
            return Err(Error::bad_request(format!(
                "A container has at most {COMPOSITES_MAX} composite indexes."
            )));
        }
        for composite in &self.composites {
            if !(2..=COMPOSITE_PATHS_MAX).contains(&composite.len()) {
                return Err(Error::bad_request(format!(
                    "A composite index has from 2 to {COMPOSITE_PATHS_MAX} paths."
                )));
            }
            for part in composite {
                parse_path(&part.path)?;
            }
        }
        if self.texts.len() > TEXTS_MAX {
            return Err(Error::bad_request(format!(
                "A container has at most {TEXTS_MAX} full-text indexes."
            )));
        }
        if self.vectors.len() > VECTORS_MAX {
            return Err(Error::bad_request(format!("A container has at most {VECTORS_MAX} vector indexes.")));
        }
        for path in self.texts.iter().chain(&self.vectors) {
            parse_path(path)?;
        }
        Ok(())
    }

    /// Whether both write the same index entries.
    pub(crate) fn same_entries(&self, other: &Self) -> bool {
        self.mode == other.mode
            && self.included == other.included
            && self.excluded == other.excluded
            && self.composites == other.composites
            && self.texts == other.texts
            && self.texts.iter().all(|path| self.languages.of(path) == other.languages.of(path))
            && self.vectors == other.vectors
    }
}

pub(crate) fn parse_path(path: &str) -> Result<Path> {
    Path::parse(path).map_err(|error| {
        Error::bad_request(format!(
            "The path '{path}' could not be accepted: {error}. Please ensure that the path is a valid path."
        ))
    })
}

pub(crate) fn parse_pattern(pattern: &str) -> Result<PathPattern> {
    PathPattern::parse(pattern).map_err(|error| {
        Error::bad_request(format!(
            "The indexing path '{pattern}' could not be accepted: {error}. Please ensure that the path is a valid \
             path."
        ))
    })
}
