//! What every mechanism must keep.
#![cfg(not(loom))]

lmt_conformance::suite!(shm, lmt_shm::Shm::new(lmt_shm::Config::default()).expect("the defaults work"));
