//! Runs the programs of all ranks side by side, in an order that a seed gives.
//!
//! Whatever an executor need not stand is a failure with a sentence: see
//! [`run`]. Races are found by what ranks know of each other (`race`), not only
//! when a run happens to show wrong bytes.

use std::collections::HashMap;

use crate::algorithm::Kind;
use crate::call::{Block, Call};
use crate::program::{Action, Place, Program, Remote, Span};

use super::case::{Memory, Scene};
use super::race::{Access, Clock, Log, join};
use super::random::Random;
use super::serial::combine;
use super::shared::Cells;

/// Why a run failed, in a sentence.
pub type Failure = String;

const PLACES: [Place; 3] = [Place::Input, Place::Output, Place::Work];

/// A message, in the order of its sender's steps.
struct Message {
    bytes: Vec<u8>,
    clock: Clock,
    /// Its sender waits until it is received.
    rendezvous: bool,
    received: bool,
}

/// An action that has begun.
struct UnderWay {
    action: Action,
    done_bytes: u64,
    /// Which message between the two ranks, of sends and receives.
    ticket: usize,
}

pub(super) struct Rank {
    call: Call,
    pub(super) program: Program,
    /// By [`Place`].
    memory: [Vec<u8>; 3],
    logs: [Log; 3],
    pub(super) slot: Vec<u8>,
    pub(super) slot_log: Log,
    /// How many have begun; the first is what it does before it has come.
    steps_begun: u32,
    under_way: Vec<UnderWay>,
    /// What it knew when the step began.
    pub(super) clock: Clock,
    /// What it has learned since.
    learned: Clock,
    points: Vec<(u32, Clock)>,
    receives: HashMap<u32, usize>,
    has_come: bool,
    waits_to_meet: bool,
    ended: bool,
}

impl Rank {
    /// The steps that it begins without having met the others.
    fn unmet(&self) -> u32 {
        1 + self.program.early.len() as u32
    }
}

pub(super) struct World {
    pub(super) ranks: Vec<Rank>,
    pub(super) cells: Cells,
    /// By sender and receiver.
    mail: HashMap<(u32, u32), Vec<Message>>,
    random: Random,
    /// Whether the ranks meet between `before` and the steps.
    meets: bool,
    most_at_once: usize,
}

/// What came of a run.
pub struct Ran {
    /// The memory of all ranks at the end.
    pub memory: Vec<Memory>,
    /// How many ranks reached into one rank's memory at a time, at most.
    pub most_at_once: usize,
}

/// Runs the programs to their end. Without `meets` the ranks do not meet
/// first, and it is a failure if one ends before all have begun: for barriers.
pub fn run(scene: &Scene, programs: Vec<Program>, meets: bool, seed: u64) -> Result<Ran, Failure> {
    let mut world = World::new(scene, programs, meets, seed);
    for rank in 0..world.ranks.len() {
        world.begin_step(rank)?;
    }
    while world.ranks.iter().any(|rank| !rank.ended) {
        world.tick()?;
    }
    world.check_mail()?;
    let memory = |rank: Rank| {
        let [input, output, _] = rank.memory;
        Memory { input, output }
    };
    let most_at_once = world.most_at_once;
    Ok(Ran { memory: world.ranks.into_iter().map(memory).collect(), most_at_once })
}

impl World {
    fn new(scene: &Scene, programs: Vec<Program>, meets: bool, seed: u64) -> Self {
        let mut random = Random(seed);
        let size = programs.len();
        let mut rank = |(at, program): (usize, Program)| Rank {
            slot_log: Log::default(),
            call: scene.calls[at].clone(),
            memory: [
                scene.memory[at].input.clone(),
                scene.memory[at].output.clone(),
                random.bytes(program.work_bytes),
            ],
            logs: Default::default(),
            slot: random.bytes(scene.calls[at].slot_bytes),
            program: program.with_slot(),
            steps_begun: 0,
            under_way: Vec::new(),
            clock: vec![0; size],
            learned: vec![0; size],
            points: Vec::new(),
            receives: HashMap::new(),
            has_come: false,
            waits_to_meet: false,
            ended: false,
        };
        let ranks = programs.into_iter().enumerate().map(&mut rank).collect();
        let cells = Cells::new(if size == 2 { random.bytes(Cells::BYTES) } else { Vec::new() });
        Self { ranks, cells, mail: HashMap::new(), random, meets, most_at_once: 0 }
    }

    /// Moves one action of one rank on.
    fn tick(&mut self) -> Result<(), Failure> {
        for rank in self.random.order(self.ranks.len()) {
            for at in self.random.order(self.ranks[rank].under_way.len()) {
                if self.advance(rank, at)? {
                    return self.after(rank);
                }
            }
        }
        Err(self.deadlock())
    }

    fn deadlock(&self) -> Failure {
        let waits = |(number, rank): (usize, &Rank)| {
            (!rank.ended).then(|| {
                let actions: Vec<&Action> =
                    rank.under_way.iter().map(|under_way| &under_way.action).collect();
                let meeting = if rank.waits_to_meet { " for the meeting" } else { "" };
                format!("rank {number} waits{meeting} in step {}: {actions:?}", rank.steps_begun - 1)
            })
        };
        let all: Vec<String> = self.ranks.iter().enumerate().filter_map(waits).collect();
        format!("deadlock: {}", all.join("; "))
    }

    /// Goes to the next step if all of this one has ended.
    fn after(&mut self, rank: usize) -> Result<(), Failure> {
        if !self.ranks[rank].under_way.is_empty() {
            return Ok(());
        }
        let begun = {
            let rank_number = rank;
            let rank = &mut self.ranks[rank];
            rank.learned[rank_number] = rank.steps_begun;
            rank.clock = rank.learned.clone();
            rank.steps_begun
        };
        let is_to_meet = self.meets && begun == self.ranks[rank].unmet();
        self.ranks[rank].waits_to_meet = is_to_meet;
        if self.meets && begun == 1 {
            self.ranks[rank].has_come = true;
            self.meet()?;
        } else if is_to_meet {
            return self.meet();
        }
        if is_to_meet { Ok(()) } else { self.begin_step(rank) }
    }

    /// Once all have come, those that wait for that go on.
    fn meet(&mut self) -> Result<(), Failure> {
        if !self.ranks.iter().all(|rank| rank.has_come) {
            return Ok(());
        }
        let all = vec![1; self.ranks.len()];
        for number in 0..self.ranks.len() {
            let rank = &mut self.ranks[number];
            if std::mem::take(&mut rank.waits_to_meet) {
                join(&mut rank.clock, &all);
                join(&mut rank.learned, &all);
                self.begin_step(number)?;
            }
        }
        Ok(())
    }

    fn begin_step(&mut self, number: usize) -> Result<(), Failure> {
        let rank = &mut self.ranks[number];
        let step = rank.steps_begun;
        rank.steps_begun += 1;
        let actions = match step {
            0 => std::mem::take(&mut rank.program.before),
            _ => {
                let program = &mut rank.program;
                match program.early.iter_mut().chain(&mut program.steps).nth(step as usize - 1) {
                    Some(actions) => std::mem::take(actions),
                    None => return self.end(number),
                }
            }
        };
        for action in actions {
            self.begin(number, step, action)
                .map_err(|failure| format!("rank {number} in step {step}: {failure}"))?;
        }
        self.after(number)
    }

    /// A rank's program ends: nobody may reach its memory from now on.
    fn end(&mut self, number: usize) -> Result<(), Failure> {
        let rank = &mut self.ranks[number];
        rank.ended = true;
        for (log, place) in rank.logs.iter().zip(PLACES) {
            if let Some(access) = log.under_way(&rank.clock) {
                return Err(format!(
                    "rank {number} ends while it cannot know that rank {}'s step {} is done with its {place:?}",
                    access.rank, access.step
                ));
            }
        }
        match rank.clock.iter().position(|&steps| steps == 0) {
            Some(late) => Err(format!("rank {number} ends while it cannot know that rank {late} has come")),
            None => Ok(()),
        }
    }

    fn begin(&mut self, number: usize, step: u32, action: Action) -> Result<(), Failure> {
        self.check_when(number, step, &action)?;
        self.touch(number, step, &action)?;
        self.count_at_once(&action);
        let ticket = match &action {
            Action::Send { rank, from } => self.send(number, *rank, *from),
            Action::Receive { rank, .. } => {
                let receives = self.ranks[number].receives.entry(*rank).or_default();
                *receives += 1;
                *receives - 1
            }
            _ => 0,
        };
        self.ranks[number].under_way.push(UnderWay { action, done_bytes: 0, ticket });
        Ok(())
    }

    /// With those that are under way, how many reach where this one does.
    fn count_at_once(&mut self, action: &Action) {
        let reached = |action: &Action| match action {
            Action::Get { rank, .. } | Action::Put { rank, .. } => Some(*rank),
            _ => None,
        };
        if let Some(peer) = reached(action) {
            let under_way = self.ranks.iter().flat_map(|rank| &rank.under_way);
            let others = under_way.filter(|other| reached(&other.action) == Some(peer)).count();
            self.most_at_once = self.most_at_once.max(others + 1);
        }
    }

    fn check_when(&self, number: usize, step: u32, action: &Action) -> Result<(), Failure> {
        use Action as A;
        let local = matches!(action, A::Copy { .. } | A::Post { .. } | A::Hand { .. });
        if step == 0 && !local {
            return Err(format!("only copies and posts come before the meeting, not {action:?}"));
        }
        if step < self.ranks[number].unmet() && !local && !matches!(action, A::Publish(_)) {
            return Err(format!("only copies, posts and points are early, not {action:?}"));
        }
        let reaches = matches!(action, A::Get { .. } | A::Put { .. } | A::Take { .. } | A::Accept { .. });
        if reaches && !self.meets {
            return Err(format!("without a meeting nobody knows where others' memory is: {action:?}"));
        }
        let peer = match action {
            A::Await { rank, .. } | A::Get { rank, .. } | A::Put { rank, .. } => Some(*rank),
            A::Send { rank, .. } | A::Receive { rank, .. } => Some(*rank),
            A::Take { rank, .. } if *rank as usize >= self.ranks.len() => Some(*rank),
            _ => None,
        };
        match peer {
            Some(peer) if peer as usize == number => Err(format!("it is its own peer in {action:?}")),
            Some(peer) if peer as usize >= self.ranks.len() => {
                Err(format!("there is no such rank: {action:?}"))
            }
            _ => Ok(()),
        }
    }

    fn send(&mut self, from: usize, to: u32, span: Span) -> usize {
        let message = Message {
            bytes: self.read(from, span.place, span.offset, span.bytes),
            clock: self.ranks[from].clock.clone(),
            rendezvous: self.random.coin(),
            received: false,
        };
        let mail = self.mail.entry((from as u32, to)).or_default();
        mail.push(message);
        mail.len() - 1
    }

    fn check_mail(&self) -> Result<(), Failure> {
        match self.mail.iter().find(|(_, mail)| mail.iter().any(|message| !message.received)) {
            Some(((from, to), _)) => {
                Err(format!("rank {to} does not receive all that rank {from} sends to it"))
            }
            None => Ok(()),
        }
    }
}

/// What bytes actions may touch.
impl World {
    /// Checks and notes all that an action touches.
    fn touch(&mut self, number: usize, step: u32, action: &Action) -> Result<(), Failure> {
        use Action as A;
        match *action {
            A::Publish(_) | A::Await { .. } => Ok(()),
            A::Get { rank, from, into } => {
                self.touch_remote(number, step, rank, from, into.bytes, false)?;
                self.touch_local(number, step, into, true)
            }
            A::Put { rank, from, into } => {
                self.touch_local(number, step, from, false)?;
                self.touch_remote(number, step, rank, into, from.bytes, true)
            }
            A::Send { from, .. } => self.touch_local(number, step, from, false),
            A::Receive { into, .. } => self.touch_local(number, step, into, true),
            A::Copy { from, into } => {
                same_length(from, into)?;
                self.touch_local(number, step, from, false)?;
                self.touch_local(number, step, into, true)
            }
            A::CombineBefore { from, into } | A::CombineAfter { from, into } => {
                same_length(from, into)?;
                let element = self.ranks[number].call.element_bytes;
                if from.bytes % element != 0 {
                    return Err(format!("{} bytes are no whole elements of {element}", from.bytes));
                }
                self.touch_local(number, step, from, false)?;
                self.touch_local(number, step, into, true)
            }
            A::Post { from, at } => {
                self.touch_slot(number, step, number, at..at + from.bytes, true)?;
                self.touch_local(number, step, from, false)
            }
            A::Hand { from, cell } => {
                self.touch_cell(number, step, cell, from.bytes, true)?;
                self.touch_local(number, step, from, false)
            }
            A::Accept { cell, into } => {
                self.touch_cell(number, step, cell, into.bytes, false)?;
                self.touch_local(number, step, into, true)
            }
            A::Take { rank, at, into } => {
                self.touch_slot(number, step, rank as usize, at..at + into.bytes, false)?;
                self.touch_local(number, step, into, true)
            }
        }
    }

    fn touch_local(&mut self, number: usize, step: u32, span: Span, writes: bool) -> Result<(), Failure> {
        self.note(number, step, number, (span.place, span.offset, span.bytes), writes)
    }

    fn touch_remote(
        &mut self,
        number: usize,
        step: u32,
        peer: u32,
        remote: Remote,
        bytes: u64,
        writes: bool,
    ) -> Result<(), Failure> {
        let rank = &self.ranks[peer as usize];
        let (place, offset) = self.resolve(peer, remote, bytes)?;
        let exposed = rank.program.exposed;
        let (Remote::At(asked, _) | Remote::Listed { place: asked, .. }) = remote;
        let shown = match asked {
            Place::Input => exposed.input,
            Place::Output => exposed.output,
            Place::Work => exposed.work,
        };
        if !shown {
            return Err(format!("rank {peer} does not expose its {asked:?}"));
        }
        if rank.ended {
            return Err(format!("rank {peer} has ended, and its {place:?} is no longer there"));
        }
        self.note(number, step, peer as usize, (place, offset, bytes), writes)
    }

    /// Where in a peer's memory.
    fn resolve(&self, peer: u32, remote: Remote, bytes: u64) -> Result<(Place, u64), Failure> {
        let call = &self.ranks[peer as usize].call;
        let (place, of) = match remote {
            // Only reduce's root knows that it is in place: see `Place::Input`.
            Remote::At(Place::Input, offset) if call.kind == Kind::Reduce && call.in_place => {
                return Ok((Place::Output, offset));
            }
            Remote::At(place, offset) => return Ok((place, offset)),
            Remote::Listed { place, of } => (place, of),
        };
        let block = table(&self.ranks[peer as usize], place, of)
            .ok_or_else(|| format!("rank {peer} shows no table of its {place:?} with rank {of} in it"))?;
        if block.bytes != bytes {
            return Err(format!(
                "rank {peer}'s table says that rank {of}'s block has {} bytes and not {bytes}",
                block.bytes
            ));
        }
        Ok((place, block.offset))
    }

    /// Checks the bounds, and that nobody else may be at the same bytes.
    fn note(
        &mut self,
        number: usize,
        step: u32,
        owner: usize,
        (place, offset, bytes): (Place, u64, u64),
        writes: bool,
    ) -> Result<(), Failure> {
        let has = self.ranks[owner].memory[place as usize].len() as u64;
        if offset + bytes > has {
            return Err(format!(
                "{bytes} bytes at {offset} are outside of rank {owner}'s {place:?} of {has} bytes"
            ));
        }
        if writes && place == Place::Input {
            return Err(format!("rank {owner}'s input is written"));
        }
        let clock = self.ranks[number].clock.clone();
        let access = Access { rank: number as u32, step, range: offset..offset + bytes, writes };
        self.ranks[owner].logs[place as usize].add(access, &clock).map_err(|other| {
            let verb = |writes| if writes { "writes" } else { "reads" };
            format!(
                "it {} {bytes} bytes at {offset} of rank {owner}'s {place:?}, and cannot know that rank {}'s step {}, which {} {:?}, has ended",
                verb(writes), other.rank, other.step, verb(other.writes), other.range
            )
        })
    }
}

fn same_length(from: Span, into: Span) -> Result<(), Failure> {
    if from.bytes != into.bytes {
        return Err(format!("{} bytes go into {}", from.bytes, into.bytes));
    }
    Ok(())
}

/// An entry of a table that a rank shows.
fn table(rank: &Rank, place: Place, of: u32) -> Option<Block> {
    let (call, tables) = (&rank.call, rank.program.tables);
    let blocks = match (place, call.kind) {
        (Place::Input, Kind::Scatter | Kind::ReduceScatter) if tables.input => &call.blocks,
        (Place::Input, Kind::Alltoall) if tables.input => &call.input_blocks,
        (Place::Output, Kind::Gather | Kind::Allgather | Kind::Alltoall) if tables.output => &call.blocks,
        _ => return None,
    };
    (of < call.size).then(|| blocks.of(of))
}

/// How far an action has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    /// It waits for others.
    Nothing,
    /// A part of it is done.
    Some,
    /// It has ended.
    All,
}

/// Moving bytes.
impl World {
    pub(super) fn read(&self, rank: usize, place: Place, offset: u64, bytes: u64) -> Vec<u8> {
        self.ranks[rank].memory[place as usize][offset as usize..(offset + bytes) as usize].to_vec()
    }

    pub(super) fn write(&mut self, rank: usize, place: Place, offset: u64, bytes: &[u8]) {
        let offset = offset as usize;
        self.ranks[rank].memory[place as usize][offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Moves an action on, or says that it cannot move now. Those that have ended
    /// leave the list.
    fn advance(&mut self, number: usize, at: usize) -> Result<bool, Failure> {
        use Action as A;
        let action = self.ranks[number].under_way[at].action.clone();
        let moved = match action {
            A::Get { .. } | A::Put { .. } | A::Copy { .. } => self.advance_copy(number, at, &action)?,
            A::Publish(point) => self.publish(number, point)?,
            A::Await { rank, point } => self.learn(number, rank, point),
            A::Send { rank, .. } => self.advance_send(number, at, rank),
            A::Receive { rank, into } => self.receive(number, at, rank, into)?,
            A::CombineBefore { from, into } => self.combine(number, from, into, true),
            A::CombineAfter { from, into } => self.combine(number, from, into, false),
            A::Post { from, at } => self.post(number, from, at),
            A::Take { rank, at, into } => self.take(number, rank, at, into),
            A::Hand { from, cell } => self.hand(number, from, cell),
            A::Accept { cell, into } => self.accept(number, cell, into),
        };
        if moved == Moved::All {
            self.ranks[number].under_way.swap_remove(at);
        }
        Ok(moved != Moved::Nothing)
    }

    /// A copy out of, into or within a rank's memory.
    fn advance_copy(&mut self, number: usize, at: usize, action: &Action) -> Result<Moved, Failure> {
        let here = |span: Span| (number, span.place, span.offset);
        let there = |world: &Self, rank: u32, remote, bytes| {
            let (place, offset) = world.resolve(rank, remote, bytes)?;
            Ok::<_, Failure>((rank as usize, place, offset))
        };
        let (from, into, bytes) = match *action {
            Action::Get { rank, from, into } => {
                (there(self, rank, from, into.bytes)?, here(into), into.bytes)
            }
            Action::Put { rank, from, into } => {
                (here(from), there(self, rank, into, from.bytes)?, from.bytes)
            }
            Action::Copy { from, into } => (here(from), here(into), into.bytes),
            _ => return Ok(Moved::Nothing),
        };
        Ok(self.piece(number, at, from, into, bytes))
    }

    /// That a rank has come to a point, with what it knew there.
    fn learn(&mut self, number: usize, rank: u32, point: u32) -> Moved {
        let points = &self.ranks[rank as usize].points;
        let Some((_, clock)) = points.iter().find(|(come_to, _)| *come_to >= point) else {
            return Moved::Nothing;
        };
        let clock = clock.clone();
        join(&mut self.ranks[number].learned, &clock);
        Moved::All
    }

    fn advance_send(&self, number: usize, at: usize, to: u32) -> Moved {
        let message = &self.mail[&(number as u32, to)][self.ranks[number].under_way[at].ticket];
        if message.rendezvous && !message.received { Moved::Nothing } else { Moved::All }
    }

    /// Copies some of what is left.
    fn piece(
        &mut self,
        number: usize,
        at: usize,
        (source, from, from_offset): (usize, Place, u64),
        (target, into, into_offset): (usize, Place, u64),
        bytes: u64,
    ) -> Moved {
        let done = self.ranks[number].under_way[at].done_bytes;
        let left = bytes - done;
        let now = if left == 0 || self.random.coin() { left } else { 1 + self.random.below(left) };
        let moved = self.read(source, from, from_offset + done, now);
        self.write(target, into, into_offset + done, &moved);
        self.ranks[number].under_way[at].done_bytes += now;
        if done + now == bytes { Moved::All } else { Moved::Some }
    }

    fn publish(&mut self, number: usize, point: u32) -> Result<Moved, Failure> {
        let rank = &mut self.ranks[number];
        if let Some((last, _)) = rank.points.last().filter(|(last, _)| *last >= point) {
            return Err(format!("rank {number} comes to point {point} after {last}: points grow"));
        }
        rank.points.push((point, rank.clock.clone()));
        Ok(Moved::All)
    }

    fn receive(&mut self, number: usize, at: usize, from: u32, into: Span) -> Result<Moved, Failure> {
        let ticket = self.ranks[number].under_way[at].ticket;
        let mail = self.mail.get_mut(&(from, number as u32)).map(|mail| mail.get_mut(ticket));
        let Some(Some(message)) = mail else { return Ok(Moved::Nothing) };
        message.received = true;
        let (bytes, clock) = (std::mem::take(&mut message.bytes), message.clock.clone());
        if bytes.len() as u64 != into.bytes {
            return Err(format!(
                "rank {from} sends {} bytes where rank {number} receives {}",
                bytes.len(),
                into.bytes
            ));
        }
        join(&mut self.ranks[number].learned, &clock);
        self.write(number, into.place, into.offset, &bytes);
        Ok(Moved::All)
    }

    fn combine(&mut self, number: usize, from: Span, into: Span, before: bool) -> Moved {
        let from = self.read(number, from.place, from.offset, from.bytes);
        let to = self.read(number, into.place, into.offset, into.bytes);
        let result = if before { combine(&from, &to) } else { combine(&to, &from) };
        self.write(number, into.place, into.offset, &result);
        Moved::All
    }
}
