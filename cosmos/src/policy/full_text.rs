//! The full-text policy and the indexes it allows.

use mayfly_engine::ContainerDefinition;
use mayfly_value::path::Path;
use serde_json::Value;

use super::{items, member, path_of, text};
use crate::error::ApiError;

const LANGUAGES: [&str; 7] = ["en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "pt-BR", "pt-PT"];

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

/// Checks the policy and its indexes.
pub fn check(definition: &ContainerDefinition) -> Result<(), ApiError> {
    let paths = match definition.others.get("fullTextPolicy") {
        None => &[][..],
        Some(policy @ Value::Object(_)) => {
            check_language(text(policy, "defaultLanguage")?)?;
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
            check_language(language.as_str().ok_or_else(ApiError::invalid_input)?)?;
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
    Ok(())
}

fn check_language(language: &str) -> Result<(), ApiError> {
    match LANGUAGES.contains(&language) {
        true => Ok(()),
        false => Err(ApiError::bad_request(format!(
            "The Full Text Policy contains an unsupported Language: {language}. Supported languages are: {}.",
            LANGUAGES.join(", ")
        ))),
    }
}
