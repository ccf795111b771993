//! Two processes that run one mechanism against each other: the test, and its
//! own binary started again. Both run the same script, so that both know what
//! is to come; only hellos, cookies and "done" go between them.
#![allow(dead_code)] // Each test binary uses a part of it.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lmt_core::buffer::{Access, Buffer, Segment};
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::*;
use lmt_core::process::PeerProcess;
use nix::sys::socket::*;

const SOCKET_VARIABLE: &str = "LMT_PAIR_SOCKET";
const SCRIPT_VARIABLE: &str = "LMT_PAIR_SCRIPT";
pub const TIME_LIMIT: Duration = Duration::from_secs(30);

/// One end of the pair.
pub struct Side<M: Lmt> {
    socket: OwnedFd,
    pub is_parent: bool,
    child: Option<Child>,
    area: Box<ProbeArea>,
    pub process: Arc<PeerProcess>,
    pub mechanism: M,
    pub facts: PeerFacts,
    pub peer: Option<M::Peer>,
}

/// The name of the script that this process is to run as a child, if it is one.
pub fn child_script() -> Option<String> {
    std::env::var(SCRIPT_VARIABLE).ok()
}

fn process_of(pid: i32) -> Arc<PeerProcess> {
    // SAFETY: pidfd_open takes two numbers and touches no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    assert!(fd >= 0, "pidfd_open: {}", std::io::Error::last_os_error());
    // SAFETY: the descriptor was just made and belongs to nobody else.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
    Arc::new(PeerProcess::new(pid, Some(fd)))
}

impl<M: Lmt> Side<M> {
    /// Starts the child, which must have a test `child` that calls
    /// [`Side::child`]; both then probe each other.
    pub fn parent(script: &str, mechanism: M) -> (Self, Result<Abilities, Unavailable>) {
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .expect("a pair");
        let number = theirs.as_raw_fd();
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command.args(["--exact", "child", "--nocapture"]).stdout(Stdio::null());
        command.env(SOCKET_VARIABLE, number.to_string()).env(SCRIPT_VARIABLE, script);
        let before_exec = move || {
            // SAFETY: takes numbers only, and may be called after fork.
            unsafe { libc::fcntl(number, libc::F_SETFD, 0) };
            // SAFETY: the same.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            Ok(())
        };
        // SAFETY: it makes two system calls that may be made after fork.
        unsafe { command.pre_exec(before_exec) };
        let child = command.spawn().expect("the child starts");
        let process = process_of(child.id() as i32);
        drop(theirs);
        Self::meet(ours, true, Some(child), process, mechanism)
    }

    /// The child's end.
    pub fn child(mechanism: M) -> (Self, Result<Abilities, Unavailable>) {
        let number: RawFd = std::env::var(SOCKET_VARIABLE).expect("a socket").parse().expect("a number");
        // SAFETY: the parent left this descriptor open for us alone.
        let socket = unsafe { OwnedFd::from_raw_fd(number) };
        let parent = nix::unistd::getppid().as_raw();
        Self::meet(socket, false, None, process_of(parent), mechanism)
    }

    fn meet(
        socket: OwnedFd,
        is_parent: bool,
        child: Option<Child>,
        process: Arc<PeerProcess>,
        mut mechanism: M,
    ) -> (Self, Result<Abilities, Unavailable>) {
        let limit = nix::sys::time::TimeVal::new(TIME_LIMIT.as_secs() as i64, 0);
        setsockopt(&socket, sockopt::ReceiveTimeout, &limit).expect("a time limit");
        let area = Box::new(ProbeArea { nonce: [if is_parent { 7 } else { 9 }; 16], scratch: [0; 16] });
        let hello = mechanism.hello().expect("hello");
        let facts = PeerFacts {
            id: EndpointId::from_bytes([is_parent as u8; 16]),
            process: Arc::clone(&process),
            probe_address: 0,
            nonce: [0; 16],
        };
        let mut side = Self { socket, is_parent, child, area, process, mechanism, facts, peer: None };
        let mut frame = (std::ptr::from_ref(&*side.area).expose_provenance() as u64).to_ne_bytes().to_vec();
        frame.extend(side.area.nonce);
        frame.extend(&hello.bytes);
        side.send(&frame, &hello.descriptors);
        let (frame, descriptors) = side.receive();
        side.facts.probe_address = u64::from_ne_bytes(frame[..8].try_into().expect("8 bytes"));
        side.facts.nonce.copy_from_slice(&frame[8..24]);
        let probed = side
            .mechanism
            .probe(&side.facts, Hello { bytes: frame[24..].to_vec(), descriptors })
            .and_then(Probed::reached);
        let abilities = probed.map(|(peer, abilities)| {
            side.peer = Some(peer);
            abilities
        });
        side.meet_again();
        (side, abilities)
    }

    pub fn send(&self, bytes: &[u8], descriptors: &[OwnedFd]) {
        let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let control = [ControlMessage::ScmRights(&raw)];
        let control = if raw.is_empty() { &control[..0] } else { &control[..] };
        let part = [IoSlice::new(bytes)];
        sendmsg::<()>(self.socket.as_raw_fd(), &part, control, MsgFlags::MSG_NOSIGNAL, None).expect("sent");
    }

    pub fn receive(&self) -> (Vec<u8>, Vec<OwnedFd>) {
        let mut bytes = vec![0; 1024];
        let mut space = nix::cmsg_space!([RawFd; 4]);
        let mut part = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let got = recvmsg::<()>(self.socket.as_raw_fd(), &mut part, Some(&mut space), flags)
            .expect("the other process answers in time");
        let mut descriptors = Vec::new();
        for message in got.cmsgs().expect("control messages") {
            if let ControlMessageOwned::ScmRights(raw) = message {
                // SAFETY: the kernel just installed them for us.
                descriptors.extend(raw.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
            }
        }
        let length = got.bytes;
        assert!(length > 0, "the other process ended early");
        bytes.truncate(length);
        (bytes, descriptors)
    }

    /// Waits until the other side is here too.
    pub fn meet_again(&self) {
        self.send(b"done", &[]);
        assert_eq!(self.receive().0, b"done");
    }

    /// Kills the child and waits for its end.
    pub fn kill_child(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits for the child to end well.
    pub fn end(mut self) {
        if let Some(mut child) = self.child.take() {
            let begun = Instant::now();
            loop {
                if let Some(status) = child.try_wait().expect("wait") {
                    assert!(status.success(), "the child failed: {status}");
                    return;
                }
                if begun.elapsed() > TIME_LIMIT {
                    let _ = child.kill();
                    let _ = child.wait();
                    panic!("the child did not end");
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }

    pub fn role(&self, parent_sends: bool) -> Role {
        if self.is_parent == parent_sends { Role::Sender } else { Role::Receiver }
    }

    /// Prepares, exchanges cookies and starts, where this side is active.
    pub fn begin(&mut self, plan: &Plan, data: &Buffer, agreed: Interval) -> M::Transfer {
        let peer = self.peer.as_mut().expect("probed");
        // A receiver knows by its buffer how much of the message there is room for.
        let interval = if plan.role == Role::Receiver { agreed } else { plan.interval };
        let (mut transfer, cookie) =
            self.mechanism.prepare(peer, &Plan { interval, ..*plan }, data).expect("prepared");
        // An empty packet would look like the end of the connection.
        self.send(&[&[0], cookie.as_bytes()].concat(), &[]);
        let remote = Cookie::new(&self.receive().0[1..]).expect("a cookie");
        if is_active(plan) {
            let peer = self.peer.as_mut().expect("probed");
            self.mechanism.start(peer, &mut transfer, &remote, agreed).expect("started");
        }
        transfer
    }

    pub fn step(
        &mut self,
        transfer: &mut M::Transfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        self.mechanism.step(self.peer.as_mut().expect("probed"), transfer, data, max_bytes)
    }

    /// Leaves a message in the Both model. Returns whether both ends know that
    /// it is whole.
    pub fn leave(&mut self, transfer: &mut M::Transfer) -> bool {
        let peer = self.peer.as_mut().expect("probed");
        self.mechanism.shared_completion().is_some_and(|shared| shared.leave(peer, transfer).both_know)
    }

    pub fn finish(&mut self, transfer: M::Transfer) {
        self.mechanism.finish(self.peer.as_mut().expect("probed"), transfer);
    }

    /// Moves one message and checks every byte, also those around it.
    pub fn exchange(&mut self, message: &Message) {
        let mut random = Random(message.seed);
        let plan = Interval { start: 0, end: message.bytes };
        let agreed = match random.below(3) {
            0 => plan,
            _ => {
                let start = random.below(message.bytes + 1);
                Interval { start, end: start + random.below(message.bytes - start + 1) }
            }
        };
        let role = self.role(message.parent_sends);
        let plan = Plan::new(role, message.model, plan);
        let (segments, access) = match role {
            Role::Sender => (message.sender_segments, Access::Read),
            Role::Receiver => (message.receiver_segments, Access::Write),
        };
        let mut memory = Memory::new(message, segments, role);
        let mut data = memory.lend(access);
        let mut transfer = self.begin(&plan, &data, agreed);
        if is_active(&plan) {
            let begun = Instant::now();
            let mut moved = 0;
            loop {
                let max_bytes =
                    [1 + random.below(9), 5000, 70_000, 1 << 20, u64::MAX][random.below(5) as usize];
                // Steps of a few bytes would take a large message forever.
                let max_bytes = max_bytes.max(message.bytes / 200);
                let step = self.step(&mut transfer, &mut data, max_bytes).expect("a step");
                moved += step.bytes;
                assert!(moved <= agreed.bytes());
                if step.done {
                    break;
                }
                assert!(begun.elapsed() < TIME_LIMIT, "{message:?}: {moved} of {agreed:?}");
                std::thread::yield_now();
            }
            let helps = plan.model == Model::Both && role == Role::Sender;
            assert!(moved == agreed.bytes() || helps, "{message:?}: {moved} of {agreed:?}");
            if plan.model == Model::Both {
                self.leave(&mut transfer);
            }
        }
        self.meet_again();
        self.finish(transfer);
        memory.check(message, role, agreed);
    }
}

impl<M: Lmt> Drop for Side<M> {
    fn drop(&mut self) {
        self.kill_child();
    }
}

/// Whether the process with this plan moves bytes.
pub fn is_active(plan: &Plan) -> bool {
    match plan.model {
        Model::Cooperative | Model::Both | Model::Stream => true,
        Model::Get => plan.role == Role::Receiver,
        Model::Put => plan.role == Role::Sender,
    }
}

/// One message of a script.
#[derive(Clone, Debug)]
pub struct Message {
    pub seed: u64,
    pub bytes: u64,
    pub model: Model,
    pub parent_sends: bool,
    pub sender_segments: usize,
    pub receiver_segments: usize,
}

/// The messages that both processes exchange: all sizes around boundaries, and
/// random ones, with one to 2000 segments on either side.
pub fn messages(models: &[Model]) -> Vec<Message> {
    let mut random = Random(20_260_101);
    let mut sizes = vec![0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 131_071, 131_072, 131_073, 5 << 20];
    sizes.extend((0..12).map(|_| random.below(300_000)));
    let counts = [1, 1, 2, 11, 12, 16, 17, 100, 1024, 1025, 2000];
    let mut all = Vec::new();
    for &model in models {
        for parent_sends in [false, true] {
            for &bytes in &sizes {
                let mut count = || counts[random.below(counts.len() as u64) as usize];
                let (sender_segments, receiver_segments) = (count(), count());
                let seed = random.next();
                let contiguous = (1, 1);
                for (sender_segments, receiver_segments) in [contiguous, (sender_segments, receiver_segments)]
                {
                    all.push(Message {
                        seed,
                        bytes,
                        model,
                        parent_sends,
                        sender_segments,
                        receiver_segments,
                    });
                }
            }
        }
    }
    all
}

/// A small reproducible generator (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

fn pattern(seed: u64, position: u64) -> u8 {
    (Random(seed ^ (position / 8)).next() >> (position % 8 * 8)) as u8
}

const POISON: u8 = 0xa5;

/// A message's memory: segments of random sizes with gaps between them.
pub struct Memory {
    bytes: Vec<u8>,
    /// Offset and bytes of each segment.
    places: Vec<(usize, usize)>,
}

impl Memory {
    pub fn new(message: &Message, segments: usize, role: Role) -> Self {
        let mut random = Random(message.seed ^ segments as u64 ^ (role == Role::Sender) as u64);
        let mut cuts: Vec<u64> = (1..segments).map(|_| random.below(message.bytes + 1)).collect();
        cuts.extend([0, message.bytes]);
        cuts.sort_unstable();
        let mut offset = random.below(8) as usize;
        let mut places = Vec::new();
        for pair in cuts.windows(2) {
            places.push((offset, (pair[1] - pair[0]) as usize));
            offset += (pair[1] - pair[0]) as usize + random.below(9) as usize;
        }
        let mut memory = Self { bytes: vec![POISON; offset + 8], places };
        if role == Role::Sender {
            let mut position = 0;
            for &(start, length) in &memory.places {
                for byte in &mut memory.bytes[start..start + length] {
                    *byte = pattern(message.seed, position);
                    position += 1;
                }
            }
        }
        memory
    }

    pub fn lend(&mut self, access: Access) -> Buffer {
        let base = self.bytes.as_mut_ptr().expose_provenance();
        let list: Vec<Segment> =
            self.places.iter().map(|&(start, bytes)| Segment { address: base + start, bytes }).collect();
        // SAFETY: the memory outlives the buffer in every test, which does not
        // touch it until the transfer has ended.
        unsafe { Buffer::new(&list, access) }.expect("a buffer")
    }

    /// Checks that the receiver has `agreed` and nothing else was written.
    pub fn check(&self, message: &Message, role: Role, agreed: Interval) {
        let mut expected = vec![POISON; self.bytes.len()];
        let mut position = 0;
        for &(start, length) in &self.places {
            for byte in &mut expected[start..start + length] {
                if role == Role::Sender || (agreed.start..agreed.end).contains(&position) {
                    *byte = pattern(message.seed, position);
                }
                position += 1;
            }
        }
        let wrong = self.bytes.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "first wrong byte; {message:?}, {agreed:?}");
    }
}
