//! What two endpoints tell each other when they connect, inside the
//! connection's opaque blobs: where my inbox is, which index you have there,
//! where I run, and what each mechanism needs to be probed.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};
use zerocopy::{LE, U16, U32, U64};

use crate::connect::{self, Unwilling};
use crate::cpu_set::CpuSet;
use crate::mechanism::{Abilities, Hello};
use crate::rendezvous::MechanismTag;

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
    boxed: u8,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct MechanismHead {
    tag: U32<LE>,
    bytes: U16<LE>,
    descriptors: u8,
    reserved: u8,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct ReportEntry {
    tag: U32<LE>,
    abilities: u8,
    reserved: [u8; 3],
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

/// A greeting or report that is not one; the connection is refused with it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the greeting of the peer is malformed: {0}; both sides must use the same version of lmt")]
    Wrong(&'static str),
    #[error(
        "{0} descriptors of the greeting were lost on the way; raise the limit on open files (RLIMIT_NOFILE, ulimit -n)"
    )]
    Lost(usize),
}

impl From<Malformed> for Unwilling {
    fn from(error: Malformed) -> Self {
        let errno = matches!(error, Malformed::Lost(_)).then_some(Errno::EMFILE);
        Self { reason: error.to_string(), errno }
    }
}

impl Greeting {
    /// The blob and the descriptors to send.
    pub fn encode(self) -> (Vec<u8>, Vec<OwnedFd>) {
        let head = Head {
            index: self.index.into(),
            unexpected_max_bytes: self.unexpected_max_bytes.into(),
            cpus: *self.cpus.as_bytes(),
            boxed: self.fast_box.is_some().into(),
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
        let fast_box = if head.boxed == 0 { None } else { Some(next()?) };
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

/// Appends what the mechanisms tell a peer, and the descriptors they pass.
pub(crate) fn encode_hellos(
    hellos: Vec<(MechanismTag, Hello)>,
    bytes: &mut Vec<u8>,
    descriptors: &mut Vec<OwnedFd>,
) {
    for (tag, hello) in hellos {
        let head = MechanismHead {
            tag: tag.0.into(),
            bytes: (hello.bytes.len() as u16).into(),
            descriptors: hello.descriptors.len() as u8,
            reserved: 0,
        };
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(&hello.bytes);
        descriptors.extend(hello.descriptors);
    }
}

/// Reads [`encode_hellos`] to the end of `rest`. Where descriptors may have been
/// lost, the mechanisms that they were for get their hellos without, and know
/// whether they can do with less.
pub(crate) fn decode_hellos(
    mut rest: &[u8],
    descriptors: &mut impl Iterator<Item = OwnedFd>,
    may_lack_some: bool,
) -> Result<Vec<(MechanismTag, Hello)>, Malformed> {
    let mut hellos = Vec::new();
    while !rest.is_empty() {
        let (part, behind) = MechanismHead::read_from_prefix(rest)
            .map_err(|_| Malformed::Wrong("a mechanism's part is too short"))?;
        let count = usize::from(part.bytes.get());
        if count > behind.len() || usize::from(part.descriptors) > Hello::MAX_DESCRIPTORS {
            return Err(Malformed::Wrong("a mechanism's part is longer than the whole"));
        }
        let (own, behind) = behind.split_at(count);
        rest = behind;
        let passed: Vec<OwnedFd> = descriptors.by_ref().take(part.descriptors.into()).collect();
        if passed.len() < usize::from(part.descriptors) && !may_lack_some {
            return Err(Malformed::Wrong("a mechanism's descriptor is missing"));
        }
        hellos.push((MechanismTag(part.tag.get()), Hello { bytes: own.to_vec(), descriptors: passed }));
    }
    Ok(hellos)
}

/// What this process can do with the peer, for the peer.
pub(crate) fn encode_report(report: &[(MechanismTag, Abilities)]) -> Vec<u8> {
    let entry = |(tag, abilities): &(MechanismTag, Abilities)| ReportEntry {
        tag: tag.0.into(),
        abilities: abilities.to_bits(),
        reserved: [0; 3],
    };
    report.iter().map(entry).flat_map(|e| e.as_bytes().to_vec()).collect()
}

/// Reads [`encode_report`]; a rest that is no whole entry is ignored.
pub(crate) fn decode_report(bytes: &[u8]) -> Vec<(MechanismTag, Abilities)> {
    let entries = bytes.chunks_exact(size_of::<ReportEntry>());
    entries
        .filter_map(|chunk| ReportEntry::read_from_bytes(chunk).ok())
        .map(|e| (MechanismTag(e.tag.get()), Abilities::from_bits(e.abilities)))
        .collect()
}
