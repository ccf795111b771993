//! The `lmt` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use lmt_bench::apps;
use lmt_bench::cli::{self, Command, Parsed};
use lmt_bench::collectives;
use lmt_bench::commands;
use lmt_bench::compare;
use lmt_bench::config;
use lmt_bench::console;
use lmt_bench::contention;
use lmt_bench::doctor;
use lmt_bench::engine::endpoint;
use lmt_bench::error::BenchError;
use lmt_bench::explain;
use lmt_bench::group;
use lmt_bench::model;
use lmt_bench::mpirun;
use lmt_bench::mpirun_env;
use lmt_bench::pages;
use lmt_bench::peers;
use lmt_bench::programs;
use lmt_bench::tune;

fn main() -> ExitCode {
    // `lmt run` starts this program again, as its ranks' supervisor.
    lmt::launch::hook();
    // Silent unless RUST_LOG asks for it; ranks inherit that.
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let parsed = cli::parse(std::env::args_os());
    if let Ok(Parsed::Command(Command::Run(args))) = &parsed {
        return commands::start(args);
    }
    let result = parsed.and_then(|parsed| match parsed {
        Parsed::Text(text) => console::print(&text),
        Parsed::Command(Command::Bench(args)) => commands::bench(&args),
        Parsed::Command(Command::Compare(args)) => compare::compare(&args),
        Parsed::Command(Command::Doctor(args)) => doctor::run(&args),
        Parsed::Command(Command::Explain(args)) => explain::run(&args),
        Parsed::Command(Command::Config(args)) => config::run(&args),
        Parsed::Command(Command::Tune(args)) => tune::tune(&args),
        Parsed::Command(Command::Contention(args)) => contention::run(&args),
        Parsed::Command(Command::Model(args)) => model::run(&args),
        Parsed::Command(Command::Mpirun(args)) => mpirun::run(&args),
        Parsed::Command(Command::MpirunEnv(args)) => mpirun_env::run(&args),
        Parsed::Command(Command::Pages(args)) => pages::run(&args, cli::command()),
        Parsed::Command(Command::App(args)) => apps::run(&args),
        Parsed::Command(Command::Apps(args)) => programs::run(&args),
        Parsed::Command(Command::Run(_)) => Ok(()),
        Parsed::Command(Command::Probe { group }) => endpoint::probe_main(&group),
        Parsed::Command(Command::Meet) => endpoint::meet_main(),
        Parsed::Command(Command::ContentionRank) => contention::rank::rank_main(),
        Parsed::Command(Command::Rank) => group::rank_main(),
        Parsed::Command(Command::AppRank) => apps::rank::rank_main(),
        Parsed::Command(Command::PeersRank) => peers::rank::rank_main(),
        Parsed::Command(Command::CollectivesRank) => collectives::rank::rank_main(),
        Parsed::Command(Command::TuneRank) => tune::rank::rank_main(),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(BenchError::OutputClosed) => ExitCode::SUCCESS,
        // A rank's failure has reached the command as an event, which says it;
        // the doctor has said all on its output.
        Err(BenchError::RankFailed | BenchError::MechanismsMissing) => ExitCode::FAILURE,
        Err(error) => {
            console::complain(&error.to_string());
            ExitCode::from(error.exit_status())
        }
    }
}
