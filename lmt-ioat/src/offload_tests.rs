#![allow(unsafe_code)] // Lends the tests' own memory.

use std::sync::Mutex;

use lmt_core::buffer::{Access, Segment};
use proptest::prelude::*;

use super::*;
use crate::engine::{Progress, State};

/// What the test and its engine share.
#[derive(Debug)]
struct Script {
    /// What the next polls say; the last one stays.
    progress: Vec<Progress>,
    /// The lists that were submitted.
    lists: Vec<CopyList>,
    quiesced: usize,
    dropped: usize,
    refuse: Option<SubmitError>,
}

/// An engine that copies nothing and says what the test wants.
#[derive(Clone, Debug)]
struct Artificial(Arc<Mutex<Script>>);

struct ArtificialJob(Artificial);

impl Drop for ArtificialJob {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().dropped += 1;
    }
}

impl Artificial {
    fn new(progress: &[(u64, State)]) -> Self {
        let progress = progress.iter().map(|&(bytes, state)| Progress { bytes, state }).collect();
        let script = Script { progress, lists: Vec::new(), quiesced: 0, dropped: 0, refuse: None };
        Self(Arc::new(Mutex::new(script)))
    }
}

impl CopyEngine for Artificial {
    type Job = ArtificialJob;

    fn name(&self) -> &'static str {
        "artificial"
    }

    fn available(&mut self) -> Result<(), Unavailable> {
        Ok(())
    }

    fn reach(&self) -> Reach {
        Reach { mapped: true, peer_read: true, peer_write: true, regions: false }
    }

    fn submit(&mut self, list: CopyList) -> Result<ArtificialJob, SubmitError> {
        let mut script = self.0.lock().unwrap();
        if let Some(error) = script.refuse.take() {
            return Err(error);
        }
        script.lists.push(list);
        Ok(ArtificialJob(self.clone()))
    }

    fn poll(&mut self, _job: &mut ArtificialJob) -> Progress {
        let mut script = self.0.lock().unwrap();
        if script.progress.len() > 1 { script.progress.remove(0) } else { script.progress[0] }
    }

    fn cancel(&mut self, _job: &mut ArtificialJob) {}

    fn quiesce(&mut self, _job: ArtificialJob) -> Progress {
        let mut script = self.0.lock().unwrap();
        script.quiesced += 1;
        script.progress[0]
    }
}

const BYTES: u64 = 100_000;

/// A transfer by Get of the test's own memory, and what it needs.
struct Under {
    mechanism: Offload<Artificial>,
    script: Arc<Mutex<Script>>,
    peer: OffloadPeer,
    data: Buffer,
    transfer: Option<OffloadTransfer<ArtificialJob>>,
    cookie: Cookie,
    _memory: Vec<u8>,
}

impl Under {
    fn new(progress: &[(u64, State)]) -> Self {
        let engine = Artificial::new(progress);
        let script = Arc::clone(&engine.0);
        let mut memory = vec![0u8; BYTES as usize];
        // SAFETY: the memory is kept beside the buffer and never touched.
        let data = unsafe { Buffer::new(&[Segment::of_mut(&mut memory)], Access::Write) }.unwrap();
        let process = Arc::new(PeerProcess::new(std::process::id() as i32, None));
        let mut peer = OffloadPeer { process, is_reachable: true };
        let mut mechanism = Offload::new("artificial", engine);
        let interval = Interval { start: 0, end: BYTES };
        let plan = Plan::new(Role::Receiver, Model::Get, interval);
        let (transfer, cookie) = mechanism.prepare(&mut peer, &plan, &data).unwrap();
        Self { mechanism, script, peer, data, transfer: Some(transfer), cookie, _memory: memory }
    }

    fn start(&mut self) -> Result<(), Fault> {
        let transfer = self.transfer.as_mut().unwrap();
        let interval = Interval { start: 0, end: BYTES };
        self.mechanism.start(&mut self.peer, transfer, &self.cookie, interval)
    }

    fn step(&mut self, max_bytes: u64) -> Result<Step, Fault> {
        let transfer = self.transfer.as_mut().unwrap();
        self.mechanism.step(&mut self.peer, transfer, &mut self.data, max_bytes)
    }

    fn counts(&self) -> (usize, usize, usize) {
        let script = self.script.lock().unwrap();
        (script.lists.len(), script.quiesced, script.dropped)
    }
}

#[test]
fn everything_is_submitted_at_the_start_and_steps_only_look() {
    let mut under = Under::new(&[(0, State::Running), (70_000, State::Running), (BYTES, State::Done)]);
    assert!(under.step(1).is_err(), "nothing was started");
    under.start().unwrap();
    assert_eq!(under.script.lock().unwrap().lists[0].total_bytes(), BYTES);
    assert_eq!(under.step(60_000), Ok(Step { bytes: 0, done: false }));
    assert_eq!(under.step(60_000), Ok(Step { bytes: 60_000, done: false }));
    assert_eq!(under.step(30_000), Ok(Step { bytes: 30_000, done: false }));
    assert_eq!(under.step(30_000), Ok(Step { bytes: 10_000, done: true }));
    assert_eq!(under.counts(), (1, 0, 0));
    under.mechanism.finish(&mut under.peer, under.transfer.take().unwrap());
    assert_eq!(under.counts(), (1, 1, 1));
}

#[test]
fn a_transfer_ends_its_job_also_when_it_is_only_dropped() {
    let mut under = Under::new(&[(0, State::Running)]);
    under.start().unwrap();
    drop(under.transfer.take());
    assert_eq!(under.counts(), (1, 0, 1));
}

#[test]
fn bytes_are_counted_before_a_failure_is_told() {
    let failed = State::Failed(CopyFailure::Refused { errno: libc::EFAULT });
    let mut under = Under::new(&[(5000, failed)]);
    under.start().unwrap();
    assert_eq!(under.step(3000), Ok(Step { bytes: 3000, done: false }));
    assert_eq!(under.step(3000), Ok(Step { bytes: 2000, done: false }));
    let fault = under.step(3000).unwrap_err();
    assert!(matches!(fault, Fault::Demote { errno: libc::EFAULT, for_good: false, .. }), "{fault:?}");
}

#[test]
fn ends_of_every_kind_are_told_as_what_they_are() {
    let fault = |bytes, state| {
        let mut under = Under::new(&[(bytes, state)]);
        under.start().unwrap();
        loop {
            match under.step(u64::MAX) {
                Ok(step) => assert!(step.bytes > 0 && !step.done),
                Err(fault) => return fault,
            }
        }
    };
    assert_eq!(fault(5000, State::Failed(CopyFailure::PeerDead)), Fault::PeerDead);
    let demotes = |bytes, state, good: bool, errno: i32| {
        let told = fault(bytes, state);
        let Fault::Demote { errno: told_errno, for_good, .. } = told else { panic!("{told:?}") };
        assert_eq!((told_errno, for_good), (errno, good));
    };
    demotes(5000, State::Failed(CopyFailure::EngineGone), true, 0);
    demotes(0, State::Failed(CopyFailure::Cancelled), false, 0);
    demotes(0, State::Failed(CopyFailure::Refused { errno: libc::EPERM }), true, libc::EPERM);
    demotes(BYTES - 1, State::Done, false, 0);
}

#[test]
fn a_breach_never_counts_more_than_there_is() {
    let mut under = Under::new(&[(BYTES + 1, State::Done)]);
    under.start().unwrap();
    assert_eq!(under.step(u64::MAX), Ok(Step { bytes: BYTES, done: true }));
}

#[test]
fn refused_lists_demote_with_the_reason() {
    let mut under = Under::new(&[(0, State::Running)]);
    let why = Unavailable { errno: libc::EAGAIN, sentence: "no thread".to_owned() };
    under.script.lock().unwrap().refuse = Some(why.into());
    let refused = Fault::Demote { errno: libc::EAGAIN, for_good: true, sentence: "no thread".to_owned() };
    assert_eq!(under.start(), Err(refused));
    under.script.lock().unwrap().refuse = Some(SubmitError::OutOfReach);
    assert!(matches!(under.start(), Err(Fault::Demote { for_good: false, .. })));
}

#[test]
fn what_cannot_be_reached_is_left_to_the_peer() {
    let mut under = Under::new(&[(0, State::Running)]);
    under.peer.is_reachable = false;
    assert!(matches!(under.start(), Err(Fault::Demote { for_good: true, .. })));
    under.peer.is_reachable = true;
    under.cookie = Cookie::new(&[1; 9]).unwrap();
    assert!(matches!(under.start(), Err(Fault::Demote { for_good: false, .. })));
    assert_eq!(under.counts(), (0, 0, 0));
}

/// Segments of about `total` bytes, laid out with gaps in one memory.
fn segments(cuts: &[usize], total: usize, base: usize) -> Vec<Segment> {
    let mut list = Vec::new();
    let (mut at, mut left) = (0, total);
    for &cut in cuts {
        let bytes = cut.min(left);
        list.push(Segment { address: base + at, bytes });
        at += bytes + 3;
        left -= bytes;
    }
    list.push(Segment { address: base + at, bytes: left });
    list
}

/// Where byte `offset` of a message in these segments is.
fn address_of(list: &[Segment], mut offset: usize) -> u64 {
    for segment in list {
        if offset < segment.bytes {
            return (segment.address + offset) as u64;
        }
        offset -= segment.bytes;
    }
    panic!("no such byte");
}

const TOTAL: usize = 3000;

proptest! {
    /// Whatever the segments of both sides and the part that was agreed on,
    /// each byte is copied once, from its place to its place.
    #[test]
    fn lists_bring_each_byte_to_its_place(
        here in prop::collection::vec(0usize..700, 0..9),
        there in prop::collection::vec(0usize..700, 0..9),
        bounds in prop::collection::vec(0u64..=TOTAL as u64, 4),
        is_get: bool,
    ) {
        let mut bounds = bounds;
        bounds.sort_unstable();
        let planned = Interval { start: bounds[0], end: bounds[3] };
        let agreed = Interval { start: bounds[1], end: bounds[2] };
        let mut memory = [vec![0u8; 4000], vec![0u8; 4000]];
        let bases = memory.each_mut().map(|memory| Segment::of_mut(memory).address);
        let (here, there) = (segments(&here, TOTAL, bases[0]), segments(&there, TOTAL, bases[1]));
        // SAFETY: nothing is copied in this test; the memory is there anyway.
        let lend = |list: &[Segment]| unsafe { Buffer::new(list, Access::Write) }.unwrap();
        let (ours, theirs) = (lend(&here), lend(&there));
        let mut under = Under::new(&[(0, State::Running)]);
        let (role, model) = if is_get { (Role::Receiver, Model::Get) } else { (Role::Sender, Model::Put) };
        let plan = Plan::new(role, model, planned);
        let (cookie, _kept) = describe(&theirs, planned).unwrap();
        let (mut transfer, _) = under.mechanism.prepare(&mut under.peer, &plan, &ours).unwrap();
        under.mechanism.start(&mut under.peer, &mut transfer, &cookie, agreed).unwrap();
        let script = under.script.lock().unwrap();
        let mut offset = agreed.start;
        for copy in script.lists[0].copies() {
            let (mapped, remote) = match (copy.from(), copy.to()) {
                (Place::Peer(remote), Place::Mapped(mapped)) if is_get => (mapped, remote),
                (Place::Mapped(mapped), Place::Peer(remote)) if !is_get => (mapped, remote),
                other => panic!("the wrong way: {other:?}"),
            };
            for byte in 0..copy.bytes() {
                let at = (offset + byte) as usize;
                prop_assert_eq!(mapped.address() as u64 + byte, address_of(&here, at));
                prop_assert_eq!(remote + byte, address_of(&there, at));
            }
            offset += copy.bytes();
        }
        prop_assert_eq!(offset, agreed.end);
    }
}
