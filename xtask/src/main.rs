//! Project tasks. `cargo xtask` without arguments lists them.
//!
//! One file per task, and eight that they share: `needs` says which programs the machine must have and
//! installs them, `shell` runs programs, `signal` ends them, `server` runs a Mayfly, `postgres` a PostgreSQL,
//! `servers` those that suites of clients need, `client` speaks to one, `machine` is the door to the clock. A
//! task prints the commands it runs, so that any step can be repeated by hand.

mod bare;
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
mod needs;
mod portal;
mod postgres;
mod scale;
mod sdk;
mod server;
mod servers;
mod shell;
mod signal;
mod test;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [GROUP]        all tests, or one group of them; installs what they need
cargo xtask test --bare [GROUP] the same in a bare Debian, made below target/bare: needs root
cargo xtask needs [GROUP]       installs what the tests need, and runs none (--bare: there)
cargo xtask conformance [SUITE] the tests that SDKs ship: all suites, or these
cargo xtask differences [ARGS]  random commands to us and to a real MongoDB (--mongod PATH, --seed N, --rounds N)
cargo xtask tidy                the rules of the house that no compiler keeps
cargo xtask docs                write what is generated in docs/
cargo xtask portal              build the web portal into portal/assets
cargo xtask bench NAME [ARGS]   a benchmark, built for release
cargo xtask dist                the binary to give to people, laid out by what the benches ask

Groups: unit (formatting, lints, tidy, all Rust tests), scripts (golden scripts only), crash (kill -9), scale (several
nodes on PostgreSQL), sdk (Python and JavaScript SDKs), mongo (MongoDB's drivers for Python and JavaScript), mongo-tools
(mongodump, mongorestore and their kin), clients (Java and Go SDKs, MongoDB's drivers for Java, Go and Rust, Spring Data),
conformance (a quick part of what the Python SDK ships), portal (the web portal, in a browser).
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match &words[..] {
        ["test" | "needs", .., "--bare"] | ["test" | "needs", "--bare", _] => bare::run_in(&words),
        ["needs"] => test::needs(None),
        ["needs", group] => test::needs(Some(group)),
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
