//! The values that C and this library pass to each other.
#![allow(non_camel_case_types)] // As C has them.

use std::ffi::{c_char, c_int, c_void};

/// The major version: 0 until the interface is declared stable.
pub const LMT_VERSION_MAJOR: u32 = 0;
/// The minor version.
pub const LMT_VERSION_MINOR: u32 = 1;
/// The patch version.
pub const LMT_VERSION_PATCH: u32 = 0;

/// The longest address of an endpoint or a device layer, in bytes.
pub const LMT_ADDRESS_MAX_BYTES: usize = 90;
/// The length of an identity, in bytes.
pub const LMT_ID_BYTES: usize = 16;
/// The length of a region's key, in bytes.
pub const LMT_REGION_KEY_BYTES: usize = 32;
/// The longest envelope of a device layer's message, in bytes.
pub const LMT_ENVELOPE_MAX_BYTES: usize = 64;
/// The longest packet that a device layer hands to `lmt_send_packet`, in bytes.
pub const LMT_PACKET_MAX_BYTES: usize = 512;
/// The room for the name of a path, with the zero behind it, in bytes.
pub const LMT_NAME_BYTES: usize = 32;

/// Flag of a send: it is done when a receive has matched it, not as soon as its
/// memory may be used again.
pub const LMT_SEND_SYNCHRONOUS: u32 = 1;
/// Flag of a message: its bytes are in the sender's cache.
pub const LMT_HINT_WARM: u32 = 2;
/// Flag of a message: its bytes were written long ago.
pub const LMT_HINT_COLD: u32 = 4;
/// Flag of a message: its memory takes part in no further one.
pub const LMT_HINT_ONCE: u32 = 8;
/// Flag of a message: its memory is sent from again and again.
pub const LMT_HINT_AGAIN: u32 = 16;
/// Flag of a message that is to be explained: it is several segments at the sender.
pub const LMT_EXPLAIN_SEGMENTS: u32 = 32;
/// Flag of a message that is to be explained: it is sent from memory of `lmt_alloc`.
pub const LMT_EXPLAIN_SHARED_SENDER: u32 = 64;
/// Flag of a message that is to be explained: it is received into memory of
/// `lmt_alloc`.
pub const LMT_EXPLAIN_SHARED_RECEIVER: u32 = 128;

/// Flag of a region: peers may get from it.
pub const LMT_REGION_READ: u32 = 256;
/// Flag of a region: peers may put into it.
pub const LMT_REGION_WRITE: u32 = 512;
/// Flag of a region: the first get or put uses it up.
pub const LMT_REGION_SINGLE_USE: u32 = 1024;

/// Format of an explanation: in words.
pub const LMT_FORMAT_TEXT: u32 = 65536;
/// Format of an explanation: a JSON object.
pub const LMT_FORMAT_JSON: u32 = 131072;

/// Settings for endpoints and device layers to come.
pub struct lmt_options(());

/// One end of communication. Used by one thread at a time.
pub struct lmt_endpoint(());

/// The layer of large messages alone, for those who have packets and matching of
/// their own. Used by one thread at a time.
pub struct lmt_device(());

/// A message that `lmt_improbe` took out of matching.
pub struct lmt_message(());

/// A message that a peer's device layer has announced, to be matched.
pub struct lmt_announcement(());

/// A peer's question whether an announced message is still unmatched.
pub struct lmt_withdrawal(());

/// A peer of one endpoint or device layer; its members are nobody else's business, and
/// `lmt_peer_equal` compares two.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct lmt_peer {
    /// Whose it is.
    pub owner: u64,
    /// What it is called there.
    pub number: u64,
}

/// An operation of one endpoint or device layer; its members are nobody else's business.
/// `LMT_REQUEST_NULL` names none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct lmt_request {
    /// Whose it is.
    pub owner: u64,
    /// What it is called there.
    pub number: u64,
}

/// What an operation has done, or which message a probe has found.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct lmt_status {
    /// The other side of the message.
    pub peer: lmt_peer,
    /// The message's tag; 0 of a device layer's, and of a get or a put.
    pub tag: u64,
    /// The bytes that were sent, received or copied.
    pub bytes: u64,
    /// The message's length in bytes: more than `bytes` if it was cut.
    pub message_bytes: u64,
}

/// A region's name, to be passed to peers as it is.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct lmt_region_key {
    /// Of no meaning to anybody but this library.
    pub bytes: [u8; LMT_REGION_KEY_BYTES],
}

/// What went by one path: by the cells of inboxes (`eager`) or by a mechanism.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct lmt_counters {
    /// The path's name, with a zero behind it.
    pub path: [c_char; LMT_NAME_BYTES],
    /// Messages sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Messages received.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Of the received bytes, those that the sender's process has copied where
    /// both ends copy.
    pub by_sender_bytes: u64,
    /// How often the path could not go on, and another took over.
    pub demotions: u64,
}

/// What a packet meant that was handed to `lmt_device_on_packet`.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum lmt_arrival_kind {
    /// Something between the two device layers; nothing is to be done.
    LMT_HANDLED = 0,
    /// A message to be matched: `announcement`, with its envelope and length.
    LMT_ANNOUNCED = 1,
    /// A sender takes a message back: `withdrawal`.
    LMT_WITHDRAWN = 2,
}

/// What `lmt_device_on_packet` tells.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lmt_arrival {
    /// What the packet meant.
    pub kind: lmt_arrival_kind,
    /// The bytes of the envelope that are used.
    pub envelope_bytes: u32,
    /// Who sent it.
    pub peer: lmt_peer,
    /// The announced message's length in bytes.
    pub bytes: u64,
    /// The announced message, else NULL: for `lmt_device_matched` or
    /// `lmt_announcement_drop`.
    pub announcement: *mut lmt_announcement,
    /// The question, else NULL: for `lmt_device_withdrawn`.
    pub withdrawal: *mut lmt_withdrawal,
    /// What the sender wrote on the announced message.
    pub envelope: [u8; LMT_ENVELOPE_MAX_BYTES],
}

/// Carries a packet to a peer: `context` is what `lmt_device_create` was given,
/// `packet` is good for the length of the call. Packets to one peer must arrive in
/// the order of the calls, and none may be lost. Returns `LMT_OK` when the packet was
/// taken, `LMT_ERR_WOULD_BLOCK` when there is no room now (it is tried again by the
/// next `lmt_device_progress`), and anything else when it failed, which
/// `lmt_device_progress` tells, and tries again too. It must return: an exception of
/// C++ that leaves it ends the process. Calls with the same device layer are refused in it.
pub type lmt_send_packet = Option<
    unsafe extern "C-unwind" fn(
        context: *mut c_void,
        to: lmt_peer,
        packet: *const c_void,
        bytes: usize,
    ) -> c_int,
>;

const _: () = {
    assert!(LMT_ADDRESS_MAX_BYTES == lmt::Address::MAX_BYTES);
    assert!(LMT_ID_BYTES == size_of::<lmt::EndpointId>());
    assert!(LMT_REGION_KEY_BYTES == lmt::RegionKey::BYTES);
    assert!(LMT_ENVELOPE_MAX_BYTES == lmt::device::ENVELOPE_MAX_BYTES);
    // With some room, so that it may grow.
    assert!(LMT_PACKET_MAX_BYTES >= lmt::device::PACKET_MAX_BYTES);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_package_s() {
        let here = format!("{LMT_VERSION_MAJOR}.{LMT_VERSION_MINOR}.{LMT_VERSION_PATCH}");
        assert_eq!(here, env!("CARGO_PKG_VERSION"));
    }
}
