//! What every mechanism must keep.
#![cfg(not(loom))]

/// All that the suite has under way at once: it has no other way for the rest.
fn ring() -> lmt_ring::Ring {
    lmt_ring::Ring::new(lmt_ring::Config { max_messages: 240, ..lmt_ring::Config::default() })
}

lmt_conformance::suite!(ring, ring());
