//! The process that is killed.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lmt::mechanism::{Lmt, Model, Role};
use lmt::{Address, Endpoint, EndpointId, Engine, PeerId, SendMode, Source, TagMatch};
use lmt_core::both_ends::ByBothEnds;
use nix::sys::signal::{Signal, raise};
use tracing::field::{Field, Visit};
use tracing::span;

use super::marked::{Marked, Moment, Watch};
use super::operation::Operation;
use super::page::{Page, Phase, Word};
use super::script::{Kill, Manner, Script, content, is_content, tag};
use super::{HASTY_QUOTA_BYTES, QUOTA_BYTES, STREAM_BYTES, UNEXPECTED_MAX_BYTES, victim_id};

/// Writes down where the victim is, and ends it when its moment has come.
struct KindByte {
    page: Arc<Page>,
    round: usize,
    script: Script,
    seen: AtomicU64,
}

impl KindByte {
    /// One more instant of this phase.
    fn mark(&self, phase: Phase) {
        let Kill::Inside(at, nth) = self.script.kill else { return };
        // Relaxed: a counter of one thread.
        if at == phase && self.seen.fetch_add(1, Ordering::Relaxed) + 1 == nth {
            self.page.note_kill(self.round);
            let _never_returns = raise(Signal::SIGKILL);
        }
    }

    fn advance(&self, from: Phase, to: Phase) {
        self.page.advance_phase(self.round, from, to);
    }

    /// An instant of whatever phase it is: while the other side acts.
    fn tick(&self) {
        match self.page.phase(self.round) {
            Phase::Connect if self.script.victim_connects => {}
            phase => self.mark(phase),
        }
    }

    /// What the connection layer tells of its decisions.
    fn connection(&self, event: &str, to: &str) {
        match event {
            "Connected" => self.mark(Phase::Connect),
            "TheirHello" | "Hello" | "Report" => {
                self.advance(Phase::Connect, Phase::Handshake);
                self.mark(Phase::Handshake);
            }
            _ => {}
        }
        if to == "Established" {
            self.advance(Phase::Handshake, Phase::Between);
            self.page.set(self.round, Word::Connected, 1);
        }
    }
}

impl Watch for KindByte {
    fn note(&self, moment: Moment, _peer: Option<EndpointId>, role: Option<Role>) {
        let data_role = if self.script.victim_sends { Role::Sender } else { Role::Receiver };
        if role.is_some_and(|role| role != data_role) {
            return;
        }
        match moment {
            Moment::Hello | Moment::Probe => {
                self.advance(Phase::Connect, Phase::Handshake);
                self.mark(Phase::Handshake);
            }
            Moment::Prepare => {
                self.page.set_phase(self.round, Phase::Rts);
                self.mark(Phase::Rts);
            }
            Moment::Prepared | Moment::Start => self.mark(Phase::Rts),
            Moment::Step => {
                self.advance(Phase::Rts, Phase::Chunk);
                self.mark(Phase::Chunk);
            }
            Moment::Stepped { done: false } => self.mark(Phase::Chunk),
            Moment::Stepped { done: true } => {
                self.advance(Phase::Chunk, Phase::Finish);
                self.mark(Phase::Finish);
            }
            Moment::Finish | Moment::Finished => {
                if self.page.phase(self.round) == Phase::Finish {
                    self.mark(Phase::Finish);
                }
            }
        }
    }
}

/// Hands the connection layer's events to the marks.
struct Listener(Arc<KindByte>);

#[derive(Default)]
struct Fields {
    event: String,
    to: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text = match field.name() {
            "event" => &mut self.event,
            "to" => &mut self.to,
            _ => return,
        };
        // A String takes everything.
        let _written = write!(text, "{value:?}");
    }
}

impl tracing::Subscriber for Listener {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("lmt_core::connect")
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if !fields.event.is_empty() {
            self.0.connection(&fields.event, &fields.to);
        }
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

fn marked<M: Lmt>(inner: M, marks: &Arc<KindByte>, models: Option<&'static [Model]>) -> Marked<M> {
    let watch: Arc<dyn Watch> = marks.clone();
    Marked { inner, watch, models }
}

fn engine(id: EndpointId, marks: &Arc<KindByte>) -> Engine {
    let script = &marks.script;
    let models = script.victim_sends.then_some(script.models);
    let shm = lmt_shm::Shm::new(lmt_shm::Config::default()).expect("the defaults work");
    let quota_bytes = if script.is_hasty { HASTY_QUOTA_BYTES } else { QUOTA_BYTES };
    let mut builder = Endpoint::builder().id(id).without_default_mechanisms();
    if script.mechanism == "cma" {
        builder = builder.register(marked(ByBothEnds::new(lmt_cma::Cma::new()), marks, models));
    }
    builder
        .register(marked(shm, marks, None))
        .configure(move |config| {
            config.quota_bytes = quota_bytes;
            config.unexpected_max_bytes = UNEXPECTED_MAX_BYTES;
        })
        .build_engine()
        .expect("an endpoint")
}

/// Runs until it is killed; leaves with a status when something is wrong.
pub fn run(page: Arc<Page>, seed: u64, round: usize, group: EndpointId) -> ! {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).expect("prctl");
    let script = Script::of(seed, round);
    let marks = Arc::new(KindByte { page: page.clone(), round, script, seen: AtomicU64::new(0) });
    tracing::subscriber::set_global_default(Listener(marks.clone())).expect("no other subscriber");
    let mut engine = engine(victim_id(group, round), &marks);
    let survivor = engine.insert_peer(&Address::abstract_socket(group.member(0))).expect("insert_peer");
    page.set_phase(round, Phase::Connect);
    page.set(round, Word::Listening, 1);
    marks.mark(Phase::Connect);
    while !script.victim_connects && !page.is_set(round, Word::Connected) {
        turn(&mut engine, &marks);
    }
    // Held until the end; nobody waits for them.
    let _beside = beside(&mut engine, survivor, &script, round);
    if script.manner == Manner::Streaming {
        stream(&mut engine, survivor, round);
    }
    for number in 0.. {
        exchange(&mut engine, survivor, &marks, number);
    }
    unreachable!("numbers do not end");
}

fn turn(engine: &mut Engine, marks: &KindByte) {
    marks.tick();
    let limit = Instant::now() + Duration::from_micros(50);
    engine.wait_for_progress(Some(limit)).expect("this is no forked child");
}

/// What the victim sends beside the counted messages.
fn beside(engine: &mut Engine, survivor: PeerId, script: &Script, round: usize) -> Vec<Operation> {
    let mut operations = Vec::new();
    let mut send = |tag, data| {
        operations.push(Operation::send(engine, survivor, tag, data, SendMode::Standard).expect("a send"));
    };
    if super::is_eager_stranger(script, round) {
        send(tag::STRANGER, content(tag::STRANGER, round as u64, 1000));
    }
    if script.manner == Manner::Flooding {
        (0..200).for_each(|_| send(tag::FLOOD, vec![0; 4096]));
    }
    operations
}

/// Short messages without end.
fn stream(engine: &mut Engine, survivor: PeerId, round: usize) -> ! {
    let mut in_flight = VecDeque::new();
    for number in 0.. {
        let data = content(tag::STREAM + round as u64, number, STREAM_BYTES);
        match Operation::send(engine, survivor, tag::STREAM, data, SendMode::Standard) {
            Ok(operation) => in_flight.push_back(operation),
            Err(error) => leave(6, &error.to_string()),
        }
        while in_flight.len() > 64 {
            let Some((result, _)) = in_flight.front_mut().and_then(|first| first.take(engine)) else {
                engine.progress().expect("this is no forked child");
                continue;
            };
            in_flight.pop_front();
            if let Err(error) = result {
                leave(7, &error.to_string());
            }
        }
    }
    unreachable!("numbers do not end");
}

/// One counted message.
fn exchange(engine: &mut Engine, survivor: PeerId, marks: &KindByte, number: u64) {
    let (round, script) = (marks.round, &marks.script);
    let stream = tag::DATA + round as u64;
    let begun = if script.victim_sends {
        let data = content(stream, number, script.data_bytes);
        Operation::send(engine, survivor, tag::DATA, data, SendMode::Standard)
    } else {
        Operation::receive(engine, Source::Peer(survivor), TagMatch::exactly(tag::DATA), script.data_bytes)
    };
    let mut operation = begun.unwrap_or_else(|error| leave(3, &error.to_string()));
    if !marks.page.is_set(round, Word::Connected) {
        marks.mark(Phase::Connect);
    }
    loop {
        if let Some((result, memory)) = operation.take(engine) {
            if let Err(error) = result {
                leave(4, &error.to_string());
            }
            if !script.victim_sends && !is_content(stream, number, &memory) {
                leave(5, "the survivor's message arrived with wrong bytes");
            }
            break;
        }
        turn(engine, marks);
        while script.manner == Manner::Deaf && marks.page.is_set(round, Word::Connected) {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    marks.page.set_phase(round, Phase::Between);
}

fn leave(status: i32, why: &str) -> ! {
    eprintln!("victim: {why}");
    std::process::exit(status)
}
