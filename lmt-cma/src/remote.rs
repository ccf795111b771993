//! The memory of a peer that a transfer is about, as its cookie describes it.

use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{Cookie, Fault, Interval};
use lmt_core::process::PeerProcess;

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
        let bad =
            || demote("the peer's cookie does not describe the message; its lmt may be of another version");
        let (start, list) = match parse(cookie, interval).ok_or_else(bad)? {
            Described::Inline { start, count, segments } => (start, Self(List::Inline { count, segments })),
            Described::Indirect { start, address, count } => {
                (start, Self(List::Long(fetch(process, address, count)?)))
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

/// Fetches a list of `count` segments, which `parse` has bounded, from the peer.
fn fetch(process: &PeerProcess, address: u64, count: usize) -> Result<Box<[RemoteSegment]>, Fault> {
    use zerocopy::IntoBytes;
    let mut list = vec![RemoteSegment::default(); count].into_boxed_slice();
    vm::read_bytes(process, address, list.as_mut_bytes()).map_err(|error| fault_of(error, process))?;
    Ok(list)
}
