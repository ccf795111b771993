//! A mechanism that says it has moved the beginning of a message, and then
//! gives up: the next one is to move the end of a message of any length.

use lmt_core::buffer::Buffer;
use lmt_core::mechanism::{
    Abilities, Cookie, Fault, Hello, Interval, Lmt, Model, PeerFacts, Plan, Step, Unavailable,
};

pub(super) struct Pretender {
    pub moves_bytes: u64,
}

impl Lmt for Pretender {
    type Peer = ();
    /// Whether it has done its part.
    type Transfer = bool;

    fn name(&self) -> &'static str {
        "pretender"
    }

    fn models(&self) -> &'static [Model] {
        &[Model::Get]
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        Ok(Hello::default())
    }

    fn probe(&mut self, _: &PeerFacts, _: Hello) -> Result<((), Abilities), Unavailable> {
        Ok(((), Abilities { read: true, ..Abilities::default() }))
    }

    fn prepare(&mut self, (): &mut (), _: &Plan, _: &Buffer) -> Result<(bool, Cookie), Fault> {
        Ok((false, Cookie::empty()))
    }

    fn start(&mut self, (): &mut (), _: &mut bool, _: &Cookie, _: Interval) -> Result<(), Fault> {
        Ok(())
    }

    fn step(&mut self, (): &mut (), done: &mut bool, _: &mut Buffer, _: u64) -> Result<Step, Fault> {
        if std::mem::replace(done, true) {
            let sentence = "the test moves the end by another mechanism".to_owned();
            return Err(Fault::Demote { errno: 0, for_good: false, sentence });
        }
        Ok(Step { bytes: self.moves_bytes, done: false })
    }

    fn finish(&mut self, (): &mut (), _: bool) {}
}
