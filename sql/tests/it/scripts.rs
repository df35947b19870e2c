//! Scripts: queries with their results as text, under `tests/scripts`.
//!
//! A script consists of blocks with blank lines between them. `#` begins a comment.
//!
//! ```text
//! docs                          the documents of all queries below, one per line;
//! {"id":"1","n":5}              `docs system` gives them _rid, _etag and _ts
//!
//! @p = 5                        a query: parameters, text, then what it gives:
//! SELECT VALUE c.id             one row per line, `(no rows)`, or an error
//! FROM c WHERE c.n = @p
//! ---
//! "1"
//!
//! computed                      the computed properties of all queries below
//! twice = SELECT VALUE c.n * 2 FROM c
//!
//! languages                     the languages of all texts below, by path
//! /t = german
//!
//! exprs                         expressions, each on its own line
//! 1 + 1
//! ---
//! 1 + 1 => 2
//! ```
//!
//! A query block may begin with `show canonical`, `show hints`, `show plan`, `show steps`
//! or `show distribution`. With the environment variable
//! UPDATE set, results are written into the scripts instead of compared. A script in which nothing gives a
//! row or an error fails, unless it has the comment `# [empty]`: it most likely tests nothing. A script with
//! the comment `# [needs NAME]` waits until the registry has the function.

use std::fs;
use std::path::{Path, PathBuf};

use mayfly_sql::functions::Function;
use mayfly_sql::plan_info::DistinctType;
use mayfly_sql::{ComputedProperty, Context, Distribution, Document, MergeInfo, Query, Settings, Value};
use mayfly_value::bson::RawDocumentBuf;
use mayfly_value::json::{JsonLimits, parse_document};
use mayfly_value::text::Language;

const NO_ROWS: &str = "(no rows)";

/// 2023-11-14T22:13:20Z: the time at which all scripts run.
const NOW_MS: i64 = 1_700_000_000_000;

#[test]
fn scripts_give_what_they_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut files = Vec::new();
    find_files(&root, &mut files);
    files.sort();
    assert!(!files.is_empty(), "there are scripts in {}", root.display());
    let update = std::env::var_os("UPDATE").is_some();
    let mut failures = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        if text.lines().filter_map(needed_function).any(|name| Function::find(name).is_none()) {
            continue;
        }
        let outcome = run_script(&text);
        if !outcome.has_output && !text.contains("# [empty]") {
            failures.push(format!("{}: no query gives anything", file.display()));
        }
        if outcome.text == text {
            continue;
        }
        if update {
            fs::write(&file, &outcome.text).unwrap();
        } else {
            failures.push(format!("{}:\n{}", file.display(), difference(&text, &outcome.text)));
        }
    }
    assert!(failures.is_empty(), "{}\n\n(UPDATE=1 rewrites the results)", failures.join("\n\n"));
}

fn needed_function(line: &str) -> Option<&str> {
    line.strip_prefix("# [needs ")?.strip_suffix(']')
}

fn find_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("scripts can be listed") {
        let path = entry.expect("scripts can be listed").path();
        if path.is_dir() {
            find_files(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// The lines that differ, side by side with their numbers.
fn difference(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    let mut report = Vec::new();
    for index in 0..expected.len().max(found.len()) {
        let (expected, found) = (expected.get(index), found.get(index));
        if expected != found {
            let show = |line: Option<&&str>| line.map_or("(nothing)", |line| *line).to_owned();
            report.push(format!(
                "  line {}\n    expected {}\n    found    {}",
                index + 1,
                show(expected),
                show(found)
            ));
        }
    }
    // After the first block of another length everything differs; the start is what helps.
    report.truncate(8);
    report.join("\n")
}

struct Outcome {
    text: String,
    has_output: bool,
}

#[derive(Default)]
struct Documents {
    bodies: Vec<RawDocumentBuf>,
    computed: Vec<ComputedProperty>,
    settings: Settings,
    with_system: bool,
}

fn run_script(text: &str) -> Outcome {
    let mut documents = Documents::default();
    let mut out = String::new();
    let mut has_output = false;
    for (index, block) in text.trim_end().split("\n\n").enumerate() {
        if index > 0 {
            out.push_str("\n\n");
        }
        let lines: Vec<&str> = block.lines().collect();
        let content: Vec<&str> =
            lines.iter().copied().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        if let Some(("docs" | "docs system", bodies)) = content.split_first().map(|(a, b)| (*a, b)) {
            documents.with_system = content.first() == Some(&"docs system");
            let parse = |line: &&str| {
                let parsed = parse_document(line.as_bytes(), JsonLimits::default());
                parsed.unwrap_or_else(|error| panic!("{error}: {line}"))
            };
            documents.bodies = bodies.iter().map(parse).collect();
        }
        if let Some((&"computed", definitions)) = content.split_first() {
            let parse = |line: &&str| {
                let (name, query) = line.split_once(" = ").unwrap_or_else(|| panic!("no definition: {line}"));
                ComputedProperty::parse(name, query).unwrap_or_else(|error| panic!("{error}"))
            };
            documents.computed = definitions.iter().map(parse).collect();
        }
        if let Some((&"languages", languages)) = content.split_first() {
            let parse = |line: &&str| {
                let (path, language) =
                    line.split_once(" = ").unwrap_or_else(|| panic!("no language: {line}"));
                let path = path.trim_start_matches('/').split('/').map(str::to_owned).collect();
                let language = match language {
                    "german" => Language::German,
                    "french" => Language::French,
                    other => panic!("no language: {other}"),
                };
                (path, language)
            };
            documents.settings.languages.by_path = languages.iter().map(parse).collect();
        }
        if !content.contains(&"---") {
            out.push_str(block);
            continue;
        }
        let question: Vec<&str> = content.iter().copied().take_while(|line| *line != "---").collect();
        let answer = match question.split_first() {
            Some((&"exprs", exprs)) => exprs
                .iter()
                .map(|expr| {
                    let rows = run_query(&[&format!("SELECT VALUE {expr}")], &documents);
                    let value = if rows == [NO_ROWS] { "undefined".to_owned() } else { rows.join("; ") };
                    format!("{expr} => {value}")
                })
                .collect(),
            _ => run_query(&question, &documents),
        };
        has_output |= answer.iter().any(|line| line != NO_ROWS && !line.ends_with("=> undefined"));
        let before: Vec<&str> = lines.iter().copied().take_while(|line| *line != "---").collect();
        out.push_str(&before.join("\n"));
        out.push_str("\n---\n");
        out.push_str(&answer.join("\n"));
    }
    out.push('\n');
    Outcome { text: out, has_output }
}

fn run_query(question: &[&str], documents: &Documents) -> Vec<String> {
    let mut params = Vec::new();
    let mut show = "";
    let mut text = Vec::new();
    for line in question {
        match (line.strip_prefix("show "), line.split_once(" = ")) {
            (Some(what), _) => show = what,
            (None, Some((name, value))) if name.starts_with('@') => {
                let value = Value::parse_json(value.as_bytes());
                params.push((name, value.unwrap_or_else(|| panic!("not JSON: {line}"))));
            }
            _ => text.push(*line),
        }
    }
    let query = match Query::parse(&text.join("\n")) {
        Ok(query) => query,
        Err(error) => return vec![error.to_json()],
    };
    if show == "canonical" {
        return query.to_string().lines().map(str::to_owned).collect();
    }
    let plan = match query.bind_with(&params, &documents.computed, &documents.settings) {
        Ok(plan) => plan,
        Err(error) => return vec![error.to_json()],
    };
    match show {
        "hints" => {
            let mut lines: Vec<String> = plan.hints().all.iter().map(|hint| format!("{hint:?}")).collect();
            lines.push(format!("ids: {:?}", plan.hints().ids));
            return lines;
        }
        "plan" => {
            let facts = format!("streaming: {}, {:?}", plan.is_streaming(), plan.limit());
            return vec![facts, format!("{:?}", plan.info())];
        }
        "steps" => {
            let first = query.explain(&plan);
            let steps = std::iter::successors(Some(&first), |step| step.input.as_deref());
            return steps
                .map(|step| format!("{} {}", step.operator, step.detail).trim_end().to_owned())
                .collect();
        }
        "distribution" => {
            return match query.distribute(&plan, &documents.settings) {
                Ok(distribution) => distribution_text(&distribution),
                Err(error) => vec![error.to_json()],
            };
        }
        _ => {}
    }
    let rows = run_plan(&plan, documents, false);
    if plan.is_streaming() {
        assert_eq!(rows, run_plan(&plan, documents, true), "a resumed run gives the same rows");
    }
    if rows.is_empty() { vec![NO_ROWS.to_owned()] } else { rows }
}

/// What clients are told, without what is not there.
fn distribution_text(distribution: &Distribution) -> Vec<String> {
    let features: Vec<_> = distribution.features().into_iter().map(|feature| feature.name()).collect();
    let features = if features.is_empty() { "nothing".to_owned() } else { features.join(", ") };
    let mut lines = vec![format!("needs: {features}")];
    match distribution {
        Distribution::Merge(info) => merge_text(info, &mut lines),
        Distribution::Fuse(info) => {
            lines.push(format!("skip {:?}, take {:?}, weights {:?}", info.skip, info.take, info.weights));
            lines.push(format!("statistics first: {}", info.requires_statistics));
            lines.extend(info.statistics.lines().map(|line| format!("  {line}")));
            for component in &info.components {
                lines.push("component".to_owned());
                merge_text(component, &mut lines);
            }
        }
    }
    lines
}

fn merge_text(info: &MergeInfo, lines: &mut Vec<String>) {
    let mut facts = Vec::new();
    if info.distinct != DistinctType::None {
        facts.push(format!("distinct {:?}", info.distinct));
    }
    for (name, count) in [("top", info.top), ("offset", info.offset), ("limit", info.limit)] {
        facts.extend(count.map(|count| format!("{name} {count}")));
    }
    for (direction, key) in info.order_by.iter().zip(&info.order_by_expressions) {
        facts.push(format!("{direction:?} {key}"));
    }
    facts.extend(info.group_by_expressions.iter().map(|key| format!("group {key}")));
    facts.extend(info.aggregates.iter().map(|aggregate| format!("aggregate {aggregate:?}")));
    facts
        .extend(info.group_by_aliases.iter().map(|(name, aggregate)| format!("member {name} {aggregate:?}")));
    facts.extend(info.distinct_count.iter().map(|alias| format!("count of distinct rows as {alias:?}")));
    let flags = [("value", info.has_select_value), ("non-streaming", info.non_streaming)];
    facts.extend(flags.iter().filter(|(_, is_so)| *is_so).map(|(flag, _)| (*flag).to_owned()));
    if !facts.is_empty() {
        lines.push(facts.join("; "));
    }
    lines.extend(info.rewritten.lines().map(|line| format!("  {line}")));
}

/// Runs over all documents; with `resumes`, in a new run for each of them.
fn run_plan(plan: &mayfly_sql::Plan, documents: &Documents, resumes: bool) -> Vec<String> {
    let mut rows = Vec::new();
    let mut run = match plan.run(Context::with_settings(NOW_MS, 1, &documents.settings)) {
        Ok(run) => run,
        Err(error) => return vec![error.to_json()],
    };
    for (index, body) in documents.bodies.iter().enumerate() {
        if run.is_done() {
            break;
        }
        let rid = format!("rid{index}");
        let system: Vec<(&str, Value<'_>)> = match documents.with_system {
            true => vec![
                ("_rid", Value::from(rid.as_str())),
                ("_etag", Value::from("\"0\"")),
                ("_ts", Value::Int(1_700_000_000 + index as i64)),
            ],
            false => Vec::new(),
        };
        match run.push(&Document { body, system: &system }) {
            Ok(found) => rows.extend(found.iter().map(Value::to_json)),
            Err(error) => return vec![error.to_json()],
        }
        if resumes {
            let progress = run.progress();
            run = plan
                .resume(Context::with_settings(NOW_MS, 1, &documents.settings), progress)
                .expect("it ran before");
        }
    }
    match run.finish() {
        Ok(found) => rows.extend(found.iter().map(Value::to_json)),
        Err(error) => return vec![error.to_json()],
    }
    rows
}
