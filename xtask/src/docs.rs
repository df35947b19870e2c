//! `cargo xtask docs`: what the code knows better than a writer. Each table stands between two markers; the text around
//! it is written by hand.

use std::path::PathBuf;

use mayfly_cosmos::routes::{ROUTES, When};
use mayfly_mongo::commands::COMMANDS;
use mayfly_sql::functions::FUNCTIONS;

use crate::shell::{Failure, Result, failure, root};

/// What writes a table.
type Writer = fn() -> String;

/// The tables, by the name in their markers.
const TABLES: [(&str, Writer); 3] = [("routes", routes), ("functions", functions), ("commands", commands)];

fn path() -> PathBuf {
    root().join("docs/compatibility.md")
}

/// Writes the generated parts.
pub fn write() -> Result<()> {
    std::fs::write(path(), fresh()?)?;
    println!("docs/compatibility.md is fresh");
    Ok(())
}

/// Fails if writing would change anything.
pub fn check() -> Result<()> {
    match std::fs::read_to_string(path())? == fresh()? {
        true => Ok(()),
        false => failure("docs/compatibility.md is stale: run `cargo xtask docs` and read the difference"),
    }
}

/// The file as it should be.
fn fresh() -> Result<String> {
    let mut text = std::fs::read_to_string(path())?;
    for (name, table) in TABLES {
        let begin = format!("<!-- {name}: written by `cargo xtask docs` -->");
        let end = format!("<!-- /{name} -->");
        let parts =
            text.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
        let (before, after) = parts.ok_or_else(|| Failure(format!("{begin} … {end} is missing")))?;
        text = format!("{before}{begin}\n{}{end}{after}", table());
    }
    Ok(text)
}

/// One line per route of the protocol.
fn routes() -> String {
    let mut table = String::from("| operation | verb | path | |\n|---|---|---|---|\n");
    for route in ROUTES {
        let status = if route.handler.is_some() { "yes" } else { "no: 501" };
        let when = match route.when {
            When::Always => "",
            When::Plan => ", as a request for a query plan",
            When::Batch => ", as a batch",
            When::Query => ", as a query",
            When::Upsert => ", as an upsert",
            When::ChangeFeed => ", as a change feed",
        };
        // A bar would end the cell.
        let path = route.path.replace('|', "\\|");
        table += &format!("| {} | {} | `{path}`{when} | {status} |\n", route.name, route.verb);
    }
    let done = ROUTES.iter().filter(|route| route.handler.is_some()).count();
    table
        + &format!("\n{done} of {} operations are answered; the others are refused with 501.\n", ROUTES.len())
}

/// One line per function of the query language.
fn functions() -> String {
    let mut table = String::from("| function | what it gives |\n|---|---|\n");
    let all = FUNCTIONS.iter().copied().flatten();
    for function in all.clone() {
        table += &format!("| `{}` | {} |\n", function.signature, function.help.replace('|', "\\|"));
    }
    table + &format!("\n{} functions.\n", all.count())
}

/// One line per command of the MongoDB protocol.
fn commands() -> String {
    let mut table =
        String::from("| command | what it does | in transactions | stable API |\n|---|---|---|---|\n");
    let yes = |flag: bool| if flag { "yes" } else { "" };
    let mut all: Vec<_> = COMMANDS.iter().collect();
    all.sort_by_key(|info| info.name.to_lowercase());
    for info in &all {
        let (help, steps, stable) = (info.help, yes(info.in_transaction), yes(info.stable));
        table += &format!("| `{}` | {help} | {steps} | {stable} |\n", info.name);
    }
    table + &format!("\n{} commands; others are refused with error 59.\n", all.len())
}
