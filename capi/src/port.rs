//! A device layer's packets on their way to the program that carries them.
#![allow(unsafe_code)] // Calls a function of C.

use std::ffi::{c_int, c_void};

use lmt::PeerId;
use lmt::device::{PacketTransport, TransportFull};

use crate::code::lmt_code::{LMT_ERR_WOULD_BLOCK, LMT_OK};
use crate::handle::Number;
use crate::numbers::peer_to_c;
use crate::types::{lmt_peer, lmt_send_packet};

type SendPacket = unsafe extern "C-unwind" fn(*mut c_void, lmt_peer, *const c_void, usize) -> c_int;

/// The program's function, and what it is called with.
pub struct CTransport {
    send: SendPacket,
    /// A pointer of C, which it alone follows; as a number, since a device layer may be used
    /// by one thread after another.
    context: usize,
    /// The device layer's handle.
    pub owner: Number,
    /// What a call has answered that was neither of the two answers.
    pub failed: Option<c_int>,
}

impl CTransport {
    /// A port that calls `send`. `None`: it is NULL.
    ///
    /// # Safety
    /// `send` must keep to what [`lmt_send_packet`] says for any `context` of its
    /// program's, and be callable as long as the device layer lives, by each thread that
    /// uses the device layer.
    pub unsafe fn new(send: lmt_send_packet, context: *mut c_void) -> Option<Self> {
        Some(Self { send: send?, context: context.expose_provenance(), owner: 0, failed: None })
    }
}

impl PacketTransport for CTransport {
    fn send_packet(&mut self, to: PeerId, packet: &[u8]) -> Result<(), TransportFull> {
        let context = std::ptr::with_exposed_provenance_mut(self.context);
        // SAFETY: `new`'s caller promised that it can be called; the packet is a
        // live slice of that length. An exception that leaves it is stopped by the
        // `catch_unwind` around every call, which ends the process then.
        let code =
            unsafe { (self.send)(context, peer_to_c(self.owner, to), packet.as_ptr().cast(), packet.len()) };
        if code == LMT_OK as c_int {
            return Ok(());
        }
        if code != LMT_ERR_WOULD_BLOCK as c_int {
            self.failed = Some(code);
        }
        Err(TransportFull)
    }
}
