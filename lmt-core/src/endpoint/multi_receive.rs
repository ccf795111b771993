//! Receives of one message after the other into one buffer.
//!
//! Such a receive keeps its place among those that are posted until too little of its
//! buffer is left. A message gets its part of the buffer when it matches, as its length
//! is known then, and is a request of its own from there on.

use super::Engine;
use super::matchers::Matchers;
use super::state::Traffic;
use super::unexpected::Arrived;
use crate::matching::{Matcher, Pattern, Unexpected};
use crate::memory::buffer::{Access, Buffer};
use crate::requests::ids::{PeerId, RequestId};
use crate::requests::label::{Label, Source, Space, Wanted};
use crate::requests::multi_receive::{MultiReceive, Placement};
use crate::requests::outcome::OperationError;
use crate::requests::table::{Request, Requests, State, Waiting};
use crate::vocabulary::identity::PeerKey;

/// Each message begins at a multiple of this in the buffer, so that those who lay
/// structures over the bytes find them aligned.
const ALIGNMENT_BYTES: u64 = 16;

/// The receive for a message of so many bytes that has come.
#[inline(always)] // The path of a short message.
pub(super) fn receive_for(
    matchers: &mut Matchers,
    requests: &mut Requests,
    peer: PeerId,
    label: &Label,
    bytes: u64,
) -> Option<RequestId> {
    let matcher = matchers.of(label.space);
    if matcher.posted() == 0 {
        return None;
    }
    let receive = matcher.arrive(peer.index(), label.tag)?;
    match requests.get(receive) {
        Some(Request { state: State::Waiting(Waiting::MultiReceive(_)), .. }) => {
            place(matchers, requests, receive, peer, *label, bytes)
        }
        _ => Some(receive),
    }
}

/// Gives a message its part of the buffer of a receive of many.
#[inline(never)]
fn place(
    matchers: &mut Matchers,
    requests: &mut Requests,
    receive: RequestId,
    peer: PeerId,
    label: Label,
    bytes: u64,
) -> Option<RequestId> {
    let request = requests.get_mut(receive)?;
    let (Some(rest), State::Waiting(Waiting::MultiReceive(many))) = (&mut request.buffer, &mut request.state)
    else {
        return None;
    };
    let part = rest.split_front(bytes);
    let part_bytes = part.total_bytes();
    let gap = rest.split_front(part_bytes.next_multiple_of(ALIGNMENT_BYTES) - part_bytes);
    let offset_bytes = many.used_bytes;
    many.used_bytes += part_bytes + gap.total_bytes();
    let is_last = rest.total_bytes() < many.least_bytes.max(1);
    let (space, posted) = (many.space, many.posted);
    if is_last {
        posted.and_then(|handle| matchers.of(space).cancel_posted(handle));
        requests.remove(receive);
    }
    let message = requests.begin(part, Some(peer.index()), label, Waiting::Matched);
    requests.placements.push_back(Placement { receive, message, peer, offset_bytes, is_last });
    Some(message)
}

impl Traffic {
    /// The receive for a message of so many bytes that has come.
    #[inline(never)] // The function above is inlined; those who call this are rare.
    pub(super) fn receive_for(&mut self, key: PeerKey, label: &Label, bytes: u64) -> Option<RequestId> {
        let peer = self.name(key);
        receive_for(&mut self.matchers, &mut self.requests, peer, label, bytes)
    }

    /// Gives the messages that wait already their parts. Says whether more are taken.
    fn place_unexpected(&mut self, receive: RequestId, space: Space, pattern: Pattern) -> bool {
        while self.requests.get(receive).is_some() {
            let Some(found) = self.matchers.of(space).take(pattern) else { return true };
            let Unexpected { source, tag, payload: Arrived { immediate, content } } = found;
            let label = Label { tag, space, immediate };
            let bytes = content.total_bytes(&self.requests);
            let peer = self.name(source);
            let Self { matchers, requests, .. } = self;
            if let Some(message) = place(matchers, requests, receive, peer, label, bytes) {
                self.join(source, label, content, message);
                self.settle();
            }
        }
        false
    }
}

impl Engine {
    /// Begins a receive of one message after the other into one buffer, until less than
    /// `least_bytes` of it is left. All that is posted later gets none of the messages
    /// that this one accepts before that. [`Engine::next_placement`] tells of each
    /// message; the receive itself ends only by [`Engine::cancel`] or with its peer.
    ///
    /// # Errors
    /// As [`Engine::receive`].
    pub fn multi_receive(
        &mut self,
        source: Source,
        wanted: impl Into<Wanted>,
        buffer: Buffer,
        least_bytes: u64,
    ) -> Result<RequestId, OperationError> {
        self.check_fork()?;
        if buffer.access() != Access::Write {
            return Err(OperationError::ReadOnlyBuffer);
        }
        let Wanted { space, tags } = wanted.into();
        let pattern = self.pattern(source, tags)?;
        let label = Label { tag: tags.tag, space, immediate: None };
        let many = MultiReceive { space, posted: None, used_bytes: 0, least_bytes };
        let id = self.traffic.requests.begin(buffer, pattern.source, label, Waiting::MultiReceive(many));
        let placements = self.traffic.requests.placements.len();
        if !self.traffic.place_unexpected(id, space, pattern) {
            return Ok(id);
        }
        let posted = self.traffic.matchers.of(space).post_standing(pattern, id);
        if let Some(Request { state: State::Waiting(Waiting::MultiReceive(many)), .. }) =
            self.traffic.requests.get_mut(id)
        {
            many.posted = Some(posted);
        }
        if let Some(key) = pattern.source
            && let Err(error) = self.reach(key)
        {
            self.traffic.matchers.of(space).cancel_posted(posted);
            if self.traffic.requests.placements.len() == placements {
                self.traffic.requests.remove(id);
                return Err(error);
            }
            self.traffic.requests.complete(id, Err(error));
        }
        Ok(id)
    }

    /// The next message that has got its part of the buffer of a receive of many
    /// ([`Engine::multi_receive`]), in the order in which they matched. What
    /// [`Engine::next_completion`] tells of such a message comes after this. Makes no
    /// progress.
    #[inline]
    pub fn next_placement(&mut self) -> Option<Placement> {
        self.traffic.requests.placements.pop_front()
    }
}
