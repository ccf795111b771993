//! Wait objects (fi_poll(3)): which there are, and what is asked of them.
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::abi::Errno;
use crate::abi::eq::{WAIT_FD, WAIT_NONE, WAIT_UNSPEC, WAIT_YIELD};
use crate::abi::fid::{CONTROL_GETWAIT, CONTROL_GETWAITOBJ};
use crate::border;
use crate::log::{self, Subsystem};
use crate::refuse::because;
use crate::state::watch::WaitSet;

/// What a queue's or a counter's waiter blocks in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitObject {
    /// Nobody waits.
    None,
    /// A descriptor, which the user may have.
    Descriptor,
    /// Nothing that the user may have.
    Yield,
}

impl WaitObject {
    /// The one that is meant by a number of libfabric; of one that is unspecified it
    /// is the descriptor.
    ///
    /// # Errors
    /// [`Errno::NOSYS`]: it is none of those that there are.
    pub fn named(subsystem: Subsystem, number: c_int) -> Result<Self, Errno> {
        match number {
            WAIT_NONE => Ok(Self::None),
            WAIT_UNSPEC | WAIT_FD => Ok(Self::Descriptor),
            WAIT_YIELD => Ok(Self::Yield),
            other => {
                log::warn(
                    subsystem,
                    format_args!(
                        "wait object {other} is asked for; there are FI_WAIT_NONE, UNSPEC, FD and YIELD"
                    ),
                );
                Err(Errno::NOSYS)
            }
        }
    }

    /// Whether calls that block may be made.
    pub fn waits(self) -> bool {
        self != Self::None
    }

    /// Whether the user may block in a descriptor.
    pub fn has_descriptor(self) -> bool {
        self == Self::Descriptor
    }

    const fn number(self) -> c_int {
        match self {
            Self::None => WAIT_NONE,
            Self::Descriptor => WAIT_FD,
            Self::Yield => WAIT_YIELD,
        }
    }
}

/// What is to be said where a descriptor is needed and not there.
pub(super) fn no_descriptor(subsystem: Subsystem) -> Errno {
    log::warn(subsystem, format_args!("there is no descriptor to wait in; open it with FI_WAIT_FD"));
    Errno::INVAL
}

/// `fi_control` of what can be waited for.
///
/// # Safety
/// `argument` is null or room for what the command gives.
pub(super) unsafe fn control(
    command: c_int,
    argument: *mut c_void,
    object: WaitObject,
    set: impl FnOnce() -> Result<Arc<WaitSet>, Errno>,
) -> Result<(), Errno> {
    match command {
        // SAFETY: the caller's promise.
        CONTROL_GETWAITOBJ => unsafe { border::write(argument.cast::<c_int>(), object.number()) },
        CONTROL_GETWAIT if !object.has_descriptor() => {
            let why = format_args!("there is no descriptor to give; open it with FI_WAIT_FD");
            Err(because(Subsystem::Core, Errno::NODATA, why))
        }
        // SAFETY: the caller's promise.
        CONTROL_GETWAIT => unsafe { border::write(argument.cast::<c_int>(), set()?.descriptor()) },
        _ => Err(unknown_command(command)),
    }
}

/// What is to be said of a command of `fi_control` that an object does not know.
pub(super) fn unknown_command(command: c_int) -> Errno {
    because(Subsystem::Core, Errno::NOSYS, format_args!("fi_control has no command {command} here"))
}
