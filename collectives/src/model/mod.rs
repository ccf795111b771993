//! What collective operations take by each algorithm, as contention-aware-cma
//! predicts it (sections II, IV and V), and which one is taken for that.
//!
//! Pure: figures in, microseconds out. `bytes` is what [`Call::bytes`] or one of
//! its blocks has: the message of a broadcast, one rank's block of scatter,
//! gather, allgather, alltoall and reduce_scatter, the vector of other
//! reductions; nothing of a barrier.
//!
//! ```
//! use lmt_collectives::model::{Counting, Model};
//! use lmt_collectives::{Algorithm, Kind};
//! use lmt_selector::contention::KNL;
//!
//! let model = Model::new(&KNL.parameters, Counting::Ranks);
//! let candidates: Vec<Algorithm> = Algorithm::of(Kind::Scatter).collect();
//! let choice = model.choose(Kind::Scatter, 64, 1 << 20, &candidates).expect("a way");
//! assert_eq!(choice.algorithm, Algorithm::ThrottledRead(8));
//! ```
//!
//! [`Call::bytes`]: crate::call::Call::bytes
#![forbid(unsafe_code)]

mod choose;
mod formulas;
mod hierarchy;
mod levels;
mod messages;
mod reductions;
mod rooted;
mod symmetric;

pub use choose::Choice;
pub use formulas::{Counting, Model};
pub use levels::Hierarchy;
