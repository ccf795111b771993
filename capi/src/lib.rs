//! The C interface of [`lmt`]: `lmt.h`, `liblmt.so`, `liblmt.a`.
//!
//! Both Rust interfaces: endpoints, and the layer of large messages
//! under packets and matching of somebody else's. `docs/c-interface.md` says how it
//! is used; this is how it is made:
//!
//! - `code`, `types`: what C sees beside the functions.
//! - `error`: why a call failed, the last error of each thread, and the guard that
//!   no panic passes.
//! - `handle`: tables of objects. What C holds are numbers, so a handle that is
//!   closed, of another kind, made up, or the parent's of a forked child is found out,
//!   and two calls at once do no harm. `lock`: how lists are shared that are held for
//!   moments.
//! - `border`, `port`: pointers and callbacks of C.
//! - `numbers`: peers and requests, as C holds them.
//! - `objects`: what stands behind the handles.
//! - `entry`: the functions, a file for each subject. They check all pointers first,
//!   and then do what the Rust interface does.
//!
//! Something is unsafe in `border`, `port`, `entry`, one function of `objects`, which
//! lends the engine, and the tests of some of them.
#![deny(unsafe_code)]

mod border;
pub mod code;
pub mod entry;
mod error;
mod handle;
mod lock;
mod numbers;
mod objects;
mod port;
pub mod types;
