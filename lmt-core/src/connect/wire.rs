//! What travels over a connection's socket, one datagram each.
//!
//! The header's layout stays the same in every version of the protocol, so
//! that two versions can tell each other why they part.

use nix::errno::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::base::errno_advice::is_expected;
use crate::vocabulary::identity::EndpointId;

/// The version of the connection protocol that this crate speaks, and of the packets
/// that endpoints send each other once they are connected.
pub const PROTOCOL_VERSION: u16 = 6;

/// The most bytes of a greeting, a report, or what goes with descriptors.
pub const MAX_BLOB_BYTES: usize = 4096;

/// The most descriptors in one datagram.
pub const MAX_DESCRIPTORS: usize = 32;

/// The longest reason of a refusal that is sent or believed, in bytes.
const MAX_REASON_BYTES: usize = 512;

/// The longest datagram.
pub(super) const MAX_DATAGRAM_BYTES: usize = size_of::<Header>() + size_of::<HelloBody>() + MAX_BLOB_BYTES;

const MAGIC: [u8; 4] = *b"LMTc";

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy)]
#[repr(C)]
struct Header {
    magic: [u8; 4],
    version: u16,
    kind: u8,
    descriptors: u8,
    id: [u8; 16],
    body_bytes: u32,
    /// Of a refusal: what the system answered, or 0.
    errno: u32,
}

/// The fixed part of a HELLO; the greeting's bytes follow it.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct HelloBody {
    /// Where the sender's probe area is in its address space.
    pub probe_address: u64,
    /// What stands there.
    pub nonce: [u8; 16],
}

const _: () = assert!(size_of::<Header>() == 32 && size_of::<HelloBody>() == 24);

/// The kinds of datagrams and their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    /// Who one is, where one can be probed, and the mechanisms' greeting.
    Hello = 1,
    /// What one can do with the other, found out by trying.
    Report = 2,
    /// No connection, and why.
    Refuse = 3,
    /// The receiver's attempt yields to the sender's own.
    Merge = 4,
    /// The endpoint closes in good order.
    Goodbye = 5,
    /// Descriptors for a mechanism, once established.
    Descriptors = 6,
    /// The receiver is to wake, once connected; says nothing.
    Wake = 7,
}

impl Kind {
    fn from_wire(number: u8) -> Option<Self> {
        use Kind::*;
        [Hello, Report, Refuse, Merge, Goodbye, Descriptors, Wake]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// A datagram read and checked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    /// Who the sender says it is.
    pub id: EndpointId,
    /// What it is.
    pub kind: Kind,
    /// The fixed part of a HELLO, zero for others.
    pub hello: HelloBody,
    /// The bytes behind the header and the fixed part.
    pub blob: &'a [u8],
    /// How many of its descriptors have not arrived.
    pub lost_descriptors: usize,
    /// What the system answered to who refuses, if it is one that a connection ends with.
    pub errno: Option<Errno>,
}

impl Packet<'_> {
    /// A refusal's reason, made fit for printing.
    pub fn reason(&self) -> String {
        let cut = &self.blob[..self.blob.len().min(MAX_REASON_BYTES)];
        String::from_utf8_lossy(cut).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    }
}

/// Why a datagram is not one of ours; the sentence goes back to the sender.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error(
        "this endpoint speaks version {PROTOCOL_VERSION} of the connection protocol and the peer version {0}; use the same version of lmt on both sides"
    )]
    Version(u16),
    #[error("a datagram of {bytes} bytes is not of the connection protocol: {wrong}")]
    Wrong { bytes: usize, wrong: &'static str },
}

/// Writes a datagram. Longer blobs than [`MAX_BLOB_BYTES`] are the caller's
/// to refuse.
pub(super) fn encode(
    id: EndpointId,
    kind: Kind,
    descriptors: usize,
    hello: Option<&HelloBody>,
    blob: &[u8],
) -> Vec<u8> {
    encode_with(id, kind, descriptors, hello, blob, None)
}

fn encode_with(
    id: EndpointId,
    kind: Kind,
    descriptors: usize,
    hello: Option<&HelloBody>,
    blob: &[u8],
    errno: Option<Errno>,
) -> Vec<u8> {
    debug_assert!(descriptors <= MAX_DESCRIPTORS && blob.len() <= MAX_BLOB_BYTES);
    let fixed = hello.map_or(&[][..], |hello| hello.as_bytes());
    let header = Header {
        magic: MAGIC,
        version: PROTOCOL_VERSION,
        kind: kind as u8,
        descriptors: descriptors as u8,
        id: id.to_bytes(),
        body_bytes: (fixed.len() + blob.len()) as u32,
        errno: errno.map_or(0, |errno| errno as u32),
    };
    [header.as_bytes(), fixed, blob].concat()
}

/// A refusal with as much of the reason as travels.
pub(super) fn encode_refusal(id: EndpointId, reason: &str) -> Vec<u8> {
    encode_refusal_by(id, reason, None)
}

/// The same, with what the system answered.
pub(super) fn encode_refusal_by(id: EndpointId, reason: &str, errno: Option<Errno>) -> Vec<u8> {
    let mut end = reason.len().min(MAX_REASON_BYTES);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    encode_with(id, Kind::Refuse, 0, None, &reason.as_bytes()[..end], errno)
}

/// Whether a datagram only wakes.
pub(super) fn is_wake(bytes: &[u8]) -> bool {
    parse(bytes, 0).is_ok_and(|packet| packet.kind == Kind::Wake)
}

/// Reads a datagram with which `arrived` descriptors came. A refusal is read
/// in any version.
pub(super) fn parse(bytes: &[u8], arrived: usize) -> Result<Packet<'_>, Malformed> {
    let wrong = |wrong| Malformed::Wrong { bytes: bytes.len(), wrong };
    let (header, body) = Header::read_from_prefix(bytes).map_err(|_| wrong("it is too short"))?;
    if header.magic != MAGIC {
        return Err(wrong("it does not begin as one"));
    }
    let kind = Kind::from_wire(header.kind);
    if header.version != PROTOCOL_VERSION && kind != Some(Kind::Refuse) {
        return Err(Malformed::Version(header.version));
    }
    let kind = kind.ok_or(wrong("its kind is unknown"))?;
    if header.body_bytes as usize != body.len() {
        return Err(wrong("its length is not what it says"));
    }
    if arrived > usize::from(header.descriptors) || arrived > MAX_DESCRIPTORS {
        return Err(wrong("it brings more descriptors than it may"));
    }
    // Whom they are for is told, and knows whether it can do without.
    let lost_descriptors = usize::from(header.descriptors) - arrived;
    if lost_descriptors > 0 && !matches!(kind, Kind::Hello | Kind::Descriptors) {
        return Err(wrong("it speaks of descriptors, which it may not have"));
    }
    let (hello, blob) = match kind {
        Kind::Hello => HelloBody::read_from_prefix(body).map_err(|_| wrong("its handshake is cut short"))?,
        _ => (HelloBody::default(), body),
    };
    if blob.len() > MAX_BLOB_BYTES {
        return Err(wrong("it is too long"));
    }
    let errno = Errno::from_raw(i32::try_from(header.errno).unwrap_or(0));
    let errno = (kind == Kind::Refuse && is_expected(errno)).then_some(errno);
    Ok(Packet { id: EndpointId::from_bytes(header.id), kind, hello, blob, lost_descriptors, errno })
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
