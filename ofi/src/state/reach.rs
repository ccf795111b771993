//! Injected messages to peers with which the endpoint is not connected yet.
//!
//! Nobody hears of the end of an injected message: its sender may go and wait for
//! something else, its launcher, say, and make no progress. Then a message that had been
//! kept until the peer answers would never leave. Open MPI's `MPI_Comm_spawn` came to no
//! end by that: a spawned rank sent another its first message and went to wait in
//! `PMIx_Connect`. So the caller is asked to try again, which fi_msg(3) allows, as
//! libfabric's own providers that connect ask it to; each time there is progress. For a
//! while only: a caller that must go on before the peer can answer goes on then.

use std::time::{Duration, Instant};

use lmt::PeerId;

use super::Surroundings;
use super::endpoint::Endpoint;
use crate::abi::Errno;
use crate::{log, refuse};

/// So long a caller is asked to try again; after that messages are kept.
const TRIES_FOR: Duration = Duration::from_secs(10);

/// Since when callers have been asked to try again, for each peer.
#[derive(Debug, Default)]
pub struct Awaited(Vec<(PeerId, Instant)>);

impl Awaited {
    /// Whether to ask once more.
    fn goes_on(&mut self, peer: PeerId, now: Instant) -> bool {
        match self.0.iter().find(|(known, _)| *known == peer) {
            Some((_, since)) => now.saturating_duration_since(*since) < TRIES_FOR,
            None => {
                self.0.push((peer, now));
                true
            }
        }
    }

    /// The peer is connected, or gone.
    fn forget(&mut self, peer: PeerId) {
        self.0.retain(|(known, _)| *known != peer);
    }
}

impl Endpoint {
    /// Lets a message through of which nobody hears, if its peer is connected.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: it is not yet. Or the peer is dead.
    #[cold]
    pub(super) fn reach_first(&mut self, around: &mut Surroundings, to: PeerId) -> Result<(), Errno> {
        if !self.engine.is_connecting(to) {
            self.awaited.forget(to);
            return Ok(());
        }
        self.engine.connect(to).map_err(|error| refuse::errno_of(&error))?;
        if self.awaited.goes_on(to, Instant::now()) {
            self.progress(around);
            return Err(Errno::AGAIN);
        }
        let seconds = TRIES_FOR.as_secs();
        log::info(
            log::Subsystem::EpData,
            format_args!(
                "a peer has not answered for {seconds} s; what is injected is kept until it does and this process makes progress"
            ),
        );
        Ok(())
    }
}

#[cfg(test)]
#[path = "reach_tests.rs"]
mod tests;
