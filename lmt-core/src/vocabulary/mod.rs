//! Words that several modules share: identities and keys, models, plans, cookies,
//! errors, configuration.
//!
//! There is no behaviour here beyond a word's own checks and conversions. It
//! must not know who uses a word, nor how it travels.

pub mod config;
pub mod config_key;
pub mod error;
pub mod identity;
pub(crate) mod model;
pub(crate) mod peer_facts;
pub(crate) mod transfer;
