//! The copies and messages of a call: what the engine does for it.
#![forbid(unsafe_code)]

use lmt_core::buffer::Access;
use lmt_core::endpoint::{
    Engine, Label, OperationError, RequestId, SendMode, Source, Space, TagMatch, Wanted,
};
use lmt_core::region::RegionKey;

use super::{Context, Running};
use crate::call::Block;
use crate::error::GroupError;
use crate::program::{Place, Remote, Span};

/// Messages of collective calls meet no others.
pub(crate) const SPACE: Space = match Space::new(3) {
    Some(space) => space,
    None => panic!("there are four spaces"),
};

/// A copy or a message in flight.
#[derive(Debug)]
pub(super) struct Open {
    pub request: RequestId,
    pub rank: u32,
    what: &'static str,
    /// Of a receive: how long the message must be.
    exactly: Option<u64>,
}

impl Running {
    /// Where in a rank's memory: its region, and the offset there.
    fn locate(
        &self,
        rank: u32,
        remote: Remote,
        bytes: u64,
        context: &Context<'_>,
    ) -> Result<(RegionKey, u64), GroupError> {
        let (place, offset) = match remote {
            Remote::At(place, offset) => (place, offset),
            Remote::Listed { place, of } => {
                let Block { offset, bytes: theirs_bytes } = context.board.shown_block(rank, self.number, of);
                if theirs_bytes != bytes {
                    return Err(GroupError::Length { rank, theirs_bytes, ours_bytes: bytes });
                }
                (place, offset)
            }
        };
        let notice = context.board.notice_of(rank, self.number);
        let (handle, region_bytes) = notice.regions[match place {
            Place::Input => 0,
            Place::Output => 1,
            Place::Work => 2,
        }];
        Ok((RegionKey::new(context.members[rank as usize].id, handle, region_bytes), offset))
    }

    pub(super) fn get_or_put(
        &mut self,
        rank: u32,
        remote: Remote,
        local: Span,
        is_get: bool,
        context: &mut Context<'_>,
    ) -> Result<bool, GroupError> {
        let (key, offset) = self.locate(rank, remote, local.bytes, context)?;
        if local.bytes == 0 {
            return Ok(true);
        }
        let what = if is_get { "reading from" } else { "writing to" };
        let begun = if is_get {
            let into = self.part(local, Access::Write)?;
            context.engine.get(&key, offset, into)
        } else {
            let from = self.part(local, Access::Read)?;
            // That this rank has come was said; now the engine looks at the region.
            context.board.fence_of_leaving();
            context.engine.put(&key, offset, from)
        };
        self.keep(begun, rank, what, None)
    }

    pub(super) fn send(
        &mut self,
        rank: u32,
        from: Span,
        context: &mut Context<'_>,
    ) -> Result<bool, GroupError> {
        let buffer = self.part(from, Access::Read)?;
        let label = Label { tag: self.tag(context), space: SPACE, immediate: None };
        let peer = context.members[rank as usize].peer;
        let begun = context.engine.send(peer, label, buffer, SendMode::Standard);
        self.keep(begun, rank, "sending to", None)
    }

    pub(super) fn receive(
        &mut self,
        rank: u32,
        into: Span,
        context: &mut Context<'_>,
    ) -> Result<bool, GroupError> {
        let buffer = self.part(into, Access::Write)?;
        let wanted = Wanted { space: SPACE, tags: TagMatch::exactly(self.tag(context)) };
        let peer = context.members[rank as usize].peer;
        let begun = context.engine.receive(Source::Peer(peer), wanted, buffer);
        self.keep(begun, rank, "receiving from", Some(into.bytes))
    }

    /// The messages of one call between two ranks are told from those of others.
    fn tag(&self, context: &Context<'_>) -> u64 {
        context.tag << 24 | u64::from(self.number & 0xff_ffff)
    }

    /// Notes what has begun; false if there was no room.
    fn keep(
        &mut self,
        begun: Result<RequestId, OperationError>,
        rank: u32,
        what: &'static str,
        exactly: Option<u64>,
    ) -> Result<bool, GroupError> {
        match begun {
            Ok(request) => {
                self.open.push(Open { request, rank, what, exactly });
                Ok(true)
            }
            Err(OperationError::WouldBlock { .. }) => Ok(false),
            Err(source) => Err(GroupError::Transfer { what, rank, source }),
        }
    }
}

/// Takes the result of what has ended.
pub(super) fn finish(open: &Open, engine: &mut Engine) -> Result<(), GroupError> {
    let (what, rank) = (open.what, open.rank);
    match engine.wait(open.request) {
        Ok(status) => match open.exactly {
            Some(ours_bytes) if status.bytes != ours_bytes => {
                Err(GroupError::Length { rank, theirs_bytes: status.bytes, ours_bytes })
            }
            _ => Ok(()),
        },
        Err(OperationError::Truncated { message_bytes, received_bytes, .. }) => {
            Err(GroupError::Length { rank, theirs_bytes: message_bytes, ours_bytes: received_bytes })
        }
        Err(source) => Err(GroupError::Transfer { what, rank, source }),
    }
}
