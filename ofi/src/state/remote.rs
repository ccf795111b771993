//! Reading and writing a peer's registered memory.

use lmt::buffer::Buffer;
use lmt::{Direction, RegionKey, RequestId};

use super::Surroundings;
use super::endpoint::{Endpoint, check_injected};
use super::ops::{Kind, Op};
use super::service::Errand;
use crate::abi::{Errno, FiAddr, flags};
use crate::lend::Owned;
use crate::{log, refuse};

/// A read or a write.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// Whose memory.
    pub peer: FiAddr,
    /// Which region.
    pub key: u64,
    /// Where in it, in bytes.
    pub offset: u64,
    /// What its completion hands back; none if its end is told to nobody.
    pub context: Option<usize>,
    /// Whether its good end is told.
    pub reports: bool,
}

/// What the completion of a read or a write says that it was.
pub(super) const fn flags_of(direction: Direction) -> u64 {
    match direction {
        Direction::Get => flags::RMA | flags::READ,
        Direction::Put => flags::RMA | flags::WRITE,
    }
}

impl Endpoint {
    /// Begins a read or a write. With `data` the peer's queue tells of it and this
    /// number when it is done.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: too much is under way; or the peer is unknown or dead.
    pub fn remote(
        &mut self,
        around: &mut Surroundings,
        remote: Remote,
        direction: Direction,
        buffer: Buffer,
        data: Option<u32>,
    ) -> Result<(), Errno> {
        self.begin(around, remote, direction, buffer, None, data)
    }

    /// Writes bytes that the caller may change at once.
    ///
    /// # Errors
    /// [`Errno::MSGSIZE`]: they are too many; else as [`Endpoint::remote`].
    pub fn inject_remote(
        &mut self,
        around: &mut Surroundings,
        remote: Remote,
        bytes: &[u8],
        data: Option<u32>,
    ) -> Result<(), Errno> {
        check_injected(bytes.len() as u64)?;
        let (owned, buffer) = Owned::for_an_operation(bytes)?;
        self.begin(around, remote, Direction::Put, buffer, Some(owned), data)
    }

    fn begin(
        &mut self,
        around: &mut Surroundings,
        remote: Remote,
        direction: Direction,
        buffer: Buffer,
        owned: Option<Owned>,
        data: Option<u32>,
    ) -> Result<(), Errno> {
        let peer = self.peer(around, remote.peer)?;
        let errand = Errand::new(remote, peer, direction, &buffer, owned, data);
        if self.is_out_of_reach(peer) {
            drop(buffer);
            self.carry_by_messages(around, errand);
            return Ok(());
        }
        let vector = self.vector_of(around);
        let home = self.peers.home_of(&mut self.engine, vector, remote.peer)?;
        if home == self.engine.id() {
            drop(buffer);
            self.copy_here(around, errand);
            return Ok(());
        }
        let key = RegionKey::by_handle(home, remote.key);
        let request = self.begin_remote(&key, &remote, direction, buffer)?;
        let (context, reports) = (remote.context.unwrap_or_default(), remote.reports);
        let kind = Kind::Remote(Box::new(errand));
        self.enter(around, Op { context, flags: flags_of(direction), reports, request, kind });
        Ok(())
    }

    fn begin_remote(
        &mut self,
        key: &RegionKey,
        remote: &Remote,
        direction: Direction,
        buffer: Buffer,
    ) -> Result<RequestId, Errno> {
        let begun = match direction {
            Direction::Get => self.engine.get(key, remote.offset, buffer),
            Direction::Put => self.engine.put(key, remote.offset, buffer),
        };
        begun.map_err(|error| {
            let errno = refuse::errno_of(&error);
            if errno != Errno::AGAIN {
                log::warn(log::Subsystem::EpData, format_args!("a peer's memory is not reached: {error}"));
            }
            errno
        })
    }
}
