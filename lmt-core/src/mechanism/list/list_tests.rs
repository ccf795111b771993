//! Names, families and out-of-band messages, with mechanisms that move nothing.

use std::sync::{Arc, Mutex};

use super::*;
use crate::base::cpu_set::CpuSet;
use crate::mechanism::{Diagnosis, Direction, Needs, OobMessages, Regions, RegisteredCopy, test_peer};
use crate::memory::buffer::Buffer;
use crate::requests::creation::{CreateError, check_config};
use crate::selection::{ByOrder, Message, Policy, Situation};
use crate::vocabulary::config::Config;
use crate::vocabulary::transfer::{Cookie, Fault, Interval, Plan, Step};

const PLAN: Plan = Plan::new(Role::Sender, Model::Get, Interval { start: 0, end: 0 });

type Taken = Arc<Mutex<Vec<Vec<u8>>>>;

/// Has two out-of-band messages for a peer at each `prepare`, and one at each `step`, which
/// moves all that it may.
struct Courier {
    name: &'static str,
    taken: Taken,
}

impl Lmt for Courier {
    type Peer = u8;
    type Transfer = ();

    fn description(&self) -> Description {
        let needs = if self.name == "device" { Needs::Device } else { Needs::Kernel };
        Description { needs, ..Description::new(self.name, &[Model::Get]) }
    }
    fn probe(&mut self, _: &PeerFacts, _: Hello) -> Result<Probed<u8>, Unavailable> {
        Ok(Probed::new(0, Abilities { read: true, ..Abilities::default() }))
    }
    fn prepare(&mut self, due: &mut u8, _: &Plan, _: &Buffer) -> Result<((), Cookie), Fault> {
        *due += 2;
        Ok(((), Cookie::empty()))
    }
    fn start(&mut self, _: &mut u8, (): &mut (), _: &Cookie, _: Interval) -> Result<(), Fault> {
        Ok(())
    }
    fn step(&mut self, due: &mut u8, (): &mut (), _: &mut Buffer, bytes: u64) -> Result<Step, Fault> {
        *due += 1;
        match bytes {
            u64::MAX => Err(erased::unknown()),
            _ => Ok(Step { bytes, done: bytes > 1 }),
        }
    }
    fn finish(&mut self, _: &mut u8, (): ()) {}
    fn regions(&mut self) -> Option<&mut dyn Regions<u8>> {
        Some(self)
    }
    fn oob_messages(&mut self) -> Option<&mut dyn OobMessages<u8>> {
        Some(self)
    }
    fn diagnosis(&self) -> Option<&dyn Diagnosis> {
        Some(self)
    }
}

impl Regions<u8> for Courier {
    fn copy_registered(
        &mut self,
        _: &mut u8,
        _: &mut Buffer,
        copy: &RegisteredCopy<'_>,
    ) -> Result<u64, Fault> {
        self.taken.lock().unwrap().push(self.name.into());
        match self.name {
            "refused" => {
                Err(Fault::Demote { errno: 1, for_good: true, sentence: "the kernel said no".into() })
            }
            _ => Ok(copy.max_bytes),
        }
    }
}

impl OobMessages<u8> for Courier {
    fn oob_message(&mut self, due: &mut u8) -> Option<Hello> {
        *due = due.checked_sub(1)?;
        Some(Hello { bytes: vec![*due], descriptors: Vec::new() })
    }
    fn take_oob_message(&mut self, _: &mut u8, oob_message: Hello) {
        self.taken.lock().unwrap().push(oob_message.bytes);
    }
}

impl Diagnosis for Courier {
    fn diagnostics(&self, host: &Host) -> Vec<Finding> {
        let meaning = host.proc_dir.display().to_string();
        vec![Finding::new(self.name, crate::mechanism::diagnostic::State::Good, meaning)]
    }
}

fn mechanisms(names: &[&'static str]) -> (Mechanisms, Taken) {
    let taken = Taken::default();
    let mut all = Mechanisms::new();
    for name in names {
        all.register(Courier { name, taken: Arc::clone(&taken) });
    }
    (all, taken)
}

fn meet(all: &mut Mechanisms, peer: PeerKey) {
    let report = test_peer::meet(all, peer);
    all.learn(peer, &report);
}

/// The names in the order in which a message would try them.
fn order(all: &Mechanisms, peer: PeerKey, only: &[String]) -> Vec<&'static str> {
    let config = Config { mechanisms: Some(only.to_vec()), ..Config::default() };
    let (known, nowhere) = (all.known(peer), CpuSet::EMPTY);
    let situation = Situation {
        here: &nowhere,
        there: &nowhere,
        processes: &[],
        mechanisms: &known,
        config: &config,
        is_connected: true,
        has_fast_box: true,
        is_one_sided: false,
    };
    let decisions = ByOrder::default().decide(&situation);
    let candidates = decisions.candidates(&Message::of_bytes(1 << 20));
    candidates.as_slice().iter().map(|choice| all.name_of(choice.mechanism).unwrap()).collect()
}

#[test]
fn a_name_without_its_last_part_means_a_family() {
    assert!(is_meant("a", "a") && is_meant("a", "a-b") && is_meant("a-b", "a-b-c"));
    assert!(!is_meant("a", "ab") && !is_meant("a-b", "a") && !is_meant("a-", "a-b") && !is_meant("", "a"));
    let (mut all, _) = mechanisms(&["a-1", "b", "a-2", "ab"]);
    meet(&mut all, 0);
    let asked = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let only = asked(&["b", "a"]);
    assert_eq!(order(&all, 0, &only), ["b", "a-1", "a-2"]);
    let twice = asked(&["a-2", "a", "a-1"]);
    assert_eq!(order(&all, 0, &twice), ["a-2", "a-1"]);
    assert_eq!(order(&all, 0, &asked(&["b:put", "a-1:get"])), ["a-1"], "b cannot put");
    all.restrict(&asked(&["a", "a-1", "ab"]));
    assert_eq!(all.names(), ["a-1", "a-2", "ab"]);
}

#[test]
fn declared_memory_is_copied_in_the_order_that_was_decided_and_by_the_next_where_one_is_refused() {
    let (mut all, asked) = mechanisms(&["a", "refused", "b", "c"]);
    meet(&mut all, 0);
    let tags = ["refused", "c"].map(MechanismTag::of);
    let order = all.one_sided_order(tags.into_iter(), None);
    assert_eq!(*order, [1, 3, 0, 2]);
    let only = ["b".to_owned(), "c".to_owned()];
    assert_eq!(*all.one_sided_order(tags[1..].iter().copied(), Some(&only)), [3, 2]);
    let mut copy = |direction| {
        let mut local = Buffer::empty(crate::memory::buffer::Access::Write);
        let copy = RegisteredCopy { direction, remote: &[], remote_offset: 0, local_offset: 0, max_bytes: 7 };
        all.copy_registered(0, &order, &mut local, &copy)
    };
    assert_eq!(copy(Direction::Get).ok(), Some(7));
    assert_eq!(*asked.lock().unwrap(), [b"refused".to_vec(), b"c".to_vec()]);
    let bytes: Vec<u64> = all.counters(0).map(|(_, counters)| counters.bytes).collect();
    assert_eq!(bytes, [0, 0, 0, 7]);
}

#[test]
fn oob_messages_wait_in_order_and_reach_the_mechanism_of_the_same_name() {
    let (mut all, _) = mechanisms(&["a", "b"]);
    meet(&mut all, 0);
    meet(&mut all, 1);
    let buffer = Buffer::empty(crate::memory::buffer::Access::Read);
    for peer in [0, 1] {
        all.prepare(MechanismTag::of("b"), peer, &PLAN, &buffer, &mut Cookie::empty()).unwrap();
    }
    assert!(all.has_oob_messages());
    all.forget(1);
    let (mut there, taken) = mechanisms(&["b"]);
    meet(&mut there, 7);
    for (peer, oob_message) in all.take_oob_messages() {
        assert_eq!(peer, 0, "what a peer was to have goes with the peer");
        assert!(there.take_oob_message(7, oob_message));
    }
    assert!(!all.has_oob_messages());
    assert_eq!(*taken.lock().unwrap(), [[1], [0]]);
    let (mut stranger, _) = mechanisms(&["c"]);
    meet(&mut stranger, 0);
    let oob_message = OobMessage { mechanism: MechanismTag::of("b"), content: Hello::default() };
    assert!(!stranger.take_oob_message(0, oob_message));
}

#[test]
fn an_oob_message_is_collected_behind_every_step_be_it_the_last_one() {
    let (mut all, _) = mechanisms(&["a"]);
    meet(&mut all, 0);
    let mut buffer = Buffer::empty(crate::memory::buffer::Access::Read);
    let prepared = all.prepare(MechanismTag::of("a"), 0, &PLAN, &buffer, &mut Cookie::empty());
    let handle = prepared.expect("it is probed");
    for max_bytes in [0, 1, 2, u64::MAX] {
        all.take_oob_messages();
        let moved = all.step(handle, &mut buffer, max_bytes).map(|step| step.bytes);
        assert_eq!(moved.ok(), Some(max_bytes).filter(|bytes| *bytes < u64::MAX));
        assert!(all.has_oob_messages(), "the step's out-of-band message of {max_bytes} bytes stays behind");
    }
}

/// One peer, with one mechanism that it has said works both ways.
fn known() -> Mechanisms {
    let (mut all, _) = mechanisms(&["courier"]);
    test_peer::meet(&mut all, 0);
    let abilities = Abilities { read: true, write: true, cooperate: true };
    all.learn(0, &[(MechanismTag::of("courier"), abilities)]);
    all
}

fn lose(all: &mut Mechanisms, model: Model, role: Role, sentence: &str) -> MechanismStatus {
    let reason = Unavailable { errno: 1, sentence: sentence.to_owned() };
    all.give_up(0, MechanismTag::of("courier"), model, role, reason);
    all.mechanism_status(0).next().unwrap().1.clone()
}

#[test]
fn a_receiver_that_cannot_copy_knows_why() {
    let mut all = known();
    let version = all.version(0);
    let standing = lose(&mut all, Model::Get, Role::Receiver, "no");
    assert!(!standing.ours.read && standing.theirs.read);
    assert_eq!(standing.reason.unwrap().errno, 1);
    assert_ne!(all.version(0), version);
    // What the sender copies is the sender's to give up.
    let standing = lose(&mut known(), Model::Put, Role::Receiver, "no");
    assert!(standing.ours.read && standing.theirs.write && standing.reason.is_none());
}

#[test]
fn reasons_add_up_and_are_not_repeated() {
    let mut all = known();
    lose(&mut all, Model::Get, Role::Sender, "it is closed");
    lose(&mut all, Model::Get, Role::Sender, "it is closed");
    lose(&mut all, Model::Put, Role::Sender, "it is closed");
    let standing = lose(&mut all, Model::Put, Role::Sender, "it is gone");
    assert_eq!(
        standing.reason.unwrap().sentence,
        "Get failed in the middle of a message: it is closed; Put failed likewise; Put failed in the middle of a message: it is gone"
    );
    assert!(!standing.theirs.read && !standing.ours.write);
}

#[test]
fn each_says_what_it_is_and_what_it_finds() {
    let (all, _) = mechanisms(&["a", "device"]);
    let models = &[Model::Get][..];
    let expected = [
        Description::new("a", models),
        Description { needs: Needs::Device, ..Description::new("device", models) },
    ];
    assert_eq!(all.descriptions(), expected);
    let found = all.diagnostics(&Host::under("/elsewhere".as_ref()));
    let names: Vec<_> = found.iter().map(|(name, findings)| (*name, findings[0].name.as_str())).collect();
    assert_eq!(names, [("a", "a"), ("device", "device")]);
    assert_eq!(found[0].1[0].meaning, "/elsewhere/proc");
}

/// A way that can never be is refused when the endpoint is made.
#[test]
fn a_mechanism_is_not_asked_for_in_a_model_that_it_does_not_have() {
    let mut mechanisms = Mechanisms::new();
    for name in ["fast-one", "fast-two", "slow"] {
        mechanisms.register(Courier { name, taken: Taken::default() });
    }
    let check = |way: &str| {
        let config = Config { mechanisms: Some(vec![way.to_owned()]), ..Config::default() };
        check_config(&config, &mechanisms)
    };
    for way in ["slow", "slow:get", "fast", "fast:get", "fast-two:get"] {
        check(way).expect(way);
    }
    let error = check("fast:put").expect_err("neither can");
    assert_eq!(
        error.to_string(),
        "there is no path `fast:put`: the model put is none of fast-one, fast-two; there are fast-one:get, fast-two:get, or the name without its model for what is best"
    );
    assert!(matches!(check("slow:cooperative"), Err(CreateError::UnknownModel { .. })));
    assert!(matches!(check("other:get"), Err(CreateError::UnknownMechanism { .. })));
}
