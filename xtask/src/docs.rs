//! `cargo xtask docs`: what the code knows better than a writer. Each table stands between two markers; the text around
//! it is written by hand.

use std::path::PathBuf;

use mayfly_cosmos::routes::{ROUTES, When};

use crate::shell::{Failure, Result, failure, root};

const BEGIN: &str = "<!-- routes: written by `cargo xtask docs` -->";
const END: &str = "<!-- /routes -->";

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
    let text = std::fs::read_to_string(path())?;
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| Failure(format!("{BEGIN} … {END} is missing")))?;
    Ok(format!("{before}{BEGIN}\n{}{END}{after}", routes()))
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
