//! Properties that hold for every query.

use mayfly_sql::{Context, Document, Query, Value};
use mayfly_value::json::{JsonLimits, parse_document};
use proptest::prelude::*;

/// Expressions as text, from small pieces.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("c.a".to_owned()),
        Just("c[\"b c\"]".to_owned()),
        Just("c.items[0].x".to_owned()),
        Just("@p".to_owned()),
        Just("null".to_owned()),
        Just("undefined".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(|n| format!("{n:?}")),
        "[a-z'\"\\\\\u{1}é]{0,4}".prop_map(|text| {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"{escaped}\"")
        }),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let operator = prop::sample::select(vec![
            "=", "!=", "<>", "<", "<=", ">", ">=", "<<", ">>", ">>>", "||", "|", "^", "&", "+", "-", "*",
            "/", "%", "??", "AND", "OR",
        ]);
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) + ({b})")),
            (prop::sample::select(vec!["- ", "+", "~", "NOT "]), inner.clone())
                .prop_map(|(op, a)| format!("{op}({a})")),
            inner.clone().prop_map(|a| format!("({a}).x[1][\"y\"]")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a}) ? {b} : {c}")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("(({a}) NOT BETWEEN ({b}) AND ({c}))")),
            (inner.clone(), prop::collection::vec(inner.clone(), 1..4))
                .prop_map(|(a, list)| format!("(({a}) IN ({}))", list.join(", "))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(({a}) LIKE ({b}) ESCAPE '!')")),
            prop::collection::vec(inner.clone(), 0..4).prop_map(|list| format!("[{}]", list.join(","))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{a: {a}, \"b'\": {b}}}")),
            inner.clone().prop_map(|a| format!("IS_DEFINED({a})")),
            inner.clone().prop_map(|a| format!("udf.f({a}, 1)")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(LET x = ({a}) IN x = ({b}))")),
            inner.clone().prop_map(|a| format!("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE {a})")),
            inner.prop_map(|a| format!("ARRAY(SELECT DISTINCT {a} AS v FROM t IN c.tags)")),
        ]
    })
}

fn query() -> impl Strategy<Value = String> {
    let select = prop_oneof![
        Just("SELECT *".to_owned()),
        expression().prop_map(|e| format!("SELECT VALUE {e}")),
        (expression(), expression()).prop_map(|(a, b)| format!("SELECT TOP 3 {a} AS \"x y\", {b}")),
        expression().prop_map(|e| format!("SELECT DISTINCT {e} z")),
    ];
    let from = prop::sample::select(vec![
        "FROM c",
        "FROM root.a[\"b c\"] AS c",
        "FROM c JOIN t IN c.tags JOIN (SELECT VALUE 1) AS s",
        "FROM (SELECT VALUE r FROM r) c",
    ]);
    let tail = prop_oneof![
        Just(String::new()),
        expression().prop_map(|e| format!("WHERE {e}")),
        expression().prop_map(|e| format!("GROUP BY {e}, c.k")),
        Just("ORDER BY c.a, c.b DESC OFFSET 1 LIMIT @n".to_owned()),
        Just("ORDER BY RANK FullTextScore(c.t, 'x')".to_owned()),
    ];
    (select, from, tail).prop_map(|(select, from, tail)| format!("{select} {from} {tail}"))
}

/// The rows over a few documents, or what went wrong (without the words of the text).
fn rows(query: &Query) -> Result<Vec<String>, String> {
    let documents = [
        r#"{"id":"1","a":1,"b c":"x","items":[{"x":2}],"tags":[1,"a",null,{"x":[0,{"y":5}]}],"k":true,"t":"x"}"#,
        r#"{"id":"2","a":{"b c":[1,2]},"items":[],"tags":[[1],[1.0],{}],"k":1.5,"b":2}"#,
        r#"{}"#,
    ];
    let params = [("@p", Value::parse_json(br#"{"x":[1,{"y":"z"}]}"#).expect("JSON")), ("n", Value::Int(5))];
    let plan = query.bind(&params).map_err(|error| format!("{:?}", error.code))?;
    let mut run = plan.run(Context::new(0, 0)).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for document in documents {
        let body = parse_document(document.as_bytes(), JsonLimits::default()).expect("JSON");
        let found = run.push(&Document { body: &body, system: &[] }).map_err(|error| error.to_string())?;
        rows.extend(found.iter().map(Value::to_json));
    }
    let found = run.finish().map_err(|error| error.to_string())?;
    rows.extend(found.iter().map(Value::to_json));
    Ok(rows)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(super::cases(512)) })]

    /// What is printed is read back as the same query.
    #[test]
    fn printing_is_a_fixpoint(text in query()) {
        let parsed = Query::parse(&text).unwrap();
        let printed = parsed.to_string();
        let again = Query::parse(&printed);
        prop_assert!(again.is_ok(), "{}\n{:?}", printed, again);
        prop_assert_eq!(again.unwrap().to_string(), printed);
    }

    /// A query and its canonical form give the same rows, and neither panics on any document.
    #[test]
    fn the_canonical_form_means_the_same(text in query()) {
        let parsed = Query::parse(&text).unwrap();
        let canonical = Query::parse(&parsed.to_string()).unwrap();
        prop_assert_eq!(rows(&parsed), rows(&canonical));
    }

    /// No text makes the parser panic.
    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,80}") {
        let _ = Query::parse(&text);
    }

    /// Nor does one made of the language's own words.
    #[test]
    fn any_words_are_parsed_or_refused(words in prop::collection::vec(prop::sample::select(vec![
        "SELECT", "VALUE", "TOP", "DISTINCT", "FROM", "JOIN", "IN", "WHERE", "GROUP", "BY", "ORDER", "RANK",
        "OFFSET", "LIMIT", "AS", "c", "c.x", "COUNT", "(", ")", "[", "]", "{", "}", ",", ":", "?", "??", ".",
        "*", "=", "NOT", "BETWEEN", "AND", "LIKE", "ESCAPE", "'x'", "\"y\"", "1", "2.5", "@p", "udf", "EXISTS",
        "ARRAY", "ALL", "-", "~", "undefined", "'", "/*", "--", "LET",
    ]), 0..24)) {
        if let Ok(query) = Query::parse(&words.join(" ")) {
            let _ = query.bind(&[]);
        }
    }
}

/// Nesting is refused before it can overflow the stack, and what is allowed runs.
#[test]
fn nesting_is_bounded() {
    let parse = |text: String| Query::parse(&text).map(|query| query.bind(&[]).map(drop));
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{a:", "}"),
        ("- ", ""),
        ("ABS(", ")"),
        ("1 ?? ", ""),
        ("(SELECT VALUE ", ")"),
    ] {
        let nested = |depth: usize| format!("SELECT VALUE {}1{}", open.repeat(depth), close.repeat(depth));
        assert!(parse(nested(20_000)).is_err(), "{open}");
        assert!(parse(nested(60)).is_ok(), "{open}");
    }
    for chain in [" + 1", ".a", "[0]", " = 1", " || 1"] {
        assert!(parse(format!("SELECT VALUE c{} FROM c", chain.repeat(20_000))).is_err(), "{chain}");
    }
    for chain in [" AND 1", " OR 1"] {
        assert!(parse(format!("SELECT VALUE 1{}", chain.repeat(10_000))).is_ok(), "{chain}");
    }
}

/// The deepest queries that are allowed run on the stack of a worker thread.
#[test]
fn the_deepest_queries_run() {
    for (open, close) in [("[", "]"), ("{a:", "}"), ("- ", ""), ("ARRAY(SELECT VALUE ", ")")] {
        let deepest = (60..200).rev().find_map(|depth| {
            let text = format!("SELECT VALUE {}1{}", open.repeat(depth), close.repeat(depth));
            Query::parse(&text).ok()
        });
        let plan = deepest.unwrap().bind(&[]).unwrap();
        let run = plan.run(Context::new(0, 0)).unwrap();
        let rows = run.finish().unwrap();
        let json: Vec<String> = rows.iter().map(|row| row.to_json()).collect();
        assert_eq!(json.len(), 1, "{open}");
    }
}

/// A query that makes its value larger at each step fails instead of running out of memory or stack.
#[test]
fn values_are_bounded() {
    let run = |text: &str| {
        let plan = Query::parse(text).unwrap().bind(&[]).unwrap();
        let mut context = Context::new(0, 0);
        context.memory_bytes_max = 40 << 20;
        let run = plan.run(context).unwrap();
        run.finish().map(|rows| rows.len()).map_err(|error| error.to_string())
    };
    let nested = |start: &str, step: &str, levels: usize| {
        let mut text = format!("SELECT VALUE {start}");
        for _ in 0..levels {
            text = format!("SELECT VALUE {step} FROM ({text}) s");
        }
        text
    };
    let too_large = Err("The query builds a value larger than 16777216 bytes.".to_owned());
    let too_deep = Err("The query builds a value that nests too deep.".to_owned());
    assert_eq!(run(&nested("1", "[s, s]", 15)), Ok(1));
    assert_eq!(run(&nested("1", "[s, s]", 60)), too_large);
    assert_eq!(run(&nested("1", "{a: s, b: s}", 60)), too_large);
    assert_eq!(run(&nested("'x'", "s || s", 60)), too_large);
    assert_eq!(run(&nested("1", &format!("{}s{}", "[".repeat(40), "]".repeat(40)), 50)), too_deep);
    // A cross product of one row with itself, again and again.
    let arrays = "[1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10]";
    let joins: String = (0..9).map(|n| format!(" JOIN x{n} IN (SELECT VALUE {arrays})")).collect();
    let product = run(&format!("SELECT VALUE 1 FROM (SELECT VALUE 1) c{joins}"));
    assert!(product.unwrap_err().starts_with("The query needs more than"));
}

/// The text of a query is bounded.
#[test]
fn long_texts_are_refused() {
    let text = format!("SELECT VALUE '{}'", "x".repeat(600_000));
    let error = Query::parse(&text).unwrap_err();
    assert_eq!((error.code, error.location), (Some("SC3020"), Some((0, text.len()))));
}
