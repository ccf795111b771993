//! What every mechanism must keep: over a stand-in for the module, and with
//! `LMT_REAL_XPMEM=1` over the machine's own.
#![cfg(not(loom))]

mod stand_in;

use lmt_xpmem::{Config, Xpmem};
use stand_in::StandIn;
use stand_in::real::Real;

/// What this binary allocates, peers can map, as they can with the module.
#[global_allocator]
static ALLOCATOR: stand_in::memory::Allocator = stand_in::memory::Allocator;

lmt_conformance::suite!(xpmem_stand_in, Xpmem::over(StandIn, Config::default()));

lmt_conformance::suite!(xpmem, Xpmem::over(Real, Config::default()));

/// With so little kept, blocks are attached and detached all the time.
mod kept_little {
    use super::*;

    const LITTLE: Config = Config { kept_bytes: 20 << 20 };

    lmt_conformance::suite!(xpmem_stand_in, Xpmem::over(StandIn, LITTLE));
}
