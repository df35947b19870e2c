//! Updates of every kind with array filters, as an update and as an upsert, over documents made of the same bytes.
#![no_main]

mod making;

use bson::{DateTime, oid::ObjectId};
use libfuzzer_sys::fuzz_target;
use making::Maker;
use mayfly_mongo::{
    Context,
    expression::Names,
    filter::{Details, Filter},
    update::{Update, describe},
};

fuzz_target!(|bytes: &[u8]| {
    let mut maker = Maker(bytes);
    let context = Context::new(DateTime::from_millis(1_700_000_000_123), &|| 0.5);
    let names = Names::of(&context);
    let (filter, update, array_filters) = (maker.document(0), maker.value(0), maker.array(0));
    let Ok(update) = Update::parse(update.as_raw_bson_ref(), Some(&array_filters), &names) else { return };
    let filter = Filter::parse(&filter, &names).unwrap_or_else(|_| Filter::all());
    for before in [maker.document(0), maker.document(0)] {
        let mut details = Details::default();
        let _ = filter.matches_with(&before, &context, &mut details);
        if let Ok(Some(after)) = update.apply(&before, details.position, &context) {
            let _ = describe(&before, &after).to_document();
        }
    }
    let _ = update.upsert(&filter, ObjectId::from_bytes([7; 12]), &context);
});
