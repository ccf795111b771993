//! One rank's endpoint, connected, with a count of what the mechanism must have
//! carried.

use std::cell::Cell;

use lmt::Endpoint;
use lmt_core::config::Config;
use lmt_core::endpoint::{Engine, OperationError, PeerId, Source, Status, TagMatch};
use lmt_core::error::PeerError;
use lmt_core::mechanism::{Counters, Mechanisms, Model};

use super::data::Scattered;
use crate::group::Group;

/// Tag of the empty messages that connect ranks.
const GREETING: u64 = u64::MAX;

pub(super) struct Link<'g> {
    pub group: &'g Group,
    pub endpoint: Endpoint,
    /// By rank.
    pub peers: Vec<PeerId>,
    carried: Cell<u64>,
    last_seed: Cell<u64>,
}

impl<'g> Link<'g> {
    /// An endpoint that is connected with rank 0; rank 0's with all others.
    pub fn open(group: &'g Group, mechanisms: Mechanisms, mut config: Config) -> Self {
        config.socket_dir = group.launch().socket_dir().map(Into::into);
        let engine = Engine::new(group.id().member(group.rank()), config, mechanisms);
        let endpoint = Endpoint::from_engine(engine.expect("an endpoint can be made"));
        let insert = |rank| endpoint.insert_peer(&group.address(rank)).expect("there is room for all");
        let peers: Vec<PeerId> = (0..group.size()).map(insert).collect();
        let link = Self { group, endpoint, peers, carried: Cell::new(0), last_seed: Cell::new(0) };
        let friends = if group.rank() == 0 { 1..group.size() } else { 0..1 };
        for rank in friends.clone() {
            link.endpoint.send(link.peer(rank), GREETING, &[]).expect("the peer starts soon");
        }
        for rank in friends {
            link.receive_empty(rank, GREETING);
        }
        link
    }

    pub fn rank(&self) -> u32 {
        self.group.rank()
    }

    pub fn peer(&self, rank: u32) -> PeerId {
        self.peers[rank as usize]
    }

    /// The other one of two ranks.
    pub fn other(&self) -> PeerId {
        self.peer(1 - self.rank())
    }

    /// Why messages cannot go by this mechanism and model both ways between
    /// this rank and those it is connected with. Both ends find the same.
    pub fn lacks(&self, name: &str, model: Model) -> Option<String> {
        for peer in &self.peers {
            let mechanism_status = self.endpoint.mechanism_status(*peer);
            let Some((_, standing)) = mechanism_status.iter().find(|(of, _)| *of == name) else { continue };
            let works = standing.ours.allow_sending(standing.theirs, model)
                && standing.theirs.allow_sending(standing.ours, model);
            if !works {
                let reason = standing.reason.as_ref().map(ToString::to_string);
                let reason = reason.unwrap_or_else(|| "the peer found that it does not".to_owned());
                return Some(format!("model {model:?}: {reason}"));
            }
        }
        None
    }

    /// What this mechanism has done, with all peers together.
    pub fn counters(&self, name: &str) -> Counters {
        let of_peers = self.peers.iter().flat_map(|peer| self.endpoint.counters(*peer));
        let mut sum = Counters::default();
        of_peers.filter(|(of, _)| *of == name).for_each(|(_, one)| sum.add(&one));
        sum
    }

    /// Says that the mechanism must have carried this many messages more.
    pub fn carries(&self, messages: u64) {
        self.carried.set(self.carried.get() + messages);
    }

    /// Checks that this mechanism carried all that it should have, and more than
    /// nothing.
    pub fn prove(&self, name: &str) {
        let Counters { messages, demotions, .. } = self.counters(name);
        assert_eq!(messages, self.carried.get(), "{name} did not carry what it should have carried");
        assert!(messages > 0, "{name} has carried nothing in this case");
        assert_eq!(demotions, 0, "{name} has given up a message");
    }

    /// The same number in all ranks that ask equally often.
    pub fn next_seed(&self) -> u64 {
        self.last_seed.set(self.last_seed.get() + 1);
        self.last_seed.get()
    }

    /// Of two ranks, `from` sends one message to the other, which checks it.
    /// Both call this with the same arguments.
    pub fn deliver(&self, from: u32, out: impl FnOnce() -> Scattered, into: impl FnOnce() -> Scattered) {
        let seed = self.next_seed();
        let bytes = if self.rank() == from {
            let out = out().fill(seed);
            let sent = self.endpoint.send_segments(self.other(), seed, &out.slices());
            let sent = sent.unwrap_or_else(|error| panic!("sending message {seed}: {error}"));
            // The mechanism has no business to write here.
            out.check(seed, out.bytes());
            sent.bytes
        } else {
            let mut into = into();
            let source = Source::Peer(self.other());
            let tags = TagMatch::exactly(seed);
            let received = self.endpoint.receive_segments(source, tags, &mut into.slices_mut());
            let received = received.unwrap_or_else(|error| panic!("receiving message {seed}: {error}"));
            into.check(seed, received.bytes as usize);
            assert_eq!(received.bytes as usize, into.bytes());
            received.bytes
        };
        self.carries(u64::from(bytes > 0));
    }

    pub fn send_empty(&self, to: u32, tag: u64) {
        self.endpoint.send(self.peer(to), tag, &[]).expect("the peer is there");
    }

    pub fn receive_empty(&self, from: u32, tag: u64) {
        let source = Source::Peer(self.peer(from));
        let status = self.endpoint.receive(source, TagMatch::exactly(tag), &mut []);
        assert_eq!(status.expect("the peer is there").bytes, 0);
    }

    /// Waits, making progress, until both of two ranks are here: in
    /// `Group::barrier` an endpoint stands still.
    pub fn meet(&self) {
        let tag = GREETING - self.next_seed();
        let other = 1 - self.rank();
        self.send_empty(other, tag);
        self.receive_empty(other, tag);
    }

    /// Leaves when all that live leave: closing earlier would look like a death.
    pub fn close(self) {
        self.group.barrier();
    }
}

/// The result, or whether it names `rank`, and nobody else, as dead.
pub(super) fn unless_dead(
    group: &Group,
    rank: u32,
    result: Result<Status, OperationError>,
) -> Option<Status> {
    match result {
        Ok(status) => Some(status),
        Err(OperationError::Peer(PeerError::Dead { id })) if id == group.id().member(rank) => None,
        Err(other) => panic!("an operation with rank {rank}, which is being killed, ended in: {other}"),
    }
}
