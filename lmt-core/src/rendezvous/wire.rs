//! The form of the rendezvous packets on the wire.
//!
//! A packet is a head, a body of so many numbers for its kind and, for some kinds, a
//! cookie: words of 8 bytes each, little-endian, the last cut to the cookie's length. So
//! it goes into the words of an inbox's line, and out of them, from register to register;
//! elsewhere its bytes may stand anywhere.
#![forbid(unsafe_code)]

use zerocopy::IntoBytes;

use super::packet::{
    Cts, Demote, Done, Fail, GiveUp, Packet, ReceiveId, Retry, Rts, SendId, TransferKey, WireError,
};
use crate::vocabulary::identity::MechanismTag;
use crate::vocabulary::model::Model;
use crate::vocabulary::transfer::{Cookie, Interval};

const WORD_BYTES: usize = size_of::<u64>();

/// The head, and the numbers of the longest body.
const MAX_BEFORE_COOKIE: usize = 1 + 4;

const WORDS: usize = MAX_BEFORE_COOKIE + Cookie::MAX_BYTES / WORD_BYTES;

// An RTS, and a CTS for all that was announced, travel with a cookie of 16 bytes in the 40
// that a line of the inbox has.
const _: () = assert!((3 * WORD_BYTES + 16) <= 40 && WORDS * WORD_BYTES == Packet::MAX_BYTES);

const RTS: u8 = 1;

const CTS: u8 = 2;

const DONE: u8 = 3;

const DEMOTE: u8 = 4;

const FAIL: u8 = 5;

const RETRY: u8 = 6;

const GIVE_UP: u8 = 7;

const CANCEL: u8 = 8;

const CANCEL_REPLY: u8 = 9;

const CTS_PART: u8 = 10;

/// In the flag of DEMOTE: the receiver's buffer is in shared memory.
const FLAG_SHARED: u8 = 2;

/// In the number of DONE.
const NUMBER_SHARED: u32 = 1;

/// A packet's first word.
#[derive(Clone, Copy)]
struct Head {
    kind: u8,
    attempt: u8,
    /// The packet's one yes or no: which side, for good, cancelled, in shared memory. In
    /// DEMOTE with [`FLAG_SHARED`] beside it; in RTS and RETRY the model.
    flag: u8,
    cookie_bytes: u8,
    /// A mechanism's tag, or an errno.
    number: u32,
}

impl Head {
    const fn pack(self) -> u64 {
        let Self { kind, attempt, flag, cookie_bytes, number } = self;
        kind as u64
            | (attempt as u64) << 8
            | (flag as u64) << 16
            | (cookie_bytes as u64) << 24
            | (number as u64) << 32
    }

    const fn unpack(word: u64) -> Self {
        Self {
            kind: word as u8,
            attempt: (word >> 8) as u8,
            flag: (word >> 16) as u8,
            cookie_bytes: (word >> 24) as u8,
            number: (word >> 32) as u32,
        }
    }

    /// How many numbers the body has, and whether a cookie follows them.
    const fn form(self) -> Result<(usize, bool), WireError> {
        Ok(match self.kind {
            RTS | CTS => (2, true),
            RETRY => (3, true),
            CTS_PART => (4, true),
            DEMOTE => (4, false),
            FAIL => (2, false),
            DONE | GIVE_UP | CANCEL | CANCEL_REPLY => (1, false),
            kind => return Err(WireError::Kind(kind)),
        })
    }

    fn field(self, field: &'static str, value: u8) -> WireError {
        WireError::Field { kind: self.kind, field, value: value.into() }
    }

    fn model(self) -> Result<Model, WireError> {
        Model::from_wire(self.flag).ok_or_else(|| self.field("model", self.flag))
    }

    /// The packet's yes or no; a packet that names a model in its place has none.
    const fn is_yes(self) -> bool {
        self.flag & 1 == 1
    }

    const fn errno(self) -> i32 {
        self.number as i32
    }

    fn check_flag(self) -> Result<(), WireError> {
        let most = match self.kind {
            RTS | RETRY => return self.model().map(|_| ()),
            DEMOTE => 1 | FLAG_SHARED,
            _ => 1,
        };
        if self.flag > most { Err(self.field("flag", self.flag)) } else { Ok(()) }
    }
}

/// A packet in words.
#[derive(Clone, Debug)]
pub(crate) struct PacketWords {
    words: [u64; WORDS],
    bytes: usize,
}

impl PacketWords {
    fn new(head: Head, numbers: &[u64], cookie: Option<&Cookie>) -> Self {
        let mut packet = Self { words: [0; WORDS], bytes: WORD_BYTES * (1 + numbers.len()) };
        let cookie_bytes = cookie.map_or(0, |cookie| cookie.as_bytes().len());
        let mut words = packet.words.iter_mut();
        let head = Head { cookie_bytes: cookie_bytes as u8, ..head }.pack();
        let all = std::iter::once(head).chain(numbers.iter().copied());
        words.by_ref().zip(all).for_each(|(word, value)| *word = value.to_le());
        if let Some(cookie) = cookie {
            words.zip(cookie.words()).for_each(|(word, value)| *word = value.to_le());
        }
        packet.bytes += cookie_bytes;
        packet
    }

    /// No packet yet: room for one.
    pub(crate) const fn empty() -> Self {
        Self { words: [0; WORDS], bytes: 0 }
    }

    /// The words, whose bytes are little-endian, and how many bytes count.
    pub(crate) const fn as_words(&self) -> (&[u64], usize) {
        (&self.words, self.bytes)
    }

    /// Takes words in: `fill` writes them, little-endian, and says how many bytes there are.
    pub(crate) fn fill(&mut self, fill: impl FnOnce(&mut [u64]) -> usize) {
        self.bytes = fill(&mut self.words);
    }

    /// Reads the packet; the words may hold anything.
    ///
    /// The form alone is checked here; whether ids and intervals fit is the machine's to
    /// judge.
    ///
    /// # Errors
    /// [`WireError`] when the bytes are not exactly one packet.
    pub(crate) fn decode(&self) -> Result<Packet, WireError> {
        let length = |kind, expected| WireError::Length { kind, bytes: self.bytes, expected };
        if self.bytes < WORD_BYTES {
            return Err(length(0, WORD_BYTES));
        }
        let head = Head::unpack(u64::from_le(self.words[0]));
        let (numbers, with_cookie) = head.form()?;
        head.check_flag()?;
        let cookie_bytes = usize::from(head.cookie_bytes);
        if cookie_bytes > if with_cookie { Cookie::MAX_BYTES } else { 0 } {
            return Err(head.field("cookie length", head.cookie_bytes));
        }
        let expected = WORD_BYTES * (1 + numbers) + cookie_bytes;
        if self.bytes != expected {
            return Err(length(head.kind, expected));
        }
        let (body, cookie) = self.words[1..].split_at(numbers);
        let cookie = || Cookie::from_words(cookie.iter().map(|word| u64::from_le(*word)), cookie_bytes);
        let at = |index: usize| body.get(index).map_or(0, |word| u64::from_le(*word));
        read(head, at, cookie)
    }
}

/// The packet with this head, whose numbers are `at` their places.
#[inline]
fn read(head: Head, at: impl Fn(usize) -> u64, cookie: impl Fn() -> Cookie) -> Result<Packet, WireError> {
    let Head { attempt, number, .. } = head;
    let (send_id, errno, flag) = (SendId(at(0)), head.errno(), head.is_yes());
    let to = if flag { TransferKey::Receive(ReceiveId(at(0))) } else { TransferKey::Send(send_id) };
    let part = |start: usize| Interval { start: at(start), end: at(start + 1) };
    Ok(match head.kind {
        RTS => {
            let (mechanism, model) = (MechanismTag(number), head.model()?);
            let (total_bytes, cookie) = (at(1), cookie());
            Packet::Rts(Rts { send_id, total_bytes, attempt, mechanism, model, cookie })
        }
        RETRY => {
            let (receive_id, mechanism, model) = (ReceiveId(at(0)), MechanismTag(number), head.model()?);
            let (interval, cookie) = (part(1), cookie());
            Packet::Retry(Retry { receive_id, attempt, mechanism, model, interval, cookie })
        }
        CTS | CTS_PART => {
            let (receive_id, cookie) = (ReceiveId(at(1)), cookie());
            let interval = (head.kind == CTS_PART).then(|| part(2));
            Packet::Cts(Cts { send_id, receive_id, attempt, interval, shared: flag, cookie })
        }
        DEMOTE => {
            let (receive_id, remaining) = (ReceiveId(at(1)), part(2));
            let (for_good, shared) = (flag, head.flag & FLAG_SHARED != 0);
            Packet::Demote(Demote { send_id, receive_id, attempt, remaining, errno, for_good, shared })
        }
        DONE => {
            let shared = number & NUMBER_SHARED != 0;
            Packet::Done(Done { to, attempt, shared })
        }
        FAIL => {
            let (receive_id, front) = (ReceiveId(at(0)), at(1));
            Packet::Fail(Fail { receive_id, attempt, front, errno, for_good: flag })
        }
        GIVE_UP => Packet::GiveUp(GiveUp { to, errno }),
        CANCEL => Packet::Cancel { send_id },
        CANCEL_REPLY => Packet::CancelReply { send_id, cancelled: flag },
        kind => return Err(WireError::Kind(kind)),
    })
}

impl Packet {
    /// The most bytes a packet takes.
    pub const MAX_BYTES: usize = WORD_BYTES * MAX_BEFORE_COOKIE + Cookie::MAX_BYTES;

    /// The packet in words.
    #[inline]
    pub(crate) fn in_words(&self) -> PacketWords {
        let head =
            |kind, attempt, flag: u8, number: u32| Head { kind, attempt, flag, cookie_bytes: 0, number };
        let of_errno = |errno: i32| errno as u32;
        match self {
            Self::Rts(p) => {
                let head = head(RTS, p.attempt, p.model as u8, p.mechanism.0);
                PacketWords::new(head, &[p.send_id.0, p.total_bytes], Some(&p.cookie))
            }
            Self::Retry(p) => {
                let head = head(RETRY, p.attempt, p.model as u8, p.mechanism.0);
                let numbers = [p.receive_id.0, p.interval.start, p.interval.end];
                PacketWords::new(head, &numbers, Some(&p.cookie))
            }
            Self::Cts(p) => match p.interval {
                None => {
                    let head = head(CTS, p.attempt, p.shared.into(), 0);
                    PacketWords::new(head, &[p.send_id.0, p.receive_id.0], Some(&p.cookie))
                }
                Some(part) => {
                    let head = head(CTS_PART, p.attempt, p.shared.into(), 0);
                    let numbers = [p.send_id.0, p.receive_id.0, part.start, part.end];
                    PacketWords::new(head, &numbers, Some(&p.cookie))
                }
            },
            Self::Demote(p) => {
                let shared = if p.shared { FLAG_SHARED } else { 0 };
                let head = head(DEMOTE, p.attempt, u8::from(p.for_good) | shared, of_errno(p.errno));
                let Interval { start, end } = p.remaining;
                PacketWords::new(head, &[p.send_id.0, p.receive_id.0, start, end], None)
            }
            Self::Done(p) => {
                let (flag, id) = named(p.to);
                let number = if p.shared { NUMBER_SHARED } else { 0 };
                PacketWords::new(head(DONE, p.attempt, flag, number), &[id], None)
            }
            Self::Fail(p) => {
                let head = head(FAIL, p.attempt, p.for_good.into(), of_errno(p.errno));
                PacketWords::new(head, &[p.receive_id.0, p.front], None)
            }
            Self::GiveUp(p) => {
                let (flag, id) = named(p.to);
                PacketWords::new(head(GIVE_UP, 0, flag, of_errno(p.errno)), &[id], None)
            }
            Self::Cancel { send_id } => PacketWords::new(head(CANCEL, 0, 0, 0), &[send_id.0], None),
            Self::CancelReply { send_id, cancelled } => {
                PacketWords::new(head(CANCEL_REPLY, 0, (*cancelled).into(), 0), &[send_id.0], None)
            }
        }
    }

    /// Writes the packet to the beginning of `out` and says how many bytes it
    /// took.
    ///
    /// # Panics
    /// If `out` is too short; [`Self::MAX_BYTES`] always suffice.
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let packet = self.in_words();
        let (words, bytes) = packet.as_words();
        out[..bytes].copy_from_slice(&words.as_bytes()[..bytes]);
        bytes
    }

    /// Reads a packet from bytes that may hold anything.
    ///
    /// The form alone is checked here; whether ids and intervals fit is the
    /// machine's to judge.
    ///
    /// # Errors
    /// [`WireError`] when the bytes are not exactly one packet.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut packet = PacketWords::empty();
        packet.fill(|words| {
            let room = words.as_mut_bytes();
            let used = bytes.len().min(room.len());
            room[..used].copy_from_slice(&bytes[..used]);
            // Of more than there is room for it is said how many there are.
            bytes.len()
        });
        packet.decode()
    }
}

/// The flag and the number that name one end of a transfer.
const fn named(key: TransferKey) -> (u8, u64) {
    match key {
        TransferKey::Send(id) => (0, id.0),
        TransferKey::Receive(id) => (1, id.0),
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
