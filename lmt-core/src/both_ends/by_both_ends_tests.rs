//! Two ends in one process, by a mechanism that copies nothing and says that it has.

use super::*;
use crate::base::process::PeerProcess;
use crate::mechanism::BothEnds;
use crate::memory::buffer::Access;
use crate::vocabulary::identity::EndpointId;

const MIB: u64 = 1 << 20;
const WHOLE: Interval = Interval { start: 0, end: MIB };

/// What it is to say, and what was asked of it.
#[derive(Default)]
struct Parts {
    cookie_bytes: usize,
    readiness: Option<Result<bool, Fault>>,
    starts: u32,
    finishes: u32,
}

impl Lmt for Parts {
    type Peer = ();
    type Transfer = ();

    fn description(&self) -> Description {
        Description::new("parts", &[Model::Both])
    }

    fn probe(&mut self, _: &PeerFacts, _: Hello) -> Result<Probed<()>, Unavailable> {
        Ok(Probed::new((), crate::mechanism::Abilities::default()))
    }

    fn prepare(&mut self, (): &mut (), _: &Plan, _: &Buffer) -> Result<((), Cookie), Fault> {
        Ok(((), Cookie::new(&vec![7; self.cookie_bytes]).expect("short enough")))
    }

    fn start(&mut self, (): &mut (), (): &mut (), remote: &Cookie, interval: Interval) -> Result<(), Fault> {
        self.starts += 1;
        assert_eq!((remote.as_bytes().len(), interval), (self.cookie_bytes, WHOLE));
        Ok(())
    }

    fn step(&mut self, (): &mut (), (): &mut (), _: &mut Buffer, _: u64) -> Result<Step, Fault> {
        panic!("it copies parts")
    }

    fn finish(&mut self, (): &mut (), (): ()) {
        self.finishes += 1;
    }

    fn both_ends(&mut self) -> Option<&mut dyn BothEnds<(), ()>> {
        Some(self)
    }
}

impl BothEnds<(), ()> for Parts {
    fn is_ready(
        &mut self,
        (): &mut (),
        (): &mut (),
        ahead: Option<(&Cookie, Interval)>,
    ) -> Result<bool, Fault> {
        assert_eq!(ahead.is_some(), self.starts == 0);
        self.readiness.clone().unwrap_or(Ok(true))
    }

    fn copy_part(&mut self, (): &mut (), (): &mut (), _: &mut Buffer, part: Interval) -> CopiedPart {
        CopiedPart { bytes: part.bytes(), fault: None }
    }
}

struct End {
    lmt: ByBothEnds<Parts>,
    peer: ClaimingPeer<()>,
    plan: Plan,
}

type Transfer = ClaimedTransfer<()>;

impl End {
    fn new(role: Role, cookie_bytes: usize) -> Self {
        let mut lmt = ByBothEnds::new(Parts { cookie_bytes, ..Parts::default() });
        let facts = PeerFacts {
            id: EndpointId::from_bytes([1; 16]),
            process: Arc::new(PeerProcess::this()),
            probe_address: 0,
            nonce: [0; 16],
        };
        let peer = lmt.probe(&facts, Hello::default()).expect("it works").peer;
        Self { lmt, peer, plan: Plan::new(role, Model::Both, WHOLE) }
    }

    fn prepare(&mut self) -> Result<(Transfer, Cookie), Fault> {
        self.lmt.prepare(&mut self.peer, &self.plan, &Buffer::empty(Access::Write))
    }

    fn start(&mut self, transfer: &mut Transfer, remote: &Cookie) -> Result<(), Fault> {
        self.lmt.start(&mut self.peer, transfer, remote, WHOLE)
    }

    fn step(&mut self, transfer: &mut Transfer) -> Step {
        let mut nothing = Buffer::empty(Access::Write);
        self.lmt.step(&mut self.peer, transfer, &mut nothing, MIB).expect("no fault")
    }

    fn leave(&mut self, transfer: &mut Transfer) -> Left {
        self.lmt.shared_completion().expect("it offers it").leave(&mut self.peer, transfer)
    }

    fn finish(&mut self, transfer: Transfer) {
        self.lmt.finish(&mut self.peer, transfer);
        assert_eq!(self.lmt.lmt.finishes, 1);
    }
}

/// A sender with the claims of a receiver, and a message between them; whose mechanism has
/// cookies of so many bytes.
fn begun(cookie_bytes: usize) -> ((End, Transfer), (End, Transfer)) {
    let (mut sender, mut receiver) =
        (End::new(Role::Sender, cookie_bytes), End::new(Role::Receiver, cookie_bytes));
    let (mut out, described) = sender.prepare().expect("no fault");
    let (mut into, named) = receiver.prepare().expect("no fault");
    let handed_over = receiver.lmt.oob_message(&mut receiver.peer);
    assert_eq!(handed_over.is_some(), cookie_bytes > 0, "who cannot help needs no claims");
    handed_over.into_iter().for_each(|message| sender.lmt.take_oob_message(&mut sender.peer, message));
    assert!(receiver.lmt.oob_message(&mut receiver.peer).is_none(), "once");
    receiver.start(&mut into, &described).expect("no fault");
    sender.start(&mut out, &named).expect("no fault");
    assert_eq!((receiver.lmt.lmt.starts, sender.lmt.lmt.starts), (1, 0), "the sender's may be too early");
    ((sender, out), (receiver, into))
}

#[test]
fn each_end_copies_its_side_and_the_sender_starts_with_its_first_part() {
    let ((mut sender, mut out), (mut receiver, mut into)) = begun(56);
    let theirs = sender.step(&mut out).bytes;
    assert_eq!(sender.lmt.lmt.starts, 1);
    assert!(theirs > 0);
    let step = receiver.step(&mut into);
    assert_eq!(step, Step { bytes: MIB, done: true });
    assert_eq!(receiver.leave(&mut into), Left { both_know: true, copied_by_peer: theirs });
    assert!(sender.step(&mut out).done);
    assert!(sender.leave(&mut out).both_know);
    sender.finish(out);
    receiver.finish(into);
}

#[test]
fn an_empty_cookie_leaves_all_to_the_receiver() {
    let ((mut sender, mut out), (mut receiver, mut into)) = begun(0);
    assert_eq!(sender.step(&mut out), Step { bytes: 0, done: true });
    assert_eq!(receiver.step(&mut into), Step { bytes: MIB, done: true });
    assert_eq!(receiver.leave(&mut into), Left::default());
    assert!(!sender.leave(&mut out).both_know);
    sender.finish(out);
    receiver.finish(into);
}

#[test]
fn who_is_not_ready_claims_nothing_and_a_sender_that_never_will_be_leaves() {
    let ((mut sender, mut out), (mut receiver, mut into)) = begun(8);
    for end in [&mut sender, &mut receiver] {
        end.lmt.lmt.readiness = Some(Ok(false));
    }
    let nothing = Step { bytes: 0, done: false };
    assert_eq!((sender.step(&mut out), receiver.step(&mut into)), (nothing, nothing));
    sender.lmt.lmt.readiness = Some(Err(demote("no way")));
    assert_eq!(sender.step(&mut out), Step { bytes: 0, done: true });
    assert!(!sender.leave(&mut out).both_know);
    receiver.lmt.lmt.readiness = None;
    let mut bytes = 0;
    while bytes < MIB {
        bytes += receiver.step(&mut into).bytes;
    }
    assert_eq!(receiver.leave(&mut into), Left::default());
    assert_eq!(sender.lmt.lmt.starts, 0);
    sender.finish(out);
    receiver.finish(into);
}

#[test]
fn a_cookie_without_room_for_the_name_is_refused() {
    let mut receiver = End::new(Role::Receiver, 57);
    assert!(receiver.prepare().is_err());
    assert_eq!(receiver.lmt.lmt.finishes, 1, "what was prepared is given back");
    let mut sender = End::new(Role::Sender, 0);
    let (mut out, _) = sender.prepare().expect("no fault");
    let short = Cookie::new(&[1; 7]).expect("short");
    assert!(sender.start(&mut out, &short).is_err(), "no name");
}
