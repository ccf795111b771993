//! The spaces of messages that users send.

use lmt::Space;

/// Tagged messages: the space that costs the least.
pub const TAGGED: Space = Space::FIRST;
/// Plain messages.
pub const PLAIN: Space = match Space::new(1) {
    Some(space) => space,
    None => Space::FIRST,
};
const _: () = assert!(PLAIN.index() != TAGGED.index());
