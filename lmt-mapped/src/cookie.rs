//! How one process names a message in its shared buffers to another.

use lmt_core::buffer::Buffer;
use lmt_core::mechanism::{Cookie, Fault, Interval};
use lmt_core::process::PeerProcess;
use lmt_core::shared_buffer::{Arena, Offer, OfferError, Part, SharedBuffer, alloc};
use std::sync::Arc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Pieces that fit into a cookie; longer lists stand in a buffer of their own.
pub(crate) const INLINE_PARTS: usize = 2;
/// The longest list: 16 MiB.
pub(crate) const MAX_PARTS: u32 = 1 << 20;

/// A piece, as offset and bytes in its arena.
pub(crate) type WirePart = [u64; 2];

const PART_BYTES: usize = size_of::<WirePart>();

/// What a cookie begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Head {
    pub arena: u32,
    /// The lease's line there, and which lease of that line.
    pub line: u32,
    pub generation: u32,
    /// How many pieces there are.
    pub count: u32,
    /// The offset in the message at which they begin.
    pub start: u64,
    /// The arena in which the list of pieces stands, if it is not 0; then the
    /// one piece that follows says where.
    pub list_arena: u32,
    /// 0: with it the length is a multiple of 8.
    pub unused: u32,
}

const _: () = assert!(size_of::<Head>() + INLINE_PARTS * PART_BYTES == Cookie::MAX_BYTES);

/// What stands of the head in a receiver's cookie in the Both model: without a list, which
/// such a cookie never has.
const SHORT_HEAD_BYTES: usize = std::mem::offset_of!(Head, list_arena);

/// A message that a peer may map.
#[derive(Debug)]
pub(crate) struct Offered {
    /// Ends before the list goes, which it keeps for a peer that still reads it.
    pub offer: Offer,
    /// A long list of its pieces.
    list: Option<SharedBuffer>,
}

impl Offered {
    /// The arena in which the list of its pieces stands, if there is one.
    pub fn list_arena(&self) -> Option<&Arena> {
        self.list.as_ref().map(|list| &**list.arena())
    }
}

/// The pieces of an offer: how many there are, the first of them, and all where they are
/// more than fit a cookie.
#[derive(Default)]
struct Pieces {
    count: usize,
    inline: [WirePart; INLINE_PARTS],
    long: Vec<WirePart>,
}

impl Pieces {
    fn add(&mut self, Part { offset, bytes }: Part) {
        if let Some(place) = self.inline.get_mut(self.count) {
            *place = [offset, bytes];
        } else {
            if self.long.is_empty() {
                self.long.extend(&self.inline);
            }
            self.long.push([offset, bytes]);
        }
        self.count += 1;
    }
}

/// Offers the part `interval` of `data` to a process.
fn offer(
    data: &Buffer,
    interval: Interval,
    process: &Arc<PeerProcess>,
) -> Result<(Offer, Head, Pieces), Fault> {
    let mut pieces = Pieces::default();
    let offer =
        Offer::new(data, interval, process, |part| pieces.add(part)).map_err(|error| demote(&error))?;
    if pieces.count > MAX_PARTS as usize {
        return Err(demotion_fault("the message has more than 1048576 segments; pack it or use fewer"));
    }
    let head = Head {
        arena: offer.arena().id(),
        line: offer.line(),
        generation: offer.generation(),
        count: pieces.count as u32,
        start: interval.start,
        list_arena: 0,
        unused: 0,
    };
    Ok((offer, head, pieces))
}

/// Offers the part `interval` of `data` to a process, with what describes it.
pub(crate) fn describe(
    data: &Buffer,
    interval: Interval,
    process: &Arc<PeerProcess>,
) -> Result<(Cookie, Offered), Fault> {
    let (mut offer, mut head, mut pieces) = offer(data, interval, process)?;
    let (mut list, mut used) = (None, pieces.count);
    if !pieces.long.is_empty() {
        let raw = pieces.long.as_bytes();
        let mut kept = alloc(raw.len()).map_err(|short| demotion_fault(&short.to_string()))?;
        kept.copy_from_slice(raw);
        offer.include(&kept);
        head.list_arena = kept.arena().id();
        pieces.inline[0] = [kept.offset() as u64, raw.len() as u64];
        (list, used) = (Some(kept), 1);
    }
    Ok((joined([head.as_bytes(), pieces.inline[..used].as_bytes()]), Offered { offer, list }))
}

/// A receiver's cookie in the Both model: what describes its memory, where that can be mapped
/// and is of no more pieces than fit: a list would be read by a sender after the message has
/// ended. Else an empty one.
pub(crate) fn describe_short(
    data: &Buffer,
    interval: Interval,
    process: &Arc<PeerProcess>,
) -> (Cookie, Option<Offered>) {
    let is_short = data.pieces(interval.start..interval.end).take(INLINE_PARTS + 1).count() <= INLINE_PARTS;
    let offered = if is_short { offer(data, interval, process).ok() } else { None };
    let Some((offer, head, pieces)) = offered else { return (Cookie::empty(), None) };
    let head = &head.as_bytes()[..SHORT_HEAD_BYTES];
    let cookie = joined([head, pieces.inline[..pieces.count].as_bytes()]);
    (cookie, Some(Offered { offer, list: None }))
}

/// A cookie of these parts, no longer than one may be: see the assertions.
fn joined(parts: [&[u8]; 2]) -> Cookie {
    let mut bytes = [0; Cookie::MAX_BYTES];
    let mut end = 0;
    for part in parts {
        bytes[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    Cookie::new(&bytes[..end]).unwrap_or(Cookie::empty())
}

/// Reads such a cookie, which is untrusted.
pub(crate) fn parse_short(cookie: &Cookie) -> Option<Described> {
    let (short, parts) = cookie.as_bytes().split_at_checked(SHORT_HEAD_BYTES)?;
    let mut head = [0; size_of::<Head>()];
    head[..SHORT_HEAD_BYTES].copy_from_slice(short);
    parse_parts(Head::read_from_bytes(&head).ok()?, parts)
}

/// What a peer's cookie says; only its form is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Described {
    pub head: Head,
    pub inline: [WirePart; INLINE_PARTS],
}

/// Reads a cookie, which is untrusted; `None` when it cannot be one.
pub(crate) fn parse(cookie: &Cookie) -> Option<Described> {
    let (head, rest) = Head::read_from_prefix(cookie.as_bytes()).ok()?;
    parse_parts(head, rest)
}

fn parse_parts(head: Head, rest: &[u8]) -> Option<Described> {
    let mut inline = [[0u64; 2]; INLINE_PARTS];
    let used = match head.list_arena {
        0 => head.count as usize,
        _ => 1,
    };
    let is_whole = used > 0 && used <= INLINE_PARTS && rest.len() == used * PART_BYTES;
    if !is_whole || head.count > MAX_PARTS {
        return None;
    }
    inline[..used].as_mut_bytes().copy_from_slice(rest);
    if head.list_arena != 0 && inline[0][1] != u64::from(head.count) * PART_BYTES as u64 {
        return None;
    }
    Some(Described { head, inline })
}

/// Whether pieces that begin at message offset `start` hold all of `interval`
/// and lie within an arena of this length, behind its leases.
pub(crate) fn covers(start: u64, parts: &[WirePart], interval: Interval, arena_bytes: u64) -> bool {
    let mut end = Some(start);
    for [offset, bytes] in parts {
        let is_within = offset.checked_add(*bytes).is_some_and(|end| end <= arena_bytes);
        if !is_within || *offset < lmt_core::shared_buffer::HEAD_BYTES as u64 {
            return false;
        }
        end = end.and_then(|end| end.checked_add(*bytes));
    }
    start <= interval.start && end.is_some_and(|end| end >= interval.end)
}

fn demote(error: &OfferError) -> Fault {
    demotion_fault(&error.to_string())
}

pub(crate) fn demotion_fault(sentence: &str) -> Fault {
    Fault::Demote { errno: 0, for_good: false, sentence: sentence.to_owned() }
}

pub(crate) fn garbage() -> Fault {
    demotion_fault("the peer's cookie does not describe the message; its lmt may be of another version")
}

pub(crate) fn short_buffer() -> Fault {
    demotion_fault(
        "the buffer here is shorter than the transfer, or has the wrong access; give the one that prepare saw",
    )
}

#[cfg(test)]
#[path = "cookie_tests.rs"]
mod tests;
