//! The user driver when a region or its owner's process ends under a copy.
#![cfg(not(loom))]

mod line;
mod user;

use std::time::{Duration, Instant};

use line::Line;
use lmt_conformance::group::{Group, Parent, Test};
use lmt_conformance::test_name;
use lmt_core::mechanism::Direction;
use lmt_core::region::Protection;
use lmt_knem::user::UserDriver;
use lmt_knem::{CopyFlags, Driver, KnemError, Length, RegionCookie, RegionCopy, RegionPlace, Uses};
use user::{
    LIMIT, MEMORIES, Memory, SOON, declare, get, inline, introduce, lend, meet, open, put, receive_cookie,
    send_cookie,
};

/// One copy after the other, until one fails.
fn copy_until_error(
    group: &Group,
    mut copy: impl FnMut() -> Result<u64, KnemError>,
) -> (KnemError, Duration) {
    let begun = Instant::now();
    let mut rounds = 0;
    loop {
        let now = Instant::now();
        match copy() {
            Ok(_) => rounds += 1,
            Err(error) => return (error, now.elapsed()),
        }
        if rounds == 3 {
            group.report("in flight");
        }
        assert!(begun.elapsed() < LIMIT / 2, "the end was never noticed");
    }
}

fn kill_the_owner(parent: &mut Parent) {
    // A rank that skips says nothing.
    if parent.next_report(0).is_some() {
        std::thread::sleep(Duration::from_millis(5));
        parent.kill(1, 9);
    }
}

/// The owner of a region is killed while rank 0 copies in one way or another.
fn owner_killed(
    test: Test,
    kind: Memory,
    mut copy: impl FnMut(&mut UserDriver, RegionCookie, &mut [u8]) -> Result<u64, KnemError>,
) {
    test.may_die(1).time_limit(LIMIT).run_with(kill_the_owner, |group| {
        let mut driver = open();
        let bytes = 16 << 20;
        if group.rank() == 1 {
            let mut line = Line::to_first(group);
            introduce(&mut driver, &mut line);
            let mut memory = vec![5; bytes];
            let region = declare(&mut driver, kind, &mut memory, Protection::READ_WRITE);
            send_cookie(&mut line, region);
            if line.receive().is_empty() {
                return;
            }
            std::thread::sleep(LIMIT);
        }
        let mut line = Line::to_all(group).remove(0);
        let reached = meet(&mut driver, &mut line);
        let region = receive_cookie(&mut line);
        if !reached {
            return line.send(&[]);
        }
        line.send(&[1]);
        let mut memory = vec![0; bytes];
        let (error, took) = copy_until_error(group, || copy(&mut driver, region, &mut memory));
        assert!(matches!(error, KnemError::OwnerDead), "{error:?}");
        assert!(took < SOON, "{took:?}");
        for again in [get(&mut driver, region, 0, &mut [0; 8]), get(&mut driver, region, 0, &mut [])] {
            assert!(matches!(again, Err(KnemError::OwnerDead)), "{again:?}");
        }
    });
}

#[test]
fn owner_of_private_memory_killed_while_it_is_read() {
    owner_killed(Test::new(test_name!(), 2), Memory::Whole, |driver, region, memory| {
        get(driver, region, 0, memory)
    });
}

#[test]
fn owner_of_private_memory_killed_while_it_is_written() {
    owner_killed(Test::new(test_name!(), 2), Memory::Pieces, |driver, region, memory| {
        put(driver, region, 0, memory)
    });
}

#[test]
fn owner_of_allocated_memory_killed_while_it_is_read() {
    owner_killed(Test::new(test_name!(), 2), Memory::Allocated, |driver, region, memory| {
        get(driver, region, 0, memory)
    });
}

#[test]
fn owner_killed_under_asynchronous_copies() {
    owner_killed(Test::new(test_name!(), 2), Memory::Whole, |driver, region, memory| {
        let copy = inline(Direction::Get, region, 0, Length::ToTheEnd);
        let mut other = vec![0; 4096];
        let flags = CopyFlags::MEMCPY_THREAD;
        let started =
            [lend(memory), lend(&mut other)].map(|local| driver.start_inline_copy(local, &copy, flags));
        let mut all = Ok(0);
        for id in started {
            loop {
                match id.as_ref().map(|id| driver.poll(*id)) {
                    Ok(Ok(None)) => std::thread::yield_now(),
                    Ok(Ok(Some(copied))) => break all = all.map(|bytes: u64| bytes + copied.bytes),
                    Ok(Err(error)) => break all = Err(error),
                    Err(_) => break,
                }
            }
            if let Err(error) = id {
                all = Err(error);
            }
        }
        all
    });
}

#[test]
fn owner_killed_under_copies_between_regions() {
    let mut own = None;
    owner_killed(Test::new(test_name!(), 2), Memory::Allocated, |driver, region, _| {
        let target = *own.get_or_insert_with(|| {
            driver.allocate_region(16 << 20, Protection::READ_WRITE, Uses::Many).expect("memory")
        });
        let place = |region| RegionPlace { region, offset: 0 };
        let copy = RegionCopy { source: place(region), target: place(target), length: Length::ToTheEnd };
        driver.region_copy(&copy, CopyFlags::NONE)
    });
}

#[test]
fn a_process_that_has_died_or_closed_cannot_be_met() {
    let drive = |parent: &mut Parent| {
        if parent.next_report(0).is_some() {
            parent.kill(1, 9);
            parent.wait_rank(1);
        }
    };
    Test::new(test_name!(), 2).may_die(1).time_limit(LIMIT).run_with(drive, |group| {
        let mut driver = open();
        if group.rank() == 1 {
            let mut line = Line::to_first(group);
            let mut closed = open();
            introduce(&mut closed, &mut line);
            drop(closed);
            introduce(&mut driver, &mut line);
            std::thread::sleep(LIMIT);
        }
        let mut line = Line::to_all(group).remove(0);
        let (closed, name) = (line.receive(), line.receive());
        let refused = driver.add_process_by_name(&closed);
        assert!(refused.is_err(), "its table is gone: {refused:?}");
        group.report("kill it");
        let begun = Instant::now();
        let error = loop {
            match open().add_process_by_name(&name) {
                Ok(_) | Err(KnemError::Unavailable { .. }) => {}
                Err(error) => break error,
            }
            assert!(begun.elapsed() < LIMIT / 2, "the death was never noticed");
        };
        // While it is being killed its descriptors are gone before its pid.
        let expected = matches!(error, KnemError::OwnerDead | KnemError::Introduction(_));
        assert!(expected, "{error:?}");
    });
}

#[test]
fn a_region_destroyed_in_the_middle_ends_the_copy_and_its_successor_is_not_copied() {
    let drive = |parent: &mut Parent| while parent.next_report(0).is_some() {};
    Test::new(test_name!(), 2).time_limit(LIMIT).run_with(drive, |group| {
        let mut driver = open();
        let bytes = 8 << 20;
        if group.rank() == 1 {
            let mut line = Line::to_first(group);
            introduce(&mut driver, &mut line);
            for kind in MEMORIES {
                let mut memory = vec![1; bytes];
                let region = declare(&mut driver, kind, &mut memory, Protection::READ_WRITE);
                send_cookie(&mut line, region);
                if line.receive().is_empty() {
                    return;
                }
                driver.destroy_region(&region).expect("it is declared");
                // The same memory, the same place in the table, other bytes.
                memory.fill(2);
                let next = declare(&mut driver, kind, &mut memory, Protection::READ_WRITE);
                line.meet();
                driver.destroy_region(&next).expect("it is declared");
            }
            return;
        }
        let mut line = Line::to_all(group).remove(0);
        let reached = meet(&mut driver, &mut line);
        for _ in MEMORIES {
            let region = receive_cookie(&mut line);
            if !reached {
                return line.send(&[]);
            }
            let mut memory = vec![0; bytes];
            get(&mut driver, region, 0, &mut memory).expect("it is there");
            line.send(&[1]);
            let (error, _) = copy_until_error(group, || {
                let copied = get(&mut driver, region, 0, &mut memory);
                assert!(copied.is_err() || memory.iter().all(|byte| *byte == 1), "the next one's bytes");
                copied
            });
            assert!(matches!(error, KnemError::NotRegistered), "{error:?}");
            line.meet();
        }
    });
}
