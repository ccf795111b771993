//! What arrives at an endpoint that has an owner: handed up as it is, and received
//! or dropped when the owner says so.

use lmt::buffer::Buffer;
use lmt::{Message, Space};

use super::endpoint::Endpoint;
use super::ops::{Kind, Op};
use super::owner::{SPACES, place_of};
use super::queue::DoneWith;
use super::{SharedState, State};
use crate::abi::{Errno, FiAddr};
use crate::refuse;

/// A message that the owner is to be asked about.
#[derive(Debug)]
pub struct Arrival {
    /// Which endpoint it came to.
    pub endpoint: usize,
    /// Whether it is tagged or plain.
    pub space: Space,
    /// Who sent it, as the address vector has it.
    pub source: FiAddr,
    /// The owner's receive context.
    pub context: usize,
    /// The number of the endpoint beside its domain.
    pub registered: u16,
    /// The message itself.
    pub message: Message,
}

/// A receive that the owner has matched.
#[derive(Clone, Copy, Debug)]
pub struct MatchedReceive {
    /// The owner's entry; an address that is only handed back.
    pub entry: usize,
    /// What its completion hands back.
    pub context: usize,
    /// What its completion says that it was.
    pub flags: u64,
    /// Whether its good end is told.
    pub reports: bool,
    /// Where its memory begins.
    pub address: usize,
}

impl Endpoint {
    fn next_arrival(&mut self, shared_state: &SharedState, endpoint: usize, round: u64) -> Option<Arrival> {
        let owner = self.owner.as_mut()?;
        let (context, registered) = (owner.context, owner.registered);
        let (space, message) = SPACES.into_iter().find_map(|space| {
            let put_off = &mut owner.put_off[place_of(space)];
            let message = match put_off {
                None => self.engine.take_arrival(space),
                Some(_) => put_off.take_if(|one| one.round != round).map(|one| one.message),
            };
            Some((space, message?))
        })?;
        let source = self.source_of(shared_state, &message);
        Some(Arrival { endpoint, space, source, context, registered, message })
    }

    /// Who sent a message, as the address vector has it.
    fn source_of(&mut self, shared_state: &SharedState, message: &Message) -> FiAddr {
        self.number_of(shared_state, message.status().peer)
    }

    /// The same of one that is kept for the owner.
    ///
    /// # Errors
    /// [`Errno::INVAL`]: there is none of this number.
    pub fn source_of_kept(&mut self, shared_state: &SharedState, number: u64) -> Result<FiAddr, Errno> {
        let kept = self.owner.as_ref().and_then(|owner| owner.kept.get(&number));
        let peer = kept.ok_or(Errno::INVAL)?.status().peer;
        Ok(self.number_of(shared_state, peer))
    }

    /// Receives a message that the owner has matched.
    ///
    /// # Errors
    /// [`Errno::INVAL`]: it is none of this endpoint's; or it cannot be done at all.
    pub fn receive_for_owner(
        &mut self,
        shared_state: &mut SharedState,
        message: Message,
        receive: &MatchedReceive,
        buffer: Buffer,
    ) -> Result<(), Errno> {
        let &MatchedReceive { entry, context, flags, reports, address } = receive;
        let begun = self.engine.receive_matched(message, buffer);
        let request = begun.map_err(|error| refuse::errno_of(&error))?;
        let kind = Kind::Matched { buffer: address, entry };
        self.enter(shared_state, Op { context, flags, reports, request, kind });
        Ok(())
    }
}

impl SharedState {
    /// An owner's receive context is closed: what is still to be given back to it.
    pub fn forget_context(&mut self, context: usize) -> Vec<DoneWith> {
        let lists = self.queues.iter_mut().map(|queue| &mut queue.done_with);
        lists.flat_map(|list| list.extract_if(.., |one| one.context == context)).collect()
    }
}

impl State {
    /// The next message that came to an endpoint of this queue which has an owner,
    /// but for those that were put off in this round.
    pub fn next_arrival(&mut self, queue: usize) -> Option<Arrival> {
        let mut at = 0;
        while let Some(&number) = self.shared_state.queues.get(queue)?.endpoints.get(at) {
            let endpoint = self.endpoints.get_mut(number);
            if let Some(arrival) =
                endpoint.and_then(|one| one.next_arrival(&self.shared_state, number, self.round))
            {
                return Some(arrival);
            }
            at += 1;
        }
        None
    }

    /// Addresses were inserted into a vector, of which its endpoints' owners are to
    /// be told.
    pub fn sources_came(&mut self, vector: usize) {
        if !self.with_new_sources.contains(&vector) {
            self.with_new_sources.push(vector);
        }
    }

    /// The receive contexts of the owners who are to be told, which they are now.
    pub fn owners_to_tell(&mut self) -> Vec<usize> {
        let vectors = std::mem::take(&mut self.with_new_sources);
        let vectors = vectors.into_iter().filter_map(|vector| self.shared_state.vectors.get(vector));
        let owner = |number: &usize| self.endpoints.get(*number)?.owner.as_ref();
        vectors.flat_map(|vector| &vector.endpoints).filter_map(owner).map(|owner| owner.context).collect()
    }
}
