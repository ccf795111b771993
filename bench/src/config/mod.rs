//! `lmt config`: what is configured, what can be, and whether files are right.

mod check;
mod effective;
mod json;

use clap::{Args, ValueEnum};
use lmt_selector::config::Sources;

use crate::console::print;
use crate::error::BenchError;

/// `lmt config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Print the table of all keys as Markdown.
    #[arg(long, conflicts_with_all = ["check", "format"])]
    pub document: bool,
    /// Check these files instead, and show what is wrong with them: status 1 if anything is.
    #[arg(long, num_args = 1.., value_name = "FILE", conflicts_with = "format")]
    pub check: Vec<std::path::PathBuf>,
    /// How the configuration is written.
    #[arg(long, value_enum, default_value_t = ConfigFormat::Table)]
    pub format: ConfigFormat,
}

/// How the configuration is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConfigFormat {
    /// Lines for people.
    Table,
    /// One JSON object.
    Json,
}

/// Where this process's configuration is read from, with the names of collective
/// operations checked.
pub(crate) fn sources() -> Sources {
    with_collectives(lmt::configuration::sources())
}

/// The same with the names of collective operations checked.
pub(crate) fn with_collectives(sources: Sources) -> Sources {
    let known = sources.known.with_collectives(lmt_collectives::check_rule);
    Sources { known, ..sources }
}

/// Carries out `lmt config`.
///
/// # Errors
/// Files are wrong, or nothing can be written.
pub fn run(args: &ConfigArgs) -> Result<(), BenchError> {
    let sources = sources();
    if args.document {
        return print(&lmt_selector::config::document(&sources.known));
    }
    if !args.check.is_empty() {
        return check::run(&args.check, &sources.known);
    }
    let loaded = lmt_selector::config::load(&sources).map_err(|failure| {
        check::show(&failure.render());
        BenchError::Failure(match failure.problems().len() {
            1 => "the configuration has a problem; correct it as shown above".to_owned(),
            count => format!("the configuration has {count} problems; correct them as shown above"),
        })
    })?;
    let known = effective::Effective::new(&loaded, &sources.known);
    match args.format {
        ConfigFormat::Table => print(&known.to_string()),
        ConfigFormat::Json => print(&format!("{:#}\n", json::of(&known))),
    }
}
