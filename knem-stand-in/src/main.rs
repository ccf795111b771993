//! Runs a command under the stand-in for the KNEM driver.
#![deny(unsafe_code)]

use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use knem_stand_in::{Mutant, Options, StandIn};

/// Runs a command for which /dev/knem is there.
#[derive(Parser)]
#[command(after_help = mutants())]
struct Arguments {
    /// A fault that the driver has, by name.
    #[arg(long)]
    mutant: Option<Mutant>,
    /// The driver has a DMA engine.
    #[arg(long)]
    dma: bool,
    /// Its engine, and what it has not copied yet when it reports success where
    /// a copy over several segments ends in a small piece.
    #[arg(long)]
    loses_small_tails: bool,
    /// The longest piece that is small, in bytes; the parameter dmamin.
    #[arg(long, default_value_t = 1024)]
    dmamin: u32,
    /// The parameter dmamin cannot be read.
    #[arg(long, conflicts_with = "dmamin")]
    no_dmamin: bool,
    /// Flags of copies that the driver ignores, as a number.
    #[arg(long, default_value_t = 0)]
    ignored_flags: u32,
    /// Flags that every copy has, as a number.
    #[arg(long, default_value_t = 0)]
    forced_flags: u32,
    /// The version that the driver reports.
    #[arg(long)]
    abi: Option<u32>,
    /// Opening fails with this errno (2: no module; 13: no permission).
    #[arg(long)]
    open_error: Option<i32>,
    /// How long asynchronous copies are pending, in microseconds.
    #[arg(long)]
    delay_us: Option<u64>,
    /// The command and its arguments.
    #[arg(required = true, last = true)]
    command: Vec<std::ffi::OsString>,
}

fn mutants() -> String {
    let mut text = "Mutants:\n".to_owned();
    for mutant in Mutant::ALL {
        let _ = writeln!(text, "  {:28} {}", mutant.name(), mutant.what());
    }
    text
}

fn options(arguments: &Arguments) -> Options {
    let mut options = Options::default().dma(arguments.dma);
    if arguments.loses_small_tails {
        options = options.loses_small_tails();
    }
    options.dmamin = (!arguments.no_dmamin).then_some(arguments.dmamin);
    options.mutant = arguments.mutant;
    options.ignored_flags = arguments.ignored_flags;
    options.forced_flags = arguments.forced_flags;
    options.open_error = arguments.open_error.map(nix::errno::Errno::from_raw);
    options.abi = arguments.abi.unwrap_or(options.abi);
    options.delay = arguments.delay_us.map_or(options.delay, Duration::from_micros);
    options
}

fn run(arguments: &Arguments) -> Result<u8, String> {
    let stand_in = StandIn::start(options(arguments)).map_err(|error| error.to_string())?;
    // In a thread of its own, so that this process can end without asking.
    std::thread::scope(|scope| {
        let under = scope.spawn(move || {
            stand_in.enter().map_err(|error| error.to_string())?;
            let (program, rest) = arguments.command.split_first().ok_or("there is no command")?;
            let status = Command::new(program).args(rest).status();
            let status = status.map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
            Ok(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1) as u8)
        });
        under.join().unwrap_or_else(|_| Err("the thread that runs the command has panicked".to_owned()))
    })
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(sentence) => {
            eprintln!("knem-stand-in: {sentence}");
            ExitCode::from(125)
        }
    }
}
