//! The peer API (fi_peer(3)): an owner of the tests' own, which matches receives as
//! libfabric's provider lnx does, above an endpoint of the provider.

mod matching;
mod receives;
mod refusals;
