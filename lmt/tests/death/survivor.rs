//! The process that has dealings with every victim and must survive them all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lmt::mechanism::{Counters, Model, Role};
use lmt::{
    Address, Endpoint, EndpointId, Engine, OperationError, PeerError, PeerId, SendMode, Source, TagMatch,
};
use lmt_core::both_ends::ByBothEnds;

use super::marked::{Marked, Moment, Watch};
use super::operation::Operation;
use super::page::{Page, Phase, Word, now_ns};
use super::script::{Begin, Manner, Random, Script, content, is_content, tag};
use super::third::Exchange;
use super::{
    CONNECT_TIMEOUT_MS, MAX_PEERS, QUOTA_BYTES, STREAM_BYTES, UNEXPECTED_MAX_BYTES, is_eager_stranger,
    round_of, victim_id,
};

/// Within what time each operation with a dead peer must end.
const LIMIT: Duration = Duration::from_secs(1);
/// After what time an operation is taken never to end.
const NEVER: Duration = Duration::from_secs(5);
/// What a receive of a stream is called.
const STREAM: &str = "receive of a stream";

/// Marks the phases that only the survivor sees: where it copies alone.
struct Onlooker {
    page: Arc<Page>,
    seed: u64,
    group: EndpointId,
}

impl Watch for Onlooker {
    fn note(&self, moment: Moment, peer: Option<EndpointId>, role: Option<Role>) {
        let Some(round) = peer.and_then(|id| round_of(self.group, id, self.page.rounds())) else { return };
        let script = Script::of(self.seed, round);
        let data_role = if script.victim_sends { Role::Receiver } else { Role::Sender };
        if role != Some(data_role) || self.page.is_set(round, Word::KilledAt) {
            return;
        }
        match moment {
            Moment::Step => self.page.advance_phase(round, Phase::Rts, Phase::Chunk),
            Moment::Stepped { done: true } => self.page.advance_phase(round, Phase::Chunk, Phase::Finish),
            _ => {}
        }
    }
}

/// The survivor helps those that receive from it.
const MODELS: &[Model] = &[Model::Both, Model::Get, Model::Put];

pub fn engine(page: &Arc<Page>, seed: u64, group: EndpointId) -> Engine {
    let watch: Arc<dyn Watch> = Arc::new(Onlooker { page: page.clone(), seed, group });
    let shm = lmt_shm::Shm::new(lmt_shm::Config::default()).expect("the defaults work");
    Endpoint::builder()
        .id(group.member(0))
        .without_default_mechanisms()
        .register(Marked {
            inner: ByBothEnds::new(lmt_cma::Cma::new()),
            watch: watch.clone(),
            models: Some(MODELS),
        })
        .register(Marked { inner: shm, watch, models: None })
        .configure(|config| {
            config.quota_bytes = QUOTA_BYTES;
            config.unexpected_max_bytes = UNEXPECTED_MAX_BYTES;
            config.max_peers = MAX_PEERS;
            config.connect_timeout_ms = CONNECT_TIMEOUT_MS;
        })
        .build_engine()
        .expect("an endpoint")
}

/// What the survivor has found.
#[derive(Debug, Default)]
pub struct Findings {
    pub wrong: Vec<String>,
    /// Operations that ended with an error that names the victim.
    pub errors: u64,
    /// Longest from the kill, or from the beginning of the operation if that
    /// was later, to its end.
    pub longest: Duration,
    /// The same of peers that nobody had reached: the time to connect bounds it.
    pub max_unreached: Duration,
    /// Counted messages that arrived whole.
    pub messages: u64,
    /// Short messages of streams.
    pub streamed: u64,
    /// Messages of unknown victims received after their death.
    pub strangers: u64,
    /// What victims sent by Both.
    pub from_victims: Shares,
    /// What was sent to them so.
    pub to_victims: Shares,
}

/// Of the counted messages in the Both model, how much each end has copied, and in how many
/// rounds a sender has helped.
#[derive(Debug, Default)]
pub struct Shares {
    pub rounds: usize,
    pub helped_rounds: usize,
    pub sender_bytes: u64,
    pub receiver_bytes: u64,
}

impl Shares {
    fn count(&mut self, sender_bytes: u64, receiver_bytes: u64) {
        self.rounds += usize::from(sender_bytes + receiver_bytes > 0);
        self.helped_rounds += usize::from(sender_bytes > 0);
        self.sender_bytes += sender_bytes;
        self.receiver_bytes += receiver_bytes;
    }
}

struct Pending {
    what: &'static str,
    operation: Operation,
    begun_ns: u64,
    /// Of a stream's receives, which this is: it gets the message of this
    /// number, though others may complete before it.
    number: u64,
}

/// The dealings with one victim.
pub struct Round {
    round: usize,
    id: EndpointId,
    script: Script,
    random: Random,
    peer: Option<PeerId>,
    pending: Vec<Pending>,
    number: u64,
    begun: bool,
    /// Whether operations were begun after the death.
    mourned: bool,
    reaped_at: Option<Instant>,
}

impl Round {
    pub fn new(seed: u64, group: EndpointId, round: usize) -> Self {
        Self {
            round,
            id: victim_id(group, round),
            script: Script::of(seed, round),
            random: Random(seed ^ !(round as u64)),
            peer: None,
            pending: Vec::new(),
            number: 0,
            begun: false,
            mourned: false,
            reaped_at: None,
        }
    }

    /// Goes on with the round. True when it is over.
    pub fn turn(&mut self, engine: &mut Engine, page: &Page, findings: &mut Findings) -> bool {
        if page.is_set(self.round, Word::Reaped) && self.reaped_at.is_none() {
            self.reaped_at = Some(Instant::now());
        }
        if self.script.begin == Begin::Never {
            return self.stranger(engine, page, findings);
        }
        if !self.begun && self.may_begin(page) {
            self.begun = true;
            self.begin(engine, findings);
        }
        self.look(engine, page, findings);
        // A victim that died before it came to where the survivor begins.
        let over = self.reaped_at.is_some() && (self.pending.is_empty() || self.given_up(findings));
        if !over || !self.begun {
            return false;
        }
        if !std::mem::replace(&mut self.mourned, true) {
            self.mourn(engine, findings);
            return false;
        }
        self.end(engine, page, findings)
    }

    fn may_begin(&self, page: &Page) -> bool {
        let word = match self.script.begin {
            Begin::AtOnce => return true,
            Begin::Listening => Word::Listening,
            Begin::Connected => Word::Connected,
            Begin::Dead | Begin::Never => Word::Reaped,
        };
        page.is_set(self.round, word) || page.is_set(self.round, Word::Reaped)
    }

    fn address(&self) -> Address {
        Address::abstract_socket(self.id)
    }

    fn begin(&mut self, engine: &mut Engine, findings: &mut Findings) {
        self.peer = Some(engine.insert_peer(&self.address()).expect("numbers of dead peers are used again"));
        let first = self.random.below(4);
        for which in 0..4 {
            match (first + which) % 4 {
                0 => self.send(engine, "small send", tag::NEVER, vec![1; 100], SendMode::Standard, findings),
                1 => self.send(
                    engine,
                    "large send",
                    tag::NEVER,
                    vec![2; 400_000],
                    SendMode::Standard,
                    findings,
                ),
                2 => {
                    let mode = SendMode::Synchronous;
                    self.send(engine, "synchronous send", tag::NEVER, vec![3; 64], mode, findings);
                }
                _ => self.receive(engine, "receive", tag::NEVER, 100, findings),
            }
        }
        if self.script.manner == Manner::Deaf {
            for _ in 0..200 {
                let (what, mode) = ("blocked send", SendMode::Standard);
                self.send(engine, what, tag::NEVER, vec![4; 4096], mode, findings);
            }
        }
        if self.script.manner == Manner::Streaming {
            (0..16).for_each(|_| self.receive(engine, STREAM, tag::STREAM, STREAM_BYTES, findings));
        } else {
            self.data(engine, findings);
        }
    }

    /// The next counted message.
    fn data(&mut self, engine: &mut Engine, findings: &mut Findings) {
        let bytes = self.script.data_bytes;
        if self.script.victim_sends {
            self.receive(engine, "receive of data", tag::DATA, bytes, findings);
        } else {
            let data = content(tag::DATA + self.round as u64, self.number, bytes);
            self.send(engine, "send of data", tag::DATA, data, SendMode::Standard, findings);
        }
    }

    /// Operations that are begun when the victim is known to be dead.
    fn mourn(&mut self, engine: &mut Engine, findings: &mut Findings) {
        self.send(engine, "send to the dead", tag::NEVER, vec![5; 10], SendMode::Standard, findings);
        self.receive(engine, "receive from the dead", tag::NEVER, 10, findings);
    }

    fn send(
        &mut self,
        engine: &mut Engine,
        what: &'static str,
        tag: u64,
        data: Vec<u8>,
        mode: SendMode,
        findings: &mut Findings,
    ) {
        let Some(peer) = self.peer else { return };
        let begun_ns = now_ns();
        match Operation::send(engine, peer, tag, data, mode) {
            Ok(operation) => self.pending.push(Pending { what, operation, begun_ns, number: 0 }),
            Err(error) => self.judge(what, &error, begun_ns, 0, findings),
        }
    }

    fn receive(
        &mut self,
        engine: &mut Engine,
        what: &'static str,
        tag: u64,
        bytes: usize,
        findings: &mut Findings,
    ) {
        let Some(peer) = self.peer else { return };
        let begun_ns = now_ns();
        match Operation::receive(engine, Source::Peer(peer), TagMatch::exactly(tag), bytes) {
            Ok(operation) => {
                let number = self.number;
                self.pending.push(Pending { what, operation, begun_ns, number });
                self.number += u64::from(what == STREAM);
            }
            Err(error) => self.judge(what, &error, begun_ns, 0, findings),
        }
    }

    /// Deals with the operations that have ended.
    fn look(&mut self, engine: &mut Engine, page: &Page, findings: &mut Findings) {
        let mut at = 0;
        let mut next = false;
        let mut streamed = 0;
        while at < self.pending.len() {
            let Some((result, memory)) = self.pending[at].operation.take(engine) else {
                at += 1;
                continue;
            };
            let Pending { what, begun_ns, number, .. } = self.pending.swap_remove(at);
            match result {
                Err(error) => {
                    self.judge(what, &error, begun_ns, page.get(self.round, Word::KilledAt), findings);
                }
                Ok(_) if what.ends_with("of data") => {
                    let stream = tag::DATA + self.round as u64;
                    if self.script.victim_sends && !is_content(stream, self.number, &memory) {
                        findings.wrong.push(format!("round {}: {what} has wrong bytes", self.round));
                    }
                    findings.messages += 1;
                    self.number += 1;
                    next = true;
                }
                Ok(_) if what == STREAM => {
                    streamed += 1;
                    let stream = tag::STREAM + self.round as u64;
                    if !is_content(stream, number, &memory) {
                        let is = (0..number + 1000).find(|n| is_content(stream, *n, &memory));
                        findings.wrong.push(format!(
                            "round {}: {what} got message {is:?} where {number} was due",
                            self.round
                        ));
                    }
                }
                // Its bytes are in the victim's inbox.
                Ok(_) if matches!(what, "small send" | "blocked send") => {}
                Ok(_) => findings.wrong.push(format!("round {}: a {what} was completed", self.round)),
            }
        }
        if streamed > 0 {
            findings.streamed += streamed;
            (0..streamed).for_each(|_| self.receive(engine, STREAM, tag::STREAM, STREAM_BYTES, findings));
        }
        if next {
            self.data(engine, findings);
        }
    }

    /// Whether an operation that ended with an error did so as it should.
    fn judge(
        &self,
        what: &str,
        error: &OperationError,
        begun_ns: u64,
        killed_ns: u64,
        findings: &mut Findings,
    ) {
        let named = match error {
            OperationError::Peer(
                PeerError::Dead { id }
                | PeerError::Unreachable { id, .. }
                | PeerError::Refused { id, .. }
                | PeerError::System { id, .. }
                | PeerError::NoMechanism { id, .. },
            ) => Some(*id),
            _ => None,
        };
        let since = now_ns().saturating_sub(begun_ns.max(killed_ns));
        let took = Duration::from_nanos(since);
        findings.errors += 1;
        match error {
            OperationError::Peer(PeerError::Unreachable { .. }) => {
                findings.max_unreached = findings.max_unreached.max(took);
            }
            _ => findings.longest = findings.longest.max(took),
        }
        if named != Some(self.id) {
            findings.wrong.push(format!("round {}: {what} names not the victim: {error}", self.round));
        }
        if took > LIMIT {
            let script = &self.script;
            findings.wrong.push(format!("round {}: {what} took {took:?}: {error} ({script:?})", self.round));
        }
    }

    /// Whether what is pending must be taken never to end.
    fn given_up(&mut self, findings: &mut Findings) -> bool {
        if self.reaped_at.is_none_or(|at| at.elapsed() < NEVER) {
            return false;
        }
        for pending in self.pending.drain(..) {
            let (round, script) = (self.round, &self.script);
            findings.wrong.push(format!("round {round}: {} did not end ({script:?})", pending.what));
        }
        true
    }

    fn end(&mut self, engine: &mut Engine, page: &Page, findings: &mut Findings) -> bool {
        if let Some(peer) = self.peer.take() {
            self.count_shares(&engine.counters(peer), findings);
            engine.remove_peer(peer).expect("the peer is known");
            if engine.peer_id(peer).is_some() {
                findings.wrong.push(format!("round {}: a removed peer is still known", self.round));
            }
        }
        page.set(self.round, Word::Done, 1);
        true
    }

    /// Counts who has copied what of messages in the Both model.
    fn count_shares(&self, counters: &[(&'static str, Counters)], findings: &mut Findings) {
        let Some((_, counters)) = counters.iter().find(|(name, _)| *name == "cma") else { return };
        if self.script.mechanism != "cma" {
            return;
        }
        match self.script.victim_sends {
            true if self.script.is_sent_by_both() => {
                findings.from_victims.count(counters.peer_bytes, counters.bytes);
            }
            true => {}
            // Of what the survivor has sent whole, the victim has copied the rest.
            false => {
                let by_victim = counters.sent.bytes.saturating_sub(counters.bytes);
                findings.to_victims.count(counters.bytes, by_victim);
            }
        }
    }

    /// A victim that connects and is not known here. What it left can be
    /// received by whoever names it afterwards.
    fn stranger(&mut self, engine: &mut Engine, page: &Page, findings: &mut Findings) -> bool {
        if self.reaped_at.is_none_or(|at| at.elapsed() < Duration::from_millis(20)) {
            return false;
        }
        if is_eager_stranger(&self.script, self.round) {
            let peer = engine.insert_peer(&self.address()).expect("a peer can be named");
            self.peer = Some(peer);
            let tags = TagMatch::exactly(tag::STRANGER);
            if engine.probe(Source::Peer(peer), tags).expect("probing").is_some() {
                let mut receive =
                    Operation::receive(engine, Source::Peer(peer), tags, 1000).expect("a receive");
                let (result, memory) = receive.take(engine).expect("what is here is received at once");
                let good = result.is_ok() && is_content(tag::STRANGER, self.round as u64, &memory);
                if !good {
                    findings.wrong.push(format!("round {}: the stranger's message: {result:?}", self.round));
                }
                findings.strangers += 1;
            }
        }
        self.end(engine, page, findings)
    }
}

/// How many descriptors and mappings this process has.
pub fn cell_ownership() -> (usize, usize) {
    let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let maps = std::fs::read_to_string("/proc/self/maps").map_or(0, |text| text.lines().count());
    (descriptors, maps)
}

/// Serves all rounds and the third rank until that one ends the exchange.
pub fn run(engine: &mut Engine, page: &Page, seed: u64, group: EndpointId) -> (Findings, Exchange) {
    let mut findings = Findings::default();
    let mut exchange = Exchange::new(engine);
    let mut active: Vec<Round> = Vec::new();
    let mut next = 0;
    while !exchange.ended || !active.is_empty() {
        let limit = Instant::now() + Duration::from_micros(100);
        engine.wait_for_progress(Some(limit)).expect("this is no forked child");
        exchange.turn(engine);
        while next < page.rounds() && page.is_set(next, Word::Begun) {
            active.push(Round::new(seed, group, next));
            next += 1;
        }
        active.retain_mut(|round| !round.turn(engine, page, &mut findings));
    }
    (findings, exchange)
}
