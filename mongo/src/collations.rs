//! Collations as commands name them, by the tables of Unicode.
//!
//! Keys of strings stand in indexes on disk, and change with the tables: `keys_are_those_on_disk` fails then, and indexes
//! with a collation have to be made anew.

use std::{cmp::Ordering, sync::Arc};

use bson::{Bson, Document, doc};
use icu_collator::{
    Collator, CollatorBorrowed,
    options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength},
    preferences::{CollationCaseFirst, CollationNumericOrdering},
};
use icu_locale_core::Locale;

use crate::{
    collation::{Collation, Strings},
    failure::{Failure, Result},
};

const KNOWN: &[&str] = &[
    "locale",
    "caseLevel",
    "caseFirst",
    "strength",
    "numericOrdering",
    "alternate",
    "maxVariable",
    "normalization",
    "backwards",
    "version",
];

/// The version of MongoDB's own tables, which clients expect to see. Where they differ from ours is not known to matter.
const VERSION: &str = "57.1";

/// The locales that MongoDB has. Others would be compared by the rules of their language or of none, and nobody would notice.
#[rustfmt::skip]
const LOCALES: &[&str] = &[
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bo", "bs", "bs_Cyrl", "ca", "chr", "cs", "cy", "da", "de", "de_AT", "dsb", "dz", "ee",
    "el", "en", "en_US", "eo", "es", "et", "fa", "fa_AF", "fi", "fil", "fo", "fr", "fr_CA", "ga", "gl", "gu", "ha", "haw", "he",
    "hi", "hr", "hsb", "hu", "hy", "id", "ig", "is", "it", "ja", "ka", "kk", "kl", "km", "kn", "ko", "kok", "ky", "lb", "lkt", "ln", "lo", "lt", "lv",
    "mk", "ml", "mn", "mr", "ms", "mt", "my", "nb", "ne", "nl", "nn", "om", "or", "pa", "pl", "ps", "pt", "ro", "ru", "se", "si", "sk", "sl", "smn",
    "sq", "sr", "sr_Latn", "sv", "sw", "ta", "te", "th", "to", "tr", "ug", "uk", "ur", "vi", "wae", "yi", "yo", "zh", "zh_Hant", "zu",
];

/// The collation a document describes; nothing for the simple one, which compares bytes.
pub fn parse(collation: &Document) -> Result<Option<Collation>> {
    if collation.is_empty() {
        return Ok(None);
    }
    if let Some(name) = collation.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        let message = format!("BSON field 'collation.{name}' is an unknown field.");
        return Err(Failure::new(40415, message));
    }
    let locale = match collation.get("locale") {
        Some(Bson::String(locale)) => locale.as_str(),
        Some(_) => return Err(Failure::new(14, "Field 'locale' in the collation must be a string")),
        None => {
            return Err(Failure::new(40414, "BSON field 'collation.locale' is missing but a required field"));
        }
    };
    if locale == "simple" {
        return match collation.len() {
            1 => Ok(None),
            _ => Err(Failure::bad_value("The simple collation has no other options")),
        };
    }
    let unknown = || Failure::bad_value(format!("Field 'locale' is invalid in: {collation}"));
    if !LOCALES.contains(&locale) {
        return Err(unknown());
    }
    let parsed: Locale = locale.replace('_', "-").parse().map_err(|_| unknown())?;
    if parsed.id.language.as_str().len() < 2 || parsed.id.language.is_unknown() {
        return Err(unknown());
    }
    let number = |name: &str| match collation.get(name) {
        None => Ok(None),
        Some(Bson::Int32(number)) => Ok(Some(i64::from(*number))),
        Some(Bson::Int64(number)) => Ok(Some(*number)),
        Some(Bson::Double(number)) => Ok(Some(*number as i64)),
        Some(_) => Err(Failure::new(14, format!("Field '{name}' in the collation must be a number"))),
    };
    check_words(collation)?;
    let flag = |name: &str| collation.get_bool(name).unwrap_or(false);
    let mut options = CollatorOptions::default();
    options.strength = Some(match number("strength")? {
        None | Some(3) => Strength::Tertiary,
        Some(1) => Strength::Primary,
        Some(2) => Strength::Secondary,
        Some(4) => Strength::Quaternary,
        Some(5) => Strength::Identical,
        Some(other) => {
            let message =
                format!("Enumeration value '{other}' for field 'collation.strength' is not a valid value.");
            return Err(Failure::bad_value(message));
        }
    });
    let is_coarse = matches!(options.strength, Some(Strength::Primary | Strength::Secondary));
    if is_coarse && !flag("caseLevel") && collation.get_str("caseFirst").is_ok_and(|first| first != "off") {
        let message = "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2";
        return Err(Failure::bad_value(message));
    }
    if collation.get_str("maxVariable").ok() == Some("space") {
        options.max_variable = Some(MaxVariable::Space);
    }
    if flag("caseLevel") {
        options.case_level = Some(CaseLevel::On);
    }
    if collation.get_str("alternate").ok() == Some("shifted") {
        options.alternate_handling = Some(AlternateHandling::Shifted);
    }
    if flag("backwards") {
        return Err(Failure::new(238, "a collation with backwards: true is not supported"));
    }
    let mut preferences: icu_collator::CollatorPreferences = (&parsed).into();
    if flag("numericOrdering") {
        preferences.numeric_ordering = Some(CollationNumericOrdering::True);
    }
    match collation.get_str("caseFirst") {
        Ok("upper") => preferences.case_first = Some(CollationCaseFirst::Upper),
        Ok("lower") => preferences.case_first = Some(CollationCaseFirst::Lower),
        _ => {}
    }
    let collator: CollatorBorrowed<'static> =
        Collator::try_new(preferences, options).map_err(|_| unknown())?;
    Ok(Some(Collation::new(settled(collation, locale), Arc::new(Tables(collator)))))
}

/// Refuses words that mean nothing, which would be taken for the usual ones otherwise.
fn check_words(collation: &Document) -> Result<()> {
    let words: [(&str, &[&str]); 3] = [
        ("caseFirst", &["upper", "lower", "off"]),
        ("alternate", &["non-ignorable", "shifted"]),
        ("maxVariable", &["punct", "space"]),
    ];
    for (name, known) in words {
        match collation.get(name) {
            None => {}
            Some(Bson::String(word)) if known.contains(&word.as_str()) => {}
            Some(Bson::String(word)) => {
                let message =
                    format!("Enumeration value '{word}' for field 'collation.{name}' is not a valid value.");
                return Err(Failure::bad_value(message));
            }
            Some(_) => {
                return Err(Failure::new(14, format!("Field '{name}' in the collation must be a string")));
            }
        }
    }
    for name in ["caseLevel", "numericOrdering", "normalization", "backwards"] {
        if collation.get(name).is_some_and(|flag| !matches!(flag, Bson::Boolean(_))) {
            return Err(Failure::new(14, format!("Field '{name}' should be a boolean value")));
        }
    }
    Ok(())
}

/// A description with everything that goes without saying, as MongoDB shows it.
fn settled(collation: &Document, locale: &str) -> Document {
    let strength = match collation.get("strength") {
        Some(Bson::Int64(number)) => *number as i32,
        Some(Bson::Double(number)) => *number as i32,
        Some(Bson::Int32(number)) => *number,
        _ => 3,
    };
    let flag = |name: &str| collation.get_bool(name).unwrap_or(false);
    let word = |name: &str, default: &'static str| collation.get_str(name).unwrap_or(default).to_owned();
    doc! {
        "locale": locale,
        "caseLevel": flag("caseLevel"),
        "caseFirst": word("caseFirst", "off"),
        "strength": strength,
        "numericOrdering": flag("numericOrdering"),
        "alternate": word("alternate", "non-ignorable"),
        "maxVariable": word("maxVariable", "punct"),
        "normalization": flag("normalization"),
        "backwards": false,
        "version": VERSION,
    }
}

/// The order of the tables.
struct Tables(CollatorBorrowed<'static>);

impl Strings for Tables {
    fn compare(&self, a: &str, b: &str) -> Ordering {
        self.0.compare(a, b)
    }

    fn key(&self, text: &str) -> String {
        let mut key = Vec::new();
        let Ok(()) = self.0.write_sort_key_to(text, &mut key);
        // Digits, because a text of any bytes is none; they are in the order of what they stand for.
        key.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{RawBsonRef, doc};
    use std::cmp::Ordering;

    #[test]
    fn words_that_mean_nothing_are_refused() {
        let code = |collation: Document| parse(&collation).err().map(|failure| failure.code);
        assert_eq!(code(doc! { "locale": "en", "alternate": "none" }), Some(2));
        assert_eq!(code(doc! { "locale": "en", "maxVariable": "x" }), Some(2));
        assert_eq!(code(doc! { "locale": "en", "caseFirst": 1 }), Some(14));
        assert_eq!(code(doc! { "locale": "en", "caseLevel": 1 }), Some(14));
        assert_eq!(code(doc! { "locale": "en", "strength": 2, "caseFirst": "upper" }), Some(2));
        assert_eq!(
            code(doc! { "locale": "en", "strength": 2, "caseFirst": "upper", "caseLevel": true }),
            None
        );
    }

    fn order(collation: Document, a: &str, b: &str) -> Ordering {
        parse(&collation).unwrap().unwrap().compare(RawBsonRef::String(a), RawBsonRef::String(b))
    }

    #[test]
    fn strengths_and_numbers() {
        assert_eq!(order(doc! { "locale": "en", "strength": 2 }, "Ann", "ann"), Ordering::Equal);
        assert_eq!(order(doc! { "locale": "en", "strength": 1 }, "éte", "ete"), Ordering::Equal);
        assert_eq!(order(doc! { "locale": "en_US" }, "a", "B"), Ordering::Less);
        assert_eq!(order(doc! { "locale": "en", "numericOrdering": true }, "a10", "a9"), Ordering::Greater);
        assert!(parse(&doc! { "locale": "simple" }).unwrap().is_none());
        assert_eq!(parse(&doc! { "locale": "en", "strength": 9 }).unwrap_err().code, 2);
        for unknown in ["x", "xx", "en_XX", "EN", "root"] {
            assert_eq!(parse(&doc! { "locale": unknown }).unwrap_err().code, 2, "{unknown}");
        }
        for known in LOCALES {
            assert!(parse(&doc! { "locale": *known }).is_ok_and(|collation| collation.is_some()), "{known}");
        }
        assert!(parse(&doc! {}).unwrap().is_none());
    }

    #[test]
    fn keys_compare_as_texts_do() {
        let texts = [
            "", "a", "A", "á", "b", "ab", "a b", "ä", "z", "10", "9", "-9", "é", "e\u{301}", "ß", "ss", "日",
            "\0",
        ];
        let number = |strength: i32, numeric: bool| doc! { "locale": "de", "strength": strength, "numericOrdering": numeric };
        for collation in (1..=5).flat_map(|strength| [number(strength, false), number(strength, true)]) {
            let collation = parse(&collation).unwrap().unwrap();
            for (a, b) in texts.iter().flat_map(|a| texts.map(|b| (*a, b))) {
                let (x, y) = (RawBsonRef::String(a), RawBsonRef::String(b));
                let keys = [collation.fold(x).unwrap(), collation.fold(y).unwrap()];
                let [first, second] = keys.each_ref().map(|key| key.as_str().unwrap());
                assert_eq!(first.cmp(second), collation.compare(x, y), "{a:?} {b:?} {}", collation.spec());
            }
        }
    }

    #[test]
    fn keys_are_those_on_disk() {
        let collation = parse(&doc! { "locale": "en", "strength": 2 }).unwrap().unwrap();
        let value = bson::rawdoc! { "x": ["Ann", 5, { "y": "é" }] };
        let folded = collation.fold(RawBsonRef::Document(&value)).unwrap();
        assert_eq!(
            folded,
            bson::RawBson::Document(bson::rawdoc! { "x": ["2b45450107", 5, { "y": "33014588" }] })
        );
        assert!(collation.fold(RawBsonRef::Int32(5)).is_none());
    }
}
