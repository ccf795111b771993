//! Waiting for a device by looking: at first without a pause, later asleep.

use std::time::Duration;

/// Looks between which the processor is only offered to others, some hundred
/// microseconds.
const YIELDS: u32 = 1000;
/// The first sleep, and the longest.
const FIRST_SLEEP: Duration = Duration::from_micros(20);
const MAX_SLEEP: Duration = Duration::from_millis(1);

/// How long the next pause is.
#[derive(Debug)]
pub(crate) struct WaitBackoff {
    yields: u32,
    sleep: Duration,
}

impl Default for WaitBackoff {
    fn default() -> Self {
        Self { yields: 0, sleep: FIRST_SLEEP }
    }
}

impl WaitBackoff {
    /// Waits a little, and longer each time.
    pub(crate) fn pause(&mut self) {
        if self.yields < YIELDS {
            self.yields += 1;
            std::thread::yield_now();
        } else {
            std::thread::sleep(self.sleep);
            self.sleep = (self.sleep * 2).min(MAX_SLEEP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_yields_first_and_then_sleeps_up_to_a_limit() {
        let mut backoff = WaitBackoff::default();
        (0..YIELDS).for_each(|_| backoff.pause());
        assert_eq!(backoff.sleep, FIRST_SLEEP);
        (0..8).for_each(|_| backoff.pause());
        assert_eq!(backoff.sleep, MAX_SLEEP);
    }
}
