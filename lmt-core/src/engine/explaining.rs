//! Why a message would take the way that it would.

use super::traffic::Traffic;
use crate::mechanism::Model;
use crate::rendezvous::PeerKey;
use crate::selection::{Explanation, Message as Question, Source, Taken, Why};

impl Traffic {
    /// Why a message to a peer would take the way that it would.
    pub fn explain(&self, key: PeerKey, message: &Question) -> Explanation {
        let readers = message.readers.max(self.transfers.other_readers(key));
        let message = Question { readers, ..*message };
        let mut explanation = self.selection.explain(key, self.transfers.standings(), &self.config, &message);
        self.explain_crowding(&mut explanation);
        self.explain_cells(&message, &mut explanation);
        if self.peers[key as usize].id == self.id {
            let rule = "sender and receiver are one endpoint";
            explanation.taken = Taken::Within;
            explanation.place = "same process".to_owned();
            explanation.rule = rule.to_owned();
            explanation.source = Source::Default { line: None };
            explanation.then.clear();
            explanation.notes.clear();
            for other in &mut explanation.not_taken {
                (other.why, other.errno) = (Why::NotNeeded, None);
                other.sentence = rule.to_owned();
            }
        }
        explanation
    }

    /// Which messages that are short enough for cells are announced all the same.
    fn explain_cells(&self, message: &Question, explanation: &mut Explanation) {
        if explanation.taken == Taken::Eager && message.bytes > self.config.boxless_eager_max_bytes {
            let note = "announced, as what is longer, while too few are left of the cells that the two processes hand each other, or too little of the peer's room for unexpected messages (boxless_eager_max_bytes)";
            explanation.notes.push(note.to_owned());
        }
    }

    /// Where processes outnumber the CPUs, who receives copies alone
    /// ([`crate::rendezvous::Candidates::with_one_end_first`]).
    fn explain_crowding(&self, explanation: &mut Explanation) {
        let Taken::By { mechanism, model: Model::Both } = &explanation.taken else { return };
        let alone = format!("{mechanism}:{}", Model::Get);
        let is_next = explanation.then.first().is_some_and(|next| next.split(':').next() == Some(mechanism));
        if !self.transfers.is_crowded() || is_next || !explanation.then.contains(&alone) {
            return;
        }
        let note = "processes outnumber the CPUs, so that the receiver copies alone";
        explanation.notes.push(note.to_owned());
        let taken = Taken::By { mechanism: mechanism.clone(), model: Model::Get };
        explanation.take_at_run_time(taken);
    }
}
