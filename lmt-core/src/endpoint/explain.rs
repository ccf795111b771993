//! Which path a message would take and why, and what is known of each mechanism.

use super::Engine;
use super::state::Traffic;
use crate::mechanism::{Direction, MechanismStatus};
use crate::requests::ids::PeerId;
use crate::requests::outcome::OperationError;
use crate::selection::{Explanation, Message as Question, Source, Taken, Why};
use crate::transfer::MANY_IN_FLIGHT;
use crate::vocabulary::identity::PeerKey;
use crate::vocabulary::model::Model;

impl Engine {
    /// Which way a message to a peer would take now, and why. What others are
    /// reading now counts, unless `message` says that more do.
    ///
    /// # Errors
    /// The peer is unknown.
    pub fn explain(&self, peer: PeerId, message: &Question) -> Result<Explanation, OperationError> {
        let key = self.traffic.key_named(peer)?;
        Ok(self.traffic.explain(key, message))
    }

    /// By which mechanism gets of a peer's declared memory or puts into it would go now,
    /// and why.
    ///
    /// # Errors
    /// The peer is unknown.
    pub fn explain_one_sided(
        &self,
        peer: PeerId,
        direction: Direction,
        bytes: u64,
    ) -> Result<Explanation, OperationError> {
        let key = self.traffic.key_named(peer)?;
        let traffic = &self.traffic;
        let known = traffic.transfers.mechanism_status();
        Ok(traffic.selection.explain_one_sided(key, direction, known, &traffic.config, bytes))
    }

    /// What is known of each mechanism with a peer; nothing before the first
    /// message has connected it.
    pub fn mechanism_status(&self, peer: PeerId) -> Vec<(&'static str, MechanismStatus)> {
        let Ok(key) = self.traffic.key_named(peer) else { return Vec::new() };
        let mechanisms = self.traffic.transfers.mechanism_status();
        mechanisms.mechanism_status(key).map(|(name, s)| (name, s.clone())).collect()
    }

    /// The names of the mechanisms of this endpoint.
    pub fn mechanism_names(&self) -> Vec<&'static str> {
        self.traffic.transfers.mechanism_status().names()
    }
}

impl Traffic {
    /// Why a message to a peer would take the way that it would.
    pub fn explain(&self, key: PeerKey, message: &Question) -> Explanation {
        let readers = message.readers.max(self.transfers.other_readers(key));
        let message = Question { readers, ..*message };
        let mut explanation =
            self.selection.explain(key, self.transfers.mechanism_status(), &self.config, &message);
        self.explain_oversubscription(&mut explanation);
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
        if explanation.taken == Taken::Eager && message.bytes > self.config.inbox_eager_max_bytes {
            let note = "by rendezvous, as what is longer, while handoff cells or the peer's room for unexpected messages do not suffice (inbox_eager_max_bytes)";
            explanation.notes.push(note.to_owned());
        }
    }

    /// Where processes outnumber the CPUs, who receives copies alone
    /// ([`crate::rendezvous::Candidates::with_one_end_first`]).
    fn explain_oversubscription(&self, explanation: &mut Explanation) {
        if self.transfers.is_oversubscribed()
            && matches!(explanation.taken, Taken::By { model: Model::Stream, .. })
        {
            let note = format!(
                "processes outnumber the CPUs: with {MANY_IN_FLIGHT} messages in flight to this peer, what is no stream goes first"
            );
            explanation.notes.push(note);
        }
        let Taken::By { mechanism, model: Model::Both } = &explanation.taken else { return };
        let alone = format!("{mechanism}:{}", Model::Get);
        let is_next = explanation.then.first().is_some_and(|next| next.split(':').next() == Some(mechanism));
        if !self.transfers.is_oversubscribed() || is_next || !explanation.then.contains(&alone) {
            return;
        }
        let note = "processes outnumber the CPUs, so that the receiver copies alone";
        explanation.notes.push(note.to_owned());
        let taken = Taken::By { mechanism: mechanism.clone(), model: Model::Get };
        explanation.take_at_run_time(taken);
    }
}
