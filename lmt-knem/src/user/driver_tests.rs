#![allow(unsafe_code)] // Lends the tests' own memory.

use lmt_core::buffer::{Access, Segment};
use lmt_core::mechanism::Direction;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::*;
use crate::knem::Knem;
use crate::types::{Length, RegionPlace};
use crate::user::STATUS_SLOTS;

fn open() -> UserDriver {
    UserDriver::open().expect("address space")
}

fn lend(memory: &mut [u8]) -> Buffer {
    // SAFETY: the tests keep the memory longer than the buffer, and look at it
    // only when nothing copies.
    unsafe { Buffer::new(&[Segment::of_mut(memory)], Access::Write) }.expect("a slice")
}

fn whole(direction: Direction, region: RegionCookie) -> InlineCopy {
    InlineCopy { direction, region, region_offset: 0, local_offset: 0, length: Length::ToTheEnd }
}

fn wait(driver: &mut UserDriver, id: CopyId) -> Result<Copied, KnemError> {
    loop {
        match driver.poll(id)? {
            Some(copied) => return Ok(copied),
            None => std::thread::yield_now(),
        }
    }
}

#[test]
fn the_safe_type_serves_the_caller_its_own_regions() {
    let mut knem = Knem::user().expect("address space");
    assert_eq!((knem.driver(), knem.info().has_dma()), ("user", false));
    let (mut memory, mut into) = (*b"region", [0; 8]);
    let region = knem.create_region(lend(&mut memory), Protection::READ, Uses::Many).expect("room");
    let copied = knem.inline_copy(&mut lend(&mut into), &whole(Direction::Get, region), CopyFlags::NONE);
    assert_eq!((copied.expect("its own"), &into), (6, b"region\0\0"));
    let put = knem.inline_copy(&mut lend(&mut into), &whole(Direction::Put, region), CopyFlags::NONE);
    assert!(matches!(put, Err(KnemError::Forbidden(Direction::Put))), "protection binds the owner too");
    assert_eq!(knem.destroy_region(&region).expect("it is declared").total_bytes(), 6);
    let name = knem.introduce().expect("a descriptor").bytes;
    let own = knem.add_process_by_name(&name);
    assert!(matches!(own, Err(KnemError::Introduction(_))), "{own:?}");
}

#[test]
fn what_there_is_no_engine_for_is_refused_as_the_features_say() {
    let mut driver = open();
    let (mut memory, mut into) = ([1; 8], [0; 8]);
    let region = driver.create_region(lend(&mut memory), Protection::READ, Uses::Single).expect("room");
    let copy = whole(Direction::Get, region);
    for flags in [CopyFlags::DMA, CopyFlags::DMA_ASYNC_COMPLETION, CopyFlags::DMA_THREAD] {
        let refused = driver.inline_copy(&mut lend(&mut into), &copy, flags);
        assert!(matches!(refused, Err(KnemError::NoDma(Errno::EINVAL))), "{refused:?}");
        let refused = driver.start_inline_copy(lend(&mut into), &copy, flags | CopyFlags::MEMCPY_THREAD);
        assert!(matches!(refused, Err(KnemError::NoDma(Errno::EINVAL))), "{refused:?}");
    }
    let copied = driver.inline_copy(&mut lend(&mut into), &copy, CopyFlags::PIN_LOCAL);
    assert_eq!(copied.expect("the one use was not used up by what was refused"), 8);
}

#[test]
fn a_copy_of_no_bytes_uses_a_region_up_and_a_refused_one_does_not() {
    let mut driver = open();
    let (mut memory, mut into) = ([1; 8], [0; 8]);
    let region = driver.create_region(lend(&mut memory), Protection::READ, Uses::Single).expect("room");
    let mut get = |driver: &mut UserDriver, region_offset, bytes, direction| {
        let length = Length::Bounded(bytes);
        let copy = InlineCopy { region_offset, length, ..whole(direction, region) };
        driver.inline_copy(&mut lend(&mut into), &copy, CopyFlags::NONE)
    };
    assert!(matches!(get(&mut driver, 0, 8, Direction::Put), Err(KnemError::Forbidden(_))));
    assert!(matches!(get(&mut driver, 1, 8, Direction::Get), Err(KnemError::OutOfBounds { .. })));
    assert_eq!(get(&mut driver, 8, 0, Direction::Get).expect("no bytes"), 0);
    assert!(matches!(get(&mut driver, 0, 8, Direction::Get), Err(KnemError::NotRegistered)));
    assert!(matches!(driver.region_bytes(&region), Err(KnemError::NotRegistered)));
    driver.destroy_region(&region).expect("its owner destroys it all the same");
}

#[test]
fn asynchronous_copies_use_slots_and_give_them_back() {
    let mut driver = open();
    let mut memory = vec![7; 100];
    let region = driver.create_region(lend(&mut memory), Protection::READ, Uses::Many).expect("room");
    let copy = whole(Direction::Get, region);
    let mut targets = vec![[0; 100]; STATUS_SLOTS as usize];
    for round in 0..2 {
        let flags = if round == 0 { CopyFlags::MEMCPY_THREAD } else { CopyFlags::NONE };
        let start = |target: &mut [u8; 100]| driver.start_inline_copy(lend(target), &copy, flags);
        let ids: Vec<_> = targets.iter_mut().map(start).collect::<Result<_, _>>().expect("slots for all");
        let one_more = driver.start_inline_copy(lend(&mut [0; 100]), &copy, flags);
        assert!(matches!(one_more, Err(KnemError::TooMany { most: STATUS_SLOTS, .. })), "{one_more:?}");
        for id in ids {
            assert_eq!(wait(&mut driver, id).expect("it ends well").bytes, 100);
            assert!(matches!(driver.poll(id), Err(KnemError::NoSuchCopy)));
        }
        assert!(targets.iter().all(|target| *target == [7; 100]));
        targets.iter_mut().for_each(|target| target.fill(0));
    }
    let never = CopyId::new(STATUS_SLOTS, std::num::NonZeroU32::MIN);
    assert!(matches!(driver.poll(never), Err(KnemError::NoSuchCopy)));
}

#[test]
fn a_failed_asynchronous_copy_is_told_of_when_it_is_asked_for() {
    let (mut owner, mut driver) = (open(), open());
    let name = owner.introduce().expect("a descriptor").bytes;
    if let Err(error) = driver.add_process_by_name(&name) {
        return lmt_conformance::require::skipped("cma", &error.to_string());
    }
    let mut target = [0; 100];
    // An address that nobody has: the copy begins well and fails.
    // SAFETY: it is never followed in this process, only named to the kernel.
    let nowhere = unsafe { Buffer::new(&[Segment { address: 4096, bytes: 100 }], Access::Write) };
    let bad =
        owner.create_region(nowhere.expect("an address"), Protection::READ, Uses::Single).expect("room");
    let copy = whole(Direction::Get, bad);
    let id = driver.start_inline_copy(lend(&mut target), &copy, CopyFlags::MEMCPY_THREAD).expect("it begins");
    let failed = wait(&mut driver, id);
    assert!(matches!(failed, Err(KnemError::BadMemory(_))), "{failed:?}");
    let again = driver.inline_copy(&mut lend(&mut target), &copy, CopyFlags::NONE);
    assert!(matches!(again, Err(KnemError::NotRegistered)), "a failed copy uses it up too: {again:?}");
}

/// As between pid namespaces: the table is there, and the process is not.
#[test]
fn a_process_that_is_not_visible_here_is_told_of_at_once() {
    let (mut owner, mut driver) = (open(), open());
    let (mut memory, mut into) = ([1; 8], [0; 8]);
    let private = owner.create_region(lend(&mut memory), Protection::READ, Uses::Many).expect("room");
    let allocated = owner.allocate_region(8, Protection::READ, Uses::Many).expect("memory");
    let introduction = owner.introduce().expect("a descriptor");
    driver.meet(Arc::new(PeerProcess::new(0, None)), introduction).expect("it is an introduction");
    // Other programs may delay some of them.
    let fastest = (0..10).map(|_| {
        let begun = std::time::Instant::now();
        for region in [private, allocated] {
            assert_eq!(driver.region_bytes(&region).expect("the table is there"), 8);
            let copied =
                driver.inline_copy(&mut lend(&mut into), &whole(Direction::Get, region), CopyFlags::NONE);
            assert!(
                matches!(copied, Err(KnemError::Unavailable { errno: Some(Errno::ESRCH), .. })),
                "{copied:?}"
            );
        }
        begun.elapsed()
    });
    assert!(fastest.min().is_some_and(|least| least < crate::driver::DYING / 2), "a death was waited for");
}

#[test]
fn a_target_that_is_refused_leaves_a_source_of_single_use_as_it_was() {
    let mut driver = open();
    let (mut memory, mut into) = ([1; 8], [0; 8]);
    let source = driver.create_region(lend(&mut memory), Protection::READ, Uses::Single).expect("room");
    let unwritable = driver.allocate_region(8, Protection::READ, Uses::Many).expect("memory");
    let short = driver.allocate_region(4, Protection::WRITE, Uses::Many).expect("memory");
    let gone = driver.allocate_region(8, Protection::WRITE, Uses::Many).expect("memory");
    driver.free_region(&gone).expect("it is declared");
    for target in [unwritable, short, gone] {
        let (source, target) =
            (RegionPlace { region: source, offset: 0 }, RegionPlace { region: target, offset: 0 });
        let copy = RegionCopy { source, target, length: Length::Bounded(8) };
        driver.region_copy(&copy, CopyFlags::NONE).expect_err("the target is refused");
    }
    let copied = driver.inline_copy(&mut lend(&mut into), &whole(Direction::Get, source), CopyFlags::NONE);
    assert_eq!(copied.expect("it was not used up"), 8);
}

#[test]
fn who_is_known_and_runs_is_not_replaced_by_another() {
    let (mut owner, mut driver) = (open(), open());
    let own = std::process::id() as i32;
    let mut meet = |pid, pidfd| {
        let introduction = owner.introduce().expect("a descriptor");
        driver.meet(Arc::new(PeerProcess::new(pid, pidfd)), introduction)
    };
    meet(own, None).expect("it is an introduction");
    // The parent runs and is another process.
    let taken = meet(std::os::unix::process::parent_id() as i32, None);
    assert!(matches!(taken, Err(KnemError::Introduction(_))), "{taken:?}");
    assert!(matches!(meet(0, None), Err(KnemError::Introduction(_))), "nor by one that is not visible");
    meet(own, None).expect("it may greet again");
}

#[test]
fn dropping_the_driver_waits_for_the_copies_that_go_on() {
    let mut driver = open();
    let bytes = 8 << 20;
    let (mut memory, mut targets) = (vec![9; bytes], vec![vec![0; bytes]; 4]);
    let region = driver.create_region(lend(&mut memory), Protection::READ, Uses::Many).expect("room");
    let copy = whole(Direction::Get, region);
    for target in &mut targets {
        driver.start_inline_copy(lend(target), &copy, CopyFlags::MEMCPY_THREAD).expect("it begins");
    }
    drop(driver);
    assert!(targets.iter().flatten().all(|byte| *byte == 9));
}

#[test]
fn a_region_copied_within_itself_and_to_another_of_ones_own() {
    let mut driver = open();
    let mut memory: Vec<u8> = (0..=255).cycle().take(700_000).collect();
    let expected = memory.clone();
    let region = driver.create_region(lend(&mut memory), Protection::READ_WRITE, Uses::Many).expect("room");
    let other = driver.allocate_region(700_000, Protection::READ_WRITE, Uses::Many).expect("memory");
    let place = |region, offset| RegionPlace { region, offset };
    let copy = RegionCopy { source: place(region, 0), target: place(other, 0), length: Length::ToTheEnd };
    assert_eq!(driver.region_copy(&copy, CopyFlags::NONE).expect("its own"), 700_000);
    let copy =
        RegionCopy { source: place(region, 0), target: place(region, 256), length: Length::Bounded(600_000) };
    assert_eq!(driver.region_copy(&copy, CopyFlags::NONE).expect("its own"), 600_000);
    let mut seen = vec![0; 700_000];
    driver
        .inline_copy(&mut lend(&mut seen), &whole(Direction::Get, other), CopyFlags::NONE)
        .expect("its own");
    assert!(seen == expected);
    driver.free_region(&other).expect("it is declared");
    let gone = driver.region_copy(&RegionCopy { source: place(other, 0), ..copy }, CopyFlags::NONE);
    assert!(matches!(gone, Err(KnemError::NotRegistered)), "{gone:?}");
}

/// The CPUs of the helper thread, found among this process's threads by name.
fn helper_cpus() -> CpuSet {
    let threads = std::fs::read_dir("/proc/self/task").expect("procfs");
    let of_helper = threads.flatten().find(|thread| {
        std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name == "lmt-knem\n")
    });
    let name = of_helper.expect("the thread is there").file_name();
    let id = name.to_str().and_then(|name| name.parse().ok()).expect("a thread's id");
    sched_getaffinity(Pid::from_raw(id)).expect("it runs")
}

fn only(cpu: usize) -> CpuSet {
    let mut cpus = CpuSet::new();
    cpus.set(cpu).expect("a small number");
    cpus
}

#[test]
fn the_helper_is_bound_as_asked() {
    let allowed = sched_getaffinity(Pid::from_raw(0)).expect("one's own");
    let cpus: Vec<usize> = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu) == Ok(true)).collect();
    let [first, .., last] = cpus[..] else {
        return eprintln!("skipped: one CPU leaves nothing to choose");
    };
    let mut driver = open();
    let mut mask = vec![0u64; last / 64 + 1];
    mask[last / 64] |= 1 << (last % 64);
    driver.bind_offload(&Binding::Custom(mask)).expect("the CPU is there");
    assert_eq!(helper_cpus(), only(last));
    sched_setaffinity(Pid::from_raw(0), &only(first)).expect("the CPU is there");
    driver.bind_offload(&Binding::Current).expect("the CPU is there");
    assert_eq!(helper_cpus(), only(first));
    driver.bind_offload(&Binding::CurrentReversed).expect("there are others");
    let reversed = helper_cpus();
    assert!(reversed.is_set(first) == Ok(false) && reversed.is_set(last) == Ok(true));
    for nothing in [vec![], vec![0; 3], vec![0; 1000], [vec![0; 1000], vec![1]].concat()] {
        let refused = driver.bind_offload(&Binding::Custom(nothing));
        assert!(matches!(refused, Err(KnemError::System { errno: Errno::EINVAL, .. })), "{refused:?}");
    }
    assert_eq!(helper_cpus(), reversed, "what was refused changed nothing");
}
