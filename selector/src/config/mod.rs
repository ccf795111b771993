//! The configuration: files, environment and defaults, read into one
//! [`Configuration`](crate::configuration::Configuration).
//!
//! One TOML file is one layer. Whatever is wrong with it is an error that says
//! where, what, and what would be right; all that is wrong is told, not only the
//! first. What can be set stands in one table ([`all_keys`]), from which the
//! documentation is written and against which files are checked.

mod checks;
mod compare;
mod document;
mod environment;
mod fingerprint;
mod known;
mod lengths;
mod load;
mod parsed;
mod problem;
mod read;
mod read_collective;
mod read_contention;
mod read_rule;
mod reader;
mod sources;
mod table;
#[cfg(test)]
mod test_support;
mod value;
mod write;

pub use document::document;
pub use environment::{Misspelling, PREFIX, known_variables, slips};
pub use fingerprint::{fingerprint_of_this_machine, machine_fingerprint};
pub use known::{Known, MechanismFacts};
pub use load::{check_file, load};
pub use parsed::{MechanismEntry, Parsed, Provenance};
pub use problem::{ConfigFailure, Mark, Problem};
pub use read::parse_file;
pub use sources::Sources;
pub use table::{
    Entry, Section, all_keys, contention_keys, dma_min_key, max_readers_key, single_copy_key,
    single_copy_value,
};
pub use value::{shown, value_of};
pub(crate) use write::quoted;
pub use write::{write_collective, write_figure, write_range, write_rule};
