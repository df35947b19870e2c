//! Project tasks. `cargo xtask` without arguments lists them.
//!
//! One file per task, and six that they share: `shell` runs programs, `server` runs a Mayfly, `postgres` a PostgreSQL, `servers` those that suites
//! of clients need, `client` speaks to one, `machine` is the door to the clock. A task prints the commands it runs, so that any step can be repeated by hand.

mod bench;
mod client;
mod clients;
mod conformance;
mod crash;
mod differences;
mod dist;
mod docs;
mod machine;
mod mongo;
mod mongo_tools;
mod portal;
mod postgres;
mod scale;
mod sdk;
mod server;
mod servers;
mod shell;
mod test;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [GROUP]        all tests, or one group of them
cargo xtask conformance [SUITE] the tests that SDKs ship: all suites, or these
cargo xtask differences [ARGS]  random commands to us and to a real MongoDB (--mongod PATH, --seed N, --rounds N)
cargo xtask tidy                the rules of the house that no compiler keeps
cargo xtask docs                write what is generated in docs/
cargo xtask portal              build the web portal into portal/assets
cargo xtask bench NAME [ARGS]   a benchmark, built for release
cargo xtask dist                the binary to give to people, laid out by what the benches ask

Groups: unit (formatting, lints, tidy, all Rust tests), scripts (golden scripts only), crash (kill -9), scale (several
nodes on PostgreSQL), sdk (Python and JavaScript SDKs), mongo (MongoDB's drivers for Python and JavaScript), mongo-tools
(mongodump, mongorestore and their kin), clients (Java and Go SDKs, MongoDB's drivers for Java, Go and Rust), conformance (a
quick part of what the Python SDK ships), portal (the web portal, in a browser).
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match &words[..] {
        ["test"] => test::all(),
        ["test", group] => test::group(group),
        ["conformance", suites @ ..] => conformance::run(suites),
        ["differences", arguments @ ..] => differences::run(arguments),
        ["tidy"] => tidy::run(),
        ["docs"] => docs::write(),
        ["portal"] => portal::build(),
        ["dist"] => dist::build(),
        ["bench", name, arguments @ ..] => bench::run(name, arguments),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nFAILED: {failure}");
            ExitCode::FAILURE
        }
    }
}
