//! The endpoint's part in choosing ways at run time: it asks for each message
//! above the eager limit, with the time.

use super::outgoing::SendMode;
use super::peer::{Connection, Peer};
use super::traffic::Traffic;
use crate::buffer::Buffer;
use crate::identity::EndpointId;
use crate::rendezvous::{Candidates, PeerKey};
use crate::selection::adaptive::{Question, Send, StreamReport, Way, Ways};
use crate::selection::{Explanation, Hints, Looked, Message, Source, Taken};

/// How a message above the eager limit goes.
pub(super) enum Route {
    /// In cells all the same.
    Cells,
    /// Announced, by the first of these that works.
    Announced(Candidates),
}

impl Traffic {
    /// The route of a message to a connected peer that is not short.
    pub(super) fn route(&mut self, key: PeerKey, buffer: &Buffer, mode: SendMode, hints: Hints) -> Route {
        let message = Message {
            bytes: buffer.total_bytes(),
            contiguous: buffer.is_contiguous(),
            shared: self.transfers.shared_ends(key, buffer),
            hints,
            readers: self.transfers.other_readers(key),
        };
        if !self.adaptive.is_on() {
            let mechanisms = self.transfers.standings();
            return Route::Announced(*self.selection.candidates(key, mechanisms, &self.config, &message));
        }
        let looked = self.selection.look(key, self.transfers.standings(), &self.config, &message);
        let has_cells = looked.has_cells && self.has_room_to_try(key, message.bytes);
        let ways = Ways { candidates: &looked.candidates, alternatives: looked.alternatives, has_cells };
        if !ways.are_several() {
            return Route::Announced(looked.candidates);
        }
        match self.adaptive.way(&self.question(key, &message, &looked, ways)) {
            Some(Way::Cells) if mode == SendMode::Standard && has_cells => Route::Cells,
            Some(Way::By(choice)) => Route::Announced(looked.candidates.with_first(choice)),
            Some(Way::Cells) => {
                self.adaptive.spoil(key, message.variant(), looked.range, message.bytes);
                Route::Announced(looked.candidates)
            }
            None => Route::Announced(looked.candidates),
        }
    }

    fn question<'a>(&self, key: PeerKey, message: &Message, looked: &Looked, ways: Ways<'a>) -> Question<'a> {
        let peer = &self.peers[key as usize];
        let send = Send {
            now_ns: self.clock.now_ns(),
            bytes: message.bytes,
            events: self.events,
            under_way: self.transfers.sends_to(key).saturating_add(peer.ordered.len() as u32),
        };
        let is_first = self.id < peer.id;
        let (variant, range, versions) = (message.variant(), looked.range, looked.versions);
        Question { peer: key, variant, range, ways, versions, is_first, send }
    }

    fn has_room_to_try(&self, key: PeerKey, bytes: u64) -> bool {
        match &self.peers[key as usize].connection {
            Connection::Up(link) => bytes <= link.max_bytes,
            _ => false,
        }
    }

    /// A way's name, as users write it.
    fn way_name(&self, way: Way) -> String {
        match way {
            Way::Cells => "eager".to_owned(),
            Way::By(choice) => {
                let name = self.transfers.standings().name_of(choice.mechanism).unwrap_or("unknown");
                format!("{name}:{}", choice.model)
            }
        }
    }

    /// What was found of each stream.
    pub(super) fn streams(&self) -> Vec<(EndpointId, StreamReport)> {
        let reports = self.adaptive.reports(|way| self.way_name(way));
        let id = |key: PeerKey| self.peers.get(key as usize).map(|peer: &Peer| peer.id);
        reports.into_iter().filter_map(|(key, report)| Some((id(key)?, report))).collect()
    }

    /// Adds to the explanation of a message what was timed of such messages.
    pub(super) fn explain_adapted(&self, key: PeerKey, message: &Message, explanation: &mut Explanation) {
        if matches!(explanation.taken, Taken::Within | Taken::Eager) {
            return;
        }
        let range = self.selection.range_of(key, message);
        let variant = message.variant();
        let name = |way| self.way_name(way);
        let Some(report) = self.adaptive.report(key, variant, range, message.bytes, name) else { return };
        explanation.notes.extend(report.sentences());
        let Some(way) = self.adaptive.chosen(key, variant, range, message.bytes) else { return };
        let taken = match way {
            Way::Cells => Some(Taken::Eager),
            Way::By(choice) => self
                .transfers
                .standings()
                .name_of(choice.mechanism)
                .map(|name| Taken::By { mechanism: name.to_owned(), model: choice.model }),
        };
        let Some(taken) = taken.filter(|taken| *taken != explanation.taken) else { return };
        let before = std::mem::replace(&mut explanation.rule, report.rule());
        explanation.notes.push(format!("before anything was timed: {before} ({})", explanation.source));
        explanation.source = Source::RunTime;
        explanation.take_at_run_time(taken);
    }
}
