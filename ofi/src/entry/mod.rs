//! The functions that C calls, one file for each kind of object.

pub mod atomic;
pub mod base;
pub mod cm;
mod context_ops;
mod core_version;
pub mod counter;
pub mod domain;
pub mod endpoint;
pub mod fabric;
pub mod messages;
mod owner_queue;
mod owner_receives;
pub mod plain;
pub mod provider;
pub mod queue;
pub mod region;
mod registry;
pub mod remote;
pub mod tagged;
pub mod vector;

/// Functions that answer that there is no such thing here.
macro_rules! absent {
    ($($name:ident($($argument:ty),* $(,)?) -> $result:ty;)*) => {$(
        pub(super) unsafe extern "C" fn $name($(_: $argument),*) -> $result {
            -(crate::abi::Errno::NOSYS.0 as $result)
        }
    )*};
}
pub(crate) use absent;
