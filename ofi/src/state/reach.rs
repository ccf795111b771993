//! Injected messages to peers with which the endpoint is not connected yet.
//!
//! Nobody hears of the end of an injected message: its sender may go and wait for
//! something else, its launcher, say, and make no progress. Then a message that had been
//! kept until the peer answers would never leave. Open MPI's `MPI_Comm_spawn` came to no
//! end by that: a spawned rank sent another its first message and went to wait in
//! `PMIx_Connect`. So the caller is asked to try again, which fi_msg(3) allows, as
//! libfabric's own providers that connect ask it to; each time there is progress. For a
//! while only: a caller that must go on before the peer can answer goes on then.

use std::time::Instant;

use lmt::PeerId;

use super::SharedState;
use super::endpoint::Endpoint;
use super::unanswered::TRY_AGAIN_LIMIT;
use crate::abi::Errno;
use crate::{log, refuse};

impl Endpoint {
    /// Lets a message of which nobody hears go on to be sent or kept, unless its peer is
    /// still to be connected.
    ///
    /// # Errors
    /// [`Errno::AGAIN`]: it is. Or the attempt for which the caller was asked to try again has
    /// failed.
    #[cold]
    pub(super) fn reach_first(&mut self, shared_state: &mut SharedState, to: PeerId) -> Result<(), Errno> {
        let engine = &self.engine;
        let has_ended = self.unanswered.retain(to, |peer| engine.is_unconnected(peer));
        if !engine.is_unconnected(to) {
            let failure = engine.peer_error(to).filter(|_| has_ended).cloned();
            return failure.map_or(Ok(()), |error| Err(refuse::errno_of(&error.into())));
        }
        self.engine.connect(to).map_err(|error| refuse::errno_of(&error))?;
        if self.unanswered.goes_on(to, Instant::now()) {
            self.progress(shared_state);
            return Err(Errno::AGAIN);
        }
        let seconds = TRY_AGAIN_LIMIT.as_secs();
        log::info(
            log::Subsystem::EpData,
            format_args!(
                "a peer has not answered for {seconds} s; what is injected is kept until it does and this process makes progress"
            ),
        );
        Ok(())
    }
}
