//! KNEM's interface without its kernel module.
//!
//! The regions are those of `lmt`'s endpoints ([`lmt_core::region`]: a table in
//! shared memory, keys with a generation, the same checks and the same copy),
//! here for whoever has no endpoint. Private memory is copied by Cross Memory
//! Attach, allocated memory is mapped, one's own is just copied, and a thread
//! makes the copies that are to go on behind the caller's back.
//!
//! What the kernel does not do here is to enforce: who may copy at all may
//! copy anywhere (ptrace(2), access mode checks). The table guards against
//! mistakes.

mod copying;
mod driver;
mod met;
mod name;
mod offload;
mod sys;

pub use driver::UserDriver;
pub use offload::STATUS_SLOTS;
