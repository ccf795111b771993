//! From measured times to rules.
//!
//! [`Course`] holds what was measured under one load: for each length a
//! [`Class`] of messages with the times of every way. [`choose`] finds the way
//! of each class, and [`rules`] draws the classes together into rules. Lengths
//! are powers of two; the class of `n` bytes is the messages longer than `n/2`
//! and up to `n`, so that the bound of two classes is the length at which the
//! shorter was measured. What makes ways slower in steps (cells, pages, chunks)
//! steps just behind powers of two, and most messages have such a length: there
//! the choice is the one that was measured.
//!
//! ```
//! use lmt_selector::calibration::{self, Course, Load};
//! use lmt_selector::topology::Place;
//!
//! let load = Load { place: Place::SharedL3, pairs: 1, off_cache: false };
//! let mut course = Course::new(load);
//! for (bytes, read_ns, cells_ns) in [(1, 900.0, 300.0), (2, 900.0, 310.0), (4, 900.0, 1200.0)] {
//!     course.add(bytes, "read:get", 0, &[read_ns; 5]);
//!     course.add(bytes, "eager", 0, &[cells_ns; 5]);
//! }
//! let order = ["eager".to_owned(), "read:get".to_owned()];
//! let chosen = calibration::choose(&course, &order, None);
//! assert_eq!(chosen.iter().map(|c| c.way.as_str()).collect::<Vec<_>>(), ["eager", "eager", "read:get"]);
//! ```

mod choice;
mod file;
mod ranges;
mod samples;
#[cfg(test)]
mod testing;

pub use choice::{Chosen, choose};
pub use file::{Calibration, Provenance};
pub use ranges::{CourseRules, rules, taken};
pub use samples::{Class, Course, Estimate, Load, Samples};

/// The way of messages that travel in inbox cells.
pub const EAGER: &str = "eager";

/// The longest message that a rule may let travel in cells.
pub use lmt_core::config::EAGER_MAX_BYTES;

/// From this length on a rule has no upper bound: nothing longer is measured.
pub const LARGEST_BYTES: u64 = 16 << 20;
