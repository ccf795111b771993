//! Simulated mechanisms: they move real bytes between the world's buffers, and
//! some of them fail wherever a real one could.

use std::collections::VecDeque;

use lmt_core::mechanism::{Cookie, Fault, Interval, Model, Plan, Role, Step};
use lmt_core::rendezvous::{MechanismTag, TransferKey};

use super::rng::Rng;

/// The mechanisms; the last one never fails.
pub const MECHANISMS: [MechanismTag; 4] = [
    MechanismTag::of("simulated-a"),
    MechanismTag::of("simulated-b"),
    MechanismTag::of("simulated-c"),
    MechanismTag::of("simulated-reliable"),
];

/// One byte of a message, by which every byte can be told from every other.
pub fn content(message: usize, at: u64) -> u8 {
    let x = (message as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at.wrapping_mul(0xd6e8_feb8_6659_fd93);
    (x ^ x >> 29 ^ x >> 47) as u8
}

/// One prepared side of a transfer. Sides are never reused, so that touching
/// one that has finished shows.
pub struct Side {
    pub owner: usize,
    peer: usize,
    pub key: TransferKey,
    mechanism: MechanismTag,
    plan: Plan,
    pub message: usize,
    pub receive: Option<usize>,
    pub finished: bool,
    interval: Interval,
    remote: Option<usize>,
    moved: u64,
    /// Cooperative and Stream, sender's side: the bytes on their way.
    pipe: VecDeque<u8>,
    pipe_bytes: usize,
    /// Both, receiver's side: the claims that both ends share.
    claims: Claims,
    /// Stream, sender's side: how the two ends part.
    parting: Parting,
}

/// How the two ends of a message in the Stream model part.
#[derive(Default)]
struct Parting {
    /// The receiver has gone; whether with everything.
    closed: Option<bool>,
    /// The sender looks no more.
    left: bool,
}

/// What the two ends of a message in the Both model share.
#[derive(Default)]
struct Claims {
    /// Bytes that the receiver has copied, from the front.
    front_bytes: u64,
    /// Bytes that the sender has, from the back.
    back_bytes: u64,
    /// The sender is there.
    joined: bool,
    /// The sender has claimed something that it failed to copy.
    broken: bool,
    /// Over; whether the sender is to find here that the message is whole.
    over: Option<bool>,
}

/// Every receive's buffer, by number; see [`GUARD`].
pub type Buffers = Vec<Vec<u8>>;

/// Bytes behind each receive buffer that nobody may write.
pub const GUARD: usize = 24;
pub const GUARD_BYTE: u8 = 0xa5;

#[derive(Default)]
pub struct Medium {
    pub sides: Vec<Side>,
    /// How often each mechanism fails, per mille of its calls.
    pub fault_per_mille: [u64; 4],
    /// Who says and does anything; moving bytes to or from it goes nowhere.
    pub hostile: Option<usize>,
    pub dead: Vec<bool>,
    /// Failures by message.
    pub faults: Vec<u32>,
}

impl Medium {
    pub fn prepare(
        &mut self,
        rng: &mut Rng,
        (owner, peer): (usize, usize),
        (key, mechanism, plan): (TransferKey, MechanismTag, Plan),
        (message, receive): (usize, Option<usize>),
    ) -> Result<(usize, Cookie), Fault> {
        assert!(plan.interval.start < plan.interval.end, "nothing to move is nothing to prepare");
        if mechanism == MechanismTag(0) && plan.role == Role::Receiver {
            // The sender had none: all of its failed before it could announce one.
            return Err(self.demote(rng, message));
        }
        if !MECHANISMS.contains(&mechanism) {
            assert_eq!(self.hostile, Some(peer), "only a hostile peer names an unknown mechanism");
            return Err(self.demote(rng, message));
        }
        self.may_fail(rng, mechanism, message)?;
        self.sides.push(Side {
            owner,
            peer,
            key,
            mechanism,
            plan,
            message,
            receive,
            finished: false,
            interval: plan.interval,
            remote: None,
            moved: 0,
            pipe: VecDeque::new(),
            pipe_bytes: 1 + rng.below(64) as usize,
            claims: Claims::default(),
            parting: Parting::default(),
        });
        let handle = self.sides.len() - 1;
        Ok((handle, Cookie::new(&(handle as u64).to_le_bytes()).unwrap()))
    }

    pub fn start(
        &mut self,
        rng: &mut Rng,
        handle: usize,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        let (mechanism, message) = (self.sides[handle].mechanism, self.sides[handle].message);
        self.may_fail(rng, mechanism, message)?;
        let side = &self.sides[handle];
        let (plan, peer) = (side.plan, side.peer);
        assert!(!side.finished && side.remote.is_none(), "start comes once, before finish");
        assert!(interval.start == plan.interval.start && interval.end <= plan.interval.end);
        assert!(interval.start < interval.end);
        let active = matches!(plan.model, Model::Cooperative | Model::Both | Model::Stream)
            || (plan.model == Model::Get) == (plan.role == Role::Receiver);
        assert!(active, "the passive side is never started");
        let begins_a_stream = (plan.model, plan.role) == (Model::Stream, Role::Sender);
        if begins_a_stream {
            assert_eq!((remote.as_bytes(), interval), (&[][..], plan.interval), "nobody has answered");
        } else if self.hostile != Some(peer) {
            let remote = u64::from_le_bytes(remote.as_bytes().try_into().unwrap()) as usize;
            let there = &self.sides[remote];
            assert_eq!((there.owner, there.peer, there.mechanism), (peer, side.owner, mechanism));
            assert_eq!((there.message, there.plan.model), (message, plan.model));
            assert_ne!(there.plan.role, plan.role);
            if plan.model == Model::Stream && there.finished {
                // Its sender has failed and taken it back.
                return Err(self.demote(rng, message));
            }
            self.sides[handle].remote = Some(remote);
        }
        self.sides[handle].interval = interval;
        Ok(())
    }

    pub fn step(
        &mut self,
        rng: &mut Rng,
        buffers: &mut Buffers,
        handle: usize,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        let side = &self.sides[handle];
        assert!(!side.finished, "no step after finish");
        let (model, role, message, peer) = (side.plan.model, side.plan.role, side.message, side.peer);
        let left = side.interval.bytes() - side.moved;
        let front = side.interval.start + side.moved;
        let (remote, mechanism, receive) = (side.remote, side.mechanism, side.receive);
        if self.dead[peer] && rng.chance(50) {
            return Err(if rng.chance(50) { Fault::PeerDead } else { self.demote(rng, message) });
        }
        let one_copies = matches!(model, Model::Get | Model::Put);
        if one_copies && self.hostile != Some(peer) && !self.dead[peer] {
            assert!(!self.sides[remote.unwrap()].finished, "memory is touched after its side has finished");
        }
        if model == Model::Both {
            return self.step_of_both(rng, buffers, handle, max_bytes);
        }
        if model == Model::Stream
            && let Some(step) = self.end_of_stream(rng, handle)
        {
            return step;
        }
        let target =
            if role == Role::Receiver { receive } else { remote.and_then(|r| self.sides[r].receive) };
        let bytes = rng.below(left.min(max_bytes) + 1);
        if let Err(fault) = self.may_fail(rng, mechanism, message) {
            // The failing call has moved something all the same.
            if let Some(receive) = target.filter(|_| one_copies) {
                buffers[receive][front as usize..(front + bytes) as usize].fill(0xdb);
            }
            // It may also lie about it.
            return match rng.below(10) {
                0 => Ok(Step { bytes: left + 1 + rng.below(9), done: rng.chance(50) }),
                1 if left > 0 && model == Model::Get => Ok(Step { bytes: left - 1, done: true }),
                _ => Err(fault),
            };
        }
        let bytes = match (model, role) {
            (Model::Cooperative | Model::Stream, Role::Sender) => self.push(handle, front, bytes),
            (Model::Cooperative | Model::Stream, Role::Receiver) => self.pull(buffers, handle, front, bytes),
            _ => {
                if let Some(receive) = target {
                    for at in front..front + bytes {
                        buffers[receive][at as usize] = content(message, at);
                    }
                }
                bytes
            }
        };
        self.sides[handle].moved += bytes;
        // Sometimes the last step brings no bytes, only the end; that of a stream
        // its sender hears from the receiver.
        let counts = (model, role) != (Model::Stream, Role::Sender);
        Ok(Step { bytes, done: counts && bytes == left && (bytes == 0 || rng.chance(80)) })
    }

    /// What a step of a stream comes to when the other end has gone.
    fn end_of_stream(&mut self, rng: &mut Rng, handle: usize) -> Option<Result<Step, Fault>> {
        let side = &self.sides[handle];
        if side.plan.role == Role::Sender {
            if self.hostile == Some(side.peer) && rng.chance(20) {
                return Some(Ok(Step { bytes: 0, done: true }));
            }
            return side.parting.closed.map(|whole| Ok(Step { bytes: 0, done: whole }));
        }
        let (message, sender) = (side.message, &self.sides[side.remote?]);
        let abandoned = sender.finished && sender.moved < sender.interval.bytes();
        abandoned.then(|| Err(self.demote(rng, message)))
    }

    fn step_of_both(
        &mut self,
        rng: &mut Rng,
        buffers: &mut Buffers,
        handle: usize,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        let side = &self.sides[handle];
        let (role, message, mechanism, remote) = (side.plan.role, side.message, side.mechanism, side.remote);
        let is_receiver = role == Role::Receiver;
        let Some(of_claims) = (if is_receiver { Some(handle) } else { remote }) else {
            // With a hostile receiver.
            return Ok(Step { bytes: 0, done: rng.chance(20) });
        };
        let Side { interval, receive, claims, .. } = &self.sides[of_claims];
        let (interval, receive) = (*interval, receive.expect("it is the receiver's"));
        let left = interval.bytes() - claims.front_bytes - claims.back_bytes;
        let bytes = rng.below(left.min(max_bytes) + 1);
        let from = if is_receiver {
            interval.start + claims.front_bytes
        } else {
            interval.end - claims.back_bytes - bytes
        };
        if !is_receiver && claims.over.is_some() {
            return Ok(Step { bytes: 0, done: true });
        }
        let target = from as usize..(from + bytes) as usize;
        if let Err(fault) = self.may_fail(rng, mechanism, message) {
            // The failing call has moved something all the same, or lies.
            buffers[receive][target].fill(0xdb);
            let claims = &mut self.sides[of_claims].claims;
            claims.broken |= !is_receiver && bytes > 0;
            return if is_receiver && rng.chance(10) {
                Ok(Step { bytes: left + claims.back_bytes + 1, done: true })
            } else {
                Err(fault)
            };
        }
        for at in target {
            buffers[receive][at] = content(message, at as u64);
        }
        let claims = &mut self.sides[of_claims].claims;
        if is_receiver {
            claims.front_bytes += bytes;
        } else {
            claims.joined |= max_bytes > 0;
            claims.back_bytes += bytes;
        }
        let whole = is_receiver && bytes == left && !claims.broken && (bytes == 0 || rng.chance(80));
        Ok(Step { bytes: bytes + if whole { claims.back_bytes } else { 0 }, done: whole })
    }

    /// Whether both ends know that the message is whole.
    pub fn leave(&mut self, handle: usize) -> bool {
        let Side { plan, remote, finished, .. } = &self.sides[handle];
        assert!(plan.model.is_left() && !finished);
        if plan.model == Model::Stream {
            return self.leave_stream(handle);
        }
        if plan.role == Role::Receiver {
            let claims = &mut self.sides[handle].claims;
            return *claims.over.insert(claims.joined);
        }
        let Some(remote) = *remote else { return false };
        let claims = &mut self.sides[remote].claims;
        let there = std::mem::take(&mut claims.joined);
        there && claims.over == Some(true)
    }

    fn leave_stream(&mut self, handle: usize) -> bool {
        let Side { plan, remote, interval, moved, .. } = &self.sides[handle];
        if plan.role == Role::Receiver {
            let (Some(remote), whole) = (*remote, *moved == interval.bytes()) else { return false };
            let parting = &mut self.sides[remote].parting;
            assert!(parting.closed.replace(whole).is_none(), "a receiver leaves once");
            return !parting.left;
        }
        let parting = &mut self.sides[handle].parting;
        assert!(!parting.left, "a sender leaves once");
        parting.left = parting.closed.is_none();
        parting.closed == Some(true)
    }

    fn push(&mut self, handle: usize, front: u64, bytes: u64) -> u64 {
        let side = &mut self.sides[handle];
        if self.hostile == Some(side.peer) {
            return bytes;
        }
        let bytes = bytes.min((side.pipe_bytes - side.pipe.len()) as u64);
        let message = side.message;
        side.pipe.extend((front..front + bytes).map(|at| content(message, at)));
        bytes
    }

    fn pull(&mut self, buffers: &mut Buffers, handle: usize, front: u64, bytes: u64) -> u64 {
        let receive = self.sides[handle].receive.unwrap();
        let Some(remote) = self.sides[handle].remote else { return bytes };
        let sender = &mut self.sides[remote];
        if sender.finished && sender.plan.model == Model::Cooperative {
            return 0;
        }
        let bytes = bytes.min(sender.pipe.len() as u64);
        let target = &mut buffers[receive][front as usize..(front + bytes) as usize];
        target.iter_mut().zip(sender.pipe.drain(..bytes as usize)).for_each(|(to, from)| *to = from);
        bytes
    }

    pub fn finish(&mut self, handle: usize) {
        let side = &mut self.sides[handle];
        assert!(!std::mem::replace(&mut side.finished, true), "finish comes once");
        // Behind this nobody else touches the memory.
        side.claims.over.get_or_insert(false);
        let whole = side.moved == side.interval.bytes();
        if let (Role::Receiver, Some(remote)) = (side.plan.role, side.remote) {
            self.sides[remote].parting.closed.get_or_insert(whole);
        }
    }

    fn may_fail(&mut self, rng: &mut Rng, mechanism: MechanismTag, message: usize) -> Result<(), Fault> {
        let number = MECHANISMS.iter().position(|tag| *tag == mechanism).unwrap();
        if rng.below(1000) >= self.fault_per_mille[number] {
            return Ok(());
        }
        Err(self.demote(rng, message))
    }

    fn demote(&mut self, rng: &mut Rng, message: usize) -> Fault {
        self.faults[message] += 1;
        let sentence = "the simulated mechanism fails".to_owned();
        Fault::Demote { errno: 14, for_good: rng.chance(5), sentence }
    }
}
