//! A job's progress as the steps of a transfer.

use lmt_core::mechanism::Step;

use crate::engine::{CopyFailure, Progress, State};

/// What a step has to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StepReport {
    /// This.
    Step(Step),
    /// The transfer cannot go on; its bytes have all been told.
    Failed(CopyFailure),
    /// The engine has broken its word.
    DoneTooEarly,
}

/// A transfer is stepped that was never started.
pub(crate) const NOT_STARTED: &str =
    "the transfer is stepped before it is started; call Lmt::start first, once both cookies are there";
/// What [`StepReport::DoneTooEarly`] means.
pub(crate) const DONE_TOO_EARLY: &str =
    "the engine said that all was copied before all was; report it, and leave this mechanism out";

/// What to tell of `progress` after `told_bytes`, which go on, have been told of
/// `total_bytes`. At most `max_bytes` are told at once: what the engine has done
/// beyond them, the next steps tell.
pub(crate) fn tell(told_bytes: &mut u64, total_bytes: u64, progress: Progress, max_bytes: u64) -> StepReport {
    let copied_bytes = progress.bytes.min(total_bytes);
    let bytes = copied_bytes.saturating_sub(*told_bytes).min(max_bytes);
    *told_bytes += bytes;
    let step = |done| StepReport::Step(Step { bytes, done });
    match progress.state {
        State::Done if *told_bytes < copied_bytes => step(false),
        State::Done if *told_bytes == total_bytes => step(true),
        State::Done => StepReport::DoneTooEarly,
        // A death is final; anything else comes again in the next call, after
        // the bytes of this one have been counted.
        State::Failed(failure) if bytes == 0 || failure == CopyFailure::PeerDead => {
            StepReport::Failed(failure)
        }
        State::Running | State::Failed(_) => step(false),
    }
}
