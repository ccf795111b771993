//! The functions that C calls, in the order in which the header has them.

pub mod basics;

pub mod options;

pub mod group;

pub mod endpoint;
pub mod peer;

pub mod messages;
pub mod requests;

pub mod probe;
pub mod progress;

pub mod explain;

pub mod memory;
pub mod region;

pub mod device;
pub mod device_messages;

mod both;
mod write;
