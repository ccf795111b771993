//! The rendezvous packets and their form on the wire.
//!
//! Every packet is a head of four bytes, a body of fixed size for its kind, and
//! for some kinds a cookie. Numbers are little-endian and unaligned, so that a
//! packet may stand anywhere in a cell or in an embedder's own packet.

use zerocopy::little_endian::{I32, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::mechanism::{Cookie, Interval, Model, Role};

/// A mechanism's name as it travels: the 32-bit FNV-1a hash of the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct MechanismTag(pub u32);

impl MechanismTag {
    /// The tag of the mechanism with this name.
    ///
    /// ```
    /// use lmt_core::rendezvous::MechanismTag;
    /// assert_eq!(MechanismTag::of("a"), MechanismTag(0xe40c292c));
    /// ```
    pub const fn of(name: &str) -> Self {
        let bytes = name.as_bytes();
        let mut hash = 0x811c_9dc5_u32;
        let mut at = 0;
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
            at += 1;
        }
        Self(hash)
    }
}

/// A message on its way out, as its sender names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct SendId(pub u64);

/// A matched message on its way in, as its receiver names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct ReceiveId(pub u64);

/// One end of one transfer within one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum TransferKey {
    /// The message leaves here.
    Send(SendId),
    /// It arrives here.
    Receive(ReceiveId),
}

impl TransferKey {
    /// Which end it is.
    pub const fn role(self) -> Role {
        match self {
            Self::Send(_) => Role::Sender,
            Self::Receive(_) => Role::Receiver,
        }
    }
}

/// "I have a message for you": sender to receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rts {
    /// How the sender names the message.
    pub send_id: SendId,
    /// The message's length.
    pub total_bytes: u64,
    /// Number of this attempt; 0 is the first.
    pub attempt: u8,
    /// Which mechanism the sender proposes.
    pub mechanism: MechanismTag,
    /// Who is to move the bytes.
    pub model: Model,
    /// The sender's cookie.
    pub cookie: Cookie,
}

/// "Here is my side": receiver to sender, Put and Cooperative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cts {
    /// The message.
    pub send_id: SendId,
    /// How the receiver names it.
    pub receive_id: ReceiveId,
    /// Which attempt this answers.
    pub attempt: u8,
    /// What the receiver has room for, where that is not all that the attempt is to
    /// move.
    pub interval: Option<Interval>,
    /// Whether the receiver's memory is in shared buffers.
    pub shared: bool,
    /// The receiver's cookie.
    pub cookie: Cookie,
}

/// "All has been moved": from the end that moved or counted the last byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// The addressee's end.
    pub to: TransferKey,
    /// Which attempt.
    pub attempt: u8,
    /// From a receiver: whether the message arrived in shared buffers.
    pub shared: bool,
}

/// "This attempt has failed, try another way": receiver to sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demote {
    /// The message.
    pub send_id: SendId,
    /// How the receiver names it.
    pub receive_id: ReceiveId,
    /// Which attempt failed.
    pub attempt: u8,
    /// What is still missing, never empty.
    pub remaining: Interval,
    /// The errno behind it, or 0.
    pub errno: i32,
    /// Whether the receiver found the mechanism to be of no more use at all.
    pub for_good: bool,
    /// Whether the receiver's buffer is in shared memory.
    pub shared: bool,
}

/// "My side has failed": sender to receiver, which answers with DEMOTE, or
/// with DONE when it has everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fail {
    /// The receive.
    pub receive_id: ReceiveId,
    /// Which attempt failed.
    pub attempt: u8,
    /// Put: everything before this offset has been written.
    pub front: u64,
    /// The errno behind it, or 0.
    pub errno: i32,
    /// Whether the sender found the mechanism to be of no more use at all.
    pub for_good: bool,
}

/// "Take what is missing this way": sender to receiver, after DEMOTE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    /// The receive.
    pub receive_id: ReceiveId,
    /// Number of this attempt, one more than that of the demoted one.
    pub attempt: u8,
    /// Which mechanism the sender proposes now.
    pub mechanism: MechanismTag,
    /// Who is to move the bytes.
    pub model: Model,
    /// What is still missing, as DEMOTE said.
    pub interval: Interval,
    /// The sender's cookie.
    pub cookie: Cookie,
}

/// "No mechanism is left": both ends complete with an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GiveUp {
    /// The addressee's end.
    pub to: TransferKey,
    /// The errno of the last failure, or 0.
    pub errno: i32,
}

/// What two machines say to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet {
    /// Announces a message.
    Rts(Rts),
    /// Asks for the bytes.
    Cts(Cts),
    /// Ends a transfer well.
    Done(Done),
    /// Ends an attempt.
    Demote(Demote),
    /// Asks for the end of an attempt.
    Fail(Fail),
    /// Begins the next attempt.
    Retry(Retry),
    /// Ends a transfer badly.
    GiveUp(GiveUp),
    /// Takes an unmatched message back: sender to receiver.
    Cancel {
        /// The message.
        send_id: SendId,
    },
    /// Says whether that came in time.
    CancelReply {
        /// The message.
        send_id: SendId,
        /// Whether the message was still unmatched and is now forgotten.
        cancelled: bool,
    },
}

/// Why bytes are not a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// No packet has this number.
    #[error("packet kind {0} is unknown; both endpoints must speak the same version")]
    Kind(u8),
    /// Too short or too long for what it says it is.
    #[error("a packet of kind {kind} came with {bytes} bytes instead of {expected}")]
    Length {
        /// What it says it is.
        kind: u8,
        /// How long it is.
        bytes: usize,
        /// How long it would have to be.
        expected: usize,
    },
    /// A field holds what no sender writes.
    #[error("a packet of kind {kind} holds {value} as its {field}, which means nothing")]
    Field {
        /// What it says it is.
        kind: u8,
        /// Which field.
        field: &'static str,
        /// What stands there.
        value: u64,
    },
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
struct Head {
    kind: u8,
    attempt: u8,
    /// The packet's one yes or no: which side, for good, cancelled, in shared memory.
    /// In DEMOTE with [`FLAG_SHARED`] beside it.
    flag: u8,
    cookie_bytes: u8,
}

/// The body of every packet but the two that name a mechanism.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
struct ShortBody {
    id: U64,
    offset: U64,
    errno: I32,
}

/// CTS for all that was announced. With its head and a cookie of 16 bytes it fits the
/// 40 bytes that travel in one cache line of the inbox.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
struct GrantBody {
    send_id: U64,
    receive_id: U64,
}

/// CTS for a part, and DEMOTE.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
struct ReplyBody {
    send_id: U64,
    receive_id: U64,
    start: U64,
    end: U64,
    errno: I32,
}

/// RTS. With its head and a cookie of 8 bytes it fits the 40 bytes that travel
/// in one cache line of the inbox.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
struct AnnounceBody {
    id: U64,
    total_bytes: U64,
    mechanism: U32,
    model: u8,
}

/// RETRY.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
struct OfferBody {
    id: U64,
    start: U64,
    end: U64,
    mechanism: U32,
    model: u8,
}

const HEAD_BYTES: usize = size_of::<Head>();
const _: () = assert!(HEAD_BYTES == 4 && size_of::<ShortBody>() == 20);
const _: () = assert!(size_of::<ReplyBody>() == 36 && size_of::<OfferBody>() == 29);
const _: () = assert!(HEAD_BYTES + size_of::<AnnounceBody>() + 8 <= 40);
const _: () = assert!(HEAD_BYTES + size_of::<GrantBody>() + 16 <= 40);
const _: () = assert!(Packet::MAX_BYTES < 320);

const RTS: u8 = 1;
const CTS: u8 = 2;
const DONE: u8 = 3;
const DEMOTE: u8 = 4;
/// Of DEMOTE: the receiver's buffer is in shared memory.
const FLAG_SHARED: u8 = 2;
const FAIL: u8 = 5;
const RETRY: u8 = 6;
const GIVE_UP: u8 = 7;
const CANCEL: u8 = 8;
const CANCEL_REPLY: u8 = 9;
const CTS_PART: u8 = 10;

enum Body {
    Short(ShortBody),
    Grant(GrantBody),
    Reply(ReplyBody),
    Announce(AnnounceBody),
    Offer(OfferBody),
}

impl Packet {
    /// The most bytes a packet takes.
    pub const MAX_BYTES: usize = HEAD_BYTES + size_of::<ReplyBody>() + Cookie::MAX_BYTES;

    /// Writes the packet to the beginning of `out` and says how many bytes it
    /// took.
    ///
    /// # Panics
    /// If `out` is too short; [`Self::MAX_BYTES`] always suffice.
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let (kind, attempt, flag, body, cookie) = self.parts();
        let body = match &body {
            Body::Short(body) => body.as_bytes(),
            Body::Grant(body) => body.as_bytes(),
            Body::Reply(body) => body.as_bytes(),
            Body::Announce(body) => body.as_bytes(),
            Body::Offer(body) => body.as_bytes(),
        };
        let cookie = cookie.map_or(&[][..], Cookie::as_bytes);
        let shared = if matches!(self, Self::Demote(Demote { shared: true, .. })) { FLAG_SHARED } else { 0 };
        let head = Head { kind, attempt, flag: u8::from(flag) | shared, cookie_bytes: cookie.len() as u8 };
        let (body_at, cookie_at) = (HEAD_BYTES, HEAD_BYTES + body.len());
        let end = cookie_at + cookie.len();
        let out = &mut out[..end];
        out[..body_at].copy_from_slice(head.as_bytes());
        out[body_at..cookie_at].copy_from_slice(body);
        out[cookie_at..].copy_from_slice(cookie);
        end
    }

    fn parts(&self) -> (u8, u8, bool, Body, Option<&Cookie>) {
        let short = |id: u64, offset: u64, errno: i32| {
            Body::Short(ShortBody { id: id.into(), offset: offset.into(), errno: errno.into() })
        };
        let reply = |send_id: SendId, receive_id: ReceiveId, interval: Interval, errno: i32| {
            Body::Reply(ReplyBody {
                send_id: send_id.0.into(),
                receive_id: receive_id.0.into(),
                start: interval.start.into(),
                end: interval.end.into(),
                errno: errno.into(),
            })
        };
        let offer = |id: u64, interval: Interval, mechanism: MechanismTag, model: Model| {
            Body::Offer(OfferBody {
                id: id.into(),
                start: interval.start.into(),
                end: interval.end.into(),
                mechanism: mechanism.0.into(),
                model: model as u8,
            })
        };
        match self {
            Self::Rts(p) => {
                let body = Body::Announce(AnnounceBody {
                    id: p.send_id.0.into(),
                    total_bytes: p.total_bytes.into(),
                    mechanism: p.mechanism.0.into(),
                    model: p.model as u8,
                });
                (RTS, p.attempt, false, body, Some(&p.cookie))
            }
            Self::Retry(p) => {
                let body = offer(p.receive_id.0, p.interval, p.mechanism, p.model);
                (RETRY, p.attempt, false, body, Some(&p.cookie))
            }
            Self::Cts(p) => {
                let (send_id, receive_id) = (p.send_id.0.into(), p.receive_id.0.into());
                let (kind, body) = match p.interval {
                    None => (CTS, Body::Grant(GrantBody { send_id, receive_id })),
                    Some(part) => (CTS_PART, reply(p.send_id, p.receive_id, part, 0)),
                };
                (kind, p.attempt, p.shared, body, Some(&p.cookie))
            }
            Self::Demote(p) => {
                let body = reply(p.send_id, p.receive_id, p.remaining, p.errno);
                (DEMOTE, p.attempt, p.for_good, body, None)
            }
            Self::Done(p) => {
                (DONE, p.attempt, is_receive(p.to), short(number(p.to), 0, p.shared.into()), None)
            }
            Self::Fail(p) => (FAIL, p.attempt, p.for_good, short(p.receive_id.0, p.front, p.errno), None),
            Self::GiveUp(p) => (GIVE_UP, 0, is_receive(p.to), short(number(p.to), 0, p.errno), None),
            Self::Cancel { send_id } => (CANCEL, 0, false, short(send_id.0, 0, 0), None),
            Self::CancelReply { send_id, cancelled } => {
                (CANCEL_REPLY, 0, *cancelled, short(send_id.0, 0, 0), None)
            }
        }
    }

    /// Reads a packet from bytes that may hold anything.
    ///
    /// The form alone is checked here; whether ids and intervals fit is the
    /// machine's to judge.
    ///
    /// # Errors
    /// [`WireError`] when the bytes are not exactly one packet.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let length = |kind, expected| WireError::Length { kind, bytes: bytes.len(), expected };
        let (head, rest) = Head::read_from_prefix(bytes).map_err(|_| length(0, HEAD_BYTES))?;
        let kind = head.kind;
        let (body_bytes, with_cookie) = match kind {
            RTS => (size_of::<AnnounceBody>(), true),
            RETRY => (size_of::<OfferBody>(), true),
            CTS => (size_of::<GrantBody>(), true),
            CTS_PART => (size_of::<ReplyBody>(), true),
            DEMOTE => (size_of::<ReplyBody>(), false),
            DONE | FAIL | GIVE_UP | CANCEL | CANCEL_REPLY => (size_of::<ShortBody>(), false),
            _ => return Err(WireError::Kind(kind)),
        };
        let field = |field, value: u8| WireError::Field { kind, field, value: value.into() };
        if head.flag > 1 && !(kind == DEMOTE && head.flag <= 1 | FLAG_SHARED) {
            return Err(field("flag", head.flag));
        }
        if head.cookie_bytes as usize > if with_cookie { Cookie::MAX_BYTES } else { 0 } {
            return Err(field("cookie length", head.cookie_bytes));
        }
        let expected = HEAD_BYTES + body_bytes + head.cookie_bytes as usize;
        if bytes.len() != expected {
            return Err(length(kind, expected));
        }
        let (body, cookie) = rest.split_at(body_bytes);
        let cookie = Cookie::new(cookie).ok_or(field("cookie length", head.cookie_bytes))?;
        match kind {
            RTS => {
                let body = AnnounceBody::read_from_bytes(body).map_err(|_| length(kind, expected))?;
                announce(head, body, cookie)
            }
            RETRY => {
                let body = OfferBody::read_from_bytes(body).map_err(|_| length(kind, expected))?;
                offer(head, body, cookie)
            }
            CTS => {
                let body = GrantBody::read_from_bytes(body).map_err(|_| length(kind, expected))?;
                Ok(grant(head, body.send_id, body.receive_id, None, cookie))
            }
            CTS_PART | DEMOTE => {
                let body = ReplyBody::read_from_bytes(body).map_err(|_| length(kind, expected))?;
                Ok(reply(head, body, cookie))
            }
            _ => {
                let body = ShortBody::read_from_bytes(body).map_err(|_| length(kind, expected))?;
                Ok(short(head, body))
            }
        }
    }
}

fn model(head: Head, number: u8) -> Result<Model, WireError> {
    let unknown = WireError::Field { kind: head.kind, field: "model", value: number.into() };
    Model::from_wire(number).ok_or(unknown)
}

fn announce(head: Head, body: AnnounceBody, cookie: Cookie) -> Result<Packet, WireError> {
    Ok(Packet::Rts(Rts {
        send_id: SendId(body.id.get()),
        total_bytes: body.total_bytes.get(),
        attempt: head.attempt,
        mechanism: MechanismTag(body.mechanism.get()),
        model: model(head, body.model)?,
        cookie,
    }))
}

fn offer(head: Head, body: OfferBody, cookie: Cookie) -> Result<Packet, WireError> {
    Ok(Packet::Retry(Retry {
        receive_id: ReceiveId(body.id.get()),
        attempt: head.attempt,
        mechanism: MechanismTag(body.mechanism.get()),
        model: model(head, body.model)?,
        interval: Interval { start: body.start.get(), end: body.end.get() },
        cookie,
    }))
}

fn grant(head: Head, send_id: U64, receive_id: U64, interval: Option<Interval>, cookie: Cookie) -> Packet {
    let (send_id, receive_id) = (SendId(send_id.get()), ReceiveId(receive_id.get()));
    let (attempt, shared) = (head.attempt, head.flag == 1);
    Packet::Cts(Cts { send_id, receive_id, attempt, interval, shared, cookie })
}

fn reply(head: Head, body: ReplyBody, cookie: Cookie) -> Packet {
    let interval = Interval { start: body.start.get(), end: body.end.get() };
    if head.kind == CTS_PART {
        return grant(head, body.send_id, body.receive_id, Some(interval), cookie);
    }
    let (send_id, receive_id) = (SendId(body.send_id.get()), ReceiveId(body.receive_id.get()));
    let attempt = head.attempt;
    let (errno, for_good, shared) = (body.errno.get(), head.flag & 1 == 1, head.flag & FLAG_SHARED != 0);
    Packet::Demote(Demote { send_id, receive_id, attempt, remaining: interval, errno, for_good, shared })
}

fn short(head: Head, body: ShortBody) -> Packet {
    let (id, errno, flag) = (body.id.get(), body.errno.get(), head.flag == 1);
    let to = if flag { TransferKey::Receive(ReceiveId(id)) } else { TransferKey::Send(SendId(id)) };
    let attempt = head.attempt;
    match head.kind {
        DONE => Packet::Done(Done { to, attempt, shared: errno != 0 }),
        FAIL => {
            let (receive_id, front) = (ReceiveId(id), body.offset.get());
            Packet::Fail(Fail { receive_id, attempt, front, errno, for_good: flag })
        }
        GIVE_UP => Packet::GiveUp(GiveUp { to, errno }),
        CANCEL => Packet::Cancel { send_id: SendId(id) },
        _ => Packet::CancelReply { send_id: SendId(id), cancelled: flag },
    }
}

const fn is_receive(key: TransferKey) -> bool {
    matches!(key, TransferKey::Receive(_))
}

const fn number(key: TransferKey) -> u64 {
    match key {
        TransferKey::Send(id) => id.0,
        TransferKey::Receive(id) => id.0,
    }
}

#[cfg(test)]
#[path = "packet_tests.rs"]
mod tests;
