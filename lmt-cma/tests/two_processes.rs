//! Single copy between two real processes.
#![allow(missing_docs)]

#[path = "../../lmt-shm/tests/pair/mod.rs"]
mod pair;

use std::sync::Arc;

use lmt_cma::Cma;
use lmt_core::both_ends::ByBothEnds;
use lmt_core::buffer::{Access, Buffer, Segment};
use lmt_core::mechanism::*;
use lmt_core::process::PeerProcess;
use pair::{Memory, Message, Side, child_script, messages};

const BOTH: Abilities = Abilities { read: true, write: true, cooperate: false };
const PAGE: usize = 4096;
const HOLE_PAGE: usize = 5;

fn plan_of(role: Role, model: Model, bytes: u64) -> Plan {
    Plan::new(role, model, Interval { start: 0, end: bytes })
}

/// 16 pages, the sixth of which nobody may touch.
fn memory_with_a_hole() -> Segment {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping replaces nothing.
    let base = unsafe {
        libc::mmap(std::ptr::null_mut(), 16 * PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    assert_ne!(base, libc::MAP_FAILED);
    // SAFETY: 16 pages that were just mapped.
    unsafe { std::ptr::write_bytes(base.cast::<u8>(), 0x5a, 16 * PAGE) };
    // SAFETY: one of those pages.
    assert_eq!(unsafe { libc::mprotect(base.wrapping_byte_add(HOLE_PAGE * PAGE), PAGE, libc::PROT_NONE) }, 0);
    Segment { address: base.expose_provenance(), bytes: 16 * PAGE }
}

/// Not a test of its own: the other process of the tests below.
#[test]
fn child() {
    let Some(script) = child_script() else { return };
    let (mut side, abilities) = Side::child(ByBothEnds::new(Cma::new()));
    assert_eq!(abilities, Ok(BOTH));
    match script.as_str() {
        "exchange" => {
            messages(side.mechanism.description().models).iter().for_each(|message| side.exchange(message))
        }
        "hole" => {
            for (role, model) in
                [(Role::Sender, Model::Get), (Role::Receiver, Model::Put), (Role::Sender, Model::Both)]
            {
                let hole = memory_with_a_hole();
                // SAFETY: mapped until the process ends; never touched here.
                let data = unsafe { Buffer::new(&[hole], Access::Write) }.unwrap();
                let plan = plan_of(role, model, hole.bytes as u64);
                let transfer = side.begin(&plan, &data, plan.interval);
                side.meet_again();
                side.finish(transfer);
            }
        }
        "waits" => {
            let message = message();
            let mut memory = Memory::new(&message, 1, Role::Sender);
            let data = memory.lend(Access::Read);
            let plan = plan_of(Role::Sender, Model::Get, message.bytes);
            let _transfer = side.begin(&plan, &data, plan.interval);
            std::thread::sleep(pair::TIME_LIMIT);
        }
        other => panic!("no script {other}"),
    }
}

fn message() -> Message {
    Message {
        seed: 1,
        bytes: 1 << 20,
        model: Model::Get,
        parent_sends: false,
        sender_segments: 1,
        receiver_segments: 1,
    }
}

/// The parent's end, or `None` with a sentence where the kernel refuses.
fn parent(script: &str) -> Option<Side<ByBothEnds<Cma>>> {
    let (side, abilities) = Side::parent(script, ByBothEnds::new(Cma::new()));
    match abilities {
        Ok(abilities) => {
            assert_eq!(abilities, BOTH);
            Some(side)
        }
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

#[test]
fn messages_of_every_shape_arrive_whole_in_every_model() {
    let Some(mut side) = parent("exchange") else { return };
    for message in messages(side.mechanism.description().models) {
        side.exchange(&message);
    }
    side.end();
}

#[test]
fn a_bad_page_demotes_after_the_bytes_before_it() {
    let Some(mut side) = parent("hole") else { return };
    let before = (HOLE_PAGE * PAGE) as u64;
    for (role, model) in
        [(Role::Receiver, Model::Get), (Role::Sender, Model::Put), (Role::Receiver, Model::Both)]
    {
        let mut own = vec![1u8; 16 * PAGE];
        // SAFETY: `own` outlives the buffer and is not touched meanwhile.
        let mut data = unsafe { Buffer::new(&[Segment::of_mut(&mut own)], Access::Write) }.unwrap();
        let plan = plan_of(role, model, data.total_bytes());
        let mut transfer = side.begin(&plan, &data, plan.interval);
        let step = side.step(&mut transfer, &mut data, u64::MAX).unwrap();
        assert_eq!(step, Step { bytes: before, done: false });
        let fault = side.step(&mut transfer, &mut data, u64::MAX).unwrap_err();
        let Fault::Demote { errno: libc::EFAULT, for_good: false, .. } = fault else {
            panic!("not EFAULT: {fault:?}");
        };
        side.meet_again();
        side.finish(transfer);
        if role == Role::Receiver {
            assert!(own[..before as usize].iter().all(|&b| b == 0x5a));
            assert!(own[before as usize..].iter().all(|&b| b == 1));
        }
    }
    side.end();
}

/// Makes the kernel refuse process_vm_readv to this thread from now on.
fn forbid_reading() -> bool {
    let code = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let filter = [
        code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_process_vm_readv as u32, 0, 1),
        code(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        code(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: prctl with numbers only.
    let quiet = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program and its filter live across the call, which copies
    // them.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    quiet == 0 && set == 0
}

#[test]
fn a_refusal_in_the_middle_demotes_for_good_and_the_next_probe_says_why() {
    let Some(mut side) = parent("waits") else { return };
    let message = message();
    let mut memory = Memory::new(&message, 1, Role::Receiver);
    let mut data = memory.lend(Access::Write);
    let plan = plan_of(Role::Receiver, Model::Get, message.bytes);
    let mut transfer = side.begin(&plan, &data, plan.interval);
    assert_eq!(side.step(&mut transfer, &mut data, 1000), Ok(Step { bytes: 1000, done: false }));
    // The filter holds for this test's own thread and those it starts.
    if !forbid_reading() {
        println!("skipped: seccomp filters cannot be set here");
        return;
    }
    let fault = side.step(&mut transfer, &mut data, u64::MAX).unwrap_err();
    assert!(matches!(fault, Fault::Demote { errno: libc::EPERM, for_good: true, .. }), "{fault:?}");
    let refused = side.mechanism.probe(&side.facts, Hello::default()).and_then(Probed::reached).unwrap_err();
    assert_eq!(refused.errno, libc::EPERM);
    assert!(refused.sentence.contains("seccomp"), "{refused}");
    side.finish(transfer);
    memory.check(&message, Role::Receiver, Interval { start: 0, end: 1000 });
}

#[test]
fn a_dead_peer_is_called_dead() {
    let Some(mut side) = parent("waits") else { return };
    let message = message();
    let mut memory = Memory::new(&message, 1, Role::Receiver);
    let mut data = memory.lend(Access::Write);
    let plan = plan_of(Role::Receiver, Model::Get, message.bytes);
    let mut transfer = side.begin(&plan, &data, plan.interval);
    assert_eq!(side.step(&mut transfer, &mut data, 1000), Ok(Step { bytes: 1000, done: false }));
    side.kill_child();
    assert_eq!(side.step(&mut transfer, &mut data, u64::MAX), Err(Fault::PeerDead));
    side.finish(transfer);
}

#[test]
fn strangers_and_hidden_pids_are_refused() {
    let Some(mut side) = parent("waits") else { return };
    let mut facts = side.facts.clone();
    facts.nonce[3] ^= 1;
    let refused = side.mechanism.probe(&facts, Hello::default()).and_then(Probed::reached).unwrap_err();
    assert!(refused.sentence.contains("another process"), "{refused}");
    facts.nonce[3] ^= 1;
    facts.probe_address = u64::MAX - 7;
    let refused = side.mechanism.probe(&facts, Hello::default()).and_then(Probed::reached).unwrap_err();
    assert_eq!(refused.errno, libc::EFAULT);
    facts.process = Arc::new(PeerProcess::new(0, None));
    let refused = side.mechanism.probe(&facts, Hello::default()).and_then(Probed::reached).unwrap_err();
    assert!(refused.sentence.contains("pid namespace") && refused.errno == libc::ESRCH, "{refused}");
}

#[test]
fn lying_cookies_demote_and_never_crash() {
    let Some(mut side) = parent("waits") else { return };
    let mut own = vec![0u8; 1 << 16];
    // SAFETY: `own` outlives the buffer and is not touched meanwhile.
    let data = unsafe { Buffer::new(&[Segment::of_mut(&mut own)], Access::Write) }.unwrap();
    let plan = plan_of(Role::Receiver, Model::Get, data.total_bytes());
    let peer = side.peer.as_mut().unwrap();
    let mut random = pair::Random(3);
    for round in 0..2000u64 {
        let mut bytes = [0u8; Cookie::MAX_BYTES];
        bytes.iter_mut().for_each(|byte| *byte = random.next() as u8);
        // Forms that look right: a list in the peer, or as many segments here as fit.
        bytes[8..16].fill(0);
        bytes[8] = if round % 2 == 0 { lmt_cma::INLINE_SEGMENTS as u8 } else { random.next() as u8 };
        bytes[12] = (round % 2) as u8;
        let used = if round % 2 == 0 { Cookie::MAX_BYTES } else { 32 };
        let (mut transfer, _) = side.mechanism.prepare(peer, &plan, &data).unwrap();
        let cookie = Cookie::new(&bytes[..used]).unwrap();
        let started = side.mechanism.start(peer, &mut transfer, &cookie, plan.interval);
        assert!(matches!(started, Err(Fault::Demote { .. })), "{started:?}");
        side.mechanism.finish(peer, transfer);
    }
}
