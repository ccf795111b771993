//! Copy engines: copies that go on in the background while the application
//! computes (nemesis-lmt, section 3.4; knem-jpdc, sections 3.4 and 4;
//! open-mx-intranode, section III).
//!
//! A [`engine::CopyEngine`] takes a list of copies, works through it in order
//! and writes its completion into memory, where it costs a load to look. What
//! it copies stays lent to it until it is quiet about the list ([`places`] says
//! how that is kept).
#![deny(unsafe_code)]

pub mod chunks;
#[cfg(not(loom))]
pub mod dsa;
pub mod engine;
mod mapped;
#[cfg(not(loom))]
pub mod pipeline;
pub mod places;
