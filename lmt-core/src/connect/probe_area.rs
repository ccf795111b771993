//! The memory at which a peer finds out whether it can read and write us.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use nix::errno::Errno;

use crate::vocabulary::peer_facts::ProbeArea;

/// How long an area rests whose peer may not have probed it yet. A peer that
/// was stopped longer than this in the middle of its probe writes 16 bytes
/// into another probe's scratch, never into anything else.
const QUARANTINE: Duration = Duration::from_secs(60);

/// Areas not in use, with the moment from which they may be used again.
///
/// An area's memory is never given back to the allocator: a peer that read our
/// HELLO may write to it at any later time, even after we gave the connection
/// up, and must not hit somebody else's data. What is kept is bounded by the
/// greatest number of attempts within one quarantine, at 64 bytes each.
static IDLE: Mutex<IdleAreas> = Mutex::new(Vec::new());

type IdleAreas = Vec<(Instant, Box<ProbeArea>)>;

/// One connection's use of a probe area.
#[derive(Debug)]
pub(super) struct ProbeLease {
    area: Option<Box<ProbeArea>>,
    probed: bool,
}

impl ProbeLease {
    /// An area with a new nonce.
    pub fn new() -> Result<Self, Errno> {
        let mut nonce = [0; 16];
        crate::base::random::fill(&mut nonce)?;
        let now = Instant::now();
        let reused = idle_areas().and_then(|mut idle| {
            let at = idle.iter().position(|(from, _)| *from <= now)?;
            Some(idle.swap_remove(at).1)
        });
        let fresh = ProbeArea { nonce, scratch: [0; 16] };
        let area = match reused {
            Some(mut area) => {
                *area = fresh;
                area
            }
            None => Box::new(fresh),
        };
        Ok(Self { area: Some(area), probed: false })
    }

    /// Where the peer finds the area, and the nonce that stands there.
    pub fn place(&self) -> (u64, [u8; 16]) {
        // The address is exposed: the kernel reads and writes there for the peer.
        self.area
            .as_ref()
            .map_or((0, [0; 16]), |area| ((&raw const **area).expose_provenance() as u64, area.nonce))
    }

    /// The peer has reported: it touches the area no more.
    pub fn probed(&mut self) {
        self.probed = true;
    }
}

impl Drop for ProbeLease {
    fn drop(&mut self) {
        let Some(mut area) = self.area.take() else { return };
        // Whoever comes late finds the wrong nonce and does not write.
        area.nonce = [0; 16];
        let from = if self.probed { Instant::now() } else { Instant::now() + QUARANTINE };
        match idle_areas() {
            Some(mut idle) => idle.push((from, area)),
            None => std::mem::forget(area),
        }
    }
}

/// The idle areas, unless another thread is at them: it may have been when
/// this process was forked, and then would never be done.
fn idle_areas() -> Option<MutexGuard<'static, IdleAreas>> {
    match IDLE.try_lock() {
        Ok(idle) => Some(idle),
        Err(TryLockError::Poisoned(idle)) => Some(idle.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_whose_peer_may_still_write_is_not_used_again() {
        let abandoned = ProbeLease::new().unwrap();
        let (address, nonce) = abandoned.place();
        assert_ne!(nonce, [0; 16]);
        drop(abandoned);
        let others: Vec<_> = (0..50).map(|_| ProbeLease::new().unwrap()).collect();
        assert!(others.iter().all(|lease| lease.place().0 != address && lease.place().1 != nonce));
    }
}
