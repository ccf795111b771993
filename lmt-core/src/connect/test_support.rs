//! A handler that writes down what happens, and what tests share.

use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::connect::{Closed, ConnectError, Connector, Greeting, Handler, Rejection, Waker};
use crate::vocabulary::config::Config;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::EndpointId;
use crate::vocabulary::peer_facts::PeerFacts;

/// What happened.
#[derive(Debug)]
pub(super) enum Happened {
    Hello,
    Probe,
    Established(PeerFacts, Vec<u8>),
    Failed(EndpointId, PeerError),
    Closed(EndpointId, Closed),
    Descriptors(EndpointId, Vec<u8>, Vec<String>),
    Readable(u64),
}

/// Greets with a memfd holding its name, reads the peer's, reads its nonce.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// What wakes peers.
    pub wakers: Vec<(EndpointId, Waker)>,
    pub name: String,
    pub log: Vec<Happened>,
    pub refuse_hello: bool,
    pub refuse_probe: bool,
    /// What the system answered, if that is why a greeting is refused.
    pub refused_by: Option<Errno>,
    /// How long a probe takes, so that a kill can hit it.
    pub probe_takes: Duration,
}

pub(super) fn memfd_with(text: &str) -> OwnedFd {
    let fd = memfd_create("lmt-test", MFdFlags::MFD_CLOEXEC).unwrap();
    let mut file = std::fs::File::from(fd);
    file.write_all(text.as_bytes()).unwrap();
    file.into()
}

pub(super) fn text_of(fd: OwnedFd) -> String {
    let mut file = std::fs::File::from(fd);
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_string(&mut text).unwrap();
    text
}

/// The peer's nonce as its memory has it.
pub(super) fn read_nonce(facts: &PeerFacts) -> Option<[u8; 16]> {
    use nix::sys::uio::{RemoteIoVec, process_vm_readv};
    let mut nonce = [0; 16];
    let remote = [RemoteIoVec { base: usize::try_from(facts.probe_address).ok()?, len: 16 }];
    let pid = nix::unistd::Pid::from_raw(facts.process.pid()?);
    let read = process_vm_readv(pid, &mut [std::io::IoSliceMut::new(&mut nonce)], &remote);
    (read == Ok(16)).then_some(nonce)
}

impl Handler for Recorder {
    fn hello(&mut self, _: EndpointId) -> Result<Greeting, Rejection> {
        self.log.push(Happened::Hello);
        if self.refuse_hello {
            return Err(Rejection { reason: "no handshake for you".into(), errno: self.refused_by });
        }
        let descriptors = vec![memfd_with(&self.name)];
        Ok(Greeting { bytes: self.name.clone().into_bytes(), descriptors, lost_descriptors: 0 })
    }

    fn probe(
        &mut self,
        facts: &PeerFacts,
        mut greeting: Greeting,
        waker: Waker,
    ) -> Result<Vec<u8>, Rejection> {
        self.log.push(Happened::Probe);
        self.wakers.push((facts.id, waker));
        if self.refuse_probe {
            return Err("no use for you".into());
        }
        std::thread::sleep(self.probe_takes);
        let fd = greeting.descriptors.pop().ok_or("no descriptor came")?;
        if text_of(fd).as_bytes() != greeting.bytes {
            return Err("the memfd does not hold what the handshake says".into());
        }
        let read = read_nonce(facts) == Some(facts.nonce);
        Ok(if read { b"read your nonce".to_vec() } else { b"cannot read you".to_vec() })
    }

    fn established(&mut self, facts: PeerFacts, report: Vec<u8>) {
        self.log.push(Happened::Established(facts, report));
    }

    fn failed(&mut self, peer: EndpointId, error: PeerError) {
        self.log.push(Happened::Failed(peer, error));
    }

    fn closed(&mut self, peer: EndpointId, how: Closed) {
        self.log.push(Happened::Closed(peer, how));
    }

    fn descriptors(&mut self, peer: EndpointId, bytes: &[u8], descriptors: Vec<OwnedFd>) {
        let texts = descriptors.into_iter().map(text_of).collect();
        self.log.push(Happened::Descriptors(peer, bytes.to_vec(), texts));
    }

    fn readable(&mut self, token: u64) {
        self.log.push(Happened::Readable(token));
    }
}

impl Recorder {
    pub fn established_with(&self, peer: EndpointId) -> usize {
        let is = |e: &&Happened| matches!(e, Happened::Established(facts, _) if facts.id == peer);
        self.log.iter().filter(is).count()
    }

    pub fn error_of(&self, peer: EndpointId) -> Option<&PeerError> {
        self.log.iter().rev().find_map(|e| match e {
            Happened::Failed(id, error) if *id == peer => Some(error),
            _ => None,
        })
    }

    pub fn closed_how(&self, peer: EndpointId) -> Option<Closed> {
        self.log.iter().rev().find_map(|e| match e {
            Happened::Closed(id, how) if *id == peer => Some(*how),
            _ => None,
        })
    }
}

/// An endpoint of a test.
pub(super) struct Party {
    pub connector: Connector,
    pub recorder: Recorder,
}

pub(super) fn random_id() -> EndpointId {
    let mut bytes = [0; 16];
    crate::base::random::fill(&mut bytes).unwrap();
    EndpointId::from_bytes(bytes)
}

/// Two ids, the smaller first.
pub(super) fn two_ids() -> (EndpointId, EndpointId) {
    let id = random_id();
    let (a, b) = (id.member(1), id.member(2));
    (a.min(b), a.max(b))
}

pub(super) fn quick_config() -> Config {
    Config { connect_timeout_ms: 5000, ..Config::default() }
}

impl Party {
    pub fn new(id: EndpointId) -> Self {
        Self::with(id, &quick_config())
    }

    pub fn with(id: EndpointId, config: &Config) -> Self {
        let recorder = Recorder { name: format!("I am {id}"), ..Recorder::default() };
        // Another test may be starting a process: until its exec the child
        // holds the sockets of all tests, also one that was just closed.
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            match Connector::new(id, config) {
                Err(ConnectError::NameInUse { .. }) if Instant::now() < end => std::thread::yield_now(),
                connector => return Self { connector: connector.unwrap(), recorder },
            }
        }
    }

    pub fn step(&mut self) {
        self.connector.progress(Instant::now(), &mut self.recorder);
    }
}

/// Lets the parties work until `done`, or panics after ten seconds.
pub(super) fn until(parties: &mut [&mut Party], done: impl Fn(&[&mut Party]) -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !done(parties) {
        assert!(
            Instant::now() < end,
            "not done in time: {:#?}",
            parties.iter().map(|p| &p.recorder.log).collect::<Vec<_>>()
        );
        for party in parties.iter_mut() {
            party.step();
        }
        std::thread::yield_now();
    }
}
