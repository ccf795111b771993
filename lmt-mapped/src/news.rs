//! What the two instances tell each other beside the packets, in parcels. What
//! comes is untrusted.

use std::os::fd::OwnedFd;

use lmt_core::mechanism::Hello;

/// One parcel.
#[derive(Debug)]
pub(crate) enum News {
    /// The descriptor of an arena of the teller; none where it did not come
    /// along.
    Arena(u32, Option<OwnedFd>),
    /// The teller wants the descriptor of an arena of the other.
    Want(u32),
    /// The teller could not map this arena of the other.
    Cannot(u32),
    /// An arena of the teller is no more.
    Gone(u32),
    /// The descriptor of the teller's claims.
    Claims(OwnedFd),
}

const ARENA: u8 = 1;
const WANT: u8 = 2;
const CANNOT: u8 = 3;
const GONE: u8 = 4;
const CLAIMS: u8 = 5;

impl News {
    pub fn encode(self) -> Hello {
        let (kind, arena, descriptor) = match self {
            Self::Arena(arena, descriptor) => (ARENA, arena, descriptor),
            Self::Want(arena) => (WANT, arena, None),
            Self::Cannot(arena) => (CANNOT, arena, None),
            Self::Gone(arena) => (GONE, arena, None),
            Self::Claims(descriptor) => (CLAIMS, 0, Some(descriptor)),
        };
        let bytes = [&[kind], &arena.to_le_bytes()[..]].concat();
        Hello { bytes, descriptors: descriptor.into_iter().collect() }
    }

    pub fn parse(parcel: Hello) -> Option<Self> {
        let (&kind, arena) = parcel.bytes.split_first()?;
        let arena = u32::from_le_bytes(arena.try_into().ok()?);
        match kind {
            ARENA => Some(Self::Arena(arena, parcel.descriptors.into_iter().next())),
            WANT => Some(Self::Want(arena)),
            CANNOT => Some(Self::Cannot(arena)),
            GONE => Some(Self::Gone(arena)),
            CLAIMS => Some(Self::Claims(parcel.descriptors.into_iter().next()?)),
            _ => None,
        }
    }
}
