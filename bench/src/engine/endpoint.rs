//! lmt itself: one endpoint for each mechanism of a benchmark.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lmt::mechanism::Model;
use lmt::mechanisms::Standing;
use lmt::selection::{Explanation, Taken, WayName};
use lmt::{
    Address, Config, Endpoint, EndpointId, OperationError, PeerId, Request, Scope, Source, Status, TagMatch,
};
use lmt_selector::calibration::{EAGER, EAGER_MOST_BYTES};

use super::{Engine, LeftOut, Mechanism, Ways, regions};
use crate::error::BenchError;
use crate::patterns::link::{Help, Incoming, Link, LinkError, Outgoing, RegionProvider, Step};

/// The hidden subcommand behind [`Engine::mechanisms`].
pub const PROBE_COMMAND: &str = "bench-probe";

/// A message that no way is too good for.
const LONG_BYTES: u64 = 1 << 20;

/// Calls of progress that let an operation begin: the first takes what the
/// other side has announced and begins to copy, the second does what the first
/// has left over. No more: a caller that computes makes none.
const STARTING_CALLS: u32 = 2;

/// The engine.
#[derive(Debug)]
pub struct Endpoints;

impl Engine for Endpoints {
    type Opened = Endpoint;
    type Link = EndpointLink;

    /// Found out with a real peer: what works depends on both processes.
    fn mechanisms(&self) -> Vec<Mechanism> {
        match probe() {
            Ok(found) => found.mechanisms,
            Err(reason) => {
                let unavailable =
                    |name: &str| Mechanism { name: name.to_owned(), unavailable: Some(reason.clone()) };
                lmt::mechanism_names().into_iter().map(unavailable).collect()
            }
        }
    }

    fn ways(&self) -> Result<Ways, BenchError> {
        let Found { mechanisms, mut ways } = probe().map_err(BenchError::Failure)?;
        ways.insert(0, EAGER.to_owned());
        let left_out = mechanisms.into_iter().filter_map(|mechanism| {
            let reason = mechanism.unavailable?;
            Some(LeftOut { name: mechanism.name, reason })
        });
        Ok(Ways { works: ways, left_out: left_out.collect() })
    }

    /// By `eager` all messages travel in cells as far as they can, by any other
    /// way none but the empty ones.
    fn open_way(&self, way: &str, _: u32, _: u32) -> Result<Endpoint, BenchError> {
        let builder = match way {
            EAGER => Endpoint::builder().configure(|config| config.eager_max_bytes = EAGER_MOST_BYTES),
            way => Endpoint::builder().mechanisms(&[way]).configure(|config| config.eager_max_bytes = 0),
        };
        builder.build().map_err(|error| BenchError::Failure(error.to_string()))
    }

    fn has_auto(&self) -> bool {
        true
    }

    fn open(&self, mechanism: &str, _: u32, _: u32) -> Result<Endpoint, BenchError> {
        let builder = Endpoint::builder();
        let builder = if mechanism == "auto" { builder } else { builder.mechanisms(&[mechanism]) };
        builder.build().map_err(|error| BenchError::Failure(error.to_string()))
    }

    fn address(&self, opened: &Endpoint) -> Vec<u8> {
        opened.address().to_bytes()
    }

    fn join(&self, endpoint: Endpoint, addresses: &[Vec<u8>]) -> Result<EndpointLink, BenchError> {
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
}

/// What was found out with a second process.
struct Found {
    mechanisms: Vec<Mechanism>,
    /// Each mechanism with each of its models that works.
    ways: Vec<String>,
}

/// Connects to a process started for the purpose, and sees what works with it.
fn probe() -> Result<Found, String> {
    let group = lmt::random_id().map_err(|e| e.to_string())?;
    let endpoint = Endpoint::builder().id(group.member(0)).configure(all_mechanisms).build();
    let endpoint = endpoint.map_err(|e| e.to_string())?;
    let program = std::env::current_exe().map_err(|e| format!("this program cannot be found: {e}"))?;
    let mut child = Command::new(program)
        .args([PROBE_COMMAND, &group.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| format!("a second process cannot be started: {e}"))?;
    let result = meet(&endpoint, group);
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

/// The environment may restrict what the benchmarks use, not what there is.
fn all_mechanisms(config: &mut Config) {
    config.mechanisms = None;
    config.eager_max_bytes = 0;
}

/// Waits for the second process's message and looks at what was found.
fn meet(endpoint: &Endpoint, group: EndpointId) -> Result<Found, OperationError> {
    let peer = endpoint.insert_peer(&address(group.member(1), endpoint))?;
    endpoint.receive(Source::Peer(peer), TagMatch::any(), &mut [])?;
    // What the other process can do is known once this can be sent.
    endpoint.send(peer, 0, &[])?;
    let known = endpoint.standings(peer).into_iter();
    let mechanism = |(name, standing): (&str, Standing)| Mechanism {
        name: name.to_owned(),
        unavailable: refusal(name, &standing),
    };
    let explanation = endpoint.explain(peer, LONG_BYTES)?;
    Ok(Found { mechanisms: known.map(mechanism).collect(), ways: in_usual_order(&explanation) })
}

/// All ways of an explanation, each mechanism's together and the mechanisms in
/// the order of the list, whatever rules have made of it.
fn in_usual_order(explanation: &Explanation) -> Vec<String> {
    let first = match &explanation.taken {
        Taken::By { mechanism, model } => Some(format!("{mechanism}:{model}")),
        _ => None,
    };
    let mut ways: Vec<String> = first.into_iter().chain(explanation.then.iter().cloned()).collect();
    let names = lmt::mechanism_names();
    let place = |way: &String| {
        let way: Option<WayName> = way.parse().ok();
        let name = names.iter().position(|name| way.as_ref().is_some_and(|way| way.name == *name));
        (name.unwrap_or(names.len()), way.and_then(|way| way.model).map(|model| model as u8))
    };
    ways.sort_by_key(place);
    ways.dedup();
    ways
}

fn refusal(name: &str, standing: &Standing) -> Option<String> {
    let models = [Model::Get, Model::Put, Model::Cooperative];
    if models.into_iter().any(|model| standing.ours.allow_sending(standing.theirs, model)) {
        return None;
    }
    let reason = standing.reason.as_ref().map(ToString::to_string);
    Some(reason.unwrap_or_else(|| format!("{name} is refused to the other process")))
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
    let endpoint = Endpoint::builder().id(group.member(1)).configure(all_mechanisms).build();
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
        self.endpoint.send(peer, tag, data).map(|_| ()).map_err(LinkError::new)
    }

    #[inline]
    fn receive(&mut self, from: u32, tag: u64, data: &mut [u8]) -> Result<(), LinkError> {
        let source = Source::Peer(self.peer(from)?);
        let status = self.endpoint.receive(source, TagMatch::exactly(tag), data).map_err(LinkError::new)?;
        whole(status, data.len())
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

    fn region_kinds(&self) -> Vec<&'static str> {
        regions::names()
    }

    fn region_provider(&mut self, kind: &str) -> Option<Box<dyn RegionProvider + '_>> {
        regions::provider(&self.endpoint, kind)
    }

    fn transfer(&mut self, sends: &[Outgoing<'_>], receives: &mut [Incoming<'_>]) -> Result<(), LinkError> {
        let lengths: Vec<usize> = receives.iter().map(|receive| receive.data.len()).collect();
        let this = &*self;
        this.endpoint.scope(|scope| {
            let mut waiting = Vec::with_capacity(receives.len());
            for receive in receives {
                let source = Source::Peer(this.peer(receive.from)?);
                let tags = TagMatch::exactly(receive.tag);
                waiting.push(scope.receive(source, tags, receive.data).map_err(LinkError::new)?);
            }
            let mut sending = Vec::with_capacity(sends.len());
            for send in sends {
                let peer = this.peer(send.to)?;
                sending.push(this.begin(scope, peer, send)?);
            }
            for (request, bytes) in waiting.into_iter().zip(lengths) {
                whole(request.wait().map_err(LinkError::new)?, bytes)?;
            }
            sending.into_iter().try_for_each(|request| request.wait().map(|_| ()).map_err(LinkError::new))
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
