//! Looking for tagged messages, keeping what is found, and receiving or dropping
//! it (fi_tagged(3): `FI_PEEK`, `FI_CLAIM`, `FI_DISCARD`).

use lmt::buffer::Buffer;

use super::SharedState;
use super::completion::{CompletionTarget, Entry, Item, with_status};
use super::endpoint::{Endpoint, Receiving};
use super::ops::Plain;
use crate::abi::Errno;
use crate::{log, refuse};

/// What becomes of a message that is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// It stays where it is.
    Leave,
    /// It is kept for a receive that claims it.
    Claim,
    /// It is dropped.
    Discard,
}

impl Endpoint {
    /// Looks for a message that a receive would match. Its completion says what
    /// was found, or that nothing was.
    ///
    /// # Errors
    /// The source is unknown; [`Errno::BUSY`]: a message is kept under the context
    /// already.
    pub fn peek(
        &mut self,
        shared_state: &mut SharedState,
        receiving: &Receiving,
        then: Then,
    ) -> Result<(), Errno> {
        let source = self.source(shared_state, receiving.from)?;
        let Receiving { wanted, context, flags, .. } = *receiving;
        if then == Then::Claim && self.claimed.contains_key(&context) {
            let why =
                "FI_CLAIM is under a context that has claimed a message; receive or drop that one first";
            return Err(refuse::because(log::Subsystem::EpData, Errno::BUSY, format_args!("{why}")));
        }
        let status = match then {
            Then::Leave => self.engine.probe(source, wanted),
            Then::Claim | Then::Discard => self.engine.matched_probe(source, wanted).map(|found| {
                found.map(|message| {
                    let status = message.status();
                    if then == Then::Claim {
                        self.claimed.insert(context, message);
                    }
                    status
                })
            }),
        };
        let status = status.map_err(|error| refuse::errno_of(&error))?;
        self.drain(shared_state);
        let entry = Entry::bare(context, flags);
        match status {
            None => self.found_nothing(shared_state, entry),
            Some(status) => {
                let mut entry = with_status(entry, &status);
                entry.source = self.number_of(shared_state, status.peer);
                // Looking is told of whatever the flags say: that is all it does.
                self.push(shared_state, CompletionTarget::Receive, Item::Done(entry));
            }
        }
        Ok(())
    }

    /// Receives a message that was kept under this context.
    ///
    /// # Errors
    /// [`Errno::NOMSG`]: there is none.
    pub fn claim(
        &mut self,
        shared_state: &mut SharedState,
        receiving: &Receiving,
        buffer: Buffer,
        address: usize,
    ) -> Result<(), Errno> {
        let &Receiving { context, flags, reports, .. } = receiving;
        let message = self.claimed.remove(&context).ok_or(Errno::NOMSG)?;
        let request =
            self.engine.receive_matched(message, buffer).map_err(|error| refuse::errno_of(&error))?;
        self.report(shared_state, request, Plain { context, flags, reports, buffer: address });
        Ok(())
    }

    /// Drops a message that was kept under this context.
    ///
    /// # Errors
    /// [`Errno::NOMSG`]: there is none.
    pub fn drop_claimed(
        &mut self,
        shared_state: &mut SharedState,
        receiving: &Receiving,
    ) -> Result<(), Errno> {
        let message = self.claimed.remove(&receiving.context).ok_or(Errno::NOMSG)?;
        let status = message.status();
        drop(message);
        let entry = with_status(Entry::bare(receiving.context, receiving.flags), &status);
        self.received(shared_state, entry, &status, receiving.reports);
        Ok(())
    }
}
