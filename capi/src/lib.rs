//! The C interface of [`lmt`]: `lmt.h`, `liblmt.so`, `liblmt.a`.
//!
//! Both doors of the Rust interface: endpoints, and the layer of large messages
//! under packets and matching of somebody else's. `docs/c-interface.md` says how it
//! is used; this is how it is made:
//!
//! - `code`, `types`: what C sees beside the functions.
//! - `error`: why a call failed, the last error of each thread, and the guard that
//!   no panic passes.
//! - `handle`: tables of objects. What C holds are numbers, so a handle that is
//!   closed, of another kind or made up is found out, and two calls at once do no
//!   harm. `lock`: how lists are shared that are held for moments.
//! - `border`, `port`: pointers and callbacks of C; beside `entry` the only files in
//!   which something is unsafe.
//! - `objects`: what stands behind the handles.
//! - `entry`: the functions, a file for each subject. They check all pointers first,
//!   and then do what the Rust interface does.
#![deny(unsafe_code)]

mod border;
pub mod code;
pub mod entry;
mod error;
mod handle;
mod lock;
mod objects;
mod port;
pub mod types;
