//! The messages by which an endpoint has a peer work on its own memory.

use crate::abi::Errno;
use crate::atomic::{Action, MAX_BYTES};

/// Bytes of a request before what it brings.
pub const HEAD_BYTES: usize = 48;
/// The most bytes of a read or a write that one message takes.
pub const PIECE_BYTES: usize = 2 * MAX_BYTES;
/// The longest request: an operand and what it is compared with for each element,
/// or a piece of a write.
pub const REQUEST_BYTES: usize = HEAD_BYTES + PIECE_BYTES;

const VERSION: u8 = 1;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// An atomic operation on `count` elements.
    Atomic(Action),
    /// A read of `count` bytes, which the answer brings.
    Read,
    /// A write of the bytes that the request brings.
    Write,
    /// That the target's queue tells of a write of `offset` bytes with this number,
    /// which is done.
    Tell(u32),
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What is asked for.
    pub what: What,
    /// By which the answer names it.
    pub id: u64,
    /// Which region.
    pub key: u64,
    /// Where in it, in bytes.
    pub offset: u64,
    /// How many.
    pub count: u32,
    /// Bytes from there on that the whole read or write is about, of which this is a
    /// piece: one that reaches past the end is to change nothing.
    pub rest_bytes: u64,
}

/// Why a message is no request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRequest {
    /// Its id, if that can be read.
    pub id: Option<u64>,
    /// What is wrong with the rest.
    pub error: Errno,
}

impl Request {
    /// The head of its message.
    pub fn to_head(self) -> [u8; HEAD_BYTES] {
        let (kind, action, data) = match self.what {
            What::Atomic(action) => (0, action.to_bytes(), 0),
            What::Read => (1, [0; 3], 0),
            What::Write => (2, [0; 3], 0),
            What::Tell(data) => (3, [0; 3], data),
        };
        let mut head = [0; HEAD_BYTES];
        head[..2].copy_from_slice(&[VERSION, kind]);
        head[2..5].copy_from_slice(&action);
        head[8..16].copy_from_slice(&self.id.to_le_bytes());
        head[16..24].copy_from_slice(&self.key.to_le_bytes());
        head[24..32].copy_from_slice(&self.offset.to_le_bytes());
        head[32..36].copy_from_slice(&self.count.to_le_bytes());
        head[36..40].copy_from_slice(&data.to_le_bytes());
        head[40..48].copy_from_slice(&self.rest_bytes.to_le_bytes());
        head
    }

    /// What a message asks for, and what it brings. Whether that fits, its doer sees.
    ///
    /// # Errors
    /// It is no request.
    pub fn read(message: &[u8]) -> Result<(Self, &[u8]), NoRequest> {
        let too_short = NoRequest { id: None, error: Errno::INVAL };
        let (head, payload) = message.split_first_chunk::<HEAD_BYTES>().ok_or(too_short)?;
        let long = |at: usize| word(head, at) | word(head, at + 4) << 32;
        let short = |at: usize| word(head, at) as u32;
        let id = long(8);
        let wrong = |error| NoRequest { id: Some(id), error };
        let what = match (head[0], head[1]) {
            (VERSION, 0) => What::Atomic(Action::from_bytes([head[2], head[3], head[4]]).map_err(wrong)?),
            (VERSION, 1) => What::Read,
            (VERSION, 2) => What::Write,
            (VERSION, 3) => What::Tell(short(36)),
            _ => return Err(wrong(Errno::NOSYS)),
        };
        let (key, offset, count, rest_bytes) = (long(16), long(24), short(32), long(40));
        Ok((Self { what, id, key, offset, count, rest_bytes }, payload))
    }
}

/// Four bytes of a head.
fn word(head: &[u8; HEAD_BYTES], at: usize) -> u64 {
    let bytes = head.get(at..).and_then(|rest| rest.first_chunk::<4>());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::Family;

    #[test]
    fn requests_come_back_as_they_were() {
        let sum = Action::of(Family::Fetch, 7, 2).expect("an action");
        for what in [What::Atomic(sum), What::Read, What::Write, What::Tell(u32::MAX)] {
            let request =
                Request { what, id: 1 << 40, key: u64::MAX, offset: 5 << 33, count: 6, rest_bytes: 9 };
            let message = [&request.to_head()[..], b"rest"].concat();
            assert_eq!(Request::read(&message), Ok((request, &b"rest"[..])));
        }
    }

    #[test]
    fn other_bytes_are_no_request() {
        let wrong = |id, error| Err(NoRequest { id, error });
        assert_eq!(Request::read(&[0; HEAD_BYTES - 1]), wrong(None, Errno::INVAL));
        assert_eq!(Request::read(&[0; HEAD_BYTES]), wrong(Some(0), Errno::NOSYS));
        assert_eq!(Request::read(&[0xff; 100]), wrong(Some(u64::MAX), Errno::NOSYS));
        let mut message = [0; HEAD_BYTES];
        message[..5].copy_from_slice(&[VERSION, 0, 0, 13, 0]);
        assert_eq!(Request::read(&message), wrong(Some(0), Errno::OPNOTSUPP));
    }
}
