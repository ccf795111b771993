//! The Both model: the receiver reads from the front and the sender writes from
//! the back, where both buffers are mapped ([`lmt_core::claims`]).

use lmt_core::buffer::Buffer;
use lmt_core::claims::{Claims, Help};
use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{Cookie, Fault, Interval, Role, Step};

use crate::cookie::{Described, Offered, describe_claims, parse_claims};
use crate::mechanism::short_buffer;
use crate::peer::{Claimed, Far, Found, MappedPeer, MappedTransfer};

/// The claims on messages that come in.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    /// On those with which the sender can help.
    helped: Claims,
    /// On those with which it cannot: no peer has these.
    alone: Claims,
}

impl Incoming {
    fn of(&mut self, is_helped: bool) -> &mut Claims {
        if is_helped { &mut self.helped } else { &mut self.alone }
    }

    /// The receiver's side; the sender's is as in the Get model until it helps.
    pub fn prepare(
        &mut self,
        peer: &mut MappedPeer,
        interval: Interval,
        data: &Buffer,
    ) -> (Cookie, Option<Offered>, Claimed) {
        let is_shared = lmt_core::shared_buffer::is_shared(data);
        if is_shared {
            self.helped.introduce(&mut peer.claims);
        }
        let reception = self.of(is_shared).receive(&mut peer.claims, interval);
        let (cookie, offered) = describe_claims(reception.name(), data, interval, &peer.process().clone());
        (cookie, offered, Claimed::In(reception, is_shared))
    }

    pub fn step(
        &mut self,
        peer: &mut MappedPeer,
        transfer: &mut MappedTransfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        let mut step = Step { bytes: 0, done: false };
        match &mut transfer.claimed {
            Some(Claimed::In(reception, is_helped)) => {
                let claims = self.of(*is_helped);
                // Without the mapping the sender may still copy all of it.
                if let Far::Found(found) = &mut transfer.far
                    && let Some(part) = claims.next_part(reception, max_bytes)?
                {
                    copy(found, Role::Receiver, data, part)?;
                    reception.copied(part.bytes());
                    step.bytes = part.bytes();
                }
                if claims.is_whole(reception)? {
                    step.bytes += reception.copied_by_sender();
                    step.done = true;
                }
            }
            Some(Claimed::Out(help)) => {
                let is_found = matches!(transfer.far, Far::Found(_));
                let part = help.next_part(&peer.claims, if is_found { max_bytes } else { 0 });
                match (&mut transfer.far, part) {
                    (Far::Found(found), Some(part)) => {
                        copy(found, Role::Sender, data, part)?;
                        help.copied(&peer.claims, part.bytes());
                        step.bytes = part.bytes();
                    }
                    (Far::Unknown, _) => step.done = true,
                    _ => step.done = help.is_over(),
                }
            }
            None => {}
        }
        Ok(step)
    }

    pub fn leave(&mut self, peer: &mut MappedPeer, transfer: &mut MappedTransfer) -> bool {
        match &mut transfer.claimed {
            None => false,
            Some(Claimed::In(reception, is_helped)) => {
                let is_helped = *is_helped;
                self.of(is_helped).end(reception)
            }
            Some(Claimed::Out(help)) => help.leave(&peer.claims),
        }
    }

    /// When this returns the sender copies nothing any more.
    pub fn finish(&mut self, peer: &mut MappedPeer, claimed: Claimed) {
        match claimed {
            Claimed::In(reception, is_helped) => self.of(is_helped).finish(&peer.claims, reception),
            // What it did not learn there a packet has told.
            Claimed::Out(mut help) => drop(help.leave(&peer.claims)),
        }
    }

    /// The sender has the receiver's cookie: what it is to help with, and where.
    pub fn start(
        &self,
        peer: &MappedPeer,
        remote: &Cookie,
        interval: Interval,
    ) -> Option<(Claimed, Option<Described>)> {
        let (name, described) = parse_claims(remote)?;
        let help = Help::new(&peer.claims, name, interval, self.helped.sharing().steal_bytes);
        Some((Claimed::Out(help), described))
    }
}

/// Copies one part.
fn copy(found: &mut Found, role: Role, data: &mut Buffer, part: Interval) -> Result<(), Fault> {
    let mut local_at = Cursor::at(data.segments(), part.start);
    let mut remote_at = Cursor::at(found.pieces.as_slice(), part.start - found.start);
    let pieces = found.pieces.as_slice();
    let bytes = found.mapping.copy(role, data, &mut local_at, pieces, &mut remote_at, part.bytes());
    if bytes < part.bytes() { Err(short_buffer()) } else { Ok(()) }
}
