//! What every mechanism must keep.
#![cfg(not(loom))]

lmt_conformance::suite!(knem_user, lmt_knem::KnemUser::new());
