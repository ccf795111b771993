//! The endpoint's part in choosing ways at run time: it asks for each message
//! above the eager limit, with the time.

use super::outgoing::{SendMode, SendOptions};
use super::peer::{Connection, Peer};
use super::reading;
use super::traffic::Traffic;
use crate::buffer::Buffer;
use crate::identity::EndpointId;
use crate::inbox::InboxReceiver;
use crate::rendezvous::{Candidates, PeerKey};
use crate::selection::adaptive::{Question, Send, StreamReport, Way, Ways};
use crate::selection::{Explanation, Message, Source, Taken};
use crate::shared_buffer::{are_shared, is_shared};

/// How a message above the eager limit goes.
pub(super) enum Route {
    /// In cells all the same.
    Cells,
    /// Announced, by the first of these that works.
    Announced(Candidates),
}

/// The way of a message for which it was asked before the general way of a send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    peer: PeerKey,
    message: Message,
    way: Option<Way>,
}

impl Traffic {
    /// The route of a message to a connected peer that is not short; by what was
    /// decided before, if that was for this message.
    pub(super) fn route(
        &mut self,
        key: PeerKey,
        buffer: &Buffer,
        options: &SendOptions,
        decided: Option<Decided>,
        credits: &InboxReceiver,
    ) -> Route {
        let SendOptions { mode, hints } = *options;
        let message = Message {
            bytes: buffer.total_bytes(),
            contiguous: buffer.is_contiguous(),
            shared: self.transfers.shared_ends(key, is_shared(buffer)),
            hints,
            readers: self.transfers.other_readers(key),
        };
        let known = decided.filter(|d| d.peer == key && d.message == message);
        let way = match known {
            Some(decided) => decided.way,
            None => {
                let may_go_in_cells = message.contiguous && mode == SendMode::Standard;
                self.choose(key, &message, may_go_in_cells, credits)
            }
        };
        if way == Some(Way::Cells) {
            if mode == SendMode::Standard {
                return Route::Cells;
            }
            let range = self.selection.range_of(key, &message);
            self.adaptive.spoil(key, message.variant(), range, message.bytes);
        }
        let mechanisms = self.transfers.standings();
        let candidates = self.selection.candidates(key, mechanisms, &self.config, &message);
        Route::Announced(match way {
            Some(Way::By(choice)) => candidates.with_first(choice),
            _ => *candidates,
        })
    }

    /// Whether contiguous bytes that are not short go in cells by choice. What is
    /// decided here is kept for [`Self::route`], which comes next otherwise.
    pub(super) fn chooses_cells(&mut self, key: PeerKey, data: &[u8], credits: &InboxReceiver) -> bool {
        let message = Message {
            shared: self.transfers.shared_ends(key, are_shared(data)),
            readers: self.transfers.other_readers(key),
            ..Message::of_bytes(data.len() as u64)
        };
        let way = self.choose(key, &message, true, credits);
        self.decided = Some(Decided { peer: key, message, way });
        way == Some(Way::Cells)
    }

    /// The way of a message to a connected peer; `None` where the policy's order
    /// holds.
    fn choose(
        &mut self,
        key: PeerKey,
        message: &Message,
        may_go_in_cells: bool,
        credits: &InboxReceiver,
    ) -> Option<Way> {
        // Where processes outnumber the CPUs, the scheduler is what is timed.
        if !self.adaptive.is_on() || self.transfers.is_crowded() {
            let is_better = may_go_in_cells && self.is_better_in_cells(key, message.bytes, credits);
            return is_better.then_some(Way::Cells);
        }
        let peer = self.peers.get(key as usize)?;
        let is_room = matches!(&peer.connection, Connection::Up(link) if message.bytes <= link.max_bytes);
        let versions = self.selection.versions(key, self.transfers.standings());
        if let Some(way) = self.adaptive.known_way(key, message, versions)
            && (is_room || way != Way::Cells)
        {
            return Some(way);
        }
        let looked = self.selection.look(key, self.transfers.standings(), &self.config, message);
        let has_cells = looked.has_cells && is_room;
        let (alternatives, candidates) = (looked.alternatives, looked.candidates);
        let ways = Ways { candidates, alternatives, has_cells };
        if !ways.are_several() {
            return None;
        }
        let send = Send {
            now_ns: self.clock.now_ns(),
            bytes: message.bytes,
            events: self.events,
            under_way: self.transfers.sends_to(key).saturating_add(peer.ordered.len() as u32),
        };
        let (message, range) = (*message, looked.range);
        let is_first = self.id < peer.id;
        let question = Question { peer: key, message, range, ways, versions, is_first, send };
        let way = self.adaptive.way(&question)?;
        if way == Way::Cells && !has_cells {
            self.adaptive.spoil(key, message.variant(), range, message.bytes);
            return None;
        }
        Some(way)
    }

    /// A message of a peer has begun to arrive by this way.
    #[inline(always)] // The path of a short message.
    pub(super) fn heard(&mut self, key: PeerKey, bytes: u64, way: Way) {
        // When a message was announced says nothing of when it comes.
        if bytes > reading::ABOVE_BYTES && way == Way::Cells {
            self.peers[key as usize].reading.came(self.looked_in_vain);
        }
        // What is short goes without a choice, both ways.
        if self.adaptive.is_on() && bytes > self.peers[key as usize].eager_max_bytes {
            self.adaptive.hear(key, bytes, way);
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
        if self.transfers.is_crowded() || matches!(explanation.taken, Taken::Within | Taken::Eager) {
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
