//! Why a message would take the way that it would.

use super::peer::{Connection, Peer};
use super::traffic::Traffic;
use crate::mechanism::{Model, SharedEnds};
use crate::rendezvous::{MechanismTag, PeerKey};
use crate::selection::{Explanation, Message as Question, Source, Taken, Why};

impl Traffic {
    /// Why a message to a peer would take the way that it would.
    pub fn explain(&self, key: PeerKey, message: &Question) -> Explanation {
        let readers = message.readers.max(self.transfers.other_readers(key));
        let message = Question { readers, ..*message };
        let mut explanation = self.selection.explain(key, self.transfers.standings(), &self.config, &message);
        self.explain_adapted(key, &message, &mut explanation);
        self.explain_crowding(&mut explanation);
        self.explain_at_hand(key, &message, &mut explanation);
        self.explain_cells(key, &message, &mut explanation);
        explanation.notes.extend(self.beyond_note(key, &message, &explanation.taken));
        explanation.notes.extend(self.transfers.standings().passed_on(key, &explanation.taken));
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
    fn explain_cells(&self, key: PeerKey, message: &Question, explanation: &mut Explanation) {
        let peer = &self.peers[key as usize];
        let is_short = explanation.taken == Taken::Eager;
        if !is_short || message.bytes <= self.config.boxless_eager_max_bytes {
            return;
        }
        let shared = if peer.announces_shared {
            ", and from shared buffers that the application leaves alone between messages"
        } else {
            ""
        };
        explanation.notes.push(format!(
            "announced, as what is longer, while too few are left of the cells that the two processes hand each other, or too little of the peer's room for unexpected messages{shared} (boxless_eager_max_bytes)"
        ));
    }

    /// Which messages that are announced go in cells all the same.
    fn beyond_note(&self, key: PeerKey, message: &Question, taken: &Taken) -> Option<String> {
        let Peer { connection, beyond_max_bytes, .. } = &self.peers[key as usize];
        let Connection::Up(link) = connection else { return None };
        let most_bytes = (*beyond_max_bytes).min(link.max_bytes);
        let may_be = matches!(taken, Taken::By { .. })
            && message.bytes <= most_bytes
            && message.contiguous
            && !self.adaptive.is_on();
        let now = if self.transfers.are_left_alone() { "does not seem to do" } else { "seems to do" };
        may_be.then(|| {
            format!(
                "while no other is under way to the peer, one of up to {most_bytes} bytes goes in cells if the application uses its buffers between messages, which it {now} at present, and there are enough (in_use_eager_max_bytes)"
            )
        })
    }

    /// Which short messages are announced while their receivers have them in their caches.
    fn explain_at_hand(&self, key: PeerKey, message: &Question, explanation: &mut Explanation) {
        let least_bytes = self.peers[key as usize].at_hand_min_bytes;
        let may_be = explanation.taken == Taken::Eager
            && message.bytes >= least_bytes
            && message.shared == SharedEnds::default()
            && !(self.adaptive.is_on() || self.transfers.is_crowded());
        let exposed = |way: &&String| {
            let parts = way.split_once(':');
            parts.is_some_and(|(name, model)| {
                model == Model::Get.to_string() && self.transfers.standings().exposes(MechanismTag::of(name))
            })
        };
        let Some(way) = explanation.then.iter().find(exposed).filter(|_| may_be) else { return };
        let now = if self.transfers.is_taken_to_be_at_hand(key, message.bytes) {
            "as those to this peer are taken to be"
        } else {
            "which those to this peer are not at present"
        };
        let note = format!(
            "from {least_bytes} bytes on (at_hand_min_bytes) such a message is announced and copied by its receiver alone ({way}) while it is in that one's caches, {now}"
        );
        explanation.notes.push(note);
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
