//! One end's part in a message that both copy.

use super::receiver::{Claims, Reception};
use super::sender::{Help, PeerClaims};
use crate::mechanism::{CopiedPart, Left};
use crate::vocabulary::transfer::{Fault, Interval, Step};

/// One end's part in a message.
#[derive(Debug)]
pub(super) enum Side {
    /// The message comes in.
    In(Reception),
    /// It goes out, and this end helps.
    Out(Help),
}

impl Side {
    /// Copies the next part of at most about `max_bytes`, if there is one for
    /// this end; with 0 bytes it only looks whether the message is whole.
    ///
    /// The sender's `copy` is the first that may look at the receiver's memory
    /// and at what describes it: before there is a claim the receiver may have
    /// ended the message.
    ///
    /// # Errors
    /// What `copy` says, on the receiver's side as soon as the sender copies
    /// nothing any more, so that what is missing can come another way;
    /// [`Fault::PeerDead`]; or what stands in the line nobody honest has written.
    pub fn step(
        &mut self,
        claims: &Claims,
        peer: &PeerClaims,
        max_bytes: u64,
        copy: impl FnOnce(Interval) -> CopiedPart,
    ) -> Result<Step, Fault> {
        match self {
            Self::In(reception) => receive(claims, peer, reception, max_bytes, copy),
            Self::Out(help) => {
                let Some(part) = help.next_part(peer, max_bytes) else {
                    return Ok(Step { bytes: 0, done: help.is_over() });
                };
                let CopiedPart { bytes, fault } = copy(part);
                help.copied(peer, bytes);
                match fault {
                    Some(fault) if bytes == 0 => Err(fault),
                    _ => Ok(Step { bytes, done: false }),
                }
            }
        }
    }

    /// As [`crate::mechanism::SharedCompletion::leave`].
    pub fn leave(&mut self, claims: &Claims, peer: &mut PeerClaims) -> Left {
        match self {
            Self::In(reception) => {
                Left { copied_by_peer: reception.copied_by_sender(), both_know: claims.end(reception) }
            }
            Self::Out(help) => Left { copied_by_peer: 0, both_know: help.leave(peer) },
        }
    }

    /// When it returns, the other end
    /// copies nothing of this message into this process any more.
    pub fn finish(self, claims: &mut Claims, peer: &PeerClaims) {
        match self {
            Self::In(reception) => claims.finish(peer, reception),
            // What it did not learn there a packet has told.
            Self::Out(mut help) => drop(help.leave(peer)),
        }
    }
}

fn receive(
    claims: &Claims,
    peer: &PeerClaims,
    reception: &mut Reception,
    max_bytes: u64,
    copy: impl FnOnce(Interval) -> CopiedPart,
) -> Result<Step, Fault> {
    let mut step = Step { bytes: 0, done: false };
    if max_bytes > 0
        && let Some(part) = claims.next_part(reception, max_bytes)?
    {
        let CopiedPart { bytes, fault } = copy(part);
        reception.copied(bytes);
        step.bytes = bytes;
        if bytes < part.bytes() {
            if !peer.process().is_alive() {
                return Err(Fault::PeerDead);
            }
            return match fault {
                Some(Fault::PeerDead) => Err(Fault::PeerDead),
                Some(fault) if bytes == 0 && claims.is_quiescent(peer, reception) => Err(fault),
                _ => Ok(step),
            };
        }
    }
    if claims.is_whole(reception)? {
        step.bytes += reception.copied_by_sender();
        step.done = true;
    }
    Ok(step)
}
