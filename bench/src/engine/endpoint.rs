//! lmt itself: one endpoint for each mechanism of a benchmark.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lmt::mechanism::{Counters, Description, MechanismStatus};
use lmt::{
    Address, Config, Endpoint, EndpointId, OperationError, PeerId, Request, Scope, Source, Status, TagMatch,
};
use lmt_selector::calibration::{EAGER, EAGER_MAX_BYTES};

use super::build::{all_of_this_build, reaches_shared_only};
use super::met::{ProbeReport, ProbeReportWire};
use super::{LeftOut, Mechanism, Ways, regions};
use crate::error::BenchError;
use crate::job::PathCount;
use crate::memory::Memory;
use crate::patterns::link::{Help, Incoming, Link, LinkError, Outgoing, ReceivedBytes, RegionProvider, Step};
use crate::processes::without_settings;
use crate::rank_side;

/// The hidden subcommand behind [`mechanisms`].
pub const PROBE_COMMAND: &str = "bench-probe";

/// The hidden subcommand behind [`probe_two_processes`].
pub const MEET_COMMAND: &str = "bench-meet";

/// What the ranks tell each other between measurements: numbers, in memory that no peer maps.
const NUMBER_BYTES: u64 = 8;

/// Calls of progress that let an operation begin: the first takes what the
/// other side has announced and begins to copy, the second does what the first
/// has left over. No more: a caller that computes makes none.
const STARTING_CALLS: u32 = 2;

/// The mechanisms there are, in the order in which tables show them. Found out with a
/// real peer: what works depends on both processes.
pub fn mechanisms() -> Vec<Mechanism> {
    match probe_second_process() {
        Ok(meeting) => meeting.mechanisms(),
        Err(reason) => {
            let unavailable = |of: Description| Mechanism {
                name: of.name.to_owned(),
                unavailable: Some(reason.clone()),
                reach: of.reach,
            };
            all_of_this_build().descriptions().into_iter().map(unavailable).collect()
        }
    }
}

/// The ways that messages in memory from malloc can take here: cells, and each
/// mechanism that works with each of its models, in their usual order.
///
/// # Errors
/// It cannot be found out.
pub fn ways() -> Result<Ways, BenchError> {
    let meeting = probe_two_processes(without_settings).map_err(BenchError::Failure)?;
    let mut ways = meeting.ways(Memory::Private);
    ways.insert(0, EAGER.to_owned());
    let left_out = meeting.mechanisms().into_iter().filter_map(|mechanism| {
        let reason = mechanism.unusable(Memory::Private)?;
        Some(LeftOut { name: mechanism.name, reason })
    });
    Ok(Ways { works: ways, left_out: left_out.collect() })
}

/// Opens this rank's end for one way: all messages that can take it do.
///
/// Nothing is chosen at run time: by `eager` all messages travel in cells as far as they can, by any other
/// way none but the empty ones and, where it reaches shared buffers only, the ranks' numbers.
///
/// # Errors
/// What is missing.
pub fn open_path(way: &str) -> Result<Endpoint, BenchError> {
    let builder = match way {
        EAGER => Endpoint::builder().configure(|config| {
            config.eager_max_bytes = EAGER_MAX_BYTES;
            config.inbox_eager_max_bytes = EAGER_MAX_BYTES;
        }),
        way => {
            let number_bytes = if reaches_shared_only(way) { NUMBER_BYTES } else { 0 };
            Endpoint::builder()
                .mechanisms(&[way])
                .configure(move |config| config.eager_max_bytes = number_bytes)
        }
    };
    builder.build().map_err(|error| BenchError::Failure(error.to_string()))
}

/// Opens this rank's end for one mechanism, or `auto`.
///
/// # Errors
/// What is missing.
pub fn open(mechanism: &str) -> Result<Endpoint, BenchError> {
    let builder = Endpoint::builder();
    let builder = match mechanism {
        "auto" => builder,
        // What is measured is the mechanism in its own order of models.
        name => builder.mechanisms(&[name]),
    };
    builder.build().map_err(|error| BenchError::Failure(error.to_string()))
}

/// Joins the group: `addresses[i]` is rank i's.
///
/// # Errors
/// A rank cannot be reached.
pub fn join(endpoint: Endpoint, addresses: &[Vec<u8>]) -> Result<EndpointLink, BenchError> {
    let failed = |error: &dyn std::fmt::Display| BenchError::Failure(error.to_string());
    let own = endpoint.id();
    let mut peers = Vec::with_capacity(addresses.len());
    let mut rank = 0;
    for (index, bytes) in addresses.iter().enumerate() {
        let address = Address::from_bytes(bytes).map_err(|e| failed(&e))?;
        if address.id() == own {
            rank = index as u32;
        }
        peers.push(endpoint.insert_peer(&address).map_err(|e| failed(&e))?);
    }
    Ok(EndpointLink { endpoint, peers, rank })
}

/// Starts a second process, lets it and this one find out what each can do with
/// the other, and ends it.
///
/// # Errors
/// One sentence on why the two did not meet.
pub fn probe_second_process() -> Result<ProbeReport, String> {
    // As between the ranks of one launcher, where Yama rules.
    lmt::launch::admit_descendants();
    let group = lmt::random_id().map_err(|e| e.to_string())?;
    let endpoint =
        Endpoint::builder().id(group.member(0)).configure(all_mechanisms).statistics(false).build();
    let endpoint = endpoint.map_err(|e| e.to_string())?;
    let program = std::env::current_exe().map_err(|e| format!("this program cannot be found: {e}"))?;
    let mut child = Command::new(program)
        .args([PROBE_COMMAND, &group.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| format!("a second process cannot be started: {e}"))?;
    // What is made once is not a peer's.
    endpoint.expect_peers();
    let own_descriptors = open_descriptors();
    let result = meet(&endpoint, group).map(|mechanism_status| ProbeReport {
        mechanism_status,
        own_descriptors,
        peer_descriptors: open_descriptors().saturating_sub(own_descriptors),
    });
    // Its receive ends with this endpoint; left to itself it cleans up.
    drop(endpoint);
    let deadline = Instant::now() + Duration::from_secs(1);
    while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // It has ended, or it is of no more use.
    let _killed = child.kill();
    let _reaped = child.wait();
    result.map_err(|e| e.to_string())
}

/// The same between two other processes, whose settings `change` decides: what
/// they find depends on files and variables, and so does whether they start.
///
/// # Errors
/// One sentence on why the two did not meet.
pub fn probe_two_processes(change: impl FnOnce(&mut Command)) -> Result<ProbeReport, String> {
    let program = std::env::current_exe().map_err(|e| format!("this program cannot be found: {e}"))?;
    let mut command = Command::new(program);
    command.arg(MEET_COMMAND).stdin(Stdio::null()).stderr(Stdio::inherit());
    change(&mut command);
    let output = command.output().map_err(|e| format!("a second process cannot be started: {e}"))?;
    let met: Result<ProbeReportWire, String> = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("the probing process ended unexpectedly: {}", output.status))?;
    met.map(ProbeReportWire::into_report)
}

/// What the first of two such processes does: the whole life behind the hidden
/// subcommand.
///
/// # Errors
/// Nobody reads what it found.
pub fn meet_main() -> Result<(), BenchError> {
    let met = probe_second_process().map(ProbeReportWire::from);
    rank_side::tell(&met)
}

/// How many descriptors this process has open; 0 where /proc does not tell.
fn open_descriptors() -> u64 {
    // The folder itself is open while it is read.
    std::fs::read_dir("/proc/self/fd").map_or(0, |entries| (entries.count() as u64).saturating_sub(1))
}

/// The environment may restrict what the benchmarks use, not what there is.
fn all_mechanisms(config: &mut Config) {
    config.mechanisms = None;
}

/// Waits for the second process's message and looks at what was found.
fn meet(
    endpoint: &Endpoint,
    group: EndpointId,
) -> Result<Vec<(&'static str, MechanismStatus)>, OperationError> {
    let peer = endpoint.insert_peer(&address(group.member(1), endpoint))?;
    endpoint.receive(Source::Peer(peer), TagMatch::any(), &mut [])?;
    // What the other process can do is known once this can be sent.
    endpoint.send(peer, 0, &[])?;
    Ok(endpoint.mechanism_status(peer))
}

fn address(id: EndpointId, endpoint: &Endpoint) -> Address {
    let folder = endpoint.config().socket_dir;
    let in_folder = folder.and_then(|folder| Address::in_folder(id, &folder).ok());
    in_folder.unwrap_or(Address::abstract_socket(id))
}

/// What the second process does: the whole life behind the hidden subcommand.
///
/// # Errors
/// The first process cannot be reached.
pub fn probe_main(group: &str) -> Result<(), BenchError> {
    let group: EndpointId = group.parse().map_err(|_| {
        BenchError::Usage("this subcommand is for lmt itself; use lmt bench or lmt compare".into())
    })?;
    let failed = |error: &dyn std::fmt::Display| BenchError::Failure(error.to_string());
    let endpoint =
        Endpoint::builder().id(group.member(1)).configure(all_mechanisms).statistics(false).build();
    let endpoint = endpoint.map_err(|e| failed(&e))?;
    let first = endpoint.insert_peer(&address(group.member(0), &endpoint)).map_err(|e| failed(&e))?;
    endpoint.send(first, 0, &[]).map_err(|e| failed(&e))?;
    endpoint.receive(Source::Peer(first), TagMatch::any(), &mut []).map_err(|e| failed(&e))?;
    // Ends with the first process, by its hand or by its end.
    let _until_then = endpoint.receive(Source::Peer(first), TagMatch::any(), &mut []);
    Ok(())
}

/// One rank of a benchmark over one endpoint.
pub struct EndpointLink {
    endpoint: Endpoint,
    peers: Vec<PeerId>,
    rank: u32,
}

impl EndpointLink {
    fn peer(&self, rank: u32) -> Result<PeerId, LinkError> {
        self.peers.get(rank as usize).copied().ok_or_else(|| LinkError(format!("there is no rank {rank}")))
    }
}

/// A message of another length than the pattern sends is a failure.
fn whole(status: Status, bytes: usize) -> Result<(), LinkError> {
    if status.bytes == bytes as u64 {
        return Ok(());
    }
    Err(LinkError(format!("a message of {} bytes came where {bytes} were expected", status.bytes)))
}

impl Link for EndpointLink {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn ranks(&self) -> u32 {
        // A group's size came from a u32.
        self.peers.len() as u32
    }

    #[inline]
    fn send(&mut self, to: u32, tag: u64, data: &[u8]) -> Result<(), LinkError> {
        let peer = self.peer(to)?;
        match self.endpoint.send(peer, tag, data) {
            Ok(_) => Ok(()),
            Err(error) => Err(LinkError::new(error)),
        }
    }

    #[inline]
    fn receive(&mut self, from: u32, tag: u64, data: &mut [u8]) -> Result<(), LinkError> {
        let source = Source::Peer(self.peer(from)?);
        match self.endpoint.receive(source, TagMatch::exactly(tag), data) {
            Ok(status) => whole(status, data.len()),
            Err(error) => Err(LinkError::new(error)),
        }
    }

    fn received(&self) -> ReceivedBytes {
        let all = self.peers.iter().flat_map(|peer| self.endpoint.counters(*peer));
        let add = |sum: ReceivedBytes, (_, counters): (&str, Counters)| ReceivedBytes {
            all: sum.all + counters.received.bytes,
            by_sender: sum.by_sender + counters.peer_bytes,
        };
        all.fold(ReceivedBytes::default(), add)
    }

    fn receive_during(
        &mut self,
        from: u32,
        tag: u64,
        data: &mut [u8],
        during: Step<'_>,
        help: Help<'_>,
    ) -> Result<(), LinkError> {
        let (source, bytes) = (Source::Peer(self.peer(from)?), data.len());
        let this = &*self;
        this.endpoint.scope(|scope| {
            let request = scope.receive(source, TagMatch::exactly(tag), data).map_err(LinkError::new)?;
            whole(this.meanwhile(request, during, help)?, bytes)
        })
    }

    fn send_during(
        &mut self,
        to: u32,
        tag: u64,
        data: &[u8],
        during: Step<'_>,
        help: Help<'_>,
    ) -> Result<(), LinkError> {
        let peer = self.peer(to)?;
        let this = &*self;
        this.endpoint.scope(|scope| {
            let request = this.begin(scope, peer, &Outgoing { to, tag, data })?;
            this.meanwhile(request, during, help).map(|_| ())
        })
    }

    fn ways(&self) -> Vec<PathCount> {
        let mut ways: Vec<PathCount> = Vec::new();
        for &peer in &self.peers {
            let eager = self.endpoint.eager_counters(peer);
            let cells = (EAGER, [eager.sent, eager.received]);
            let others = self.endpoint.counters(peer);
            let others = others.iter().map(|(name, counters)| (*name, [counters.sent, counters.received]));
            for (way, tallies) in [cells].into_iter().chain(others) {
                let messages = tallies.iter().map(|tally| tally.messages).sum();
                let bytes = tallies.iter().map(|tally| tally.bytes).sum();
                PathCount { way: way.to_owned(), messages, bytes }.add_to(&mut ways);
            }
        }
        ways
    }

    fn region_kinds(&self) -> Vec<&'static str> {
        regions::names()
    }

    fn region_provider(&mut self, kind: &str) -> Option<Box<dyn RegionProvider + '_>> {
        regions::provider(&self.endpoint, kind)
    }

    fn transfer(&mut self, sends: &[Outgoing<'_>], receives: &mut [Incoming<'_>]) -> Result<(), LinkError> {
        let this = &*self;
        this.endpoint.scope(|scope| {
            // One allocation for both: it is made in every call.
            let mut waiting = Vec::with_capacity(receives.len() + sends.len());
            for receive in receives {
                let source = Source::Peer(this.peer(receive.from)?);
                let (tags, bytes) = (TagMatch::exactly(receive.tag), receive.data.len());
                waiting
                    .push((scope.receive(source, tags, receive.data).map_err(LinkError::new)?, Some(bytes)));
            }
            for send in sends {
                let peer = this.peer(send.to)?;
                waiting.push((this.begin(scope, peer, send)?, None));
            }
            waiting.into_iter().try_for_each(|(request, received_bytes)| match request.wait() {
                Ok(status) => received_bytes.map_or(Ok(()), |bytes| whole(status, bytes)),
                Err(error) => Err(LinkError::new(error)),
            })
        })
    }
}

impl EndpointLink {
    /// Lets an operation begin, does something else, and goes on with it, with
    /// help from when it is called for.
    fn meanwhile(
        &self,
        mut request: Request<'_, Endpoint>,
        during: Step<'_>,
        help: Help<'_>,
    ) -> Result<Status, LinkError> {
        for _ in 0..STARTING_CALLS {
            self.endpoint.progress().map_err(LinkError::new)?;
        }
        during()?;
        loop {
            match request.test() {
                Ok(result) => return result.map_err(LinkError::new),
                Err(open) if help()? => return open.wait().map_err(LinkError::new),
                Err(open) => request = open,
            }
        }
    }

    /// Begins a send; where too much waits for the peer, makes room first.
    fn begin<'scope, 'env>(
        &self,
        scope: &'scope Scope<'scope, 'env, Endpoint>,
        peer: PeerId,
        send: &Outgoing<'env>,
    ) -> Result<Request<'scope, Endpoint>, LinkError> {
        loop {
            match scope.send(peer, send.tag, send.data) {
                Ok(request) => return Ok(request),
                Err(OperationError::WouldBlock { .. }) => {
                    self.endpoint.wait_for_progress(None).map_err(LinkError::new)?;
                }
                Err(error) => return Err(LinkError::new(error)),
            }
        }
    }
}
