//! The full-text policy and the indexes it allows.

use mayfly_engine::{ContainerDefinition, TextLanguages};
use mayfly_value::{path::Path, text::Language};
use serde_json::Value;

use super::{items, member, path_of};
use crate::error::ApiError;

/// The languages of the service. The numbers are what Windows knows them by: earlier SDKs send `1033`, and
/// the service takes it.
const LANGUAGES: [(&str, &[i64], Language); 7] = [
    ("en-US", &[1033], Language::English),
    ("de-DE", &[1031], Language::German),
    ("es-ES", &[3082, 1034], Language::Spanish),
    ("fr-FR", &[1036], Language::French),
    ("it-IT", &[1040], Language::Italian),
    ("pt-BR", &[1046], Language::Portuguese),
    ("pt-PT", &[2070], Language::Portuguese),
];

/// The paths of the indexes.
pub fn paths(indexes: Option<&Value>) -> Result<Vec<String>, ApiError> {
    let mut paths: Vec<String> = Vec::new();
    for index in items(indexes)? {
        let path = path_of(index)?;
        // Twice the same is once, and what is no path to one text is searched without an index.
        if Path::parse(path).is_ok() && !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    Ok(paths)
}

/// Checks the policy and its indexes, and gives the languages it names.
pub fn check(definition: &ContainerDefinition) -> Result<TextLanguages, ApiError> {
    let mut languages = TextLanguages::default();
    let paths = match definition.others.get("fullTextPolicy") {
        None => &[][..],
        Some(policy @ Value::Object(_)) => {
            let default = member(policy, "defaultLanguage").ok_or_else(ApiError::invalid_input)?;
            languages.default = language_of(default)?;
            items(policy.get("fullTextPaths"))?
        }
        Some(_) => return Err(ApiError::invalid_input()),
    };
    for item in paths {
        let path = path_of(item)?;
        if !path.starts_with('/') || path.len() < 2 {
            return Err(ApiError::bad_request(format!(
                "The Full Text Policy contains an invalid Path: {path}"
            )));
        }
        if let Some(language) = member(item, "language") {
            languages.by_path.insert(path.to_owned(), language_of(language)?);
        }
    }
    for index in items(definition.indexing.others.get("fullTextIndexes"))? {
        let path = path_of(index)?;
        if !paths.iter().any(|item| item.get("path") == index.get("path")) {
            return Err(ApiError::bad_request(format!(
                "The path of the Full Text Index {path} does not match any path specified in the Full Text Policy."
            )));
        }
    }
    Ok(languages)
}

fn language_of(language: &Value) -> Result<Language, ApiError> {
    let is_meant = |(name, numbers, _): &&(&str, &[i64], Language)| match language {
        Value::String(text) => text == name || text.parse().is_ok_and(|number| numbers.contains(&number)),
        number => number.as_i64().is_some_and(|number| numbers.contains(&number)),
    };
    if let Some((_, _, language)) = LANGUAGES.iter().find(is_meant) {
        return Ok(*language);
    }
    let language = match language {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(ApiError::invalid_input()),
    };
    Err(ApiError::bad_request(format!(
        "The Full Text Policy contains an unsupported Language: {language}. Supported languages are: {}.",
        LANGUAGES.map(|(name, _, _)| name).join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn languages_are_known_by_name_and_by_number() {
        for language in
            [json!("en-US"), json!("pt-PT"), json!(1033), json!("1033"), json!(2070), json!("1031")]
        {
            assert!(language_of(&language).is_ok(), "{language}");
        }
        for language in [json!("en-us"), json!("xx-XX"), json!(1), json!("1053"), json!("")] {
            let error = language_of(&language).unwrap_err();
            assert_eq!(error.status, 400, "{language}");
            assert!(error.message.starts_with("The Full Text Policy contains an unsupported Language: "));
        }
        for language in [json!(null), json!([1033]), json!(true)] {
            assert_eq!(language_of(&language).unwrap_err().status, 400, "{language}");
        }
    }
}
