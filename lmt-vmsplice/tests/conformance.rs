//! What every mechanism must keep.
#![cfg(not(loom))]

lmt_conformance::suite!(vmsplice, lmt_vmsplice::Vmsplice::new());
lmt_conformance::suite!(writev, lmt_vmsplice::Writev::new());
