//! Filters, projections, sorts and expressions, over documents made of the same bytes.
#![no_main]

mod making;

use bson::DateTime;
use libfuzzer_sys::fuzz_target;
use making::Maker;
use mayfly_mongo::{
    Context,
    expression::{Expression, Names},
    filter::{Details, Filter},
    projection::Projection,
    sort::SortPattern,
};

fuzz_target!(|bytes: &[u8]| {
    let mut maker = Maker(bytes);
    let context = Context::new(DateTime::from_millis(1_700_000_000_123), &|| 0.5);
    let (filter, expression, projection, sort) = (maker.document(0), maker.value(0), maker.document(0), maker.document(0));
    let documents = [maker.document(0), maker.document(0)];
    let names = Names::of(&context);
    let filter = Filter::parse(&filter, &names).unwrap_or_else(|_| Filter::all());
    let projection = Projection::parse_find(&projection, &filter, &names);
    let expression = Expression::parse(expression.as_raw_bson_ref(), &names);
    let sort = SortPattern::parse(&sort);
    let mut keys = Vec::new();
    for document in &documents {
        let mut details = Details::default();
        let _ = filter.matches_with(document, &context, &mut details);
        let _ = projection.as_ref().map(|projection| projection.apply(document, &context));
        let _ = expression.as_ref().map(|expression| expression.evaluate(document, &context));
        if let Ok(Ok(key)) = sort.as_ref().map(|sort| sort.key(document, &context)) {
            keys.push(key);
        }
    }
    if let (Ok(sort), [first, second]) = (&sort, keys.as_slice()) {
        assert_eq!(sort.compare(first, second, &context), sort.compare(second, first, &context).reverse());
    }
});
