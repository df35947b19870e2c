//! What a container says that changes the meaning of a query: computed properties, the distance of its vectors,
//! the languages of its texts, the shape of its space.

use mayfly_engine::Container;
use mayfly_sql::{
    ComputedProperty, Settings,
    context::{Embedding, Languages, Space},
};
use mayfly_value::path::Path;
use serde_json::{Map, Value};

/// What queries of a container are read with.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// Properties that are computed.
    pub computed: Vec<ComputedProperty>,
    /// How functions measure.
    pub settings: Settings,
}

impl Surroundings {
    /// What `container` says.
    pub fn of(container: &Container) -> Self {
        let others = &container.definition().others;
        Self {
            computed: computed(others),
            settings: Settings {
                space: space(others),
                embeddings: embeddings(container),
                languages: languages(container),
            },
        }
    }
}

/// Definitions were checked when the container was made; one that an older version let in is left out.
fn computed(others: &Map<String, Value>) -> Vec<ComputedProperty> {
    let list = others.get("computedProperties").and_then(Value::as_array);
    let one = |definition: &Value| {
        ComputedProperty::parse(definition.get("name")?.as_str()?, definition.get("query")?.as_str()?).ok()
    };
    list.into_iter().flatten().filter_map(one).collect()
}

fn space(others: &Map<String, Value>) -> Space {
    let kind = others.get("geospatialConfig").and_then(|config| config.get("type")).and_then(Value::as_str);
    match kind {
        Some(kind) if kind.eq_ignore_ascii_case("geometry") => Space::Geometry,
        _ => Space::Geography,
    }
}

/// A container of the other API, and one whose policy an older version read, has English texts only.
fn languages(container: &Container) -> Languages {
    let languages = &container.definition().indexing.languages;
    let path = |path: &str| Some(Path::parse(path).ok()?.segments().to_vec());
    let by_path = languages.by_path.iter().filter_map(|(text, language)| Some((path(text)?, *language)));
    Languages { default: languages.default, by_path: by_path.collect() }
}

fn embeddings(container: &Container) -> Vec<Embedding> {
    let policy = container
        .definition()
        .others
        .get("vectorEmbeddingPolicy")
        .and_then(|policy| policy.get("vectorEmbeddings"));
    let one = |embedding: &Value| {
        let path = Path::parse(embedding.get("path")?.as_str()?).ok()?;
        let distance_function = embedding.get("distanceFunction")?.as_str()?.to_owned();
        let is_indexed = container.vector_index(path.segments()).is_some();
        Some(Embedding { path: path.segments().to_vec(), distance_function, is_indexed })
    };
    policy.and_then(Value::as_array).into_iter().flatten().filter_map(one).collect()
}
