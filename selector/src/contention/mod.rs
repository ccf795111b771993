//! What single copy costs, and how much those who copy out of one process hold
//! each other up: the cost model of contention-aware-cma, section II.
//!
//! A copy of `n` bytes of which `c` run at once on the memory of one process takes
//!
//! ```text
//! T = alpha + n beta + l gamma(c) ceil(n / s)
//! ```
//!
//! with a start `alpha`, the time of a byte `beta`, the time `l` to lock and pin
//! a page of `s` bytes where nobody else does, and how many times as long that
//! takes with `c` at once, `gamma(c)`. So [`gamma(1)`](Gamma::of) is 1.
//!
//! ```
//! use lmt_selector::contention::KNL;
//!
//! let alone = KNL.parameters.copy_us(65536, 1);
//! let of_64 = KNL.parameters.copy_us(65536, 64);
//! assert!(of_64 > 80.0 * alone);
//! ```

mod gamma;
mod machines;
mod parameters;
mod text;

pub use gamma::{Gamma, Quadratic};
pub use machines::{BROADWELL, KNL, POWER8, PUBLISHED, Published};
pub use parameters::{MAX_FACTOR, MAX_TIME, MessageCost, Parameters, Wrong};
pub use text::write_contention;
