//! The part of the handshake that is about mechanisms, as it travels: the hello of
//! each, and the report of what each can do with the peer.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, LE, U16, U32, Unaligned};

use crate::connect::Rejection;
use crate::vocabulary::identity::MechanismTag;
use crate::vocabulary::peer_facts::{Abilities, Hello};

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

/// A greeting or report that is not one; the connection is refused with it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the handshake of the peer is malformed: {0}; both sides must use the same version of lmt")]
    Wrong(&'static str),
    #[error(
        "{0} descriptors of the handshake were lost; raise the limit on open files (RLIMIT_NOFILE, ulimit -n)"
    )]
    Lost(usize),
}

impl From<Malformed> for Rejection {
    fn from(error: Malformed) -> Self {
        let errno = matches!(error, Malformed::Lost(_)).then_some(Errno::EMFILE);
        Self { reason: error.to_string(), errno }
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
