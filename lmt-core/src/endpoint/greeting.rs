//! What two endpoints tell each other when they connect, inside the
//! connection's opaque blobs: where my inbox is, which index you have there,
//! where I run, and what each mechanism needs to be probed.

use std::os::fd::OwnedFd;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, LE, U16, U64, Unaligned};

use crate::base::cpu_set::CpuSet;
use crate::connect;
use crate::mechanism::hellos::{Malformed, decode_hellos, encode_hellos};
use crate::vocabulary::identity::MechanismTag;
use crate::vocabulary::peer_facts::Hello;

/// The fixed part of a greeting.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct Head {
    /// The receiver's index among this endpoint's peers: the owner it writes
    /// into cells, and its line in the table of credits.
    index: U16<LE>,
    /// Bytes of unexpected messages that this endpoint keeps for the receiver.
    unexpected_max_bytes: U64<LE>,
    /// Where this process may run.
    cpus: [u8; CpuSet::BYTES],
    /// 1 when a fast box's descriptor follows the first three.
    fast_box_present: u8,
}

/// A greeting, taken apart.
pub(crate) struct Greeting {
    pub index: u16,
    pub unexpected_max_bytes: u64,
    pub cpus: CpuSet,
    pub inbox: OwnedFd,
    /// The table of regions.
    pub regions: OwnedFd,
    /// The receiver's fast box, if it gets one.
    pub fast_box: Option<OwnedFd>,
    pub hellos: Vec<(MechanismTag, Hello)>,
}

impl Greeting {
    /// The blob and the descriptors to send.
    pub fn encode(self) -> (Vec<u8>, Vec<OwnedFd>) {
        let head = Head {
            index: self.index.into(),
            unexpected_max_bytes: self.unexpected_max_bytes.into(),
            cpus: *self.cpus.as_bytes(),
            fast_box_present: self.fast_box.is_some().into(),
        };
        let mut bytes = head.as_bytes().to_vec();
        let mut descriptors = vec![self.inbox, self.regions];
        descriptors.extend(self.fast_box);
        encode_hellos(self.hellos, &mut bytes, &mut descriptors);
        (bytes, descriptors)
    }

    /// Takes apart what a peer sent; nothing in it is believed but its shape.
    pub fn decode(greeting: connect::Greeting) -> Result<Self, Malformed> {
        let connect::Greeting { bytes, descriptors, lost_descriptors } = greeting;
        let (head, rest) = Head::read_from_prefix(&bytes).map_err(|_| Malformed::Wrong("it is too short"))?;
        let mut descriptors = descriptors.into_iter();
        let mut next = || {
            descriptors.next().ok_or(match lost_descriptors {
                0 => Malformed::Wrong("a descriptor is missing"),
                lost => Malformed::Lost(lost),
            })
        };
        let (inbox, regions) = (next()?, next()?);
        let fast_box = if head.fast_box_present == 0 { None } else { Some(next()?) };
        Ok(Self {
            index: head.index.get(),
            unexpected_max_bytes: head.unexpected_max_bytes.get(),
            cpus: CpuSet::from_bytes(head.cpus),
            inbox,
            regions,
            fast_box,
            hellos: decode_hellos(rest, &mut descriptors, lost_descriptors > 0)?,
        })
    }
}
