//! What is done with a message's bytes besides sending them: nothing, using
//! them as an application would, or checking every one of them.

use std::hint::black_box;

/// Which message a buffer holds: enough to make its bytes differ from those of
/// every other message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The rank that sends it.
    pub source: u32,
    /// Its tag.
    pub tag: u64,
    /// Its number among those of this source and tag, from 0.
    pub number: u64,
}

/// What a pattern does to the buffers around each message.
pub trait Handling {
    /// Before the message is sent.
    fn before_send(&mut self, data: &mut [u8], message: Message);
    /// Before it is received.
    fn before_receive(&mut self, data: &mut [u8]);
    /// After it has been received.
    fn after_receive(&mut self, data: &[u8], message: Message);
}

/// Nothing is done, as in IMB and OSU.
#[derive(Debug)]
pub struct Unmodified;

impl Handling for Unmodified {
    fn before_send(&mut self, _: &mut [u8], _: Message) {}
    fn before_receive(&mut self, _: &mut [u8]) {}
    fn after_receive(&mut self, _: &[u8], _: Message) {}
}

/// The sender writes its buffer and the receiver reads its own, as applications
/// do (knem-jpdc2013, note 17).
#[derive(Debug)]
pub struct InUse;

impl Handling for InUse {
    fn before_send(&mut self, data: &mut [u8], message: Message) {
        write_all(data, message.number);
    }
    fn before_receive(&mut self, _: &mut [u8]) {}
    fn after_receive(&mut self, data: &[u8], _: Message) {
        read_all(data);
    }
}

/// Writes every byte.
pub fn write_all(data: &mut [u8], number: u64) {
    data.fill(number.to_le_bytes()[0]);
    black_box(data);
}

/// Reads every byte, as words of 8 bytes; `peer.c` does the same.
pub fn read_all(data: &[u8]) {
    let (words, rest) = black_box(data).as_chunks();
    let sum = words.iter().fold(0u64, |sum, &word| sum.wrapping_add(u64::from_le_bytes(word)));
    black_box(rest.iter().fold(sum, |sum, &byte| sum.wrapping_add(u64::from(byte))));
}

/// The sender fills its buffer with bytes that depend on position, rank, tag
/// and iteration; the receiver poisons its own before and checks it after.
#[derive(Debug, Default)]
pub struct Verified {
    /// Messages checked.
    pub messages: u64,
    /// The first that was wrong: one sentence.
    pub fault: Option<String>,
}

impl Handling for Verified {
    fn before_send(&mut self, data: &mut [u8], message: Message) {
        for (word, chunk) in data.chunks_mut(8).enumerate() {
            chunk.copy_from_slice(&expected(message, word as u64)[..chunk.len()]);
        }
    }

    fn before_receive(&mut self, data: &mut [u8]) {
        data.fill(POISON);
    }

    fn after_receive(&mut self, data: &[u8], message: Message) {
        self.messages += 1;
        let wrong = data
            .chunks(8)
            .enumerate()
            .find(|(word, chunk)| *chunk != &expected(message, *word as u64)[..chunk.len()]);
        if let (None, Some((word, chunk))) = (&self.fault, wrong) {
            let expected = expected(message, word as u64);
            let inside = chunk.iter().zip(expected).position(|(&is, should)| is != should).unwrap_or(0);
            self.fault = Some(format!(
                "message {} of {} bytes from rank {} (tag {}) arrived wrong: byte {} is {:#04x} and should be {:#04x}",
                message.number,
                data.len(),
                message.source,
                message.tag,
                word * 8 + inside,
                chunk[inside],
                expected[inside],
            ));
        }
    }
}

/// What stands in a receive buffer before: a byte that was never written shows.
const POISON: u8 = 0xA5;

/// The eight bytes at position `8 * word` of a message: a mix (splitmix64's
/// finisher) of everything that names it, so that neither a shift, a
/// repetition nor another message's bytes pass.
fn expected(message: Message, word: u64) -> [u8; 8] {
    let mut mixed = message.number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ (u64::from(message.source) << 48)
        ^ message.tag.rotate_left(40)
        ^ word;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)).to_le_bytes()
}

#[cfg(test)]
#[path = "handling_tests.rs"]
mod tests;
