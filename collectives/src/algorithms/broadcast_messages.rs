//! Broadcast by messages alone: a binomial tree, or for long ones a chain.

use crate::call::Call;
use crate::program::{Action, Program, Span};

use super::common::{pieces, step};
use super::rooted::{at, from_root, whole};

/// How much of a long message is passed on at a time: long enough that a message's
/// own cost is small against it, short enough to stay in a cache meanwhile.
const PIECE_BYTES: u64 = 128 << 10;

/// What this rank does. In the tree the root sends the whole message ceil(log2 p)
/// times, one after the other. In the chain each rank receives it once and sends it
/// once, so that it takes the time of about two, and of one piece for each rank on
/// the way. Both move p - 1 times the message in all. The one that should be faster
/// is taken: the tree for up to 4 ranks, and for short messages.
pub fn program(call: &Call) -> Program {
    let doublings = u128::from(call.size.next_power_of_two().ilog2());
    let bytes = u128::from(call.bytes);
    let on_the_way = u128::from(call.size.saturating_sub(2)) * u128::from(PIECE_BYTES);
    if 2 * bytes + on_the_way < doublings * bytes { chain(call) } else { binomial(call) }
}

/// Who has the message sends it to the rank half of what is left after it.
fn binomial(call: &Call) -> Program {
    let mut program = Program::default();
    let own = from_root(call);
    // The lowest bit of a rank's number says from where it receives; it sends to
    // those that have one lower bit more.
    let span = if own == 0 { call.size.next_power_of_two() } else { 1 << own.trailing_zeros() };
    if own > 0 {
        program.then(Action::Receive { rank: at(call, own - span), into: whole(call) });
    }
    let mut half = span / 2;
    while half > 0 {
        if call.size - own > half {
            program.then(Action::Send { rank: at(call, own + half), from: whole(call) });
        }
        half /= 2;
    }
    program
}

/// Each rank passes on what it receives, piece by piece, to the next one.
fn chain(call: &Call) -> Program {
    let mut program = Program::default();
    let own = from_root(call);
    let receive = |into| Action::Receive { rank: at(call, own - 1), into };
    let send = |from| Action::Send { rank: at(call, own + 1), from };
    let (receives, sends) = (own > 0, own + 1 < call.size);
    let mut arrived: Option<Span> = None;
    for piece in pieces(call.bytes, PIECE_BYTES, 1024) {
        let before = arrived.replace(piece).filter(|_| receives);
        match (receives, sends) {
            (true, true) => {
                step(&mut program, [before.map(send), Some(receive(piece))]);
            }
            (true, false) => {
                program.then(receive(piece));
            }
            (false, _) => {
                program.then(send(piece));
            }
        }
    }
    let last = arrived.filter(|_| receives && sends);
    step(&mut program, [last.map(send)]);
    program
}
