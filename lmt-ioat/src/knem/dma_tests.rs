#![allow(unsafe_code)] // Lends the tests' own memory.

use std::num::NonZeroU32;
use std::sync::Mutex;

use lmt_core::buffer::{Buffer, Segment};
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::Hello;
use lmt_core::region::Protection;
use lmt_knem::{Binding, Copied, Info, Uses};
use nix::errno::Errno;

use super::*;

/// What was asked for, and what the driver is to say.
#[derive(Debug, Default)]
struct Script {
    /// Offset in the region and bytes of each copy that was begun.
    begun: Vec<(u64, u64)>,
    /// How many of them have ended.
    ended: usize,
    /// The copy that fails, and how many may be begun at once.
    fails: Option<usize>,
    slots: Option<usize>,
    dropped: bool,
}

/// A driver that copies nothing and is as slow as the test wants.
#[derive(Debug)]
struct Artificial(Arc<Mutex<Script>>);

impl Drop for Artificial {
    fn drop(&mut self) {
        self.0.lock().unwrap().dropped = true;
    }
}

impl Artificial {
    fn begin(&self, offset: u64, length: Length) -> Result<CopyId, KnemError> {
        let mut script = self.0.lock().unwrap();
        if script.slots.is_some_and(|slots| script.begun.len() - script.ended >= slots) {
            return Err(KnemError::TooMany { what: "copies", most: 0 });
        }
        let Length::Bounded(bytes) = length else { panic!("not bounded") };
        script.begun.push((offset, bytes));
        Ok(CopyId::new(script.begun.len() as u32 - 1, NonZeroU32::MIN))
    }
}

impl Driver for Artificial {
    fn open() -> Result<Self, KnemError> {
        Ok(Self(Arc::default()))
    }
    fn name(&self) -> &'static str {
        "artificial"
    }
    fn mechanism_name() -> &'static str {
        "artificial"
    }
    fn owner(&self) -> EndpointId {
        EndpointId::from_bytes([1; 16])
    }
    fn info(&self) -> Info {
        Info { abi: 0xd, features: 1, ignored: CopyFlags::NONE, forced: CopyFlags::NONE }
    }
    fn introduce(&mut self) -> Result<Hello, KnemError> {
        Ok(Hello::default())
    }
    fn meet(&mut self, _: Arc<PeerProcess>, _: Hello) -> Result<EndpointId, KnemError> {
        Err(KnemError::UnknownOwner)
    }
    fn part(&mut self, _: EndpointId) {}
    fn create_region(&mut self, _: Buffer, _: Protection, _: Uses) -> Result<RegionCookie, KnemError> {
        Err(KnemError::ReadOnlyMemory)
    }
    fn destroy_region(&mut self, _: &RegionCookie) -> Result<Buffer, KnemError> {
        Err(KnemError::NotRegistered)
    }
    fn region_bytes(&mut self, _: &RegionCookie) -> Result<u64, KnemError> {
        Err(KnemError::NotRegistered)
    }
    fn inline_copy(&mut self, _: &mut Buffer, _: &InlineCopy, _: CopyFlags) -> Result<u64, KnemError> {
        Err(KnemError::NotRegistered)
    }
    fn region_copy(&mut self, _: &RegionCopy, _: CopyFlags) -> Result<u64, KnemError> {
        Err(KnemError::NotRegistered)
    }
    fn start_inline_copy(
        &mut self,
        local: Buffer,
        copy: &InlineCopy,
        flags: CopyFlags,
    ) -> Result<CopyId, KnemError> {
        assert!(flags.contains(CopyFlags::DMA));
        assert_eq!(copy.length, Length::Bounded(local.total_bytes()));
        self.begin(copy.region_offset, copy.length)
    }
    fn start_region_copy(&mut self, copy: &RegionCopy, _: CopyFlags) -> Result<CopyId, KnemError> {
        self.begin(copy.target.offset, copy.length)
    }
    fn poll(&mut self, copy: CopyId) -> Result<Option<Copied>, KnemError> {
        let script = self.0.lock().unwrap();
        let index = copy.slot() as usize;
        if index >= script.ended {
            return Ok(None);
        }
        if script.fails == Some(index) {
            return Err(KnemError::System { call: "a copy", errno: Errno::EFAULT, hint: "none".to_owned() });
        }
        Ok(Some(Copied { bytes: script.begun[index].1, local: None }))
    }
    fn bind_offload(&mut self, _: &Binding) -> Result<(), KnemError> {
        Ok(())
    }
}

const BYTES: usize = 200_000;

/// A list of one region's bytes into memory in three pieces.
fn list(memory: &mut [u8]) -> CopyList {
    // SAFETY: the artificial driver copies nothing.
    let whole = unsafe { Mapped::new(Segment::of_mut(memory), Access::Write) };
    let cookie = RegionCookie::new(EndpointId::from_bytes([2; 16]), 0, 1);
    let mut list = CopyList::new();
    let mut at = 0;
    for bytes in [10_000, 90_000, 100_000] {
        let here = Place::Mapped(whole.advanced(at).unwrap());
        list.push(Place::Region { cookie, offset: 500 + at }, here, bytes).unwrap();
        at += bytes;
    }
    list
}

fn engine(how: How) -> (KnemDma<Artificial>, Arc<Mutex<Script>>) {
    let driver = Artificial(Arc::default());
    let script = Arc::clone(&driver.0);
    (KnemDma::new(Shared::new(driver), how), script)
}

#[test]
fn all_chunks_are_asked_for_at_once_and_counted_in_order() {
    let (mut engine, script) = engine(How::Asynchronous);
    let mut memory = vec![0; BYTES];
    let mut job = engine.submit(list(&mut memory)).unwrap();
    let begun = script.lock().unwrap().begun.clone();
    assert_eq!(begun.first(), Some(&(500, 4096)));
    let mut at = 500;
    for (offset, bytes) in &begun {
        assert_eq!(*offset, at);
        at += bytes;
    }
    assert_eq!(at, 500 + BYTES as u64, "something needs the caller");
    assert_eq!(engine.poll(&mut job), Progress { bytes: 0, state: State::Running });
    script.lock().unwrap().ended = 2;
    assert_eq!(engine.poll(&mut job), Progress { bytes: 4096 + 8192, state: State::Running });
    script.lock().unwrap().ended = begun.len();
    assert_eq!(engine.poll(&mut job), Progress { bytes: BYTES as u64, state: State::Done });
}

#[test]
fn asked_for_synchronously_each_look_asks_for_one() {
    let (mut engine, script) = engine(How::Synchronous);
    let mut memory = vec![0; BYTES];
    let mut job = engine.submit(list(&mut memory)).unwrap();
    assert_eq!(script.lock().unwrap().begun.len(), 0);
    for count in 1..=3 {
        engine.poll(&mut job);
        let mut script = script.lock().unwrap();
        assert_eq!(script.begun.len(), count);
        script.ended = count;
    }
    script.lock().unwrap().ended = usize::MAX;
    while engine.poll(&mut job).state == State::Running {}
    assert_eq!(engine.poll(&mut job), Progress { bytes: BYTES as u64, state: State::Done });
}

#[test]
fn a_failure_ends_the_list_when_the_driver_is_quiet() {
    let (mut engine, script) = engine(How::Asynchronous);
    let mut memory = vec![0; BYTES];
    let mut job = engine.submit(list(&mut memory)).unwrap();
    let all = script.lock().unwrap().begun.len();
    {
        let mut script = script.lock().unwrap();
        (script.fails, script.ended) = (Some(1), 2);
    }
    assert_eq!(engine.poll(&mut job), Progress { bytes: 4096, state: State::Running });
    script.lock().unwrap().ended = all;
    let failed = State::Failed(CopyFailure::Refused { errno: libc::EFAULT });
    assert_eq!(engine.poll(&mut job), Progress { bytes: 4096, state: failed });
}

#[test]
fn no_free_slot_is_waited_for() {
    let (mut engine, script) = engine(How::Asynchronous);
    script.lock().unwrap().slots = Some(1);
    let mut memory = vec![0; BYTES];
    let mut job = engine.submit(list(&mut memory)).unwrap();
    let mut looks = 0;
    while engine.poll(&mut job).state == State::Running {
        script.lock().unwrap().ended += 1;
        looks += 1;
        assert!(looks < 100);
    }
    assert_eq!(engine.poll(&mut job), Progress { bytes: BYTES as u64, state: State::Done });
}

#[test]
fn a_list_without_any_slot_waits_until_others_have_ended() {
    let (mut engine, script) = engine(How::Asynchronous);
    script.lock().unwrap().slots = Some(0);
    let (mut memory, mut other) = (vec![0; BYTES], vec![0; BYTES]);
    let mut job = engine.submit(list(&mut memory)).unwrap();
    for _ in 0..3 {
        assert_eq!(engine.poll(&mut job), Progress { bytes: 0, state: State::Running });
    }
    let cancelled = engine.submit(list(&mut other)).unwrap();
    let ended = engine.quiesce(cancelled);
    assert_eq!(ended, Progress { bytes: 0, state: State::Failed(CopyFailure::Cancelled) });
    script.lock().unwrap().slots = None;
    engine.poll(&mut job);
    script.lock().unwrap().ended = usize::MAX;
    assert_eq!(engine.poll(&mut job), Progress { bytes: BYTES as u64, state: State::Done });
}

#[test]
fn quiesce_and_drop_wait_for_what_the_driver_was_asked_for() {
    for by_drop in [false, true] {
        let (mut engine, script) = engine(How::Asynchronous);
        let mut memory = vec![0; BYTES];
        let mut job = engine.submit(list(&mut memory)).unwrap();
        engine.cancel(&mut job);
        assert_eq!(engine.poll(&mut job).state, State::Running, "the driver is still at work");
        let waiter = std::thread::spawn(move || {
            let ended = (!by_drop).then(|| engine.quiesce(job));
            drop(engine);
            ended
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        // Dropping the job is the closure's last doing.
        assert!(!waiter.is_finished() && !script.lock().unwrap().dropped);
        script.lock().unwrap().ended = usize::MAX;
        let ended = waiter.join().unwrap();
        assert!(ended.is_none_or(|ended| ended.state == State::Failed(CopyFailure::Cancelled)));
        assert!(script.lock().unwrap().dropped, "the driver goes with the last job");
    }
}

#[test]
fn lists_that_it_cannot_reach_are_refused() {
    let (mut engine, _script) = engine(How::Asynchronous);
    let mut memory = vec![0; 10];
    // SAFETY: the artificial driver copies nothing.
    let here = Place::Mapped(unsafe { Mapped::new(Segment::of_mut(&mut memory), Access::Write) });
    let mut within = CopyList::new();
    within.push(here, here, 5).unwrap();
    assert!(matches!(engine.submit(within), Err(SubmitError::OutOfReach)));
    let process = Arc::new(PeerProcess::new(std::process::id() as i32, None));
    let mut of_peer = CopyList::with_peer(process);
    of_peer.push(Place::Peer(1), here, 5).unwrap();
    assert!(matches!(engine.submit(of_peer), Err(SubmitError::OutOfReach)));
}
