//! Peers' memory as it is attached here: blocks of their address spaces, kept within a bound,
//! and the copies to and from them.
#![allow(unsafe_code)] // Copies between attached and lent memory.

use std::cell::RefCell;
use std::sync::Arc;

use lmt_cma::vm::RemoteSegment;
use lmt_copy::FaultSafeCopy;
use lmt_core::buffer::{Buffer, lend_mut};
use lmt_core::cursor::Cursor;
use lmt_core::mapped_copy::{PieceCopy, copy_mapped};
use lmt_core::mapping_cache::{Bound, MappingCache};
use lmt_core::mechanism::{CopiedPart, Fault, Role};
use nix::errno::Errno;

use crate::config::Config;
use crate::driver::{Attachment, Driver};
use crate::peer::XpmemPeer;
use crate::refusal::demote;

/// How much is attached at once. What the peer has not mapped of it does no harm until it
/// is touched, and no pages are looked up before.
pub(crate) const BLOCK_BYTES: u64 = 16 << 20;
/// Behind this a process has no memory, and no block reaches further.
const ADDRESSES_END: u64 = (1 << 47) - 4096;

/// Names a block of a peer's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Name {
    /// Which peer; no number is given twice.
    peer: u64,
    /// Which of the blocks of its address space.
    block: u64,
}

type Kept<D> = MappingCache<Name, Attachment<D>>;

/// An endpoint's attachments.
#[derive(Debug)]
pub(crate) struct Attachments<D: Driver> {
    pub config: Config,
    kept: Kept<D>,
    copier: Option<FaultSafeCopy>,
}

/// A copy of a peer's segments, and how far it has come.
#[derive(Debug)]
pub(crate) struct Far<'a> {
    pub segments: &'a [RemoteSegment],
    pub at: &'a mut Cursor,
}

impl<D: Driver> Attachments<D> {
    pub fn new(config: Config) -> Self {
        Self { config, kept: MappingCache::default(), copier: None }
    }

    /// A peer is gone.
    pub fn forget(&mut self, peer: u64) {
        self.kept.remove_all(|name| name.peer == peer);
    }

    /// Lets go of what is beyond the bound.
    pub fn trim(&mut self) {
        self.kept.trim(self.config.bound());
    }

    /// Copies `bytes` bytes between `data`, from `near` on, and the peer's segments: into
    /// `data` for a receiver, out of it for a sender. After a fault nothing of the peer
    /// stays attached.
    pub fn copy(
        &mut self,
        peer: &XpmemPeer<D>,
        role: Role,
        (data, near): (&mut Buffer, &mut Cursor),
        far: &mut Far<'_>,
        bytes: u64,
    ) -> CopiedPart {
        let Self { config, kept, copier } = self;
        let copier = match usable(copier) {
            Ok(copier) => copier,
            Err(fault) => return CopiedPart { bytes: 0, fault: Some(fault) },
        };
        let (block, fault) = (RefCell::new(None), RefCell::new(None));
        let remote = |most| {
            let piece = far.at.clone().take(far.segments, most)?;
            let address = far.segments[piece.index].address.wrapping_add(piece.offset);
            let found = self::block(kept, config.bound(), peer, address);
            let found = found.map_err(|why| fault.replace(Some(why))).ok()?;
            let (here, left_bytes) = found.from(address % BLOCK_BYTES)?;
            let bytes = piece.bytes.min(left_bytes);
            far.at.advance(far.segments, bytes);
            block.replace(Some(found));
            Some((std::ptr::with_exposed_provenance_mut(here), bytes))
        };
        let copy = |PieceCopy { target, source, bytes, distance }: PieceCopy| {
            let block = block.borrow();
            let Some(attached) = block.as_ref().map(|held: &Arc<Attachment<D>>| held.range()) else {
                return false;
            };
            // SAFETY: one end lies in a segment that is lent for this and borrowed
            // exclusively here (`copy_mapped`); the other in the block, which is attached as
            // long as it is held, and all of which is memory of the peer's or none.
            let is_whole = unsafe { copier.copy(attached, target, source, bytes, distance) };
            if !is_whole {
                fault.replace(Some(peer.fault_of(Errno::EFAULT)));
            }
            is_whole
        };
        let copied = copy_mapped(role, data, near, bytes, remote, copy);
        drop(block);
        let fault = fault.into_inner().or_else(|| (copied < bytes).then(short_buffer));
        if fault.is_some() {
            // Whatever it was: what is attached next is what is there then.
            self.forget(peer.number);
        }
        CopiedPart { bytes: copied, fault }
    }

    /// Fills bytes here with those at an address of the peer's.
    ///
    /// # Errors
    /// [`Fault`]; a part may have been filled.
    pub fn fetch(&mut self, peer: &XpmemPeer<D>, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        lend_mut(into, |data| self.whole(peer, Role::Receiver, address, data))
    }

    /// Puts bytes to an address of the peer's.
    ///
    /// # Errors
    /// [`Fault`]; a part may have been put there.
    pub fn put(&mut self, peer: &XpmemPeer<D>, address: u64, from: &mut [u8]) -> Result<(), Fault> {
        lend_mut(from, |data| self.whole(peer, Role::Sender, address, data))
    }

    fn whole(
        &mut self,
        peer: &XpmemPeer<D>,
        role: Role,
        address: u64,
        data: &mut Buffer,
    ) -> Result<(), Fault> {
        let bytes = data.total_bytes();
        let (segments, mut at) = ([RemoteSegment { address, bytes }], Cursor::default());
        let far = &mut Far { segments: &segments, at: &mut at };
        let copied = self.copy(peer, role, (data, &mut Cursor::default()), far, bytes);
        copied.fault.map_or(Ok(()), Err)
    }
}

/// The block that holds an address of the peer's.
fn block<D: Driver>(
    kept: &mut Kept<D>,
    bound: Bound,
    peer: &XpmemPeer<D>,
    address: u64,
) -> Result<Arc<Attachment<D>>, Fault> {
    if address >= ADDRESSES_END {
        return Err(demote(Errno::EFAULT, false));
    }
    let name = Name { peer: peer.number, block: address / BLOCK_BYTES };
    if let Some(found) = kept.find(&name) {
        return Ok(found);
    }
    let permit = peer.permit.as_ref().ok_or_else(|| demote(Errno::EACCES, true))?;
    let start = name.block * BLOCK_BYTES;
    let bytes = BLOCK_BYTES.min(ADDRESSES_END - start);
    let attached = Arc::new(permit.attach(start, bytes).map_err(|errno| peer.fault_of(errno))?);
    kept.insert(name, Arc::clone(&attached), bound);
    Ok(attached)
}

/// What copies, if a fault would do no harm.
fn usable(copier: &mut Option<FaultSafeCopy>) -> Result<&mut FaultSafeCopy, Fault> {
    let copier = match copier {
        Some(copier) => copier,
        None => copier.insert(FaultSafeCopy::new().map_err(|_| demote(Errno::ENOTSUP, true))?),
    };
    match FaultSafeCopy::check() {
        Ok(()) => Ok(copier),
        Err(why) => Err(Fault::Demote { errno: 0, for_good: false, sentence: why.to_string() }),
    }
}

fn short_buffer() -> Fault {
    let sentence = "the buffer here is shorter than the transfer; give the one that prepare saw".to_owned();
    Fault::Demote { errno: 0, for_good: false, sentence }
}

#[cfg(test)]
#[path = "attachments_tests.rs"]
mod tests;
