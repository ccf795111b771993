use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lmt_core::buffer::Access;
use lmt_core::region::Protection;
use nix::sys::mman::MapFlags;

use super::super::dma_min::DmaMin;
use super::super::test_double::{Double, Say, asked, counting, get, lend, map, pair, this_process};
use super::*;
use crate::driver::Driver;
use crate::types::Uses;

/// Where the parts of a copy were cut that a DMA engine was asked for.
fn parts(double: &Double) -> Vec<(u64, u64, u32)> {
    asked(double).iter().map(|asked| (asked.offset, asked.bytes, asked.flags)).collect()
}

#[test]
fn small_tails_are_not_left_to_the_dma_engine() {
    let double = Double::new();
    double.state().info.features = abi::FEATURE_DMA;
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(20_000), vec![0; 20_000]);
    let page = |memory: &[u8]| memory.as_ptr().addr().next_multiple_of(4096) - memory.as_ptr().addr();
    let (there, here) = (page(&memory), page(&local));
    let bytes = 8192 + 500;
    let region = owner.create_region(
        lend(&mut memory[there..there + bytes], Access::Write),
        Protection::READ,
        Uses::Many,
    );
    let copy = get(region.unwrap(), 0, bytes as u64);
    for flags in [CopyFlags::DMA, CopyFlags::DMA | CopyFlags::DMA_ASYNC_COMPLETION] {
        let target = lend(&mut local[here..here + bytes], Access::Write);
        let id = other.start_inline_copy(target, &copy, flags).unwrap();
        assert_eq!(parts(&double), [(8192, 500, 0), (0, 8192, flags.bits())], "the tail, then the rest");
        assert_eq!(other.poll(id).unwrap().expect("it has ended").bytes, bytes as u64);
        assert_eq!(local[here..here + bytes], counting(20_000)[there..there + bytes]);
    }
    // One use is one request.
    let source = lend(&mut memory[there..there + bytes], Access::Write);
    let single = owner.create_region(source, Protection::READ, Uses::Single).unwrap();
    let target = &mut lend(&mut local[here..here + bytes], Access::Write);
    other.inline_copy(target, &get(single, 0, bytes as u64), CopyFlags::DMA).unwrap();
    assert_eq!(parts(&double), [(0, bytes as u64, 0)]);
    // A driver that leaves no choice.
    double.state().info.forced_flags = abi::FLAG_DMA;
    let mut forced = double.open();
    forced.meet(this_process(), owner.introduce().unwrap()).unwrap();
    let target = &mut lend(&mut local[here..here + bytes], Access::Write);
    let refused = forced.inline_copy(target, &copy, CopyFlags::NONE);
    assert!(matches!(refused, Err(KnemError::ForcedDma { bytes: 500 })), "{refused:?}");
}

#[test]
fn what_counts_as_small_is_the_modules_to_say_and_is_read_anew() {
    let double = Double::new();
    double.state().info.features = abi::FEATURE_DMA;
    double.set_dma_min(2000);
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(20_000), vec![0; 20_000]);
    let page = |memory: &[u8]| memory.as_ptr().addr().next_multiple_of(4096) - memory.as_ptr().addr();
    let (there, here) = (page(&memory), page(&local));
    let source = lend(&mut memory[there..there + 8192], Access::Write);
    let region = owner.create_region(source, Protection::READ, Uses::Many).unwrap();
    let mut ask = |other: &mut IoctlDriver, bytes: usize| {
        let target = &mut lend(&mut local[here..here + bytes], Access::Write);
        other.inline_copy(target, &get(region, 0, bytes as u64), CopyFlags::DMA)
    };
    ask(&mut other, 4096 + 2001).unwrap();
    assert_eq!(parts(&double), [(0, 4096 + 2001, 1)]);
    ask(&mut other, 4096 + 2000).unwrap();
    assert_eq!(parts(&double), [(4096, 2000, 0), (0, 4096, 1)]);
    // An administrator changes it.
    double.set_dma_min(3000);
    ask(&mut other, 4096 + 2001).unwrap();
    assert_eq!(parts(&double), [(4096, 2001, 0), (0, 4096, 1)]);
    double.set_dma_min(4096);
    ask(&mut other, 8192).unwrap();
    assert_eq!(parts(&double), [(0, 8192, 0)], "no piece is longer than a page");
    assert!(other.engine().unwrap_err().sentence.contains("dmamin is 4096"));
    // While the driver has the request.
    double.set_dma_min(1024);
    double.state().changes_dma_min = Some(2000);
    let refused = ask(&mut other, 4096 + 1500);
    assert!(matches!(refused, Err(KnemError::DmaMinChanged)), "{refused:?}");
    // Where it cannot be read.
    other.dma_min = DmaMin::open(Path::new("/nonexistent/dmamin"));
    assert_eq!(other.engine().unwrap_err().errno, Errno::ENOENT as i32);
    assert_eq!(parts(&double), [(0, 4096 + 1500, 1)]);
    ask(&mut other, 8192).unwrap();
    assert_eq!(parts(&double), [(0, 8192, 0)]);
    assert_eq!(local[here..here + 8192], memory[there..there + 8192]);
    // A driver that leaves no choice.
    double.state().info.forced_flags = abi::FLAG_DMA;
    let mut forced = double.open();
    forced.dma_min = DmaMin::open(Path::new("/nonexistent/dmamin"));
    forced.meet(this_process(), owner.introduce().unwrap()).unwrap();
    let target = &mut lend(&mut local[here..here + 8192], Access::Write);
    let refused = forced.inline_copy(target, &get(region, 0, 8192), CopyFlags::NONE);
    assert!(matches!(refused, Err(KnemError::UnknownDmaMin(Errno::ENOENT))), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("dmamin"));
}

#[test]
fn a_change_while_the_engine_copies_is_waited_for_and_told() {
    let double = Double::new();
    double.state().info.features = abi::FEATURE_DMA;
    let (mut owner, mut other) = pair(&double);
    let pages = || map(4096, MapFlags::MAP_PRIVATE);
    let (memory, local) = (pages(), pages());
    let region = owner.create_region(lend(memory, Access::Read), Protection::READ, Uses::Many).unwrap();
    double.state().changes_dma_min = Some(2000);
    double.state().script.extend([Say::GoOn]);
    let ending = double.clone();
    let has_ended = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while !has_ended.load(Ordering::Relaxed) {
                ending.end(abi::STATUS_SUCCESS);
                std::thread::yield_now();
            }
        });
        let flags = CopyFlags::DMA | CopyFlags::DMA_ASYNC_COMPLETION;
        let copy = get(region, 0, 4096);
        let refused = other.start_inline_copy(lend(local, Access::Write), &copy, flags);
        has_ended.store(true, Ordering::Relaxed);
        assert!(matches!(refused, Err(KnemError::DmaMinChanged)), "{refused:?}");
    });
}

#[test]
fn an_engine_that_is_switched_off_is_told_apart_from_none() {
    let double = Double::new();
    assert!(double.open().engine().unwrap_err().sentence.contains("no DMA engine"));
    double.state().info.ignored_flags = abi::FLAG_DMA;
    assert!(double.open().engine().unwrap_err().sentence.contains("loaded with dma=0"));
    double.state().info.ignored_flags = 0;
    double.state().info.features = abi::FEATURE_DMA;
    assert_eq!(double.open().engine(), Ok(()));
}

#[test]
fn no_dma_engine_is_told_apart_from_no_region() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(5000), vec![0; 5000]);
    let region = owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Many).unwrap();
    let ask = |other: &mut IoctlDriver, local: &mut [u8]| {
        other.inline_copy(&mut lend(local, Access::Write), &get(region, 0, 5000), CopyFlags::DMA)
    };
    assert!(matches!(ask(&mut other, &mut local), Err(KnemError::NoDma(_))));
    assert_eq!(asked(&double), []);
    // It says that there is one, and has no channel left.
    double.state().info.features = abi::FEATURE_DMA;
    let mut late = double.open();
    late.meet(this_process(), owner.introduce().unwrap()).unwrap();
    double.state().info.features = 0;
    assert!(matches!(ask(&mut late, &mut local), Err(KnemError::NoDma(_))));
    double.state().regions.clear();
    assert!(matches!(ask(&mut late, &mut local), Err(KnemError::NotRegistered)));
    // Every copy is to be made by the engine that there is not.
    double.state().info.forced_flags = abi::FLAG_DMA;
    let mut forced = double.open();
    forced.meet(this_process(), owner.introduce().unwrap()).unwrap();
    double.state().asked.clear();
    let copy = get(region, 0, 5000);
    let refused = forced.inline_copy(&mut lend(&mut local, Access::Write), &copy, CopyFlags::NONE);
    assert!(matches!(refused, Err(KnemError::NoDma(_))), "{refused:?}");
    assert_eq!(asked(&double), []);
    double.state().info.forced_flags = 0;
    // Where the flag is ignored, nothing is lacking.
    double.state().info.ignored_flags = abi::FLAG_DMA;
    double.state().script.push_back(Say::Refuse(Errno::EPERM));
    let mut ignoring = double.open();
    ignoring.meet(this_process(), owner.introduce().unwrap()).unwrap();
    assert!(matches!(ask(&mut ignoring, &mut local), Err(KnemError::NotRegistered)));
}
