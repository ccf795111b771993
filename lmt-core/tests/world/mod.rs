//! A simulated machine: some endpoints, the queues between them, and a
//! scheduler that picks what happens next by a seed. Each endpoint is a
//! `Machine` and a `TagMatcher` driven the way an endpoint drives them.
mod hostile;
mod medium;
mod oracle;
mod perform;
mod requests;
mod rng;
mod schedule;

use std::collections::{HashMap, HashSet, VecDeque};

use lmt_core::matching::{Pattern, PostedHandle};
use lmt_core::mechanism::Model;
use lmt_core::rendezvous::{Machine, MechanismTag, ReceiveId, Received, SendId, TransferError, TransferKey};

use medium::{Buffers, Medium};
use oracle::Checked;
use rng::Rng;

/// What kind of world.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub seed: u64,
    pub endpoints: usize,
    /// Operations that each endpoint starts.
    pub operations: usize,
    pub max_bytes: u64,
    /// How often each mechanism but the last fails, per mille of its calls.
    pub fault_per_mille: u64,
    /// Whether the last, reliable one is always among a message's candidates.
    pub reliable: bool,
    /// An endpoint that dies somewhere on the way.
    pub dies: Option<usize>,
    /// An endpoint that says anything.
    pub hostile: Option<usize>,
    /// Receives are posted for one message in so many only, until the end.
    pub receive_one_in: u64,
}

/// What happened in all worlds together, to show that nothing was left out.
#[derive(Default, Debug)]
pub struct Tally {
    pub eager: u64,
    pub received: u64,
    pub truncated: u64,
    pub cancelled: u64,
    pub cancel_too_late: u64,
    pub demoted: u64,
    pub known_by_both: u64,
    pub no_mechanism: u64,
    pub peer_dead: u64,
    pub protocol_errors: u64,
    pub receives_cancelled: u64,
    pub taken: u64,
    pub max_unexpected: usize,
}

struct Message {
    from: usize,
    to: usize,
    tag: u64,
    total_bytes: u64,
    eager: bool,
    candidates: u32,
    send_id: Option<SendId>,
    cancel_asked: bool,
    arrived: bool,
    withdrawn: bool,
    receive: Option<usize>,
    result: Option<Result<(), TransferError>>,
}

struct Receive {
    at: usize,
    pattern: Pattern,
    capacity: u64,
    handle: Option<PostedHandle>,
    message: Option<usize>,
    result: Option<Outcome>,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Cancelled,
    Ended(Result<Received, TransferError>),
}

#[derive(Default)]
struct End {
    machine: Machine,
    matcher: Checked,
    sends: HashMap<SendId, usize>,
    receives: HashMap<ReceiveId, usize>,
    transfers: HashMap<TransferKey, usize>,
    blacklist: HashSet<(usize, MechanismTag, Model)>,
    knows_dead: HashSet<usize>,
    operations_left: usize,
    /// The newest message that has arrived from each peer.
    newest_from: HashMap<usize, usize>,
}

enum Frame {
    Eager {
        message: usize,
    },
    /// A packet, with the message's tag in front when it is an RTS: what an
    /// endpoint's own cell header does.
    Packet {
        bytes: Vec<u8>,
        message: Option<usize>,
    },
}

pub struct World {
    case: Case,
    rng: Rng,
    ends: Vec<End>,
    /// By sender and receiver.
    links: HashMap<(usize, usize), VecDeque<Frame>>,
    messages: Vec<Message>,
    receives: Vec<Receive>,
    buffers: Buffers,
    medium: Medium,
    tally: Tally,
    dies_at: u64,
    ticks: u64,
    /// What the hostile endpoint has overheard of each peer.
    overheard: Vec<(usize, TransferKey)>,
}

impl World {
    /// Runs one case to its end, checks everything, and adds to `tally`.
    pub fn run(case: Case, tally: Tally) -> Tally {
        let mut rng = Rng::new(case.seed);
        let mut ends: Vec<End> = (0..case.endpoints).map(|_| End::default()).collect();
        for (index, end) in ends.iter_mut().enumerate() {
            end.operations_left = if case.hostile == Some(index) { 200 } else { case.operations };
        }
        let links = (0..case.endpoints)
            .flat_map(|from| (0..case.endpoints).map(move |to| ((from, to), VecDeque::new())))
            .collect();
        let rate = case.fault_per_mille;
        let medium = Medium {
            fault_per_mille: [rate, rate / 3, rate * 2, 0],
            hostile: case.hostile,
            dead: vec![false; case.endpoints],
            ..Medium::default()
        };
        let dies_at = rng.below(case.operations as u64 * case.endpoints as u64 * 12);
        let mut world = Self {
            case,
            rng,
            ends,
            links,
            messages: Vec::new(),
            receives: Vec::new(),
            buffers: Vec::new(),
            medium,
            tally,
            dies_at,
            ticks: 0,
            overheard: Vec::new(),
        };
        world.live();
        world.judge();
        world.tally
    }

    fn alive(&self, end: usize) -> bool {
        !self.medium.dead[end]
    }

    fn is_hostile(&self, end: usize) -> bool {
        self.case.hostile == Some(end)
    }

    /// Whether everything about this message can be relied on.
    fn undisturbed(&self, message: &Message) -> bool {
        let fine = |end| self.alive(end) && !self.is_hostile(end);
        fine(message.from) && fine(message.to)
    }
}
