//! A peer that kills itself with SIGKILL at a chosen call of the mechanism:
//! the survivor is told within a second, with its name, and goes on with others.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use lmt_core::config::Config;
use lmt_core::endpoint::{SendMode, Source, TagMatch};
use lmt_core::mechanism::{Lmt, Model, Role};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::data::Scattered;
use super::link::{Link, unless_dead};
use super::wrapper::{Call, Tamper, Wrapper};
use super::{Under, rendezvous};
use crate::group::{Parent, Test};

/// How soon after a death it must be known.
pub(super) const NOTICE: Duration = Duration::from_secs(1);

/// The rank that must not be disturbed. Rank 0 is the survivor, and the victims
/// come behind this one.
const THIRD: u32 = 1;
const GO: u64 = 1;
const BIG: u64 = 2;
const EXCHANGE: u64 = 3;
const STOP: u64 = 4;
const BIG_BYTES: usize = 2 << 20;
const EXCHANGE_BYTES: usize = 200_000;
/// Messages after which a victim must have died.
const PATIENCE: u64 = 8;

/// What a survivor rests before each of its steps, where both sides copy.
const DAWDLE: Duration = Duration::from_micros(200);

/// Where to die: at which call, the how manieth.
type Place = (Call, u32);

/// The calls that `role` gets in `model`, and some of them in the middle.
fn places(role: Role, model: Model) -> &'static [Place] {
    let active = match (role, model) {
        (Role::Receiver, Model::Get)
        | (Role::Sender, Model::Put)
        | (_, Model::Cooperative | Model::Both | Model::Stream) => true,
        (Role::Receiver, Model::Put) | (Role::Sender, Model::Get) => false,
    };
    if active {
        &[
            (Call::Prepare, 1),
            (Call::Prepare, 3),
            (Call::Start, 1),
            (Call::Step, 1),
            (Call::Step, 2),
            (Call::Step, 9),
            (Call::Step, 50),
            (Call::Finish, 1),
            (Call::Finish, 2),
        ]
    } else {
        &[(Call::Prepare, 1), (Call::Prepare, 3), (Call::Finish, 1), (Call::Finish, 2)]
    }
}

fn die_at(place: Place, role: Role) -> Tamper {
    let (at, mut left) = place;
    Box::new(move |call, plan, _| {
        if call == at && plan.role == role {
            left -= 1;
            if left == 0 {
                kill(Pid::this(), Signal::SIGKILL).expect("a process may kill itself");
            }
        }
        Ok(())
    })
}

/// Leaves the victim its part of a message of which both sides copy: a survivor
/// that is quick, on a core that both share, may do all of it by itself.
fn dawdle(victim: Role) -> Tamper {
    Box::new(move |call, plan, _| {
        if call == Call::Step && plan.role != victim {
            std::thread::sleep(DAWDLE);
        }
        Ok(())
    })
}

/// A receiver dies before its CTS, between it and the last byte, and before its
/// DONE.
pub fn death_of_receivers<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    deaths(under, Role::Receiver);
}

/// A sender dies before its RTS, after the CTS, while it copies, and at the end.
pub fn death_of_senders<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    deaths(under, Role::Sender);
}

fn deaths<M: Lmt, F: Fn() -> M>(under: &Under<F>, role: Role) {
    for &model in under.models() {
        let places = places(role, model);
        let victims = THIRD + 1..THIRD + 1 + places.len() as u32;
        let mut test = Test::new(under.test, victims.end);
        for victim in victims.clone() {
            test = test.may_die(victim);
        }
        let config = Config { quota_bytes: 32_768, ..rendezvous() };
        let drive = |parent: &mut Parent| watch(parent, victims.clone());
        under.in_group(test, drive, |group| {
            let only = Wrapper::only((under.make)(), model);
            let place = group.rank().checked_sub(victims.start).map(|at| places[at as usize]);
            let mechanism = match place {
                Some(place) => only.tamper(die_at(place, role)),
                None if model == Model::Both => only.tamper(dawdle(role)),
                None => only,
            };
            under.with_link(group, &config, mechanism, model, |link| match (link.rank(), place) {
                (0, _) => survive(link, role, victims.clone()),
                (_, None) => third(link),
                (_, Some(place)) => victim(link, role, place),
            });
        });
    }
}

/// The parent's part: measures from each death to the survivor's word of it.
fn watch(parent: &mut Parent, victims: std::ops::Range<u32>) {
    for victim in victims {
        match parent.next_report(victim).as_deref() {
            Some("ready") => {}
            // A skip, or a failure, which the end of the group tells of.
            _ => return,
        }
        let Some(exit) = parent.wait_rank(victim) else { return };
        assert_eq!(exit.signal(), Some(Signal::SIGKILL as i32), "rank {victim} should have died: {exit}");
        told_in_time(parent, victim);
    }
}

/// Waits for the survivor's word that it knows of the death of a rank.
pub(super) fn told_in_time(parent: &mut Parent, victim: u32) {
    let dead_since = Instant::now();
    let Some(word) = parent.next_report(0) else { return };
    assert_eq!(word, dead_word(victim));
    let took = dead_since.elapsed();
    assert!(took <= NOTICE, "the death of rank {victim} was noticed after {took:?}");
}

/// The survivor's word for the parent.
pub(super) fn dead_word(victim: u32) -> String {
    format!("rank {victim} is dead")
}

fn survive(link: &Link<'_>, role: Role, victims: std::ops::Range<u32>) {
    for victim in victims {
        link.send_empty(victim, GO);
        let mut turns = 0;
        while exchange(link, Some((victim, role))) {
            turns += 1;
            assert!(turns <= PATIENCE, "rank {victim} has not died");
        }
        link.group.report(dead_word(victim));
        for _ in 0..3 {
            exchange(link, None);
        }
    }
    link.send_empty(THIRD, STOP);
}

/// A message each way with the third rank, and meanwhile one with the victim.
/// Returns whether that one still lives.
fn exchange(link: &Link<'_>, with: Option<(u32, Role)>) -> bool {
    let seed = link.next_seed();
    let out = Scattered::contiguous(EXCHANGE_BYTES).fill(seed);
    let mut into = Scattered::contiguous(EXCHANGE_BYTES);
    let big_out = Scattered::contiguous(BIG_BYTES).fill(BIG);
    let mut big_into = Scattered::contiguous(BIG_BYTES);
    let (third, tags) = (link.peer(THIRD), TagMatch::exactly(EXCHANGE));
    let alive = link.endpoint.scope(|scope| {
        let receive = scope.receive_segments(Source::Peer(third), tags, &mut into.slices_mut());
        let receive = receive.expect("the third lives");
        let send = scope.send_segments(third, EXCHANGE, &out.slices(), SendMode::Standard);
        let send = send.expect("the third lives");
        let ended = with.map(|(victim, role)| {
            let peer = link.peer(victim);
            let begun = match role {
                Role::Receiver => scope.send_segments(peer, BIG, &big_out.slices(), SendMode::Standard),
                Role::Sender => {
                    let source = Source::Peer(peer);
                    scope.receive_segments(source, TagMatch::exactly(BIG), &mut big_into.slices_mut())
                }
            };
            unless_dead(link.group, victim, begun.and_then(lmt::Request::wait)).is_some()
        });
        receive.wait().expect("the third lives");
        send.wait().expect("the third lives");
        ended.unwrap_or(false)
    });
    into.check(seed, EXCHANGE_BYTES);
    if alive && with.is_some_and(|(_, role)| role == Role::Sender) {
        big_into.check(BIG, BIG_BYTES);
    }
    link.carries(2 + u64::from(alive));
    alive
}

/// Sends everything back that comes.
fn third(link: &Link<'_>) {
    loop {
        let seed = link.next_seed();
        let mut into = Scattered::contiguous(EXCHANGE_BYTES);
        let source = Source::Peer(link.peer(0));
        let status = link.endpoint.receive_segments(source, TagMatch::any(), &mut into.slices_mut());
        if status.expect("the survivor lives").tag == STOP {
            return;
        }
        into.check(seed, EXCHANGE_BYTES);
        link.endpoint.send_segments(link.peer(0), EXCHANGE, &into.slices()).expect("the survivor lives");
        link.carries(2);
    }
}

fn victim(link: &Link<'_>, role: Role, place: Place) {
    link.receive_empty(0, GO);
    link.group.report("ready");
    for _ in 0..PATIENCE {
        let survivor = link.peer(0);
        let result = match role {
            Role::Sender => {
                let out = Scattered::contiguous(BIG_BYTES).fill(BIG);
                link.endpoint.send_segments(survivor, BIG, &out.slices())
            }
            Role::Receiver => {
                let mut into = Scattered::contiguous(BIG_BYTES);
                let tags = TagMatch::exactly(BIG);
                let source = Source::Peer(survivor);
                let result = link.endpoint.receive_segments(source, tags, &mut into.slices_mut());
                into.check(BIG, BIG_BYTES);
                result
            }
        };
        result.expect("the survivor lives");
    }
    panic!("the call at which to die, {place:?}, never came");
}
