//! DMA.

use lmt_knem::ioctl::{StatusArray, abi};
use nix::errno::Errno;

use crate::client::{Client, PLAIN, SUCCESS, ends_well, flagged, pattern, start_of};
use crate::sys::{Area, PAGE_BYTES};
use crate::verdict::{Stop, Verdict, equal, holds, same_bytes, skip};

super::checks! {
    no_channel "dma-no-channel" "DMA without a channel is EINVAL";
    synchronous "dma-sync" "a copy by DMA moves all bytes before its request returns";
    completion "dma-async-complete" "a copy by DMA that writes its own completion ends, and moves all bytes";
    thread "dma-thread" "a copy by DMA that a thread waits for does";
    bad_buffer "dma-bad-buffer" "a read by DMA into bad memory is EFAULT";
    small_tail "dma-small-tail" "DMA over a region with a small last piece moves all but, at most, that piece";
}

/// No small last piece: a whole number of pages.
const BYTES: usize = 64 * PAGE_BYTES;
const IGNORED: &str = "this driver is loaded so that it ignores the flag for DMA";

/// A client of a driver with an engine, and a region in page-aligned memory.
fn with_engine(bytes: usize) -> Result<(Client, u64), Stop> {
    let client = Client::open()?;
    if !client.has_engine()? {
        return skip("the driver has no DMA channel");
    }
    if client.ignores(abi::FLAG_DMA)? {
        return skip(IGNORED);
    }
    let memory = Area::with(&pattern(1, bytes));
    let cookie = client.region(&[memory.all()], abi::PROT_READ | abi::PROT_WRITE)?;
    Ok((client, cookie))
}

fn no_channel() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, BYTES)));
    if client.has_engine()? {
        return skip("the driver has a DMA channel");
    }
    if client.ignores(abi::FLAG_DMA)? {
        return skip(IGNORED);
    }
    let (cookie, local) = (client.region(&[memory.all()], abi::PROT_READ)?, Area::zeroed(BYTES));
    let read = client.read(&[local.all()], start_of(cookie), flagged(abi::FLAG_DMA));
    equal("read with DMA", read, Err(Errno::EINVAL))?;
    equal("read without", client.read(&[local.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    holds()
}

fn synchronous() -> Verdict {
    let (client, cookie) = with_engine(BYTES)?;
    let local = Area::zeroed(BYTES);
    let dma = flagged(abi::FLAG_DMA);
    equal("read by DMA", client.read(&[local.all()], start_of(cookie), dma), Ok(SUCCESS))?;
    same_bytes("read by DMA", &local.bytes(), &pattern(1, BYTES))?;
    local.put(&pattern(2, BYTES));
    equal("write by DMA", client.write(&[local.all()], start_of(cookie), dma), Ok(SUCCESS))?;
    let back = Area::zeroed(BYTES);
    equal("read", client.read(&[back.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    same_bytes("write by DMA", &back.bytes(), &pattern(2, BYTES))?;
    holds()
}

fn asynchronous(what: &str, flags: u32) -> Verdict {
    let (client, cookie) = with_engine(BYTES)?;
    let (slots, local): (StatusArray, _) = (client.map_status()?, Area::zeroed(BYTES));
    slots.clear(0);
    let current = client.read(&[local.all()], start_of(cookie), flagged(flags));
    let at_once = current == Ok(SUCCESS);
    ends_well(what, &slots, 0, current)?;
    same_bytes(what, &local.bytes(), &pattern(1, BYTES))?;
    Ok(if at_once { "it ended in the request".to_owned() } else { String::new() })
}

fn completion() -> Verdict {
    asynchronous("read by DMA with its own completion", abi::FLAG_DMA | abi::FLAG_ASYNCDMACOMPLETE)
}

fn thread() -> Verdict {
    asynchronous("read by DMA with a thread", abi::FLAG_DMA | abi::FLAG_DMATHREAD)
}

fn bad_buffer() -> Verdict {
    let (client, cookie) = with_engine(BYTES)?;
    let local = Area::zeroed(BYTES);
    local.close_from(BYTES - PAGE_BYTES);
    let read = client.read(&[local.all()], start_of(cookie), flagged(abi::FLAG_DMA));
    equal("read by DMA into bad memory", read, Err(Errno::EFAULT))?;
    holds()
}

fn small_tail() -> Verdict {
    const SMALL: usize = 100;
    let (client, cookie) = with_engine(BYTES + SMALL)?;
    let local = Area::zeroed(BYTES + SMALL);
    let read = client.read(&[local.all()], start_of(cookie), flagged(abi::FLAG_DMA));
    equal("read by DMA", read, Ok(SUCCESS))?;
    same_bytes("all but the small last piece", &local.get(BYTES), &pattern(1, BYTES + SMALL)[..BYTES])?;
    // What a client does about it must help.
    let plain = Area::zeroed(BYTES + SMALL);
    equal("read without DMA", client.read(&[plain.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    same_bytes("read without DMA", &plain.bytes(), &pattern(1, BYTES + SMALL))?;
    if local.bytes()[BYTES..] == pattern(1, BYTES + SMALL)[BYTES..] {
        return holds();
    }
    Ok("this driver reports success and loses the small last piece: copy it without DMA".to_owned())
}
