//! Checks whatever KNEM driver is behind /dev/knem: a line for each behaviour
//! that lmt depends on, and for each case of the conformance suite.
#![deny(unsafe_code)]

mod behaviours;
mod client;
mod peer;
mod runner;
mod suite;
mod sys;
mod verdict;

use std::process::ExitCode;

use clap::Parser;
use lmt_knem::Knem;

/// Something does not hold.
const FAILED: u8 = 1;
/// There is no driver to check. 2 is a wrong command line.
const NO_DEVICE: u8 = 3;

/// Checks the KNEM driver behind /dev/knem, and prints a line for each check:
/// ok, FAIL with what was expected and found, or skip with the reason.
///
/// Ends with 0 if all holds, 1 if something does not, and 3 if there is no
/// driver to check.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Only the checks whose name contains one of these.
    names: Vec<String>,
    /// Leaves the conformance suite out.
    #[arg(long)]
    no_suite: bool,
    /// Lists the checks and ends.
    #[arg(long)]
    list: bool,
    /// How long an asynchronous copy may take, in milliseconds.
    #[arg(long, default_value_t = 10_000)]
    wait_ms: u64,
}

fn main() -> ExitCode {
    lmt::launch::hook();
    // The process of one check, or a rank of a group in one.
    let arguments: Vec<String> = std::env::args().skip(1).take(2).collect();
    if let [name, exactly] = &arguments[..]
        && exactly == runner::EXACTLY
    {
        runner::run_here(name);
        return ExitCode::SUCCESS;
    }
    check(&Arguments::parse())
}

fn check(arguments: &Arguments) -> ExitCode {
    let wanted = |name: &str| {
        arguments.names.is_empty() || arguments.names.iter().any(|part| name.contains(part.as_str()))
    };
    let mut names = runner::names(!arguments.no_suite);
    names.retain(|(name, _)| wanted(name));
    if names.is_empty() {
        eprintln!("knem-check: no check has such a name; --list lists them");
        return ExitCode::from(2);
    }
    if arguments.list {
        for (name, what) in names {
            println!("{name:32} {what}");
        }
        return ExitCode::SUCCESS;
    }
    if let Err(error) = Knem::ioctl() {
        eprintln!("knem-check: {error}");
        return ExitCode::from(NO_DEVICE);
    }
    let counts = runner::run_all(&names, arguments.wait_ms);
    println!("{counts}");
    if counts.failed > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}
