//! Which indexes a query uses, and which would help it, in the two forms that SDKs read.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mayfly_engine::{CompositePath, Container};
use mayfly_sql::{
    Hint, PathStep, Plan,
    ast::Direction,
    hints::{Selects, Span},
};
use mayfly_value::keycode::PathStep as KeyStep;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::conditions;

/// The indexes of a query.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct IndexMetrics {
    used: Vec<Single>,
    useful: Vec<Single>,
    used_composites: Vec<Vec<String>>,
    useful_composites: Vec<Vec<String>>,
}

/// One path, and the condition it serves; empty if it serves no condition of the filter.
#[derive(Debug, PartialEq, Eq)]
struct Single {
    path: String,
    condition: String,
}

impl IndexMetrics {
    /// The indexes for a query. `keyed` says that the request names a partition key.
    pub fn of(container: &Container, plan: &Plan, keyed: bool) -> Self {
        let mut metrics = Self::default();
        if keyed {
            let paths = container.definition().partition_key.paths.iter();
            let single = |path: &str| Single { path: format!("{path}/?"), condition: String::new() };
            metrics.used.extend(paths.map(|path| single(path.written())));
        }
        for hint in &plan.hints().all {
            let Some(path) = property_path(&hint.path) else { continue };
            // Of a condition that an entry has to be looked at for, the hint says too little to be told.
            let is_told = hint.exact || hint.selects == Selects::Few;
            let condition = if is_told { conditions::text("ROOT", hint) } else { String::new() };
            metrics.add(container, &hint.path, Single { path: format!("{path}/?"), condition });
        }
        metrics.add_equalities(container, plan);
        metrics.add_order(container, plan);
        let vectors = plan.nearest_path().into_iter().chain(plan.ranked_paths().into_iter().flatten());
        for path in vectors.filter(|path| container.vector_index(path).is_some()) {
            let path = path.iter().map(|name| format!("/{name}")).collect();
            metrics.used.push(Single { path, condition: String::new() });
        }
        metrics
    }

    fn add(&mut self, container: &Container, path: &[PathStep], single: Single) {
        let list = if is_indexed(container, path) { &mut self.used } else { &mut self.useful };
        if !list.contains(&single) {
            list.push(single);
        }
    }

    /// Several equalities at once are what a composite index is for.
    fn add_equalities(&mut self, container: &Container, plan: &Plan) {
        let is_equality = |hint: &&Hint| !hint.of_item && matches!(hint.spans[..], [Span::Value(_)]);
        let equalities = plan.hints().all.iter().filter(is_equality);
        let mut paths: Vec<String> = equalities.filter_map(|hint| property_path(&hint.path)).collect();
        paths.dedup();
        if paths.len() < 2 {
            return;
        }
        let has_all = |index: &&Vec<CompositePath>| {
            index.len() == paths.len() && index.iter().all(|part| paths.contains(&part.path))
        };
        match container.definition().indexing.composites.iter().find(has_all) {
            Some(index) => self.used_composites.push(index.iter().map(spec).collect()),
            None => self.useful_composites.push(paths.iter().map(|path| format!("{path} ASC")).collect()),
        }
    }

    fn add_order(&mut self, container: &Container, plan: &Plan) {
        let keys = &plan.info().order_by;
        let wanted: Option<Vec<CompositePath>> = keys
            .iter()
            .map(|key| {
                let path = property_path(key.path.as_ref()?)?;
                Some(CompositePath { path, descending: key.direction == Direction::Descending })
            })
            .collect();
        match wanted.as_deref() {
            None | Some([]) => {}
            Some([key]) => {
                let single = Single { path: format!("{}/?", key.path), condition: String::new() };
                let path = keys.iter().filter_map(|key| key.path.as_deref()).next().unwrap_or_default();
                self.add(container, path, single);
            }
            Some(keys) => {
                let opposite =
                    |a: &CompositePath, b: &CompositePath| a.path == b.path && a.descending != b.descending;
                let serves = |index: &&Vec<CompositePath>| {
                    **index == *keys
                        || index.len() == keys.len() && index.iter().zip(keys).all(|(a, b)| opposite(a, b))
                };
                match container.definition().indexing.composites.iter().find(serves) {
                    Some(index) => self.used_composites.push(index.iter().map(spec).collect()),
                    None => self.useful_composites.push(keys.iter().map(spec).collect()),
                }
            }
        }
    }

    /// The older form: JSON in base64.
    pub fn v1(&self) -> String {
        let single = |index: &Single| {
            json!({
                "FilterExpression": index.condition,
                "IndexSpec": index.path,
                "FilterPreciseSet": true,
                "IndexPreciseSet": true,
                "IndexImpactScore": "High",
            })
        };
        let composite = |specs: &Vec<String>| json!({ "IndexSpecs": specs, "IndexPreciseSet": false, "IndexImpactScore": "High" });
        let metrics = json!({
            "UtilizedSingleIndexes": self.used.iter().map(single).collect::<Vec<_>>(),
            "PotentialSingleIndexes": self.useful.iter().map(single).collect::<Vec<_>>(),
            "UtilizedCompositeIndexes": self.used_composites.iter().map(composite).collect::<Vec<_>>(),
            "PotentialCompositeIndexes": self.useful_composites.iter().map(composite).collect::<Vec<_>>(),
        });
        STANDARD.encode(metrics.to_string())
    }

    /// The newer form as it is encoded: JSON with percent signs.
    pub fn v2(&self) -> String {
        utf8_percent_encode(&self.to_json().to_string(), NON_ALPHANUMERIC).to_string()
    }

    /// The newer form.
    pub fn to_json(&self) -> Value {
        let used = |index: &Single| json!({ "IndexSpec": index.path });
        let useful = |index: &Single| json!({ "IndexSpec": index.path, "IndexImpactScore": "High" });
        let used_composite = |specs: &Vec<String>| json!({ "IndexSpecs": specs });
        let useful_composite =
            |specs: &Vec<String>| json!({ "IndexSpecs": specs, "IndexImpactScore": "High" });
        json!({
            "UtilizedIndexes": {
                "SingleIndexes": self.used.iter().map(used).collect::<Vec<_>>(),
                "CompositeIndexes": self.used_composites.iter().map(used_composite).collect::<Vec<_>>(),
            },
            "PotentialIndexes": {
                "SingleIndexes": self.useful.iter().map(useful).collect::<Vec<_>>(),
                "CompositeIndexes": self.useful_composites.iter().map(useful_composite).collect::<Vec<_>>(),
            },
        })
    }
}

fn spec(part: &CompositePath) -> String {
    format!("{} {}", part.path, if part.descending { "DESC" } else { "ASC" })
}

/// `/a/b`; none if an item of an array is on the way.
fn property_path(steps: &[PathStep]) -> Option<String> {
    steps.iter().map(|step| name_of(step).map(|name| format!("/{name}"))).collect()
}

fn name_of(step: &PathStep) -> Option<&str> {
    match step {
        PathStep::Name(name) => Some(name),
        PathStep::Item(_) => None,
    }
}

fn is_indexed(container: &Container, path: &[PathStep]) -> bool {
    let names: Option<Vec<&str>> = path.iter().map(name_of).collect();
    names.is_some_and(|names| {
        let steps: Vec<_> = names.into_iter().map(KeyStep::Property).collect();
        container.is_indexed(&steps)
    })
}
