//! What the two instances tell each other beside the packets, in out-of-band messages. What
//! comes is untrusted.

use std::os::fd::OwnedFd;

use lmt_core::mechanism::Hello;

/// One out-of-band message.
#[derive(Debug)]
pub(crate) enum MappingMessage {
    /// The descriptor of an arena of the teller; none where it did not come
    /// along.
    Arena(u32, Option<OwnedFd>),
    /// The teller wants the descriptor of an arena of the other.
    Want(u32),
    /// The teller could not map this arena of the other.
    Cannot(u32),
    /// An arena of the teller is no more.
    Gone(u32),
}

const ARENA: u8 = 1;
const WANT: u8 = 2;
const CANNOT: u8 = 3;
const GONE: u8 = 4;

impl MappingMessage {
    pub fn encode(self) -> Hello {
        let (kind, arena, descriptor) = match self {
            Self::Arena(arena, descriptor) => (ARENA, arena, descriptor),
            Self::Want(arena) => (WANT, arena, None),
            Self::Cannot(arena) => (CANNOT, arena, None),
            Self::Gone(arena) => (GONE, arena, None),
        };
        let bytes = [&[kind], &arena.to_le_bytes()[..]].concat();
        Hello { bytes, descriptors: descriptor.into_iter().collect() }
    }

    pub fn parse(oob_message: Hello) -> Option<Self> {
        let (&kind, arena) = oob_message.bytes.split_first()?;
        let arena = u32::from_le_bytes(arena.try_into().ok()?);
        match kind {
            ARENA => Some(Self::Arena(arena, oob_message.descriptors.into_iter().next())),
            WANT => Some(Self::Want(arena)),
            CANNOT => Some(Self::Cannot(arena)),
            GONE => Some(Self::Gone(arena)),
            _ => None,
        }
    }
}
