//! One walk through a document that came from outside, so that nobody after this has to doubt its insides.

use bson::{RawArray, RawBsonRef, RawDocument};

/// Nested documents and arrays in a stored document; clients have limits below this.
const DEPTH_MAX: usize = 180;

/// What is wrong with a document, if anything is: its layout, its texts, or its depth.
pub fn check_document(document: &RawDocument) -> Result<(), String> {
    check_fields(document, 1)
}

fn check_fields(document: &RawDocument, depth: usize) -> Result<(), String> {
    check_depth(depth)?;
    for element in document.iter_elements() {
        let element = element.map_err(|error| error.to_string())?;
        check_value(element.value().map_err(|error| error.to_string())?, depth)?;
    }
    Ok(())
}

fn check_items(array: &RawArray, depth: usize) -> Result<(), String> {
    check_depth(depth)?;
    for item in array {
        check_value(item.map_err(|error| error.to_string())?, depth)?;
    }
    Ok(())
}

fn check_value(value: RawBsonRef<'_>, depth: usize) -> Result<(), String> {
    match value {
        RawBsonRef::Document(document) => check_fields(document, depth + 1),
        RawBsonRef::Array(array) => check_items(array, depth + 1),
        RawBsonRef::JavaScriptCodeWithScope(code) => check_fields(code.scope, depth + 1),
        _ => Ok(()),
    }
}

fn check_depth(depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("Exceeded depth limit of {DEPTH_MAX} when walking the document"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{RawDocumentBuf, raw::cstr, rawdoc};

    #[test]
    fn deep_documents_are_refused() {
        let nested = |levels: usize| {
            let mut document = rawdoc! { "x": 1 };
            for _ in 1..levels {
                let mut outer = RawDocumentBuf::new();
                outer.append(cstr!("x"), &document);
                document = outer;
            }
            check_document(&document)
        };
        assert!(nested(DEPTH_MAX).is_ok());
        assert!(nested(DEPTH_MAX + 1).is_err());
    }

    #[test]
    fn texts_must_be_utf8_and_lengths_must_fit() {
        let good = rawdoc! { "a": { "s": "xyz" } }.into_bytes();
        for at in 4..good.len() {
            let mut bad = good.clone();
            bad[at] = 0xFF;
            if let Ok(document) = RawDocument::from_bytes(&bad) {
                let _ = check_document(document);
            }
        }
        let mut bad = good.clone();
        let at = bad.windows(3).position(|part| part == b"xyz").unwrap();
        bad[at] = 0xC0;
        assert!(check_document(RawDocument::from_bytes(&bad).unwrap()).is_err());
    }
}
