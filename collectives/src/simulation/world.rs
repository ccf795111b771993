//! Runs the programs of all ranks side by side, in an order that a seed gives.
//!
//! Whatever an executor need not stand is a failure with a sentence: see
//! [`run`]. Races are found by what ranks know of each other (`race`), not only
//! when a run happens to show wrong bytes.

use std::collections::HashMap;

use crate::call::Call;
use crate::program::{Action, Place, Program, Span};

use super::case::{Memory, Scene};
use super::cells::Cells;
use super::race::{Clock, Log, join};
use super::random::Random;

mod moves;
mod touches;

pub(super) use moves::Moved;

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
struct InFlight {
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
    in_flight: Vec<InFlight>,
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
    max_at_once: usize,
}

/// What came of a run.
pub struct Ran {
    /// The memory of all ranks at the end.
    pub memory: Vec<Memory>,
    /// How many ranks reached into one rank's memory at a time, at most.
    pub max_at_once: usize,
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
    let max_at_once = world.max_at_once;
    Ok(Ran { memory: world.ranks.into_iter().map(memory).collect(), max_at_once })
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
            in_flight: Vec::new(),
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
        Self { ranks, cells, mail: HashMap::new(), random, meets, max_at_once: 0 }
    }

    /// Moves one action of one rank on.
    fn tick(&mut self) -> Result<(), Failure> {
        for rank in self.random.order(self.ranks.len()) {
            for at in self.random.order(self.ranks[rank].in_flight.len()) {
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
                    rank.in_flight.iter().map(|in_flight| &in_flight.action).collect();
                let entry_barrier = if rank.waits_to_meet { " for the meeting" } else { "" };
                format!("rank {number} waits{entry_barrier} in step {}: {actions:?}", rank.steps_begun - 1)
            })
        };
        let all: Vec<String> = self.ranks.iter().enumerate().filter_map(waits).collect();
        format!("deadlock: {}", all.join("; "))
    }

    /// Goes to the next step if all of this one has ended.
    fn after(&mut self, rank: usize) -> Result<(), Failure> {
        if !self.ranks[rank].in_flight.is_empty() {
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
            if let Some(access) = log.in_flight(&rank.clock) {
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
        self.ranks[number].in_flight.push(InFlight { action, done_bytes: 0, ticket });
        Ok(())
    }

    /// With those that are in flight, how many reach where this one does.
    fn count_at_once(&mut self, action: &Action) {
        let reached = |action: &Action| match action {
            Action::Get { rank, .. } | Action::Put { rank, .. } => Some(*rank),
            _ => None,
        };
        if let Some(peer) = reached(action) {
            let in_flight = self.ranks.iter().flat_map(|rank| &rank.in_flight);
            let others = in_flight.filter(|other| reached(&other.action) == Some(peer)).count();
            self.max_at_once = self.max_at_once.max(others + 1);
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
