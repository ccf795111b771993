//! What every mechanism must keep.
#![cfg(not(loom))]

use lmt_ioat::offload::Offload;
use lmt_ioat::software::Config;

lmt_conformance::suite!(software, Offload::software(Config::default()));
