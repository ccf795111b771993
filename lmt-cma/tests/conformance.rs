//! What every mechanism must keep.
#![cfg(not(loom))]

lmt_conformance::suite!(cma, lmt_cma::Cma::new());
