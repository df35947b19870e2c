//! Several ranges together give what one gives: the distribution of a query, carried out by a client as simple as can be.

use std::cmp::Ordering;

use mayfly_sql::aggregate::Aggregate;
use mayfly_sql::ast::Direction;
use mayfly_sql::context::DEFAULT_SETTINGS;
use mayfly_sql::plan_info::DistinctType;
use mayfly_sql::value::compare::order;
use mayfly_sql::value::key::key_of;
use mayfly_sql::{Context, Distribution, Document, MergeInfo, Query, Value};
use mayfly_value::bson::RawDocumentBuf;
use mayfly_value::json::{JsonLimits, parse_document};
use proptest::prelude::*;

const RESUME_FILTER: &str = "{documentdb-formattableorderbyquery-filter}";

/// The rows of a text over documents.
fn rows(text: &str, documents: &[RawDocumentBuf]) -> Vec<Value<'static>> {
    let query = Query::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let plan = query.bind(&[]).unwrap_or_else(|error| panic!("{error}: {text}"));
    let mut run = plan.run(Context::new(0, 0)).expect("it starts");
    let mut rows = Vec::new();
    for (number, body) in documents.iter().enumerate() {
        let rid = format!("{number:04}");
        let system = [("_rid", Value::from(rid.as_str()))];
        let found = run.push(&Document { body, system: &system }).expect("it runs");
        rows.extend(found.into_iter().map(Value::into_owned));
    }
    rows.extend(run.finish().expect("it ends").into_iter().map(Value::into_owned));
    rows
}

/// What a client makes of the answers of the ranges.
fn merged(info: &MergeInfo, answers: Vec<Value<'static>>) -> Vec<Value<'static>> {
    let mut rows = answers;
    if !info.order_by.is_empty() {
        rows.sort_by(|a, b| compare_keys(&info.order_by, a, b));
        rows = rows.into_iter().map(|row| row.property("payload").into_owned()).collect();
    } else if !info.aggregates.is_empty()
        || !info.group_by_aliases.is_empty()
        || !info.group_by_expressions.is_empty()
    {
        rows = groups(info, rows);
    }
    if info.distinct != DistinctType::None {
        let mut seen = std::collections::HashSet::new();
        rows.retain(|row| seen.insert(key_of(row)));
    }
    if let Some(alias) = &info.distinct_count {
        let count = Value::Int(rows.len() as i64);
        rows = vec![if alias.is_empty() { count } else { Value::object([(alias.clone(), count)]) }];
    }
    let skip = info.offset.unwrap_or(0) as usize;
    let take = info.top.or(info.limit).map_or(usize::MAX, |count| count as usize);
    rows.into_iter().skip(skip).take(take).collect()
}

fn compare_keys(directions: &[Direction], a: &Value<'_>, b: &Value<'_>) -> Ordering {
    let key = |row: &Value<'_>, place: usize| {
        row.property("orderByItems").item(place).property("item").into_owned()
    };
    let by = |(place, direction): (usize, &Direction)| {
        let ordering = order(&key(a, place), &key(b, place));
        if *direction == Direction::Descending { ordering.reverse() } else { ordering }
    };
    directions.iter().enumerate().map(by).find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
}

fn groups(info: &MergeInfo, answers: Vec<Value<'static>>) -> Vec<Value<'static>> {
    let mut found: Vec<(Vec<u8>, Vec<Value<'static>>)> = Vec::new();
    for answer in answers {
        let is_grouped = !info.group_by_expressions.is_empty();
        let key = if is_grouped { key_of(&answer.property("groupByItems")) } else { Vec::new() };
        let has_payload = is_grouped || !info.has_select_value;
        let payload = if has_payload { answer.property("payload").into_owned() } else { answer };
        match found.iter_mut().find(|(known, _)| *known == key) {
            Some((_, payloads)) => payloads.push(payload),
            None => found.push((key, vec![payload])),
        }
    }
    let row = |payloads: Vec<Value<'static>>| match info.aggregates.as_slice() {
        [aggregate] => {
            combined(*aggregate, payloads.iter().map(|payload| payload.item(0).into_owned()).collect())
        }
        _ if info.has_select_value => payloads.into_iter().next().unwrap_or(Value::Undefined),
        _ => Value::object(info.group_by_aliases.iter().map(|(name, aggregate)| {
            let members: Vec<Value<'static>> =
                payloads.iter().map(|payload| payload.property(name).into_owned()).collect();
            let value = match aggregate {
                Some(aggregate) => combined(*aggregate, members),
                None => members.into_iter().next().unwrap_or(Value::Undefined),
            };
            (name.clone(), value)
        })),
    };
    found.into_iter().map(|(_, payloads)| row(payloads)).filter(Value::is_defined).collect()
}

fn combined(aggregate: Aggregate, parts: Vec<Value<'static>>) -> Value<'static> {
    let sum = |parts: &[Value<'static>], member: &str| {
        let numbers: Option<Vec<f64>> =
            parts.iter().map(|part| part.property("item").property(member).as_f64()).collect();
        numbers.map(|numbers| numbers.into_iter().sum::<f64>())
    };
    let items = || parts.iter().map(|part| part.property("item").into_owned());
    match aggregate {
        Aggregate::Count | Aggregate::CountIf | Aggregate::Sum => {
            let numbers: Option<Vec<f64>> = items().map(|item| item.as_f64()).collect();
            numbers.map(|numbers| numbers.into_iter().sum::<f64>()).into()
        }
        Aggregate::Average => match (sum(&parts, "sum"), sum(&parts, "count")) {
            (Some(total), Some(count)) if count > 0.0 => Value::Double(total / count),
            _ => Value::Undefined,
        },
        Aggregate::Min | Aggregate::Max => {
            let name = if aggregate == Aggregate::Min { "min" } else { "max" };
            let of_range =
                |part: &Value<'static>| part.property("item2").property("count").as_f64() != Some(0.0);
            let ranges: Vec<_> = parts.iter().filter(|part| of_range(part)).collect();
            let values: Vec<Value<'static>> =
                ranges.iter().map(|part| part.property("item2").property(name).into_owned()).collect();
            if values.iter().any(|value| !value.is_defined()) {
                return Value::Undefined;
            }
            let best = if aggregate == Aggregate::Min {
                values.into_iter().min_by(order)
            } else {
                values.into_iter().max_by(order)
            };
            best.unwrap_or(Value::Undefined)
        }
        Aggregate::MakeList | Aggregate::MakeSet => {
            let mut seen = std::collections::HashSet::new();
            let lists: Vec<Value<'static>> = items().collect();
            let all = lists.iter().filter_map(Value::as_array).flat_map(|array| array.iter());
            let all = all
                .map(Value::into_owned)
                .filter(|value| aggregate == Aggregate::MakeList || seen.insert(key_of(value)));
            Value::array(all.collect::<Vec<_>>())
        }
    }
}

/// Queries whose answer does not depend on the order of documents, but for rows that look the same.
fn query() -> impl Strategy<Value = String> {
    let filter = prop::sample::select(vec![
        "",
        "WHERE c.n > 1",
        "WHERE c.k = 'a' OR c.n = 0",
        "WHERE IS_DEFINED(c.m)",
    ]);
    let shape = prop::sample::select(vec![
        ("SELECT VALUE c.n", "ORDER BY c.n"),
        ("SELECT VALUE c.m", "ORDER BY c.m DESC"),
        ("SELECT c.id, c.m", "ORDER BY c.id"),
        ("SELECT TOP 3 VALUE c.id", "ORDER BY c.id DESC"),
        ("SELECT VALUE c.n", "ORDER BY c.n OFFSET 2 LIMIT 3"),
        ("SELECT c.k, c.n", "ORDER BY c.k, c.n DESC"),
        ("SELECT DISTINCT VALUE c.n", "ORDER BY c.n"),
        ("SELECT DISTINCT TOP 2 c.n", "ORDER BY c.n DESC"),
        ("SELECT VALUE COUNT(1)", ""),
        ("SELECT VALUE COUNT(c.m)", ""),
        ("SELECT VALUE SUM(c.n)", ""),
        ("SELECT VALUE SUM(c.m)", ""),
        ("SELECT VALUE AVG(c.n)", ""),
        ("SELECT VALUE MIN(c.m)", ""),
        ("SELECT VALUE MAX(c.m)", ""),
        ("SELECT VALUE COUNTIF(c.n > 1)", ""),
        ("SELECT COUNT(1) AS a, SUM(c.n) AS b, AVG(c.n), MAX(c.n) AS d", ""),
        ("SELECT c.k, COUNT(1) AS a, MIN(c.n) AS b, AVG(c.n) AS d", "GROUP BY c.k"),
        ("SELECT VALUE c.k", "GROUP BY c.k"),
        ("SELECT VALUE SUM(c.n)", "GROUP BY c.k"),
        ("SELECT c.k, c.m", "GROUP BY c.k, c.m"),
        ("SELECT DISTINCT VALUE c.m", ""),
        ("SELECT c.id", ""),
        ("SELECT VALUE t", ""),
    ]);
    (shape, filter).prop_map(|((select, tail), filter)| {
        let from = if select.ends_with(" t") { "FROM c JOIN t IN c.tags" } else { "FROM c" };
        format!("{select} {from} {filter} {tail}")
    })
}

fn documents() -> impl Strategy<Value = Vec<(RawDocumentBuf, usize)>> {
    let mixed = prop::sample::select(vec![
        "",
        r#","m":null"#,
        r#","m":5"#,
        r#","m":"x""#,
        r#","m":true"#,
        r#","m":[1]"#,
    ]);
    let number = prop::sample::select(vec!["", r#","n":0"#, r#","n":1"#, r#","n":2"#, r#","n":3"#]);
    let key = prop::sample::select(vec!["", r#","k":"a""#, r#","k":"b""#]);
    prop::collection::vec((mixed, number, key, 0_usize..3), 0..12).prop_map(|documents| {
        let numbered = documents.into_iter().enumerate();
        numbered
            .map(|(number, (mixed, n, key, range))| {
                let text = format!(r#"{{"id":"{number:02}","tags":[{number},"t"]{mixed}{n}{key}}}"#);
                (parse_document(text.as_bytes(), JsonLimits::default()).expect("JSON"), range)
            })
            .collect()
    })
}

fn printed(rows: &[Value<'_>]) -> Vec<String> {
    rows.iter().map(|row| row.to_json()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(super::cases(512)) })]

    #[test]
    fn several_ranges_give_what_one_gives(text in query(), documents in documents()) {
        let all: Vec<_> = documents.iter().map(|(document, _)| document.clone()).collect();
        let mut whole = printed(&rows(&text, &all));
        let query = Query::parse(&text).unwrap();
        let plan = query.bind(&[]).unwrap();
        let Ok(Distribution::Merge(info)) = query.distribute(&plan, &DEFAULT_SETTINGS) else {
            panic!("cannot be distributed: {text}");
        };
        let sent = match info.rewritten.as_str() {
            "" => text.clone(),
            rewritten => rewritten.replace(RESUME_FILTER, "true"),
        };
        let mut answers = Vec::new();
        for range in 0..3 {
            let own = documents.iter().filter(|(_, at)| *at == range).map(|(document, _)| document.clone());
            answers.extend(rows(&sent, &own.collect::<Vec<_>>()));
        }
        let mut together = printed(&merged(&info, answers));
        if info.order_by.is_empty() {
            whole.sort();
            together.sort();
        }
        prop_assert_eq!(together, whole, "{}", sent);
    }
}
