//! Texts that were parsed lately. A client sends the same text again and again, with other parameters, and its tree is
//! the same each time: it depends on nothing but the text.
//!
//! Holds: no more than twice [`TEXTS_MAX`] texts of at most [`TEXT_BYTES_MAX`] are kept.

use std::{
    collections::HashMap,
    mem::take,
    sync::{Arc, LazyLock},
};

use mayfly_sql::{Query, SqlError};
use parking_lot::Mutex;

/// Texts of one generation.
const TEXTS_MAX: usize = 128;

/// Longer texts have values in them, as a rule, and do not come again.
const TEXT_BYTES_MAX: usize = 2048;

/// Those that were asked for since the last change of generations, and those of the generation before.
#[derive(Default)]
struct Parsed {
    young: HashMap<String, Arc<Query>>,
    old: HashMap<String, Arc<Query>>,
}

static PARSED: LazyLock<Mutex<Parsed>> = LazyLock::new(Mutex::default);

impl Parsed {
    fn get(&mut self, text: &str) -> Option<Arc<Query>> {
        if let Some(query) = self.young.get(text) {
            return Some(query.clone());
        }
        let (text, query) = self.old.remove_entry(text)?;
        self.put(text, query.clone());
        Some(query)
    }

    fn put(&mut self, text: String, query: Arc<Query>) {
        if self.young.len() >= TEXTS_MAX {
            self.old = take(&mut self.young);
        }
        self.young.insert(text, query);
    }
}

/// The query with this text.
pub fn parse(text: String) -> Result<Arc<Query>, SqlError> {
    if text.len() > TEXT_BYTES_MAX {
        return Query::parse(&text).map(Arc::new);
    }
    if let Some(query) = PARSED.lock().get(&text) {
        return Ok(query);
    }
    let query = Arc::new(Query::parse(&text)?);
    PARSED.lock().put(text, query.clone());
    Ok(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Arc<Query> {
        Arc::new(Query::parse(text).unwrap())
    }

    #[test]
    fn a_text_that_is_asked_for_stays_and_others_go() {
        let mut parsed = Parsed::default();
        let kept = query("SELECT * FROM c");
        parsed.put("kept".into(), kept.clone());
        for n in 0..10 * TEXTS_MAX {
            parsed.put(format!("{n}"), kept.clone());
            assert!(parsed.get("kept").is_some_and(|found| Arc::ptr_eq(&found, &kept)), "{n}");
            assert!(parsed.young.len() + parsed.old.len() <= 2 * TEXTS_MAX);
        }
        assert!(parsed.get("0").is_none());
    }

    #[test]
    fn the_same_text_is_parsed_once_and_an_error_each_time() {
        let text = "SELECT VALUE c.parsed_once FROM c";
        let (first, second) = (parse(text.into()).unwrap(), parse(text.into()).unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        assert!(parse("SELECT".into()).is_err());
        assert!(parse("SELECT".into()).is_err());
    }
}
