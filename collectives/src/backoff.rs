//! Waiting for others: spin, yield, sleep.
#![forbid(unsafe_code)]

use std::time::Duration;

use lmt_core::cpu_set::{CpuSet, count_of_list};
use lmt_core::endpoint::Engine;

use crate::board::Board;
use crate::error::GroupError;

/// What is waited on beside the endpoint.
pub(crate) trait WaitTarget {
    /// The board on which others tell.
    fn board(&self) -> &Board;

    /// Looks for news, and takes them in; whether there were any.
    fn poll_events(&mut self, engine: &mut Engine) -> bool;

    /// Looks for the deaths of those that are waited for.
    fn check_for_deaths(&mut self, engine: &mut Engine);
}

/// How long somebody has waited without anything having moved.
pub(crate) struct WaitBackoff {
    looks: u32,
    spins: u32,
    /// Looks in all, whether anything moved or not.
    all: u32,
}

/// So many yields before a sleep: a millisecond or more where nobody else wants the
/// core, and the time slices of some others where they do.
const YIELDS: u32 = 2000;
/// Looks in a row where there is a core for each rank: some 100 us.
const SPINS: u32 = 4000;
/// The same where there is none: others have the core sooner.
const OVERSUBSCRIBED_SPINS: u32 = 2;
/// After so many looks deaths are looked for.
const DEATHS_EVERY: u32 = 512;
/// After so many looks those of other groups are moved.
const OTHERS_EVERY: u32 = 64;
/// The longest sleep: a rank that is not connected with a sleeper cannot wake it.
const MAX_SLEEP: Duration = Duration::from_millis(1);

impl WaitBackoff {
    /// Of a wait among `ranks` ranks.
    pub fn new(engine: &Engine, ranks: u32) -> Self {
        let oversubscribed = engine.is_oversubscribed() || ranks > cpus();
        Self { looks: 0, spins: if oversubscribed { OVERSUBSCRIBED_SPINS } else { SPINS }, all: 0 }
    }

    /// Whether it is time to look at other groups' calls: now and then while it waits, and
    /// each time once it has waited long.
    pub fn is_time_for_others(&self) -> bool {
        self.looks > self.spins || self.looks.is_multiple_of(OTHERS_EVERY)
    }

    /// Waits a little, longer and longer while nothing moves.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn wait(
        &mut self,
        moved: bool,
        watched: &mut impl WaitTarget,
        engine: &mut Engine,
    ) -> Result<(), GroupError> {
        // Also while other things move, so that these do not hide a death.
        self.all = self.all.wrapping_add(1);
        if self.all.is_multiple_of(DEATHS_EVERY) || self.looks > self.spins + YIELDS {
            watched.check_for_deaths(engine);
        }
        if moved {
            self.looks = 0;
            return Ok(());
        }
        self.looks = self.looks.saturating_add(1);
        if self.looks <= self.spins {
            std::hint::spin_loop();
        } else if self.looks <= self.spins + YIELDS {
            std::thread::yield_now();
        } else {
            watched.board().fall_asleep();
            let news = watched.poll_events(engine);
            let slept = if news { Ok(()) } else { engine.sleep_at_most(MAX_SLEEP) };
            watched.board().wake_up();
            slept?;
        }
        Ok(())
    }
}

/// CPUs that this machine lets its processes have; ranks that are pinned have one each.
fn cpus() -> u32 {
    static CPUS: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *CPUS.get_or_init(|| {
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
        let count = online.as_deref().and_then(count_of_list).and_then(|cpus| u32::try_from(cpus).ok());
        count.unwrap_or_else(|| CpuSet::of_this_thread().count().max(1))
    })
}
