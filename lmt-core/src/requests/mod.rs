//! What an operation is and how it ends: ids, labels, options, the table of those
//! that wait, outcomes and errors; and why an endpoint cannot be created.
//!
//! It starts no operation and moves no byte. It must not know who does: an
//! endpoint and a device layer share it.

pub(crate) mod creation;
pub(crate) mod ids;
pub(crate) mod label;
pub(crate) mod multi_receive;
pub(crate) mod options;
pub(crate) mod outcome;
pub(crate) mod table;
