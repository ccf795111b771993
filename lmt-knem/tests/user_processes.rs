//! The user driver between real processes that have no endpoint.
#![cfg(not(loom))]
#![allow(unsafe_code)] // fork(2).

mod line;
mod user;

use line::Line;
use lmt_conformance::group::Test;
use lmt_conformance::{require, test_name};
use lmt_core::mechanism::Direction;
use lmt_core::region::Protection;
use lmt_knem::user::UserDriver;
use lmt_knem::{
    CopyFlags, Driver, InlineCopy, KnemError, Length, RegionCookie, RegionCopy, RegionPlace, Uses,
};
use user::{
    BYTES, LIMIT, MEMORIES, Memory, declare, filled, get, inline, introduce, lend, lend_pieces, meet, open,
    put, receive_cookie, send_cookie,
};

/// What a process does with another's region that may be read and written.
fn use_region(driver: &mut UserDriver, region: RegionCookie) {
    let expected = filled(1, BYTES);
    assert_eq!(driver.region_bytes(&region).expect("it is declared"), BYTES as u64);
    for (offset, bytes) in [(0, BYTES), (0, 0), (BYTES, 0), (1, 1), (4097, 70_001), (BYTES - 1, 1)] {
        let mut into = vec![0xEE; bytes];
        assert_eq!(get(driver, region, offset as u64, &mut into).expect("a get"), bytes as u64);
        assert!(into == expected[offset..offset + bytes], "get of {bytes} from {offset}");
    }
    // To the end of the side that ends first, into several pieces from 3 on.
    let mut into = vec![0; 5000];
    let mut copy = inline(Direction::Get, region, BYTES as u64 - 100, Length::ToTheEnd);
    copy.local_offset = 3;
    let copied = driver.inline_copy(&mut lend_pieces(&mut into, 33), &copy, CopyFlags::NONE);
    assert_eq!(copied.expect("a get"), 100);
    assert!(into[3..103] == expected[BYTES - 100..] && into[103..].iter().all(|byte| *byte == 0));
    copy.region_offset = 0;
    let copied = driver.inline_copy(&mut lend_pieces(&mut into, 33), &copy, CopyFlags::PIN_LOCAL);
    assert_eq!(copied.expect("a get"), 4997);
    assert!(into[3..] == expected[..4997]);
    assert_eq!(put(driver, region, 12_345, &filled(2, 1_100_000)).expect("a put"), 1_100_000);
    let mut back = vec![0; 1_100_000];
    get(driver, region, 12_345, &mut back).expect("a get");
    assert!(back == filled(2, 1_100_000));
    for (offset, bytes) in [(BYTES as u64, 1), (BYTES as u64 - 1, 2), (u64::MAX, 1), (u64::MAX - 1, 8)] {
        let mut into = vec![0; bytes];
        for result in [get(driver, region, offset, &mut into), put(driver, region, offset, &into)] {
            assert!(matches!(result, Err(KnemError::OutOfBounds { .. })), "{result:?}");
        }
    }
    let copy = InlineCopy { local_offset: 9, ..inline(Direction::Get, region, 0, Length::Bounded(u64::MAX)) };
    let result = driver.inline_copy(&mut lend(&mut back), &copy, CopyFlags::NONE);
    assert!(matches!(result, Err(KnemError::OutOfBounds { .. })), "{result:?}");
    let copy = InlineCopy { local_offset: u64::MAX, ..inline(Direction::Get, region, 0, Length::Bounded(2)) };
    let result = driver.inline_copy(&mut lend(&mut back), &copy, CopyFlags::NONE);
    assert!(matches!(result, Err(KnemError::LocalTooShort { .. })), "{result:?}");
}

#[test]
fn every_kind_of_memory_offsets_and_refusals() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let mut driver = open();
        if group.rank() == 0 {
            let mut line = Line::to_all(group).remove(0);
            if !meet(&mut driver, &mut line) {
                return line.send(&[]);
            }
            line.send(&[1]);
            for _ in MEMORIES {
                let region = receive_cookie(&mut line);
                use_region(&mut driver, region);
                line.meet();
                let (read, write) = (receive_cookie(&mut line), receive_cookie(&mut line));
                let mut some = [0; 8];
                get(&mut driver, read, 0, &mut some).expect("reading is allowed");
                let refused = put(&mut driver, read, 0, &some);
                assert!(matches!(refused, Err(KnemError::Forbidden(Direction::Put))), "{refused:?}");
                put(&mut driver, write, 0, &some).expect("writing is allowed");
                let refused = get(&mut driver, write, 0, &mut some);
                assert!(matches!(refused, Err(KnemError::Forbidden(Direction::Get))), "{refused:?}");
                line.meet();
                // They are destroyed now, and others are in their places.
                let next = receive_cookie(&mut line);
                for stale in [get(&mut driver, read, 0, &mut some), put(&mut driver, write, 0, &some)] {
                    assert!(matches!(stale, Err(KnemError::NotRegistered)), "{stale:?}");
                }
                get(&mut driver, next, 0, &mut some).expect("the new one is there");
                line.meet();
            }
            return;
        }
        let mut line = Line::to_first(group);
        introduce(&mut driver, &mut line);
        if line.receive().is_empty() {
            return;
        }
        for kind in MEMORIES {
            let mut memory = filled(1, BYTES);
            let region = declare(&mut driver, kind, &mut memory, Protection::READ_WRITE);
            send_cookie(&mut line, region);
            line.meet();
            let mut seen = vec![0; 1_100_000];
            get(&mut driver, region, 12_345, &mut seen).expect("its own");
            assert!(seen == filled(2, 1_100_000), "{kind:?}");
            let (mut a, mut b) = ([7; 64], [8; 64]);
            let read = declare(&mut driver, kind, &mut a, Protection::READ);
            let write = declare(&mut driver, kind, &mut b, Protection::WRITE);
            [read, write].into_iter().for_each(|cookie| send_cookie(&mut line, cookie));
            line.meet();
            [read, write].iter().for_each(|cookie| {
                driver.destroy_region(cookie).expect("it is declared");
            });
            let again = driver.destroy_region(&read);
            assert!(matches!(again, Err(KnemError::NotRegistered)), "{again:?}");
            let next = declare(&mut driver, kind, &mut a, Protection::READ);
            send_cookie(&mut line, next);
            line.meet();
        }
    });
}

#[test]
fn tampered_cookies_and_names_reach_nothing() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let mut driver = open();
        if group.rank() == 1 {
            let mut line = Line::to_first(group);
            introduce(&mut driver, &mut line);
            let mut memory = filled(1, 64);
            let region = declare(&mut driver, Memory::Whole, &mut memory, Protection::READ);
            send_cookie(&mut line, region);
            return line.meet();
        }
        let mut line = Line::to_all(group).remove(0);
        let name = line.receive();
        let cookie = receive_cookie(&mut line);
        let met = driver.add_process_by_name(&name);
        if let Err(error) = met {
            require::skipped("cma", &error.to_string());
            return line.meet();
        }
        for bit in 0..RegionCookie::BYTES * 8 {
            let mut bytes = cookie.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let result = get(&mut driver, RegionCookie::from_bytes(bytes), 0, &mut [0; 8]);
            let named_nothing = matches!(result, Err(KnemError::NotRegistered | KnemError::UnknownOwner));
            assert!(named_nothing, "bit {bit}: {result:?}");
        }
        // Of the name every byte matters, and so does its length.
        for bit in 0..name.len() * 8 {
            let mut bytes = name.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let result = open().add_process_by_name(&bytes);
            assert!(result.is_err(), "bit {bit}: {result:?}");
        }
        for length in 0..name.len() {
            assert!(open().add_process_by_name(&name[..length]).is_err());
        }
        let mut random = 1u64;
        for _ in 0..500 {
            let mut bytes = name.clone();
            bytes[24..].iter_mut().for_each(|byte| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (random >> 56) as u8;
            });
            assert!(driver.add_process_by_name(&bytes).is_err());
        }
        get(&mut driver, cookie, 0, &mut [0; 8]).expect("the true one is known all the while");
        line.meet();
    });
}

#[test]
fn one_of_two_processes_uses_a_region_of_single_use_up() {
    const ROUNDS: usize = 200;
    Test::new(test_name!(), 3).time_limit(LIMIT).run(|group| {
        let mut driver = open();
        if group.rank() == 0 {
            let mut lines = Line::to_all(group);
            let name = driver.introduce().expect("a descriptor").bytes;
            lines.iter_mut().for_each(|line| line.send(&name));
            for round in 0..ROUNDS {
                let mut memory = [round as u8; 5000];
                let region = if round % 2 == 0 {
                    driver.create_region(lend(&mut memory), Protection::READ, Uses::Single)
                } else {
                    driver.allocate_region(5000, Protection::READ_WRITE, Uses::Single)
                };
                let region = region.expect("room");
                lines.iter_mut().for_each(|line| send_cookie(line, region));
                let served: u8 = lines.iter_mut().map(|line| line.receive()[0]).sum();
                let own = get(&mut driver, region, 0, &mut [0; 1]);
                if served == 0 {
                    assert_eq!(round, 0, "only where the kernel allows no copy");
                    return require::skipped("cma", "no copy was allowed");
                }
                assert_eq!(served, 1, "round {round}");
                assert!(matches!(own, Err(KnemError::NotRegistered)), "{own:?}");
                driver.destroy_region(&region).expect("its owner destroys it all the same");
            }
            return;
        }
        let mut line = Line::to_first(group);
        let met = driver.add_process_by_name(&line.receive()).is_ok();
        for round in 0..ROUNDS {
            let bytes = line.receive();
            let Ok(bytes) = bytes.try_into() else { return };
            let mut into = [1; 5000];
            let served = match get(&mut driver, RegionCookie::from_bytes(bytes), 0, &mut into) {
                Ok(bytes) => {
                    let expected = if round % 2 == 0 { round as u8 } else { 0 };
                    assert_eq!((bytes, into), (5000, [expected; 5000]));
                    1
                }
                Err(KnemError::NotRegistered) if met => 0,
                Err(error) => {
                    assert!(!met, "{error}");
                    line.send(&[0]);
                    return;
                }
            };
            line.send(&[served]);
        }
    });
}

fn between(source: RegionCookie, target: RegionCookie, length: Length) -> RegionCopy {
    let place = |region, offset| RegionPlace { region, offset };
    RegionCopy { source: place(source, 7), target: place(target, 100), length }
}

/// Rank 0 copies from a region of rank 1 to one of rank 2, of every kind.
#[test]
fn regions_of_two_others_are_copied_to_each_other() {
    Test::new(test_name!(), 3).time_limit(LIMIT).run(|group| {
        let mut driver = open();
        let bytes = (1 << 20) + 77;
        if group.rank() > 0 {
            let mut line = Line::to_first(group);
            introduce(&mut driver, &mut line);
            for (source, target) in MEMORIES.iter().flat_map(|s| MEMORIES.map(|t| (*s, t))) {
                let kind = if group.rank() == 1 { source } else { target };
                let mut memory = filled(u64::from(group.rank()), bytes);
                let region = declare(&mut driver, kind, &mut memory, Protection::READ_WRITE);
                send_cookie(&mut line, region);
                if line.receive().is_empty() {
                    return;
                }
                let mut seen = vec![0; bytes];
                get(&mut driver, region, 0, &mut seen).expect("its own");
                let mut expected = filled(u64::from(group.rank()), bytes);
                if group.rank() == 2 {
                    expected[100..].copy_from_slice(&filled(1, bytes)[7..bytes - 93]);
                }
                assert!(seen == expected, "{source:?} to {target:?}");
                driver.destroy_region(&region).expect("it is declared");
            }
            return;
        }
        let mut lines = Line::to_all(group);
        let reached = lines.iter_mut().all(|line| meet(&mut driver, line));
        for round in 0..9 {
            let [source, target] = [0, 1].map(|at: usize| receive_cookie(&mut lines[at]));
            if !reached {
                return lines.iter_mut().for_each(|line| line.send(&[]));
            }
            let copied = if round % 2 == 0 {
                driver.region_copy(&between(source, target, Length::ToTheEnd), CopyFlags::NONE)
            } else {
                let length = Length::Bounded(bytes as u64 - 100);
                let copy = between(source, target, length);
                let id = driver.start_region_copy(&copy, CopyFlags::MEMCPY_THREAD).expect("it begins");
                loop {
                    match driver.poll(id) {
                        Ok(None) => std::thread::yield_now(),
                        Ok(Some(copied)) => break Ok(copied.bytes),
                        Err(error) => break Err(error),
                    }
                }
            };
            assert_eq!(copied.expect("a copy"), bytes as u64 - 100);
            let copy = between(source, target, Length::Bounded(bytes as u64 - 99));
            let refused = driver.region_copy(&copy, CopyFlags::NONE);
            assert!(matches!(refused, Err(KnemError::OutOfBounds { .. })), "{refused:?}");
            lines.iter_mut().for_each(|line| line.send(&[1]));
        }
    });
}

#[test]
fn many_asynchronous_copies_are_each_told_of_once() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let mut driver = open();
        let (count, each) = (200, 20_000);
        if group.rank() == 1 {
            let mut line = Line::to_first(group);
            introduce(&mut driver, &mut line);
            let mut memory = filled(1, count * each);
            let region = declare(&mut driver, Memory::Whole, &mut memory, Protection::READ_WRITE);
            send_cookie(&mut line, region);
            line.meet();
            if line.receive().is_empty() {
                return;
            }
            driver.destroy_region(&region).expect("it is declared");
            assert!(memory == filled(2, count * each), "all puts were done");
            return line.meet();
        }
        let mut line = Line::to_all(group).remove(0);
        let reached = meet(&mut driver, &mut line);
        let region = receive_cookie(&mut line);
        line.meet();
        if !reached {
            return line.send(&[]);
        }
        let mut start = |memory: &mut [u8], direction, at: usize| {
            let copy = inline(direction, region, (at * each) as u64, Length::Bounded(each as u64));
            driver.start_inline_copy(lend(memory), &copy, CopyFlags::MEMCPY_THREAD).expect("it begins")
        };
        let mut memories = vec![vec![0; each]; count];
        let gets: Vec<_> =
            memories.iter_mut().enumerate().map(|(at, memory)| start(memory, Direction::Get, at)).collect();
        let mut written = filled(2, count * each);
        let puts: Vec<_> = written
            .chunks_mut(each)
            .enumerate()
            .map(|(at, memory)| start(memory, Direction::Put, at))
            .collect();
        let mut wait = |id| loop {
            match driver.poll(id).expect("it ends well") {
                None => std::thread::yield_now(),
                Some(copied) => {
                    assert_eq!((copied.bytes, copied.local.is_some()), (each as u64, true));
                    let again = driver.poll(id);
                    assert!(matches!(again, Err(KnemError::NoSuchCopy)), "{again:?}");
                    return;
                }
            }
        };
        // They are made in the order in which they were begun.
        puts.into_iter().rev().for_each(&mut wait);
        gets.into_iter().for_each(&mut wait);
        assert!(memories.concat() == filled(1, count * each));
        line.send(&[1]);
        line.meet();
        // A region that is gone is told of when the copy is to begin.
        let copy = inline(Direction::Get, region, 0, Length::ToTheEnd);
        let gone = driver.start_inline_copy(lend(&mut memories[0]), &copy, CopyFlags::MEMCPY_THREAD);
        assert!(matches!(gone, Err(KnemError::NotRegistered)), "{gone:?}");
    });
}

#[test]
fn a_forked_child_is_refused_and_harms_nothing() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let mut driver = open();
        let bytes = 32 << 20;
        if group.rank() == 1 {
            let mut line = Line::to_first(group);
            introduce(&mut driver, &mut line);
            let mut memory = filled(1, bytes);
            let region = declare(&mut driver, Memory::Whole, &mut memory, Protection::READ);
            send_cookie(&mut line, region);
            return line.meet();
        }
        let mut line = Line::to_all(group).remove(0);
        let reached = meet(&mut driver, &mut line);
        let region = receive_cookie(&mut line);
        if !reached {
            return line.meet();
        }
        let mut memory = vec![0; bytes];
        let copy = inline(Direction::Get, region, 0, Length::ToTheEnd);
        let id = driver.start_inline_copy(lend(&mut memory), &copy, CopyFlags::MEMCPY_THREAD);
        let id = id.expect("it begins");
        // While the helper is at it, with whatever locks it has.
        // SAFETY: the child calls only the driver, which answers with errors and
        // takes no lock, and ends by _exit.
        match unsafe { nix::unistd::fork() }.expect("a child") {
            nix::unistd::ForkResult::Child => {
                let mut some = [0; 8];
                let refused = [
                    get(&mut driver, region, 0, &mut some).map(drop),
                    driver.poll(id).map(drop),
                    driver.introduce().map(drop),
                    driver.region_bytes(&region).map(drop),
                    driver.allocate_region(8, Protection::READ, Uses::Many).map(drop),
                    driver.start_inline_copy(lend(&mut some), &copy, CopyFlags::NONE).map(drop),
                    driver.bind_offload(&lmt_knem::Binding::Current),
                ];
                driver.part(region.owner());
                drop(driver);
                let all = refused.iter().all(|result| matches!(result, Err(KnemError::Forked)));
                // A child has its own, if it wants one.
                let own = open().create_region(lend(&mut some), Protection::READ, Uses::Many).is_ok();
                // SAFETY: ends the child without running what belongs to the parent.
                unsafe { nix::libc::_exit(i32::from(!(all && own))) };
            }
            nix::unistd::ForkResult::Parent { child } => {
                let ended = nix::sys::wait::waitpid(child, None).expect("the child ends");
                assert_eq!(ended, nix::sys::wait::WaitStatus::Exited(child, 0));
            }
        }
        while driver.poll(id).expect("it ends well").is_none() {
            std::thread::yield_now();
        }
        assert!(memory == filled(1, bytes));
        line.meet();
    });
}

/// Another user's process, or one that is not dumpable, is out of reach.
#[test]
fn what_the_kernel_refuses_is_told_in_a_sentence() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let mut driver = open();
        if group.rank() == 1 {
            nix::sys::prctl::set_dumpable(false).expect("prctl allows it");
            let mut line = Line::to_first(group);
            introduce(&mut driver, &mut line);
            return line.meet();
        }
        let mut line = Line::to_all(group).remove(0);
        let name = line.receive();
        if nix::unistd::geteuid().is_root() {
            // The superuser may all; nobody may not.
            let nobody = nix::unistd::Uid::from_raw(65_534);
            nix::unistd::setuid(nobody).expect("the superuser may become anybody");
        }
        let error = driver.add_process_by_name(&name).expect_err("the kernel refuses");
        let (errno, sentence) = (error.errno(), error.to_string());
        assert_eq!(errno, nix::libc::EPERM, "{sentence}");
        assert!(sentence.contains("ptrace_scope") && sentence.contains("Yama"), "{sentence}");
        assert!(!sentence.contains('\n'));
        line.meet();
    });
}
