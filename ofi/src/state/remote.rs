//! Reading and writing a peer's registered memory.

use lmt::buffer::Buffer;
use lmt::{Direction, RegionKey, RequestId};

use super::SharedState;
use super::endpoint::{Endpoint, check_injected};
use super::ops::{Kind, Op};
use super::service::errand::{Remote, SoftwareRma, flags_of};
use crate::abi::Errno;
use crate::lend::Owned;
use crate::{log, refuse};

impl Endpoint {
    /// Begins a read or a write. With `data` the peer's queue tells of it and this
    /// number when it is done.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: too much is in flight; or the peer is unknown or dead.
    pub fn remote(
        &mut self,
        shared_state: &mut SharedState,
        remote: Remote,
        direction: Direction,
        buffer: Buffer,
        data: Option<u32>,
    ) -> Result<(), Errno> {
        self.begin(shared_state, remote, direction, buffer, None, data)
    }

    /// Writes bytes that the caller may change at once.
    ///
    /// # Errors
    /// [`Errno::MSGSIZE`]: they are too many; else as [`Endpoint::remote`].
    pub fn inject_remote(
        &mut self,
        shared_state: &mut SharedState,
        remote: Remote,
        bytes: &[u8],
        data: Option<u32>,
    ) -> Result<(), Errno> {
        check_injected(bytes.len() as u64)?;
        let (owned, buffer) = Owned::for_an_operation(bytes)?;
        self.begin(shared_state, remote, Direction::Put, buffer, Some(owned), data)
    }

    fn begin(
        &mut self,
        shared_state: &mut SharedState,
        remote: Remote,
        direction: Direction,
        buffer: Buffer,
        owned: Option<Owned>,
        data: Option<u32>,
    ) -> Result<(), Errno> {
        let peer = self.peer(shared_state, remote.peer)?;
        let errand = SoftwareRma::new(remote, peer, direction, &buffer, owned, data);
        if self.is_out_of_reach(peer) {
            drop(buffer);
            self.carry_by_messages(shared_state, errand);
            return Ok(());
        }
        let vector = self.vector_of(shared_state);
        let home = self.peers.home_of(&mut self.engine, vector, remote.peer)?;
        if home == self.engine.id() {
            drop(buffer);
            self.copy_here(shared_state, errand);
            return Ok(());
        }
        let key = RegionKey::by_handle(home, remote.key);
        let request = self.begin_remote(&key, &remote, direction, buffer)?;
        let (context, reports) = (remote.context.unwrap_or_default(), remote.reports);
        let kind = Kind::Remote(Box::new(errand));
        self.enter(shared_state, Op { context, flags: flags_of(direction), reports, request, kind });
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
