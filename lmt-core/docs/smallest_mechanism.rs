use std::fs::File;
use std::io::Error;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use lmt_core::buffer::{Buffer, Segment};
use lmt_core::cursor::Cursor;
use lmt_core::mechanism::*;
use lmt_core::process::PeerProcess;

/// The receiver reads the sender's memory by the file /proc/PID/mem (proc_pid_mem(5)).
pub struct ProcMem;

/// A peer, and the file that is its memory: of that process alone, also when its pid is given to another.
pub struct Peer {
    memory: File,
    process: Arc<PeerProcess>,
}

/// One side of a message.
pub struct Side {
    /// Where the message is here, for the other side to read.
    _list: Vec<u8>,
    /// At the receiver: where it is there, how far that is read, and what is left.
    remote: Vec<Segment>,
    at: Cursor,
    left: Interval,
}

impl Peer {
    fn read(&self, address: u64, bytes: u64) -> Result<Vec<u8>, Fault> {
        let mut read = vec![0; bytes as usize];
        match self.memory.read_exact_at(&mut read, address) {
            Ok(()) => Ok(read),
            Err(_) if self.process.has_ended() => Err(Fault::PeerDead),
            Err(error) => Err(demote(&error.to_string())),
        }
    }
}

/// This mechanism cannot go on; the next one takes over.
fn demote(sentence: &str) -> Fault {
    Fault::Demote { errno: 0, for_good: false, sentence: sentence.to_owned() }
}

/// An address and a length, as they travel.
fn pack(address: usize, bytes: usize) -> [u8; 16] {
    ((bytes as u128) << 64 | address as u128).to_le_bytes()
}

fn unpack(packed: [u8; 16]) -> Segment {
    let both = u128::from_le_bytes(packed);
    Segment { address: both as usize, bytes: (both >> 64) as usize }
}

impl Lmt for ProcMem {
    type Peer = Peer;
    type Transfer = Side;

    fn description(&self) -> Description {
        Description::new("procmem", &[Model::Get])
    }

    /// Whether this process may, the calls tell; whether the pid names the peer here, the nonce.
    fn probe(&mut self, facts: &PeerFacts, _: Hello) -> Result<Probed<Peer>, Unavailable> {
        let refused = |error: Error| Unavailable {
            errno: error.raw_os_error().unwrap_or(0),
            sentence: format!("the peer's memory cannot be read: {error}"),
        };
        let path = format!("/proc/{}/mem", facts.process.pid().unwrap_or(0));
        let memory = File::open(path).map_err(refused)?;
        let mut nonce = [0; 16];
        memory.read_exact_at(&mut nonce, facts.probe_address).map_err(refused)?;
        if nonce != facts.nonce {
            return Err(refused(Error::other("its pid names another process here")));
        }
        let peer = Peer { memory, process: Arc::clone(&facts.process) };
        Ok(Probed::new(peer, Abilities { read: true, ..Abilities::default() }))
    }

    fn prepare(&mut self, _: &mut Peer, plan: &Plan, data: &Buffer) -> Result<(Side, Cookie), Fault> {
        let list: Vec<u8> = data.segments().iter().flat_map(|s| pack(s.address, s.bytes)).collect();
        let cookie = Cookie::new(&pack(list.as_ptr().expose_provenance(), list.len()));
        let side = Side { _list: list, remote: Vec::new(), at: Cursor::default(), left: plan.interval };
        Ok((side, cookie.unwrap_or(Cookie::empty())))
    }

    /// At the receiver, who copies. What the peer says is not believed.
    fn start(&mut self, peer: &mut Peer, t: &mut Side, far: &Cookie, it: Interval) -> Result<(), Fault> {
        let place = <[u8; 16]>::try_from(far.as_bytes());
        let list = unpack(place.map_err(|_| demote("the peer's cookie is not of this mechanism"))?);
        if list.bytes > 16 << 20 {
            return Err(demote("the message has more than 1048576 segments"));
        }
        let read = peer.read(list.address as u64, list.bytes as u64)?;
        t.remote = read.as_chunks::<16>().0.iter().copied().map(unpack).collect();
        t.at = Cursor::at(&t.remote, it.start);
        t.left = it;
        Ok(())
    }

    fn step(&mut self, peer: &mut Peer, t: &mut Side, into: &mut Buffer, most: u64) -> Result<Step, Fault> {
        let Some(piece) = t.at.take(&t.remote, t.left.bytes().min(most)) else {
            return Err(demote("the peer's list is shorter than the message"));
        };
        let from = (t.remote[piece.index].address as u64).wrapping_add(piece.offset);
        into.write_at(t.left.start, &peer.read(from, piece.bytes)?);
        t.left.start += piece.bytes;
        Ok(Step { bytes: piece.bytes, done: t.left.bytes() == 0 })
    }

    /// Nothing is held but what is dropped.
    fn finish(&mut self, _: &mut Peer, _: Side) {}
}
