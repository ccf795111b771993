//! One matcher for each space.
#![forbid(unsafe_code)]

use super::unexpected::Arrived;
use crate::matching::{Matcher, TagMatcher, Unexpected, UnexpectedHandle};
use crate::requests::ids::RequestId;
use crate::requests::label::Space;
use crate::vocabulary::identity::PeerKey;

/// That of one space.
pub(crate) type OfSpace = TagMatcher<RequestId, Arrived>;

/// Those of all spaces.
#[derive(Debug, Default)]
pub(crate) struct Matchers {
    of: [OfSpace; Space::COUNT],
}

impl Matchers {
    /// That of one space.
    #[inline]
    pub fn of(&mut self, space: Space) -> &mut OfSpace {
        &mut self.of[space.index()]
    }

    /// Takes out the oldest message of `source` for which `wanted` is true, of
    /// whatever space.
    pub fn take_unexpected(
        &mut self,
        source: PeerKey,
        wanted: &mut dyn FnMut(&Arrived) -> bool,
    ) -> Option<Unexpected<Arrived>> {
        self.of.iter_mut().find_map(|one| {
            let handle: UnexpectedHandle = one.find_unexpected(source, wanted)?;
            one.remove_unexpected(handle)
        })
    }

    /// A peer will send no more: drops its messages for which `useless`, asked
    /// with the space and the tag, is true, and forgets the receives that name it.
    pub fn peer_gone(&mut self, source: PeerKey, useless: &mut dyn FnMut(Space, u64, &Arrived) -> bool) {
        for (space, one) in Space::all().zip(&mut self.of) {
            one.peer_gone(source, &mut |tag, m| useless(space, tag, m), &mut |_| {}, &mut |_| {});
        }
    }
}
