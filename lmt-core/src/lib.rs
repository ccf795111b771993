//! The core of lmt: everything between a send in one process and a receive in
//! another that is not a copying mechanism.
//!
//! Its parts, in the order a message meets them: the [`connect`] state machine,
//! the [`inbox`] queue, [`matching`], the [`rendezvous`] protocol, and the
//! [`mechanism::Lmt`] trait behind which every way of moving a large message
//! stands. No mechanism is named here.
#![deny(unsafe_code)]

pub mod buffer;
pub mod config;
pub mod connect;
pub mod cursor;
pub mod error;
pub mod identity;
pub mod matching;
pub mod mechanism;
pub mod process;
pub mod rendezvous;
mod slab;
pub mod sync;
