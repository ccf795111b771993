//! The memory of a peer that a transfer is about, as its cookie describes it.

use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{Cookie, Fault, Interval};
use lmt_core::process::PeerProcess;
use zerocopy::IntoBytes;

use crate::segments::{Described, INLINE_SEGMENTS, RemoteSegment, covers, demote, parse};
use crate::vm::{self, fault_of};

/// The peer's segments, checked to cover the interval they were asked for.
#[derive(Debug, Default)]
pub struct RemoteList(List);

#[derive(Debug)]
enum List {
    Inline { count: usize, segments: [RemoteSegment; INLINE_SEGMENTS] },
    Long(Box<[RemoteSegment]>),
}

impl Default for List {
    fn default() -> Self {
        Self::Inline { count: 0, segments: [RemoteSegment::default(); INLINE_SEGMENTS] }
    }
}

impl RemoteList {
    /// Reads a peer's cookie, which is untrusted, and fetches the list that it
    /// speaks of if that is a long one; returns it with the place of the
    /// interval's first byte. What it says is checked to cover the interval and
    /// not to wrap around; whether there is memory, the kernel says at the copy.
    ///
    /// # Errors
    /// [`Fault`]: it does not describe the interval, or cannot be fetched.
    pub fn resolve(
        process: &PeerProcess,
        cookie: &Cookie,
        interval: Interval,
    ) -> Result<(Self, Cursor), Fault> {
        Self::resolve_by(cookie, interval, |address, list| {
            vm::read_bytes(process, address, list).map_err(|error| fault_of(error, process))
        })
    }

    /// The same with another copy of the peer's memory: `fetch` fills bytes here with
    /// those from an address there, which the peer has named.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn resolve_by(
        cookie: &Cookie,
        interval: Interval,
        fetch: impl FnOnce(u64, &mut [u8]) -> Result<(), Fault>,
    ) -> Result<(Self, Cursor), Fault> {
        let bad =
            || demote("the peer's cookie does not describe the message; its lmt may be of another version");
        let (start, list) = match parse(cookie, interval).ok_or_else(bad)? {
            Described::Inline { start, count, segments } => (start, Self(List::Inline { count, segments })),
            Described::Indirect { start, address, count } => {
                // `parse` has bounded their number.
                let mut list = vec![RemoteSegment::default(); count].into_boxed_slice();
                fetch(address, list.as_mut_bytes())?;
                (start, Self(List::Long(list)))
            }
        };
        if !covers(start, list.as_slice(), interval) {
            return Err(bad());
        }
        let at = Cursor::at(list.as_slice(), interval.start - start);
        Ok((list, at))
    }

    /// The segments, in order.
    pub fn as_slice(&self) -> &[RemoteSegment] {
        match &self.0 {
            List::Inline { count, segments } => segments.get(..*count).unwrap_or(&[]),
            List::Long(list) => list,
        }
    }
}
