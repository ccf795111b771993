//! Information, binding, cookies, and what is accepted in silence.

use lmt_knem::ioctl::abi;
use nix::errno::Errno;

use crate::client::{ASYNCHRONOUS, Client, FAILED, PLAIN, SUCCESS, bounded, flagged, pattern, start_of};
use crate::sys::{self, Area, NOWHERE, PAGE_BYTES, Piece};
use crate::verdict::{Verdict, equal, fails, holds, needed, same_bytes, skip};

super::checks! {
    info "info" "GET_INFO says version 0xd, and what flags are ignored or forced";
    info_flags "info-flags" "copies go by the flags that GET_INFO says are ignored or forced, and by no others";
    binding "binding" "the offload thread can be bound: to a mask, to the current CPUs, to the others";
    silent_creation "silent-creation" "regions of no segments, empty segments, protection 0 and unknown flags are accepted";
    silent_copies "silent-copies" "copies of no segments, no bytes and with unknown flags are accepted";
    recycled "cookie-recycled" "a region gets the cookie of the one destroyed before on this descriptor";
    many_regions "many-regions" "a thousand regions have cookies of their own and keep their memory apart";
}

/// A flag that no version has.
const UNKNOWN_FLAG: u32 = 1 << 20;

fn info() -> Verdict {
    let client = Client::bare()?;
    let info = needed("GET_INFO", client.device.info())?;
    equal("GET_INFO, version", info.abi, abi::ABI_VERSION)?;
    // Nothing of what was there before remains.
    let mut over = abi::Info { abi: !0, features: !0, ignored_flags: !0, forced_flags: !0 };
    needed("GET_INFO", sys::request(&client.device, abi::GET_INFO, &mut over))?;
    equal("GET_INFO over other bytes", over, info)?;
    let engine = if info.features & abi::FEATURE_DMA != 0 { "a DMA engine" } else { "no DMA engine" };
    Ok(format!(
        "features {:#x} ({engine}), ignored flags {:#x}, forced flags {:#x}",
        info.features, info.ignored_flags, info.forced_flags
    ))
}

/// Which flags a copy has in the end shows in what is said of bad local memory,
/// and of no status array.
fn info_flags() -> Verdict {
    let (client, memory) = (Client::bare()?, Area::with(&pattern(1, 2 * PAGE_BYTES)));
    let info = needed("GET_INFO", client.device.info())?;
    if info.ignored_flags & info.forced_flags != 0 {
        return skip("this driver is loaded with a flag both ignored and forced");
    }
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    let local = Area::zeroed(2 * PAGE_BYTES);
    local.close_from(PAGE_BYTES);
    let no_engine = info.features & abi::FEATURE_DMA == 0;
    for asked in [
        0,
        abi::FLAG_DMA,
        abi::FLAG_ASYNCDMACOMPLETE,
        abi::FLAG_DMATHREAD,
        abi::FLAG_MEMCPYTHREAD,
        abi::FLAG_PINLOCAL,
    ] {
        let flags = asked & !info.ignored_flags | info.forced_flags;
        let expected = if flags & ASYNCHRONOUS != 0 || (flags & abi::FLAG_DMA != 0 && no_engine) {
            Err(Errno::EINVAL)
        } else if flags & (abi::FLAG_DMA | abi::FLAG_PINLOCAL) != 0 {
            Err(Errno::EFAULT)
        } else {
            Ok(FAILED)
        };
        let what = format!("a read into bad memory with flags {asked:#x}, which are {flags:#x} here");
        equal(&what, client.read(&[local.all()], start_of(cookie), flagged(asked)), expected)?;
    }
    holds()
}

fn binding() -> Verdict {
    let client = Client::bare()?;
    let cpus = needed("sched_getaffinity", nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)))?;
    let allowed: u64 = (0..64).filter(|cpu| cpus.is_set(*cpu).unwrap_or(false)).map(|cpu| 1 << cpu).sum();
    needed("BIND_OFFLOAD to a mask", client.device.bind(abi::BIND_CUSTOM, &mut [allowed.max(1)]))?;
    needed("BIND_OFFLOAD to the current CPUs", client.device.bind(abi::BIND_CURRENT, &mut []))?;
    match client.device.bind(abi::BIND_CURRENT_REVERSED, &mut []) {
        Ok(()) => holds(),
        // Where all CPUs are the current ones, none are left.
        Err(Errno::EINVAL) => Ok("binding to the other CPUs is refused; there may be none".to_owned()),
        Err(errno) => fails(format!("BIND_OFFLOAD to the other CPUs: expected success, found {errno}")),
    }
}

fn silent_creation() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let local = Area::zeroed(100);
    needed("CREATE_REGION of no segments", client.create_at(0, 0, 0, abi::PROT_READ))?;
    for (what, pieces, flags) in [
        ("CREATE_REGION of no segments", &[][..], 0),
        ("CREATE_REGION of an empty segment", &[memory.piece(50, 0)], 0),
        ("CREATE_REGION with unknown flags", &[memory.all()], UNKNOWN_FLAG),
    ] {
        let cookie = needed(what, client.create(pieces, flags, abi::PROT_READ))?;
        equal(what, client.read(&[local.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    }
    same_bytes("bytes of a region with unknown flags", &local.bytes(), &pattern(1, 100))?;
    needed("CREATE_REGION with protection 0", client.create(&[memory.all()], 0, 0))?;
    holds()
}

fn silent_copies() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ | abi::PROT_WRITE)?;
    let local = Area::zeroed(100);
    for (what, pieces, how) in [
        ("an inline copy of no segments", &[][..], PLAIN),
        ("an inline copy of an empty segment", &[local.piece(3, 0)], PLAIN),
        ("an inline copy of 0 bytes", &[local.all()], bounded(0)),
    ] {
        equal(what, client.read(pieces, start_of(cookie), how), Ok(SUCCESS))?;
        equal(what, client.write(pieces, start_of(cookie), how), Ok(SUCCESS))?;
    }
    let nothing = client.copy(start_of(cookie), start_of(cookie), bounded(0));
    equal("a region copy of 0 bytes", nothing, Ok(SUCCESS))?;
    same_bytes("memory after copies of nothing", &local.bytes(), &[0; 100])?;
    let unknown = client.read(&[local.all()], start_of(cookie), flagged(UNKNOWN_FLAG));
    equal("an inline copy with unknown flags", unknown, Ok(SUCCESS))?;
    same_bytes("bytes of a copy with unknown flags", &local.bytes(), &pattern(1, 100))?;
    holds()
}

fn recycled() -> Verdict {
    let client = Client::open()?;
    let (first, second) = (Area::with(&pattern(1, 100)), Area::with(&pattern(2, 100)));
    let cookie = client.region(&[first.all()], abi::PROT_READ)?;
    equal("DESTROY_REGION", client.destroy(cookie), Ok(()))?;
    let again = client.region(&[second.all()], abi::PROT_READ)?;
    equal("the cookie after destroying one", again, cookie)?;
    let local = Area::zeroed(100);
    equal("a copy by it", client.read(&[local.all()], start_of(again), PLAIN), Ok(SUCCESS))?;
    same_bytes("the new region's bytes", &local.bytes(), &pattern(2, 100))?;
    holds()
}

fn many_regions() -> Verdict {
    const REGIONS: usize = 1000;
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, REGIONS + 99)));
    let mut cookies = Vec::new();
    for at in 0..REGIONS {
        cookies.push(client.region(&[memory.piece(at, 100)], abi::PROT_READ)?);
    }
    let mut distinct = cookies.clone();
    distinct.sort_unstable();
    distinct.dedup();
    equal("the number of distinct cookies", distinct.len(), REGIONS)?;
    equal("whether a cookie is 0", distinct[0] == 0, false)?;
    let local = Area::zeroed(100);
    for (at, cookie) in cookies.iter().enumerate() {
        equal("a copy", client.read(&[local.all()], start_of(*cookie), PLAIN), Ok(SUCCESS))?;
        same_bytes(&format!("region {at}"), &local.bytes(), &pattern(1, REGIONS + 99)[at..at + 100])?;
    }
    for cookie in cookies {
        equal("DESTROY_REGION", client.destroy(cookie), Ok(()))?;
    }
    let nowhere = client.create(&[Piece::nowhere(0)], 0, abi::PROT_READ);
    match nowhere {
        Ok(_) => holds(),
        Err(errno) => Ok(format!("an empty segment at {NOWHERE} is {errno}")),
    }
}
