//! The `mayfly` binary: arguments in, exit code out.
//!
//! Exit codes: 0 well, 1 it failed while running or `check` found a fault, 2 it was asked for something that
//! it cannot do.

use clap::{Args, Parser, Subcommand};
use mayfly_server::check::{Verdict, check};
use mayfly_server::config::{self, Config, ConfigError, DATA_DIR_DEFAULT};
use mayfly_server::node::Node;
use mayfly_server::run::Server;
use mayfly_server::settings::Settings;
use mayfly_server::signals::Signals;
use mayfly_server::slots_command::{self, SlotsCommand};
use mayfly_server::ttl_command::{self, TtlCommand};
use mayfly_server::{emulator_env, log};
use std::path::PathBuf;
use std::process::ExitCode;

// A request makes dozens of small allocations and frees them on the same thread, which the system's allocator is slow at: it took
// a fifth of a point read. This one takes the place of the C library's (its feature `override`), which the standard library
// calls: as a `global_allocator` it would be asked for an alignment each time, and that way is longer.
use mimalloc as _;

/// Where it cannot take that place.
#[cfg(windows)]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A document database that speaks the Azure Cosmos DB for NoSQL protocol.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server; also what happens without a command
    Serve(Box<Serve>),
    /// Walk a data directory that no server is using, and report whatever does not agree
    Check {
        /// Directory to check
        #[arg(long, env = "MAYFLY_DATA_DIR", default_value = DATA_DIR_DEFAULT, value_name = "DIR")]
        data_dir: PathBuf,
    },
    /// Preview, forecast or set the time to live of a container on a running server
    #[command(subcommand)]
    Ttl(TtlCommand),
    /// Show which database server holds which slots, take in another, and move slots between them
    #[command(subcommand)]
    Slots(SlotsCommand),
}

#[derive(Args)]
struct Serve {
    /// TOML file with settings; keys are the names of the flags
    #[arg(long, env = "MAYFLY_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the settings in effect and exit
    #[arg(long)]
    print_config: bool,

    #[command(flatten)]
    settings: Settings,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Check { data_dir }) => run_check(&data_dir),
        Some(Command::Ttl(command)) => run_command(ttl_command::run(command)),
        Some(Command::Slots(command)) => run_command(slots_command::run(command)),
        Some(Command::Serve(serve)) => run_serve(*serve),
        None => run_serve(cli.serve),
    }
}

fn run_check(data_dir: &std::path::Path) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &error),
    };
    let verdict = runtime.block_on(check(data_dir));
    match &verdict {
        Verdict::Sound(report) => println!(
            "{}: sound. {} containers, {} records, {} entries",
            data_dir.display(),
            report.containers,
            report.records,
            report.entries
        ),
        Verdict::Faulty(faults) => faults.iter().for_each(|fault| println!("{fault}")),
        Verdict::NotChecked(reason) => eprintln!("mayfly: {reason}"),
    }
    ExitCode::from(verdict.exit_code())
}

/// Runs a command that says something at its end.
fn run_command<E: std::error::Error>(command: impl Future<Output = Result<String, E>>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &error),
    };
    match runtime.block_on(command) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => fail(1, &error),
    }
}

fn run_serve(serve: Serve) -> ExitCode {
    let print_config = serve.print_config;
    let (config, notes) = match load(serve) {
        Ok(loaded) => loaded,
        Err(error) => return fail(2, &error),
    };
    if print_config {
        print!("{}", config.to_toml());
        return ExitCode::SUCCESS;
    }
    if let Err(error) = log::start(&config) {
        return fail(2, &error);
    }
    for note in notes {
        tracing::info!("{note}");
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &error),
    };
    let ended = runtime.block_on(async {
        let signals = Signals::of_the_system()?;
        let server = Server::bind(config).await?;
        server.run::<Node>(signals, &mut std::io::stdout()).await?;
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &*error),
    }
}

/// Lays the layers over each other; also gives the lines to log about them.
fn load(serve: Serve) -> Result<(Config, Vec<String>), ConfigError> {
    let file = serve.config.as_deref().map(config::read_file).transpose()?.unwrap_or_default();
    // Variables that are no text cannot be ours.
    let vars = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let emulator = emulator_env::read(vars, |path| std::fs::read_to_string(path))?;
    let settings = serve.settings.over(emulator.settings.over(file));
    Ok((Config::resolve(settings)?, emulator.notes))
}

fn fail(code: u8, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("mayfly: {error}");
    ExitCode::from(code)
}
