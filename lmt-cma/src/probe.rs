//! Finding out, by real calls, what the kernel allows with one peer.

use std::hash::{BuildHasher, Hasher, RandomState};

use lmt_core::mechanism::{Abilities, PeerFacts, ProbeArea, Unavailable};
use lmt_core::process::PeerProcess;
use nix::errno::Errno;

use crate::refusal::sentence;
use crate::vm::{CopyError, read_bytes, write_bytes};

/// How often the written bytes may come back changed: other peers that probe
/// at the same moment may write the same 16 bytes.
const WRITE_TRIES: u32 = 16;

/// Reads the peer's nonce, then writes its scratch bytes and reads them back.
///
/// A pid may name a stranger (another pid namespace, a reused pid), and then
/// the nonce is not there; so nothing is written before it has been read.
///
/// # Errors
/// [`Unavailable`]: what the kernel answered and what would help.
pub fn probe(facts: &PeerFacts) -> Result<Abilities, Unavailable> {
    let process = &facts.process;
    if process.pid().is_none() {
        // What the calls answer to a number that is nobody's.
        return Err(refuse(
            Errno::ESRCH as i32,
            "the peer's pid is not visible from this pid namespace; run both in one pid namespace (ESRCH: No such process)",
        ));
    }
    let mut nonce = [0; 16];
    read_bytes(process, facts.probe_address, &mut nonce).map_err(|error| refused(error, process))?;
    if nonce != facts.nonce {
        return Err(refuse(
            0,
            "the peer's pid names another process here (its nonce is not there); run both in one pid namespace",
        ));
    }
    Ok(Abilities { read: true, write: can_write(facts), cooperate: false })
}

fn can_write(facts: &PeerFacts) -> bool {
    let offset = std::mem::offset_of!(ProbeArea, scratch) as u64;
    let Some(address) = facts.probe_address.checked_add(offset) else {
        return false;
    };
    for _ in 0..WRITE_TRIES {
        let own = own_bytes();
        let mut seen = [0; 16];
        if write_bytes(&facts.process, address, &own).is_err()
            || read_bytes(&facts.process, address, &mut seen).is_err()
        {
            return false;
        }
        if own == seen {
            return true;
        }
    }
    false
}

/// 16 bytes that nobody else writes; they guard against chance only.
fn own_bytes() -> [u8; 16] {
    let half = || RandomState::new().build_hasher().finish();
    ((u128::from(half()) << 64) | u128::from(half())).to_ne_bytes()
}

fn refused(error: CopyError, process: &PeerProcess) -> Unavailable {
    match error {
        CopyError::Refused(errno) => Unavailable {
            errno: errno as i32,
            sentence: format!("process_vm_readv of the peer's nonce failed: {}", sentence(errno, process)),
        },
        CopyError::Dead => refuse(Errno::ESRCH as i32, "the peer has died; start it again"),
    }
}

fn refuse(errno: i32, sentence: &str) -> Unavailable {
    Unavailable { errno, sentence: sentence.to_owned() }
}
