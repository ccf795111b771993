//! The decisions, tried in every order that two parties allow and in many
//! random ones for three.

use std::collections::HashSet;

use super::*;
use proptest::prelude::*;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Message {
    Hello,
    Report,
    Merge,
    Refuse,
}

/// A connection: what travels to its beginner (0) and to the one who was
/// called (1), and which ends are closed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Wire {
    ends: [usize; 2],
    queues: [Vec<Message>; 2],
    closed: [bool; 2],
    accepted: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Side {
    state: State,
    /// Which wire is the current connection.
    link: Option<usize>,
    attempts: u32,
    established: u32,
    failed: bool,
}

/// A world of endpoints with ids 0, 1, 2, each with one side for each other.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    sides: Vec<Vec<Side>>,
    wires: Vec<Wire>,
    /// The incoming connection that each endpoint is in the middle of taking.
    entering: Vec<Option<usize>>,
    /// How often each may still have its connect(2) fail.
    misses: u32,
    /// How often a connection may still break by itself.
    breaks: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Move {
    /// Endpoint wishes for a connection with the other.
    ConnectRequested(usize, usize),
    /// connect(2) succeeds.
    Connect(usize, usize),
    /// connect(2) is tried and fails.
    ConnectFailure,
    /// The first datagram of an incoming connection is read, and everything
    /// that came over an older one.
    Accept(usize),
    /// What that first datagram means is decided. Others may have acted since.
    Enter(usize),
    /// The next datagram or the end of the current connection is read.
    Read(usize, usize),
    /// The called one of a connection without a REPORT loses it.
    Break(usize),
}

const MAX_ATTEMPTS: u32 = 4;

impl World {
    fn new(endpoints: usize, misses: u32, breaks: u32) -> Self {
        let side = Side { state: State::Idle, link: None, attempts: 0, established: 0, failed: false };
        Self {
            sides: vec![vec![side; endpoints]; endpoints],
            wires: Vec::new(),
            entering: vec![None; endpoints],
            misses,
            breaks,
        }
    }

    fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        for (me, sides) in self.sides.iter().enumerate() {
            if self.entering[me].is_some() {
                moves.push(Move::Enter(me));
                continue;
            }
            for (peer, side) in sides.iter().enumerate().filter(|(peer, _)| *peer != me) {
                let fresh = side.attempts == 0 && side.established == 0 && !side.failed;
                if fresh && matches!(side.state, State::Idle | State::Probed { wished: false }) {
                    moves.push(Move::ConnectRequested(me, peer));
                }
                if side.state == State::Wanted && side.attempts < MAX_ATTEMPTS {
                    moves.push(Move::Connect(me, peer));
                    if self.misses > 0 {
                        moves.push(Move::ConnectFailure);
                    }
                }
                if self.readable(me, peer) {
                    moves.push(Move::Read(me, peer));
                }
            }
        }
        for (at, wire) in self.wires.iter().enumerate() {
            let readable = !wire.queues[1].is_empty() || wire.closed[0];
            if !wire.accepted && readable && self.entering[wire.ends[1]].is_none() {
                moves.push(Move::Accept(at));
            }
            if self.breaks > 0 && !wire.accepted {
                moves.push(Move::Break(at));
            }
        }
        moves
    }

    fn end_of(&self, me: usize, wire: usize) -> usize {
        usize::from(self.wires[wire].ends[1] == me)
    }

    fn readable(&self, me: usize, peer: usize) -> bool {
        let Some(at) = self.sides[me][peer].link else { return false };
        let end = self.end_of(me, at);
        !self.wires[at].queues[end].is_empty() || self.wires[at].closed[1 - end]
    }

    fn send(&mut self, me: usize, at: usize, message: Message) {
        let other = 1 - self.end_of(me, at);
        if !self.wires[at].closed[other] {
            self.wires[at].queues[other].push(message);
        }
    }

    fn close(&mut self, me: usize, at: usize) {
        let end = self.end_of(me, at);
        self.wires[at].closed[end] = true;
        self.wires[at].queues[end].clear();
    }

    fn drop_link(&mut self, me: usize, peer: usize) {
        if let Some(at) = self.sides[me][peer].link.take() {
            self.close(me, at);
        }
    }

    fn happen(&mut self, me: usize, peer: usize, event: Event, incoming: Option<usize>) {
        let (next, action) = decide(self.sides[me][peer].state, event, me < peer);
        self.sides[me][peer].state = next;
        match action {
            Action::Nothing | Action::Try | Action::Deliver => assert!(incoming.is_none()),
            Action::Greet => {
                let at = incoming.unwrap();
                self.sides[me][peer].link = Some(at);
                self.send(me, at, Message::Hello);
            }
            Action::Adopt => {
                self.drop_link(me, peer);
                let at = incoming.unwrap();
                self.sides[me][peer].link = Some(at);
                self.send(me, at, Message::Hello);
                self.send(me, at, Message::Report);
            }
            Action::AnswerMerge | Action::AnswerRefuse => {
                let merge = action == Action::AnswerMerge;
                let at = incoming.unwrap();
                self.send(me, at, if merge { Message::Merge } else { Message::Refuse });
                self.close(me, at);
            }
            Action::Probe => self.send(me, self.sides[me][peer].link.unwrap(), Message::Report),
            Action::Establish => self.sides[me][peer].established += 1,
            Action::Retreat => self.drop_link(me, peer),
            Action::Fail(_) | Action::Close { .. } | Action::Refuse | Action::RefuseAndClose => {
                self.drop_link(me, peer);
                self.sides[me][peer].failed = true;
            }
        }
    }

    fn read(&mut self, me: usize, peer: usize) {
        let at = self.sides[me][peer].link.unwrap();
        let end = self.end_of(me, at);
        let event = if self.wires[at].queues[end].is_empty() {
            Event::Eof { alive: true }
        } else {
            match self.wires[at].queues[end].remove(0) {
                Message::Hello => Event::Hello,
                Message::Report => Event::Report,
                Message::Merge => Event::Merge,
                Message::Refuse => Event::Refuse,
            }
        };
        self.happen(me, peer, event, None);
    }

    fn play(&mut self, step: Move) {
        match step {
            Move::ConnectRequested(me, peer) => self.happen(me, peer, Event::ConnectRequested, None),
            Move::Connect(me, peer) => {
                self.sides[me][peer].attempts += 1;
                let wire = Wire {
                    ends: [me, peer],
                    queues: [Vec::new(), Vec::new()],
                    closed: [false; 2],
                    accepted: false,
                };
                self.wires.push(wire);
                self.happen(me, peer, Event::Connected, Some(self.wires.len() - 1));
            }
            Move::ConnectFailure => self.misses -= 1,
            Move::Read(me, peer) => self.read(me, peer),
            Move::Accept(at) => {
                let [peer, me] = self.wires[at].ends;
                self.wires[at].accepted = true;
                if self.wires[at].queues[1].is_empty() || self.wires[at].closed[0] {
                    return self.close(me, at);
                }
                assert_eq!(self.wires[at].queues[1].remove(0), Message::Hello);
                while self.readable(me, peer) {
                    self.read(me, peer);
                }
                self.entering[me] = Some(at);
            }
            Move::Enter(me) => {
                if let Some(at) = self.entering[me].take() {
                    self.happen(me, self.wires[at].ends[0], Event::TheirHello, Some(at));
                }
            }
            Move::Break(at) => {
                self.breaks -= 1;
                self.wires[at].accepted = true;
                self.close(self.wires[at].ends[1], at);
            }
        }
    }

    /// In the end every pair shares exactly one connection, established once
    /// on either side.
    fn check_end(&self) {
        for me in 0..self.sides.len() {
            for peer in 0..self.sides.len() {
                if me == peer {
                    continue;
                }
                let (mine, theirs) = (&self.sides[me][peer], &self.sides[peer][me]);
                assert_eq!(mine.state, State::Established, "{me} with {peer}: {self:#?}");
                assert_eq!((mine.established, mine.failed), (1, false), "{self:#?}");
                assert!(mine.link.is_some() && mine.link == theirs.link, "{self:#?}");
            }
        }
        let open = self.wires.iter().filter(|wire| wire.closed == [false; 2]).count();
        assert_eq!(open, self.sides.len() * (self.sides.len() - 1) / 2, "{self:#?}");
    }
}

/// Every order of everything that can happen; returns how many situations and
/// how many ends there are.
fn explore(start: World) -> (usize, usize) {
    let mut seen = HashSet::new();
    let mut open = vec![start];
    let mut ends = 0;
    while let Some(world) = open.pop() {
        let moves = world.moves();
        if moves.is_empty() {
            world.check_end();
            ends += 1;
        }
        for step in moves {
            let mut next = world.clone();
            next.play(step);
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    (seen.len(), ends)
}

#[test]
fn two_parties_end_with_one_connection_in_every_order() {
    for (misses, breaks) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        let (situations, ends) = explore(World::new(2, misses, breaks));
        println!("{misses} misses, {breaks} breaks: {situations} situations, {ends} ends");
        assert!(situations > 50 && ends > 1);
    }
}

#[test]
fn three_parties_end_with_one_connection_a_pair() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let strategy = (proptest::collection::vec(any::<u16>(), 200), 0..4u32, 0..2u32);
    runner
        .run(&strategy, |(choices, misses, breaks)| {
            let mut world = World::new(3, misses, breaks);
            for choice in choices.iter().cycle() {
                let moves = world.moves();
                if moves.is_empty() {
                    break;
                }
                world.play(moves[usize::from(*choice) % moves.len()]);
            }
            world.check_end();
            Ok(())
        })
        .unwrap();
}

const STATES: [State; 6] = [
    State::Idle,
    State::Wanted,
    State::Greeted,
    State::Probed { wished: false },
    State::Probed { wished: true },
    State::Established,
];

#[test]
fn death_lateness_and_refusal_end_every_attempt() {
    for state in STATES {
        for smaller in [false, true] {
            let ends =
                [Event::Died, Event::Late, Event::Refuse, Event::Goodbye, Event::Malformed, Event::Rejection];
            for event in ends {
                let (next, action) = decide(state, event, smaller);
                if (state, event) == (State::Established, Event::Late) || state == State::Idle {
                    assert_eq!((next, action), (state, Action::Nothing));
                    continue;
                }
                assert_eq!(next, State::Idle, "{state:?} {event:?}");
                let closes = matches!(action, Action::Close { .. } | Action::RefuseAndClose);
                let fails = matches!(action, Action::Fail(_) | Action::Refuse);
                assert!(if state == State::Established { closes } else { fails }, "{state:?} {event:?}");
            }
        }
    }
}

#[test]
fn only_the_greater_yields_to_merge() {
    assert_eq!(decide(State::Greeted, Event::Merge, false), (State::Wanted, Action::Retreat));
    assert_eq!(decide(State::Greeted, Event::Merge, true), (State::Idle, Action::Refuse));
    for state in [State::Probed { wished: true }, State::Established] {
        assert_eq!(decide(state, Event::Merge, false).0, State::Idle);
    }
}

#[test]
fn an_end_is_retried_only_where_somebody_lives_and_wishes() {
    for state in STATES {
        for alive in [false, true] {
            let (_, action) = decide(state, Event::Eof { alive }, true);
            let wished = matches!(state, State::Greeted | State::Probed { wished: true });
            assert_eq!(action == Action::Retreat, wished && alive, "{state:?} {alive}");
        }
    }
}

#[test]
fn a_connection_that_only_the_peer_wished_for_is_not_tried_again() {
    let (state, action) = decide(State::Idle, Event::TheirHello, true);
    assert_eq!(action, Action::Adopt);
    assert_eq!(decide(state, Event::Eof { alive: true }, true), (State::Idle, Action::Fail(Failure::Dead)));
    // A wish uttered meanwhile counts.
    let (state, action) = decide(state, Event::ConnectRequested, true);
    assert_eq!(action, Action::Nothing);
    assert_eq!(decide(state, Event::Eof { alive: true }, true), (State::Wanted, Action::Retreat));
}
