//! The decisions of one endpoint for all its peers.

use std::sync::Arc;

use super::{Decisions, Explanation, Message, OneSided, Orders, Policy, Situation, Taken};
use crate::base::cpu_set::CpuSet;
use crate::mechanism::{Direction, KnownMechanism, Mechanisms};
use crate::rendezvous::Candidates;
use crate::vocabulary::config::Config;
use crate::vocabulary::identity::PeerKey;

/// A policy, and what it has decided.
pub(crate) struct Selection {
    policy: Box<dyn Policy>,
    here: CpuSet,
    tables: Vec<Table>,
    /// What was decided last.
    last: Arc<Decisions>,
    /// Where the connected processes may run: this one first, the others in any
    /// order.
    processes: Vec<CpuSet>,
    /// Whose entry of `processes` each is, from the second on.
    members: Vec<PeerKey>,
    /// How often the processes that are known have changed.
    group_version: u32,
}

/// What is known and decided for one peer.
struct Table {
    there: CpuSet,
    has_fast_box: bool,
    /// Its place in [`Selection::members`] while it is connected.
    member: Option<usize>,
    /// The version of what is known of the mechanisms, and of the group, for
    /// which the decisions hold.
    versions: Option<(u32, u32)>,
    /// Shared with peers for which the same was decided, as it is for most.
    decisions: Arc<Decisions>,
    /// What is decided for gets and for puts, and for which versions.
    one_sided: [Option<((u32, u32), Orders)>; 2],
}

impl Table {
    fn new() -> Self {
        let decisions = Arc::new(Decisions::new(0, |_| Vec::new()));
        let there = CpuSet::EMPTY;
        Self { there, has_fast_box: true, member: None, versions: None, decisions, one_sided: [None, None] }
    }
}

impl Selection {
    pub fn new(policy: Box<dyn Policy>, here: CpuSet) -> Self {
        let processes = vec![here];
        let last = Table::new().decisions;
        Self { policy, here, tables: Vec::new(), last, processes, members: Vec::new(), group_version: 0 }
    }

    /// Where this process may run.
    pub const fn here(&self) -> CpuSet {
        self.here
    }

    /// Learns of a peer that is connected from now on where it may run, and whether
    /// it gives a fast box.
    pub fn meet(&mut self, peer: PeerKey, there: CpuSet, has_fast_box: bool) {
        let index = peer as usize;
        if self.tables.len() <= index {
            self.tables.resize_with(index + 1, Table::new);
        }
        self.leave(index);
        self.tables[index] = Table { there, has_fast_box, member: Some(self.members.len()), ..Table::new() };
        self.members.push(peer);
        self.processes.push(there);
        self.group_changed();
    }

    /// Forgets a peer whose connection has ended.
    pub fn forget(&mut self, peer: PeerKey) {
        let index = peer as usize;
        if index < self.tables.len() {
            self.leave(index);
            self.tables[index] = Table::new();
            self.group_changed();
        }
    }

    /// Takes a peer out of the processes that are connected.
    fn leave(&mut self, index: usize) {
        let Some(place) = self.tables[index].member.take() else { return };
        self.members.swap_remove(place);
        self.processes.swap_remove(place + 1);
        if let Some(&moved) = self.members.get(place) {
            self.tables[moved as usize].member = Some(place);
        }
    }

    /// Changes whenever decisions may depend on it that a peer has come or gone.
    /// Who keeps a part of a decision asks anew when it has.
    #[inline]
    pub const fn group_version(&self) -> u32 {
        self.group_version
    }

    fn group_changed(&mut self) {
        if self.policy.counts_processes() {
            self.group_version = self.group_version.wrapping_add(1);
        }
    }

    /// The decisions for a connected peer, made anew if what they depend on has
    /// changed.
    #[inline]
    pub fn decisions(&mut self, peer: PeerKey, mechanisms: &Mechanisms, config: &Config) -> &Decisions {
        let versions = Some(self.versions(peer, mechanisms));
        if self.tables.get(peer as usize).is_none_or(|table| table.versions != versions) {
            self.decide(peer, mechanisms, config, versions);
        }
        &self.tables[peer as usize].decisions
    }

    /// The ways for one message, the best first.
    #[inline]
    pub fn candidates(
        &mut self,
        peer: PeerKey,
        mechanisms: &Mechanisms,
        config: &Config,
        message: &Message,
    ) -> &Candidates {
        self.decisions(peer, mechanisms, config).candidates(message)
    }

    /// Changes with what is decided for a peer.
    #[inline]
    pub fn versions(&self, peer: PeerKey, mechanisms: &Mechanisms) -> (u32, u32) {
        (mechanisms.version(peer), self.group_version)
    }

    #[cold]
    fn decide(
        &mut self,
        peer: PeerKey,
        mechanisms: &Mechanisms,
        config: &Config,
        versions: Option<(u32, u32)>,
    ) {
        let index = peer as usize;
        if self.tables.len() <= index {
            self.tables.resize_with(index + 1, Table::new);
        }
        let known = mechanisms.known(peer);
        let Self { policy, here, tables, processes, last, .. } = self;
        let table = &mut tables[index];
        let decided = policy.decide(&situation(here, table, processes, &known, config));
        if **last != decided {
            *last = Arc::new(decided);
        }
        table.decisions = last.clone();
        table.versions = versions;
    }

    /// In which order mechanisms are tried for a get or a put of so many bytes; decided
    /// once for each peer and direction.
    pub fn one_sided(
        &mut self,
        peer: PeerKey,
        direction: Direction,
        mechanisms: &Mechanisms,
        config: &Config,
        (bytes, contiguous): (u64, bool),
    ) -> &[usize] {
        let (index, versions) = (peer as usize, self.versions(peer, mechanisms));
        if self.tables.len() <= index {
            self.tables.resize_with(index + 1, Table::new);
        }
        let Self { policy, here, tables, processes, .. } = self;
        let table = &mut tables[index];
        let which = direction as usize;
        if !matches!(&table.one_sided[which], Some((of, _)) if *of == versions) {
            let known = mechanisms.known(peer);
            let copies = OneSided::new(&situation(here, table, processes, &known, config), direction);
            let decisions = copies.decide(&mut **policy);
            let orders = Orders::new(&decisions, mechanisms, config.mechanisms.as_deref());
            table.one_sided[which] = Some((versions, orders));
        }
        table.one_sided[which].as_ref().map_or(&[], |(_, orders)| orders.of(bytes, contiguous))
    }

    /// Why gets or puts of so many bytes go as they go.
    pub fn explain_one_sided(
        &self,
        peer: PeerKey,
        direction: Direction,
        mechanisms: &Mechanisms,
        config: &Config,
        bytes: u64,
    ) -> Explanation {
        let unknown = Table::new();
        let table = self.tables.get(peer as usize).unwrap_or(&unknown);
        let known = mechanisms.known(peer);
        let situation = situation(&self.here, table, &self.processes, &known, config);
        OneSided::new(&situation, direction).explain(&*self.policy, bytes)
    }

    pub fn explain(
        &self,
        peer: PeerKey,
        mechanisms: &Mechanisms,
        config: &Config,
        message: &Message,
    ) -> Explanation {
        let unknown = Table::new();
        let table = self.tables.get(peer as usize).unwrap_or(&unknown);
        let known = mechanisms.known(peer);
        let mut explanation =
            self.policy.explain(&situation(&self.here, table, &self.processes, &known, config), message);
        if let Taken::By { mechanism, .. } = &explanation.taken {
            let taken = known.iter().find(|known| known.name == mechanism.as_str());
            explanation.notes.extend(taken.and_then(half));
        }
        explanation
    }
}

/// What is to be said of a mechanism that works in a part of its models only.
fn half(known: &KnownMechanism) -> Option<String> {
    if !known.is_available() || known.models.iter().all(|model| known.allows(*model)) {
        return None;
    }
    let name = known.name;
    let ours = known.standing.ours;
    Some(match &known.standing.reason {
        Some(reason) => format!("{name} works in part: {reason}"),
        None if ours.read && ours.write => {
            format!("{name} works in part: only this process can copy; the peer's own explanation says why")
        }
        None => format!("{name} works in part: one of its models is refused between the two"),
    })
}

fn situation<'a>(
    here: &'a CpuSet,
    table: &'a Table,
    processes: &'a [CpuSet],
    mechanisms: &'a [KnownMechanism],
    config: &'a Config,
) -> Situation<'a> {
    let (there, has_fast_box, is_connected) = (&table.there, table.has_fast_box, table.member.is_some());
    let is_one_sided = false;
    Situation { here, there, processes, mechanisms, config, is_connected, has_fast_box, is_one_sided }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
