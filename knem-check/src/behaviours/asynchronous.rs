//! The status array, and copies that go on when their request has returned.

use lmt_knem::ioctl::{STATUS_SLOTS, StatusArray, abi};
use nix::errno::Errno;

use crate::client::{Client, How, PENDING, PLAIN, SUCCESS, end_of, ends_well, flagged, pattern, start_of};
use crate::sys::Area;
use crate::verdict::{Stop, Verdict, equal, holds, needed, same_bytes, skip};

super::checks! {
    no_array "async-no-array" "every asynchronous flag without the status array is EINVAL";
    past_the_end "async-index" "a slot past the end of the status array is EINVAL";
    second_array "async-second-array" "mapping the status array again is EBUSY";
    reads "async-read" "an asynchronous read ends, by its current status or its slot, and moves all bytes";
    writes "async-write" "an asynchronous write does";
    between_regions "async-region-copy" "an asynchronous region copy does";
    other_slots "async-slots" "each copy's status is in its own slot, the last one included";
    nothing "async-zero-bytes" "an asynchronous copy of no bytes ends in its slot";
    gone_meanwhile "async-destroyed" "a copy goes on when its region is destroyed meanwhile";
    bad_buffer "async-bad-buffer" "an asynchronous read into bad memory is EFAULT";
}

const BYTES: usize = 300_001;
const THREAD: u32 = abi::FLAG_MEMCPYTHREAD;
const IGNORED: &str = "this driver is loaded so that it ignores the flag for a thread";

fn at(index: u32) -> How {
    How { flags: THREAD, index, ..PLAIN }
}

/// A client of a driver that does as the flag for a thread says.
fn open() -> Result<Client, Stop> {
    let client = Client::open()?;
    if client.ignores(THREAD)? { skip(IGNORED) } else { Ok(client) }
}

fn no_array() -> Verdict {
    let (client, memory) = (Client::bare()?, Area::with(&pattern(1, 5000)));
    let (all, mut tried) = ([abi::FLAG_ASYNCDMACOMPLETE, abi::FLAG_DMATHREAD, THREAD], 0);
    let cookie = client.region(&[memory.all()], abi::PROT_READ | abi::PROT_WRITE)?;
    let local = Area::zeroed(5000);
    for flags in all {
        if client.ignores(flags)? {
            continue;
        }
        tried += 1;
        let what = |request| format!("{request} with flags {flags:#x} and no status array");
        let read = client.read(&[local.all()], start_of(cookie), flagged(flags));
        equal(&what("INLINE_COPY"), read, Err(Errno::EINVAL))?;
        let copy = client.copy(start_of(cookie), start_of(cookie), flagged(flags));
        equal(&what("COPY"), copy, Err(Errno::EINVAL))?;
    }
    match tried {
        0 => skip("this driver is loaded so that it ignores the flags of all asynchronous copies"),
        _ if tried == all.len() => holds(),
        _ => Ok(format!("tried with {tried} of {} flags, this driver ignores the others", all.len())),
    }
}

fn past_the_end() -> Verdict {
    let (client, memory) = (open()?, Area::with(&pattern(1, 5000)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    let (_slots, local) = (client.map_status()?, Area::zeroed(5000));
    for index in [STATUS_SLOTS, STATUS_SLOTS + 1, u32::MAX] {
        let read = client.read(&[local.all()], start_of(cookie), at(index));
        equal(&format!("slot {index} of {STATUS_SLOTS}"), read, Err(Errno::EINVAL))?;
    }
    holds()
}

fn second_array() -> Verdict {
    let client = Client::bare()?;
    let _slots = client.map_status()?;
    equal("a second mmap", StatusArray::map(&client.device).map(drop), Err(Errno::EBUSY))?;
    holds()
}

fn reads() -> Verdict {
    let (client, memory) = (open()?, Area::with(&pattern(1, BYTES)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    let (slots, mut at_once) = (client.map_status()?, 0);
    let sizes = [1, 100, 4096, BYTES];
    for (index, bytes) in sizes.into_iter().enumerate() {
        let (local, what) = (Area::zeroed(BYTES), format!("asynchronous read of {bytes} bytes"));
        slots.clear(index as u32);
        let current = client.read(&[local.piece(0, bytes)], start_of(cookie), at(index as u32));
        at_once += u32::from(current == Ok(SUCCESS));
        ends_well(&what, &slots, index as u32, current)?;
        same_bytes(&what, &local.get(bytes), &pattern(1, BYTES)[..bytes])?;
    }
    Ok(format!("{at_once} of {} ended in the request", sizes.len()))
}

fn writes() -> Verdict {
    let (client, memory) = (open()?, Area::zeroed(BYTES));
    let cookie = client.region(&[memory.all()], abi::PROT_WRITE)?;
    let (slots, local) = (client.map_status()?, Area::with(&pattern(1, BYTES)));
    slots.clear(0);
    let current = client.write(&[local.all()], start_of(cookie), at(0));
    ends_well("asynchronous write", &slots, 0, current)?;
    same_bytes("asynchronous write", &memory.bytes(), &pattern(1, BYTES))?;
    holds()
}

fn between_regions() -> Verdict {
    let (client, memory) = (open()?, Area::with(&pattern(1, BYTES)));
    let (other, slots) = (Area::zeroed(BYTES), client.map_status()?);
    let source = client.region(&[memory.all()], abi::PROT_READ)?;
    let target = client.region(&[other.all()], abi::PROT_WRITE)?;
    slots.clear(5);
    let current = client.copy(start_of(source), start_of(target), at(5));
    ends_well("asynchronous COPY", &slots, 5, current)?;
    same_bytes("asynchronous COPY", &other.bytes(), &pattern(1, BYTES))?;
    holds()
}

fn other_slots() -> Verdict {
    let (client, memory) = (open()?, Area::with(&pattern(1, BYTES)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    let (slots, used) = (client.map_status()?, [0, 7, 8, STATUS_SLOTS - 1]);
    for index in 0..STATUS_SLOTS {
        slots.clear(index);
    }
    let local: Vec<Area> = used.iter().map(|_| Area::zeroed(BYTES)).collect();
    let mut begun = Vec::new();
    for (local, index) in local.iter().zip(used) {
        begun.push(client.read(&[local.all()], start_of(cookie), at(index)));
    }
    for ((local, index), current) in local.iter().zip(used).zip(begun) {
        ends_well(&format!("the copy of slot {index}"), &slots, index, current)?;
        same_bytes(&format!("the copy of slot {index}"), &local.bytes(), &pattern(1, BYTES))?;
    }
    let written = (0..STATUS_SLOTS).filter(|index| !used.contains(index) && slots.load(*index) != 0);
    equal("slots of no copy that were written", written.collect::<Vec<_>>(), Vec::new())?;
    holds()
}

fn nothing() -> Verdict {
    let (client, memory) = (open()?, Area::with(&pattern(1, 100)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    let slots = client.map_status()?;
    slots.clear(3);
    let what = "asynchronous copy of 0 bytes";
    let current = needed(what, client.read(&[], start_of(cookie), at(3)))?;
    equal(&format!("{what}, final status"), end_of(what, &slots, 3, current)?, SUCCESS)?;
    Ok(if current == PENDING { String::new() } else { "it ends in the request".to_owned() })
}

fn gone_meanwhile() -> Verdict {
    let (client, memory) = (open()?, Area::with(&pattern(1, BYTES)));
    let (slots, local) = (client.map_status()?, Area::zeroed(BYTES));
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    slots.clear(0);
    let current = client.read(&[local.all()], start_of(cookie), at(0));
    equal("DESTROY_REGION meanwhile", client.destroy(cookie), Ok(()))?;
    ends_well("the copy of a destroyed region", &slots, 0, current)?;
    same_bytes("the copy of a destroyed region", &local.bytes(), &pattern(1, BYTES))?;
    holds()
}

fn bad_buffer() -> Verdict {
    let (client, memory) = (open()?, Area::with(&pattern(1, 20_000)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    let (slots, local) = (client.map_status()?, Area::zeroed(20_000));
    local.close_from(16_384);
    slots.clear(0);
    let read = client.read(&[local.all()], start_of(cookie), at(0));
    equal("asynchronous read into bad memory", read, Err(Errno::EFAULT))?;
    holds()
}
