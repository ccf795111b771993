//! DMA.

use std::time::{Duration, Instant};

use lmt_knem::ioctl::abi;
use nix::errno::Errno;

use crate::client::{Client, PLAIN, SUCCESS, backoff, ends_well, flagged, pattern, start_of};
use crate::sys::{Area, PAGE_BYTES};
use crate::verdict::{Stop, Verdict, equal, holds, needed, same_bytes, skip};

super::checks! {
    no_channel "dma-no-channel" "DMA without a channel is EINVAL";
    synchronous "dma-sync" "a copy by DMA moves all bytes before its request returns";
    completion "dma-async-complete" "a copy by DMA that writes its own completion ends, and moves all bytes";
    thread "dma-thread" "a copy by DMA that a thread waits for does";
    bad_buffer "dma-bad-buffer" "a read by DMA into bad memory is EFAULT";
    parameter "dma-parameter" "the module's parameter dmamin can be read, and is a number";
    small_tail "dma-small-tail" "DMA over two segments that ends in a small piece moves that at once, and the rest with the next copy at the latest";
    large_tail "dma-large-tail" "DMA over two segments that ends in a piece longer than dmamin moves all bytes before its request returns";
}

/// No small last piece: a whole number of pages.
const BYTES: usize = 64 * PAGE_BYTES;
const IGNORED: &str = "this driver is loaded so that it ignores the flag for DMA";

/// Where the module says how long the pieces are that DMA does not copy.
const PARAMETER: &str = "/sys/module/knem/parameters/dmamin";

/// A client of a driver with an engine, and a region in page-aligned memory.
fn with_engine(bytes: usize) -> Result<(Client, u64), Stop> {
    let client = client_of_engine()?;
    let memory = Area::with(&pattern(1, bytes));
    let cookie = client.region(&[memory.all()], abi::PROT_READ | abi::PROT_WRITE)?;
    Ok((client, cookie))
}

fn client_of_engine() -> Result<Client, Stop> {
    let client = Client::open()?;
    if !client.has_engine()? {
        return skip("the driver has no DMA channel");
    }
    if client.ignores(abi::FLAG_DMA)? {
        return skip(IGNORED);
    }
    Ok(client)
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
    let (slots, local) = (client.map_status()?, Area::zeroed(BYTES));
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

fn read_parameter() -> Result<u64, Stop> {
    let text = needed(PARAMETER, std::fs::read_to_string(PARAMETER))?;
    needed(&format!("{PARAMETER}, which is {text:?}"), text.trim().parse())
}

fn parameter() -> Verdict {
    client_of_engine()?;
    Ok(format!("it is {} bytes", read_parameter()?))
}

/// A region of 64 pages and a last segment elsewhere.
fn two_segments(client: &Client, last_bytes: usize) -> Result<u64, Stop> {
    let memory = Area::with(&pattern(1, BYTES + last_bytes));
    // One page apart, so that they are two.
    let moved = Area::with(&[&[0; PAGE_BYTES][..], &pattern(1, BYTES + last_bytes)[BYTES..]].concat());
    let pieces = [memory.piece(0, BYTES), moved.piece(PAGE_BYTES, last_bytes)];
    client.region(&pieces, abi::PROT_READ | abi::PROT_WRITE)
}

fn small_tail() -> Verdict {
    const SMALL: usize = 100;
    let client = client_of_engine()?;
    let (cookie, expected) = (two_segments(&client, SMALL)?, pattern(1, BYTES + SMALL));
    let (local, dma) = (Area::zeroed(BYTES + SMALL), flagged(abi::FLAG_DMA));
    equal("read by DMA", client.read(&[local.all()], start_of(cookie), dma), Ok(SUCCESS))?;
    same_bytes("the small last piece", &local.bytes()[BYTES..], &expected[BYTES..])?;
    let at_once = local.get(BYTES) == expected[..BYTES];
    if !at_once {
        same_bytes("what has not come yet", &local.get(BYTES), &[0; BYTES])?;
    }
    if !client.always_uses_dma()? {
        // What a client does about it must help.
        let plain = Area::zeroed(BYTES + SMALL);
        equal("read without DMA", client.read(&[plain.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
        same_bytes("read without DMA", &plain.bytes(), &expected)?;
    }
    if at_once {
        return holds();
    }
    let whole = client.region(&[Area::with(&pattern(2, BYTES)).all()], abi::PROT_READ)?;
    let next = Area::zeroed(BYTES);
    equal("the next read by DMA", client.read(&[next.all()], start_of(whole), dma), Ok(SUCCESS))?;
    same_bytes("the next read by DMA", &next.bytes(), &pattern(2, BYTES))?;
    let deadline = Instant::now() + backoff();
    while local.bytes() != expected && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    same_bytes("the first read, after another", &local.bytes(), &expected)?;
    Ok("this driver reports success before DMA has copied, which comes with the next copy: end what DMA copies \
        in a piece longer than dmamin"
        .to_owned())
}

fn large_tail() -> Verdict {
    let client = client_of_engine()?;
    let large_bytes = usize::try_from(read_parameter()?.max(1024)).unwrap_or(usize::MAX).saturating_add(1);
    if large_bytes > PAGE_BYTES {
        return skip("dmamin is longer than a page's largest piece");
    }
    let (cookie, expected) = (two_segments(&client, large_bytes)?, pattern(1, BYTES + large_bytes));
    let local = Area::zeroed(BYTES + large_bytes);
    let read = client.read(&[local.all()], start_of(cookie), flagged(abi::FLAG_DMA));
    equal("read by DMA", read, Ok(SUCCESS))?;
    same_bytes("read by DMA", &local.bytes(), &expected)?;
    holds()
}
