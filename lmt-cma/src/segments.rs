//! How one process names its memory to another: the cookie.

use lmt_core::buffer::Buffer;
use lmt_core::cursor::Extent;
use lmt_core::mechanism::{Cookie, Fault, Interval};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// One piece of the peer's memory: `bytes` bytes from `address` there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RemoteSegment {
    /// The address of the first byte, in the peer.
    pub address: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Extent for RemoteSegment {
    fn extent_bytes(&self) -> u64 {
        self.bytes
    }
}

/// Segments that fit into a cookie; of longer lists it holds the address.
pub const INLINE_SEGMENTS: usize = 3;
/// The longest list that is fetched from a peer: 16 MiB of descriptors.
pub const MAX_SEGMENTS: u32 = 1 << 20;

/// The cookie of contiguous memory: where the message's first byte is (or would
/// be, in a part that begins later). As short as it is, it travels in the one
/// cache line of the RTS. How long the memory is, the interval says.
const BASE_BYTES: usize = 8;

/// A longer cookie as it lies on the wire; of `inline` only what is used is sent.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Wire {
    /// The message offset at which the list begins.
    start: u64,
    /// Segments in the list.
    count: u32,
    /// Whether `inline[0]` describes an array of `count` segments in the peer
    /// instead of being the first of them.
    is_indirect: u32,
    inline: [RemoteSegment; INLINE_SEGMENTS],
}

const HEADER_BYTES: usize = 16;
const SEGMENT_BYTES: usize = size_of::<RemoteSegment>();
const _: () = assert!(size_of::<Wire>() == Cookie::MAX_BYTES);
const _: () = assert!(std::mem::offset_of!(Wire, inline) == HEADER_BYTES && SEGMENT_BYTES == 16);

/// A list that was described to the peer and has to stay where it is until the
/// transfer ends.
pub type KeptList = Box<[RemoteSegment]>;

/// Describes the part `interval` of `data`, which must lie within it.
/// The cookie speaks of addresses in this process, and of the list's own where
/// one is kept.
///
/// # Errors
/// [`Fault::Demote`] when it has more than [`MAX_SEGMENTS`] pieces.
pub fn describe(data: &Buffer, interval: Interval) -> Result<(Cookie, Option<KeptList>), Fault> {
    describe_within(Cookie::MAX_BYTES, data, interval)
}

/// As [`describe`], in at most `bytes` bytes, which one segment fits.
///
/// # Errors
/// As [`describe`].
pub fn describe_within(
    bytes: usize,
    data: &Buffer,
    interval: Interval,
) -> Result<(Cookie, Option<KeptList>), Fault> {
    let segments = bytes.saturating_sub(HEADER_BYTES) / SEGMENT_BYTES;
    let described = within_bounds(data, interval, segments.min(INLINE_SEGMENTS));
    described.ok_or_else(|| demote("the message has more than 1048576 segments; pack it or use fewer"))
}

/// Describes contiguous memory, of which nothing has to be kept.
#[inline]
pub(crate) fn describe_contiguous(data: &Buffer) -> Option<Cookie> {
    let [one] = data.segments() else { return None };
    Cookie::new(&(one.address as u64).to_ne_bytes())
}

fn within_bounds(data: &Buffer, interval: Interval, most: usize) -> Option<(Cookie, Option<KeptList>)> {
    if let Some(cookie) = describe_contiguous(data) {
        return Some((cookie, None));
    }
    let remote =
        |s: lmt_core::buffer::Segment| RemoteSegment { address: s.address as u64, bytes: s.bytes as u64 };
    let mut wire = Wire {
        start: interval.start,
        count: 0,
        is_indirect: 0,
        inline: [RemoteSegment::default(); INLINE_SEGMENTS],
    };
    let mut used = 0;
    let mut pieces = data.pieces(interval.start..interval.end);
    for slot in &mut wire.inline[..most] {
        let Some(piece) = pieces.next() else { break };
        *slot = remote(piece);
        used += 1;
    }
    let mut kept = None;
    wire.count = used as u32;
    if let Some(next) = pieces.next() {
        let list: KeptList = wire
            .inline
            .iter()
            .take(used)
            .copied()
            .chain(std::iter::once(remote(next)))
            .chain(pieces.map(remote))
            .collect();
        wire.count = u32::try_from(list.len()).ok().filter(|&count| count <= MAX_SEGMENTS)?;
        wire.is_indirect = 1;
        used = 1;
        wire.inline[0] = RemoteSegment {
            address: list.as_ptr().expose_provenance() as u64,
            bytes: (list.len() * SEGMENT_BYTES) as u64,
        };
        kept = Some(list);
    }
    Some((Cookie::new(&wire.as_bytes()[..HEADER_BYTES + used * SEGMENT_BYTES])?, kept))
}

/// Where contiguous memory begins that a peer's cookie, which is untrusted, describes.
pub(crate) fn base_of(cookie: &Cookie) -> Option<u64> {
    <[u8; BASE_BYTES]>::try_from(cookie.as_bytes()).ok().map(u64::from_ne_bytes)
}

/// What a peer's cookie says, its form checked.
#[derive(Clone, Debug)]
pub(crate) enum Described {
    /// The segments themselves, `count` of them.
    Inline { start: u64, count: usize, segments: [RemoteSegment; INLINE_SEGMENTS] },
    /// Where in the peer they stand.
    Indirect { start: u64, address: u64, count: usize },
}

/// Reads a cookie, which is untrusted, for a transfer of `interval`; `None` when
/// it cannot be one.
pub(crate) fn parse(cookie: &Cookie, interval: Interval) -> Option<Described> {
    let bytes = cookie.as_bytes();
    if let Some(base) = base_of(cookie) {
        let address = base.wrapping_add(interval.start);
        let mut segments = [RemoteSegment::default(); INLINE_SEGMENTS];
        segments[0] = RemoteSegment { address, bytes: interval.bytes() };
        return Some(Described::Inline { start: interval.start, count: 1, segments });
    }
    let mut padded = [0; Cookie::MAX_BYTES];
    padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let wire = Wire::read_from_bytes(&padded).ok()?;
    let listed = bytes.len().checked_sub(HEADER_BYTES)? / SEGMENT_BYTES;
    let count = wire.count as usize;
    match wire.is_indirect {
        0 if count == listed => Some(Described::Inline { start: wire.start, count, segments: wire.inline }),
        1 if listed == 1 && wire.count <= MAX_SEGMENTS => {
            Some(Described::Indirect { start: wire.start, address: wire.inline[0].address, count })
        }
        _ => None,
    }
}

/// Whether a list that begins at message offset `start` holds all of
/// `interval`, and no segment in it wraps around.
pub(crate) fn covers(start: u64, list: &[RemoteSegment], interval: Interval) -> bool {
    let mut end = Some(start);
    for s in list {
        if s.address.checked_add(s.bytes).is_none() {
            return false;
        }
        end = end.and_then(|end| end.checked_add(s.bytes));
    }
    start <= interval.start && end.is_some_and(|end| end >= interval.end)
}

pub(crate) fn demote(sentence: &str) -> Fault {
    Fault::Demote { errno: 0, for_good: false, sentence: sentence.to_owned() }
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
