//! A small MPI-like device layer with packets and matching of its own, which
//! uses lmt for large messages only, through its device layer.
//!
//! Two processes share a datagram socket pair. Short messages travel in the
//! device's own packets; a large one is announced by a packet of `lmt::device`
//! inside one of the device's. The tag matching is the device's, for both.
//!
//! `cargo run --release --example device_layer`
#![allow(unsafe_code)] // Lends memory to the device layer by address.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

use lmt::buffer::{Access, Buffer, Segment};
use lmt::device::{Announcement, Arrival, DeviceLayer, PACKET_MAX_BYTES, PacketTransport, TransportFull};
use lmt::launch::{Group, Launcher};
use lmt::{Address, Endpoint, OperationError, PeerId, RequestId};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Up to here a message goes in the device's own packet.
pub const SHORT_MAX_BYTES: usize = 1024;

const SHORT: u8 = 1;
const LARGE: u8 = 2;

/// The device's packets: a byte that says what it is, then the tag and the
/// bytes of a short message, or a packet of the device layer.
pub struct Wire {
    /// The end of this process.
    pub socket: UnixDatagram,
}

impl Wire {
    /// Whether the packet was taken; lost is only what is for a dead process.
    fn send(&self, kind: u8, parts: &[&[u8]]) -> bool {
        let packet = [&[kind], parts.concat().as_slice()].concat();
        !matches!(self.socket.send(&packet), Err(error) if error.kind() == ErrorKind::WouldBlock)
    }
}

impl PacketTransport for Wire {
    fn send_packet(&mut self, _to: PeerId, packet: &[u8]) -> Result<(), TransportFull> {
        if self.send(LARGE, &[packet]) { Ok(()) } else { Err(TransportFull) }
    }
}

/// An operation of the device.
pub type Handle = u64;

/// A message that came before its receive.
enum Early {
    Short { tag: u64, data: Vec<u8> },
    Large(Box<Announcement>),
}

impl Early {
    fn tag(&self) -> u64 {
        match self {
            Self::Short { tag, .. } => *tag,
            // The envelope is what `send` below wrote on the message.
            Self::Large(announcement) => announcement.envelope().try_into().map_or(0, u64::from_le_bytes),
        }
    }
}

struct Posted {
    handle: Handle,
    tag: u64,
    most_bytes: usize,
}

/// A large message in flight, and its memory.
struct Large {
    handle: Handle,
    request: RequestId,
    memory: Vec<u8>,
}

/// The device: one peer, tags, messages in vectors.
pub struct Device {
    // Dropped first: afterwards nothing uses the memory below.
    /// What moves the large messages.
    pub layer: DeviceLayer,
    /// What carries the packets, the device's and the device layer's.
    pub wire: Wire,
    /// The other process.
    pub peer: PeerId,
    posted: Vec<Posted>,
    early: VecDeque<Early>,
    /// Short messages that wait behind others or for room in the socket.
    waiting: VecDeque<(u64, Vec<u8>)>,
    large: Vec<Large>,
    done: HashMap<Handle, Result<Vec<u8>, OperationError>>,
    last: Handle,
}

impl Device {
    /// A device with one peer, which the socket leads to.
    pub fn new(mut layer: DeviceLayer, socket: UnixDatagram, peer: &Address) -> Result<Self, OperationError> {
        let peer = layer.insert_peer(peer)?;
        let wire = Wire { socket };
        wire.socket.set_nonblocking(true).map_err(|e| OperationError::System(e.to_string()))?;
        let (posted, early, waiting) = (Vec::new(), VecDeque::new(), VecDeque::new());
        let (large, done) = (Vec::new(), HashMap::new());
        Ok(Self { layer, wire, peer, posted, early, waiting, large, done, last: 0 })
    }

    fn handle(&mut self) -> Handle {
        self.last += 1;
        self.last
    }

    /// Begins to send `data`.
    pub fn send(&mut self, tag: u64, mut data: Vec<u8>) -> Result<Handle, OperationError> {
        let handle = self.handle();
        if data.len() <= SHORT_MAX_BYTES {
            self.waiting.push_back((tag, data));
            self.done.insert(handle, Ok(Vec::new()));
        } else {
            // Short messages sent before go first.
            while !self.waiting.is_empty() {
                self.progress()?;
            }
            let buffer = lend(&mut data, Access::Read);
            let request = self.layer.send(self.peer, &tag.to_le_bytes(), buffer)?;
            self.large.push(Large { handle, request, memory: data });
        }
        self.progress()?;
        Ok(handle)
    }

    /// Begins to receive a message of at most `most_bytes`.
    pub fn receive(&mut self, tag: u64, most_bytes: usize) -> Result<Handle, OperationError> {
        let handle = self.handle();
        let posted = Posted { handle, tag, most_bytes };
        match self.early.iter().position(|message| message.tag() == tag) {
            Some(at) => {
                if let Some(message) = self.early.remove(at) {
                    self.deliver(posted, message)?;
                }
            }
            None => self.posted.push(posted),
        }
        Ok(handle)
    }

    /// Takes a send back if the peer has not matched it; its result tells.
    pub fn cancel(&mut self, handle: Handle) -> Result<(), OperationError> {
        match self.large.iter().find(|large| large.handle == handle) {
            Some(large) => self.layer.cancel(large.request),
            None => Ok(()),
        }
    }

    /// Waits for an operation; a receive's message.
    pub fn wait(&mut self, handle: Handle) -> Result<Vec<u8>, OperationError> {
        loop {
            let moved = self.progress()?;
            if let Some(result) = self.done.remove(&handle) {
                return result;
            }
            if !moved {
                self.sleep();
            }
        }
    }

    /// Sleeps until one of the sockets has something.
    fn sleep(&self) {
        let mut fds = [self.wire.socket.as_fd(), self.layer.wait_descriptor()]
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        let limit = PollTimeout::try_from(self.layer.sleep_limit()).unwrap_or(PollTimeout::ZERO);
        // Interrupted or timed out, the next progress finds out.
        let _ready = poll(&mut fds, limit);
    }

    /// Moves what can be moved. Returns whether anything was.
    pub fn progress(&mut self) -> Result<bool, OperationError> {
        let mut moved = self.layer.progress(&mut self.wire)?;
        // In order with the announcements.
        while self.layer.unsent(self.peer) == 0
            && let Some((tag, data)) = self.waiting.front()
            && self.wire.send(SHORT, &[&tag.to_le_bytes(), data])
        {
            self.waiting.pop_front();
            moved = true;
        }
        let mut packet = [0; 16 + PACKET_MAX_BYTES + SHORT_MAX_BYTES];
        while let Ok(bytes) = self.wire.socket.recv(&mut packet) {
            if bytes == 0 {
                break;
            }
            self.arrived(packet[0], &packet[1..bytes])?;
            moved = true;
        }
        self.finish();
        Ok(moved)
    }

    fn arrived(&mut self, kind: u8, packet: &[u8]) -> Result<(), OperationError> {
        let message = match (kind, packet.split_first_chunk::<8>()) {
            (SHORT, Some((tag, data))) => Early::Short { tag: u64::from_le_bytes(*tag), data: data.to_vec() },
            (LARGE, _) => match self.layer.on_packet(self.peer, packet) {
                Ok(Arrival::Announced(announcement)) => Early::Large(Box::new(announcement)),
                Ok(Arrival::Withdrawn(withdrawal)) => {
                    let is_it = |m: &Early| matches!(m, Early::Large(a) if a.is(&withdrawal));
                    let before = self.early.len();
                    self.early.retain(|message| !is_it(message));
                    self.layer.withdrawn(withdrawal, self.early.len() < before);
                    return Ok(());
                }
                Ok(Arrival::Handled) => return Ok(()),
                Err(bad) => return Err(OperationError::System(bad.to_string())),
            },
            _ => return Err(OperationError::System(format!("a packet of unknown kind {kind} arrived"))),
        };
        match self.posted.iter().position(|posted| posted.tag == message.tag()) {
            Some(at) => {
                let posted = self.posted.remove(at);
                self.deliver(posted, message)
            }
            None => {
                self.early.push_back(message);
                Ok(())
            }
        }
    }

    /// A receive and a message have found each other.
    fn deliver(&mut self, posted: Posted, message: Early) -> Result<(), OperationError> {
        let Posted { handle, most_bytes, .. } = posted;
        match message {
            Early::Short { mut data, .. } => {
                data.truncate(most_bytes);
                self.done.insert(handle, Ok(data));
            }
            Early::Large(announcement) => {
                let mut memory = vec![0; most_bytes.min(announcement.bytes() as usize)];
                let buffer = lend(&mut memory, Access::Write);
                match self.layer.matched(*announcement, buffer) {
                    Ok(request) => self.large.push(Large { handle, request, memory }),
                    Err(error) => {
                        self.done.insert(handle, Err(error));
                    }
                }
            }
        }
        Ok(())
    }

    /// Notes what has ended.
    fn finish(&mut self) {
        for large in std::mem::take(&mut self.large) {
            match self.layer.test(large.request) {
                Some(result) => {
                    self.done.insert(large.handle, result.map(|_| large.memory));
                }
                None => self.large.push(large),
            }
        }
        // Nothing more comes from a dead peer.
        if let Some(error) = self.layer.peer_error(self.peer) {
            for posted in std::mem::take(&mut self.posted) {
                self.done.insert(posted.handle, Err(error.clone().into()));
            }
        }
    }
}

fn lend(memory: &mut [u8], access: Access) -> Buffer {
    // SAFETY: the caller moves the vector into `Device::large` with the request
    // that gets the buffer. There nobody touches its bytes, and it leaves
    // when the device layer has given the request's result, or after the device layer's end.
    let buffer = unsafe { Buffer::new(&[Segment::of_mut(memory)], access) };
    buffer.expect("a vector lies within the address space")
}

/// What the message with this tag holds.
pub fn content(tag: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| ((at ^ tag << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// Variable with the number of a rank's end of the socket pair.
const ENV_SOCKET: &str = "DEVICE_SOCKET";
const SIZES: [usize; 9] = [0, 8, 1024, 1025, 65_536, 100_001, 1 << 20, 5_000_000, 16 << 20];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    lmt::launch::hook(); // The launcher runs this program again to supervise.
    let Some(group) = Group::from_env()? else {
        let (here, there) = UnixDatagram::pair()?;
        let launcher = Launcher::new(2).command(std::env::current_exe()?, [""; 0]);
        let launcher = launcher.inherit_fd(0, ENV_SOCKET, OwnedFd::from(here));
        let outcome = launcher.inherit_fd(1, ENV_SOCKET, OwnedFd::from(there)).spawn()?.wait();
        std::process::exit(i32::from(!outcome.success()));
    };
    let socket = lmt::launch::take_inherited_fd(std::env::var(ENV_SOCKET)?.parse()?)?;
    let layer = Endpoint::builder().id(group.id.member(group.rank)).build_device_layer()?;
    let mut device = Device::new(layer, UnixDatagram::from(socket), &group.address(1 - group.rank))?;

    // Both send everything, and receive it in the opposite order.
    let sends = (0u64..).zip(SIZES).map(|(tag, bytes)| device.send(tag, content(tag, bytes)));
    let sends = sends.collect::<Result<Vec<_>, _>>()?;
    let mut total_bytes = 0;
    for (tag, &bytes) in SIZES.iter().enumerate().rev() {
        let tag = tag as u64;
        let receive = device.receive(tag, bytes)?;
        assert_eq!(device.wait(receive)?, content(tag, bytes), "the message with tag {tag}");
        total_bytes += bytes;
    }
    for send in sends {
        device.wait(send)?;
    }
    // A large message that nobody receives is taken back.
    let unwanted = device.send(1000, content(1000, 1 << 20))?;
    device.cancel(unwanted)?;
    assert_eq!(device.wait(unwanted), Err(OperationError::Cancelled));
    // Each stays until the other needs it no more.
    device.send(2000, Vec::new())?;
    let last = device.receive(2000, 0)?;
    device.wait(last)?;
    println!(
        "rank {}: {} messages of {total_bytes} bytes arrived, one was taken back",
        group.rank,
        SIZES.len()
    );
    Ok(())
}
