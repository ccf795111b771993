//! A multi-receive buffer: memory that takes one message after the other.

use crate::abi::flags;

/// Each message begins at a multiple of this, so that those who lay structures
/// over the bytes find them aligned.
const ALIGNMENT_BYTES: usize = 16;

/// One of them. What is left of it is posted as one receive at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MultiBuffer {
    /// What its receive was begun with.
    pub context: usize,
    /// Where it begins, an address that is only computed with.
    pub address: usize,
    /// How long it is.
    pub bytes: usize,
    /// How much of it messages have taken.
    pub used_bytes: usize,
    /// It is given back when less than this is left.
    pub least_bytes: usize,
    /// Whether its messages are told of.
    pub reports: bool,
    /// Whose messages it takes.
    pub source: lmt::Source,
}

/// Where a message is, and whether the buffer takes more after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The message's first byte.
    pub address: usize,
    /// Whether the buffer is given back with it.
    pub is_last: bool,
}

impl MultiBuffer {
    /// The part that takes the next message: address and bytes.
    pub const fn rest(&self) -> (usize, usize) {
        (self.address + self.used_bytes, self.bytes - self.used_bytes)
    }

    /// Notes that a message of so many bytes is at the beginning of the rest.
    pub fn take(&mut self, message_bytes: usize) -> Taken {
        let (address, rest_bytes) = self.rest();
        let taken_bytes = message_bytes.next_multiple_of(ALIGNMENT_BYTES).min(rest_bytes);
        self.used_bytes += taken_bytes;
        let is_last = self.bytes - self.used_bytes < self.least_bytes.max(1);
        Taken { address, is_last }
    }

    /// The flags of a message's completion beside those of a receive.
    pub const fn flags(is_last: bool) -> u64 {
        if is_last { flags::MULTI_RECV } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(bytes: usize, least_bytes: usize) -> MultiBuffer {
        let source = lmt::Source::Any;
        MultiBuffer { context: 1, address: 0x1000, bytes, used_bytes: 0, least_bytes, reports: true, source }
    }

    #[test]
    fn messages_stand_one_behind_the_other_until_too_little_is_left() {
        let mut buffer = buffer(100, 40);
        assert_eq!(buffer.take(0), Taken { address: 0x1000, is_last: false });
        assert_eq!(buffer.take(20), Taken { address: 0x1000, is_last: false });
        assert_eq!(buffer.rest(), (0x1020, 68));
        assert_eq!(buffer.take(33), Taken { address: 0x1020, is_last: true });
    }

    #[test]
    fn a_buffer_that_is_full_is_given_back_whatever_the_least() {
        let mut buffer = buffer(8, 0);
        assert_eq!(buffer.take(8), Taken { address: 0x1000, is_last: true });
        assert_eq!(buffer.rest(), (0x1008, 0));
    }
}
