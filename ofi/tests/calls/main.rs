//! Every call that the provider offers, against libfabric's man pages.

mod harness;
mod messages;
mod misuse;
mod remote;
