//! A mechanism that moves nothing and says that it has: all of a message, for
//! tests of what else a message costs; or its beginning, and then it gives up,
//! so that the next one is to move the end of a message of any length.

use lmt_core::buffer::Buffer;
use lmt_core::mechanism::{
    Abilities, Cookie, Description, Fault, Hello, Interval, Lmt, Model, PeerFacts, Plan, Probed, Step,
    Unavailable,
};

pub(super) struct Pretender {
    /// So much of each message; `None` is all of it.
    pub moves_bytes: Option<u64>,
}

impl Lmt for Pretender {
    type Peer = ();
    /// What it is still to say that it has moved, in bytes.
    type Transfer = u64;

    fn description(&self) -> Description {
        Description::new("pretender", &[Model::Get])
    }

    fn probe(&mut self, _: &PeerFacts, _: Hello) -> Result<Probed<()>, Unavailable> {
        Ok(Probed::new((), Abilities { read: true, ..Abilities::default() }))
    }

    fn prepare(&mut self, (): &mut (), plan: &Plan, _: &Buffer) -> Result<(u64, Cookie), Fault> {
        Ok((self.moves_bytes.unwrap_or_else(|| plan.interval.bytes()), Cookie::empty()))
    }

    fn start(&mut self, (): &mut (), _: &mut u64, _: &Cookie, _: Interval) -> Result<(), Fault> {
        Ok(())
    }

    fn step(&mut self, (): &mut (), left_bytes: &mut u64, _: &mut Buffer, _: u64) -> Result<Step, Fault> {
        let bytes = std::mem::take(left_bytes);
        if bytes == 0 {
            let sentence = "the test moves the end by another mechanism".to_owned();
            return Err(Fault::Demote { errno: 0, for_good: false, sentence });
        }
        Ok(Step { bytes, done: self.moves_bytes.is_none() })
    }

    fn finish(&mut self, (): &mut (), _: u64) {}
}
