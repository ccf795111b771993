//! The codes that functions return, and the sentence for each.
#![allow(non_camel_case_types)] // As C has them.

use std::ffi::CStr;

use lmt::{CreateError, OperationError, PeerError, RegionError};
use lmt_core::connect::ConnectError;
use lmt_core::error::MemoryError;

/// What a function returns: 0 when it has done what was asked, below 0 if not.
/// `lmt_strerror` has a sentence for each, `lmt_last_error` the one for what has
/// just happened. Later versions may add codes.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum lmt_code {
    /// It is done.
    LMT_OK = 0,
    /// A pointer is NULL that must not be.
    LMT_ERR_NULL = -1,
    /// An argument has a value that it cannot have.
    LMT_ERR_INVALID = -2,
    /// This is no object of the kind that is asked for, or it was closed.
    LMT_ERR_HANDLE = -3,
    /// Another thread is in a call with this object, or this is a callback of one.
    LMT_ERR_BUSY = -4,
    /// The room for the answer is too short; its length was given.
    LMT_ERR_TOO_SHORT = -5,
    /// The time is over; the operation goes on.
    LMT_ERR_TIMEOUT = -6,
    /// A fault inside the library; the object that was used can only be closed.
    LMT_ERR_PANIC = -7,
    /// This process was forked off the one that owns the object.
    LMT_ERR_FORKED = -8,
    /// A setting cannot work.
    LMT_ERR_CONFIGURATION = -9,
    /// These bytes are no address of an endpoint.
    LMT_ERR_ADDRESS = -10,
    /// There is too little memory.
    LMT_ERR_NO_MEMORY = -11,
    /// The system refused something.
    LMT_ERR_SYSTEM = -12,
    /// There is no such peer of this object.
    LMT_ERR_UNKNOWN_PEER = -13,
    /// There is no such request of this object, or its result was taken already.
    LMT_ERR_UNKNOWN_REQUEST = -14,
    /// As much as is allowed waits for this peer already.
    LMT_ERR_WOULD_BLOCK = -15,
    /// The message was longer than the receive's memory, which holds its beginning.
    LMT_ERR_TRUNCATED = -16,
    /// The operation was cancelled before it was matched.
    LMT_ERR_CANCELLED = -17,
    /// The peer's process died or closed its endpoint.
    LMT_ERR_PEER_DEAD = -18,
    /// Nobody listens at the peer's address.
    LMT_ERR_PEER_UNREACHABLE = -19,
    /// The connection was refused.
    LMT_ERR_PEER_REFUSED = -20,
    /// The peer was removed while the operation was in flight.
    LMT_ERR_PEER_REMOVED = -21,
    /// Operations with the peer are in flight, so it cannot be removed.
    LMT_ERR_PEER_BUSY = -22,
    /// No mechanism could move the message.
    LMT_ERR_NO_MECHANISM = -23,
    /// This message was taken from another endpoint or device layer.
    LMT_ERR_FOREIGN_MESSAGE = -24,
    /// The region is not registered, or not any more.
    LMT_ERR_REGION_NOT_REGISTERED = -25,
    /// The region was registered for a single use, and has been used.
    LMT_ERR_REGION_USED_UP = -26,
    /// The region's protection forbids it.
    LMT_ERR_REGION_FORBIDDEN = -27,
    /// The copy would leave the region.
    LMT_ERR_REGION_BOUNDS = -28,
    /// No mechanism reaches the owner's memory.
    LMT_ERR_REGION_UNREACHABLE = -29,
    /// As many regions are registered as there can be.
    LMT_ERR_REGION_TOO_MANY = -30,
    /// The packet was not understood, and was ignored.
    LMT_ERR_BAD_PACKET = -31,
    /// A callback has failed.
    LMT_ERR_CALLBACK = -32,
    /// No launcher has started this process as a rank of a group.
    LMT_ERR_NO_GROUP = -33,
    /// As many peers are known as `max_peers` allows.
    LMT_ERR_LIMIT = -34,
    /// Another endpoint or device layer has this identity.
    LMT_ERR_NAME_IN_USE = -35,
}

use lmt_code::*;

/// Every code with its sentence.
pub const SENTENCES: &[(lmt_code, &CStr)] = &[
    (LMT_OK, c"it is done"),
    (LMT_ERR_NULL, c"a pointer is NULL that must not be"),
    (LMT_ERR_INVALID, c"an argument has a value that it cannot have"),
    (LMT_ERR_HANDLE, c"this is no object of the kind that is asked for, or it was closed"),
    (LMT_ERR_BUSY, c"another thread is in a call with this object, or this is a callback of one"),
    (LMT_ERR_TOO_SHORT, c"the room for the answer is too short; its length was given"),
    (LMT_ERR_TIMEOUT, c"the time is over; the operation goes on"),
    (LMT_ERR_PANIC, c"a fault inside the library; the object that was used can only be closed"),
    (LMT_ERR_FORKED, c"this process was forked off the one that owns the object"),
    (LMT_ERR_CONFIGURATION, c"a setting cannot work"),
    (LMT_ERR_ADDRESS, c"these bytes are no address of an endpoint"),
    (LMT_ERR_NO_MEMORY, c"there is too little memory"),
    (LMT_ERR_SYSTEM, c"the system refused something"),
    (LMT_ERR_UNKNOWN_PEER, c"there is no such peer of this object"),
    (LMT_ERR_UNKNOWN_REQUEST, c"there is no such request of this object, or its result was taken already"),
    (LMT_ERR_WOULD_BLOCK, c"as much as is allowed waits for this peer already"),
    (LMT_ERR_TRUNCATED, c"the message was longer than the receive's memory, which holds its beginning"),
    (LMT_ERR_CANCELLED, c"the operation was cancelled before it was matched"),
    (LMT_ERR_PEER_DEAD, c"the peer's process died or closed its endpoint"),
    (LMT_ERR_PEER_UNREACHABLE, c"nobody listens at the peer's address"),
    (LMT_ERR_PEER_REFUSED, c"the connection was refused"),
    (LMT_ERR_PEER_REMOVED, c"the peer was removed while the operation was in flight"),
    (LMT_ERR_PEER_BUSY, c"operations with the peer are in flight, so it cannot be removed"),
    (LMT_ERR_NO_MECHANISM, c"no mechanism could move the message"),
    (LMT_ERR_FOREIGN_MESSAGE, c"this message was taken from another endpoint or device layer"),
    (LMT_ERR_REGION_NOT_REGISTERED, c"the region is not registered, or not any more"),
    (LMT_ERR_REGION_USED_UP, c"the region was registered for a single use, and has been used"),
    (LMT_ERR_REGION_FORBIDDEN, c"the region's protection forbids it"),
    (LMT_ERR_REGION_BOUNDS, c"the copy would leave the region"),
    (LMT_ERR_REGION_UNREACHABLE, c"no mechanism reaches the owner's memory"),
    (LMT_ERR_REGION_TOO_MANY, c"as many regions are registered as there can be"),
    (LMT_ERR_BAD_PACKET, c"the packet was not understood, and was ignored"),
    (LMT_ERR_CALLBACK, c"a callback has failed"),
    (LMT_ERR_NO_GROUP, c"no launcher has started this process as a rank of a group"),
    (LMT_ERR_LIMIT, c"as many peers are known as `max_peers` allows"),
    (LMT_ERR_NAME_IN_USE, c"another endpoint or device layer has this identity"),
];

/// What an operation's error is called in C.
pub const fn of_operation(error: &OperationError) -> lmt_code {
    match error {
        OperationError::Truncated { .. } => LMT_ERR_TRUNCATED,
        OperationError::Cancelled => LMT_ERR_CANCELLED,
        OperationError::Peer(error) => of_peer(error),
        OperationError::Forked => LMT_ERR_FORKED,
        OperationError::WouldBlock { .. } => LMT_ERR_WOULD_BLOCK,
        OperationError::PeerBusy { .. } => LMT_ERR_PEER_BUSY,
        OperationError::UnknownRequest => LMT_ERR_UNKNOWN_REQUEST,
        OperationError::UnknownPeer => LMT_ERR_UNKNOWN_PEER,
        OperationError::TooManyPeers { .. } => LMT_ERR_LIMIT,
        OperationError::Region(error) => of_region(error),
        OperationError::ReadOnlyBuffer => LMT_ERR_INVALID,
        OperationError::ForeignMessage => LMT_ERR_FOREIGN_MESSAGE,
        // `System`, and what a later version of the library adds.
        _ => LMT_ERR_SYSTEM,
    }
}

/// What a peer's error is called in C.
pub const fn of_peer(error: &PeerError) -> lmt_code {
    match error {
        PeerError::Dead { .. } => LMT_ERR_PEER_DEAD,
        PeerError::Unreachable { .. } => LMT_ERR_PEER_UNREACHABLE,
        PeerError::Refused { .. } => LMT_ERR_PEER_REFUSED,
        PeerError::Removed { .. } => LMT_ERR_PEER_REMOVED,
        PeerError::NoMechanism { .. } => LMT_ERR_NO_MECHANISM,
        _ => LMT_ERR_SYSTEM,
    }
}

const fn of_region(error: &RegionError) -> lmt_code {
    match error {
        RegionError::NotRegistered => LMT_ERR_REGION_NOT_REGISTERED,
        RegionError::UsedUp => LMT_ERR_REGION_USED_UP,
        RegionError::Forbidden(_) => LMT_ERR_REGION_FORBIDDEN,
        RegionError::OutOfBounds { .. } => LMT_ERR_REGION_BOUNDS,
        RegionError::Unreachable(_) | RegionError::BadMemory(_) => LMT_ERR_REGION_UNREACHABLE,
        RegionError::TooMany(_) => LMT_ERR_REGION_TOO_MANY,
        RegionError::Memory(error) => of_memory(error),
        RegionError::ReadOnlyMemory => LMT_ERR_INVALID,
        _ => LMT_ERR_SYSTEM,
    }
}

/// What is called in C that shared memory is not to be had.
pub const fn of_memory(error: &MemoryError) -> lmt_code {
    match error {
        MemoryError::Short(_) => LMT_ERR_NO_MEMORY,
        _ => LMT_ERR_SYSTEM,
    }
}

/// What is called in C that an endpoint could not be created.
pub const fn of_creation(error: &CreateError) -> lmt_code {
    match error {
        CreateError::Memory(error) => of_memory(error),
        CreateError::Connect(ConnectError::NameInUse { .. }) => LMT_ERR_NAME_IN_USE,
        CreateError::Config(_)
        | CreateError::Geometry(_)
        | CreateError::UnknownMechanism { .. }
        | CreateError::UnknownModel { .. }
        | CreateError::Configuration { .. } => LMT_ERR_CONFIGURATION,
        _ => LMT_ERR_SYSTEM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_no_want_of_memory() {
        let refused = MemoryError::Call { purpose: "a test", call: "mmap", errno: nix::errno::Errno::EPERM };
        assert_eq!(of_memory(&refused), LMT_ERR_SYSTEM);
        assert_eq!(of_creation(&CreateError::Memory(refused)), LMT_ERR_SYSTEM);
        let short = lmt::alloc(isize::MAX as usize).expect_err("that much is nowhere");
        assert_eq!(of_memory(&short), LMT_ERR_NO_MEMORY);
    }

    #[test]
    fn every_number_has_one_sentence_and_no_gap() {
        for ((code, sentence), number) in SENTENCES.iter().zip(0..) {
            assert_eq!(*code as i32, -number, "{sentence:?}");
        }
    }

    /// The comment on each code of the enumeration, as it is written above.
    fn comments() -> Vec<(String, String)> {
        let (_, rest) = include_str!("code.rs").split_once("pub enum lmt_code {").expect("the enumeration");
        let (body, _) = rest.split_once("\n}").expect("its end");
        let (mut all, mut comment) = (Vec::new(), Vec::new());
        for line in body.lines().map(str::trim) {
            if let Some(part) = line.strip_prefix("/// ") {
                comment.push(part);
            } else if let Some((name, _)) = line.split_once(" = ") {
                all.push((name.to_owned(), std::mem::take(&mut comment).join(" ")));
            }
        }
        all
    }

    #[test]
    fn the_header_says_of_each_code_what_its_sentence_says() {
        let comments = comments();
        assert_eq!(comments.len(), SENTENCES.len());
        for ((name, comment), (code, sentence)) in comments.iter().zip(SENTENCES) {
            assert_eq!(*name, format!("{code:?}"));
            let sentence = sentence.to_str().expect("text");
            let (first, rest) = sentence.split_at(1);
            assert_eq!(*comment, format!("{}{rest}.", first.to_uppercase()));
        }
    }
}
