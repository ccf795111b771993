//! The functions that C calls, one file for each kind of object; what these share lies
//! below them, in `objects`, `shared_domain` and `shared_fabric`.

pub mod atomic;
pub mod base;
mod calls;
pub mod cm;
mod context_ops;
mod core_version;
pub mod counter;
pub mod domain;
pub mod endpoint;
pub mod event;
pub mod fabric;
pub mod messages;
mod objects;
mod owner_queue;
mod owner_receives;
pub mod plain;
pub mod poll;
pub mod provider;
pub mod queue;
pub mod region;
mod registry;
pub mod remote;
mod shared_domain;
mod shared_fabric;
pub mod tagged;
pub mod vector;
pub mod waiting;

/// Says that a function of one of libfabric's tables is not offered.
#[cold]
fn not_offered(slot: &str) -> crate::abi::Errno {
    let why = format_args!("a call is made that is not offered (`{slot}` of its table)");
    crate::refuse::because(crate::log::Subsystem::Core, crate::abi::Errno::NOSYS, why)
}

/// Functions that answer that there is no such thing here.
macro_rules! absent {
    ($($name:ident($($argument:ty),* $(,)?) -> $result:ty;)*) => {$(
        pub(super) unsafe extern "C" fn $name($(_: $argument),*) -> $result {
            crate::entry::not_offered(stringify!($name)).0.wrapping_neg() as $result
        }
    )*};
}
pub(crate) use absent;
