//! Copies that move bytes: inline and between regions.

use lmt_knem::ioctl::abi;

use crate::client::{Client, FAILED, How, PLAIN, Place, SUCCESS, bounded, flagged, pattern, start_of};
use crate::peer::{Peer, elsewhere};
use crate::sys::{Area, PAGE_BYTES};
use crate::verdict::{Stop, Verdict, equal, fails, holds, needed, same_bytes, skip};

super::checks! {
    reads "inline-read" "an inline copy reads another process's region, whatever its size";
    writes "inline-write" "an inline copy writes another process's region, whatever its size";
    offsets "inline-offset" "an inline copy begins at the offset in the region, in both directions";
    inline_bound "inline-bound" "a bounded inline copy moves just so many bytes";
    segments "segments" "regions and local memory of many segments, empty ones among them";
    between_regions "region-copy" "a third process copies between two regions of others";
    region_offsets "region-copy-offsets" "a region copy begins at each region's own offset";
    region_bound "region-copy-bound" "a bounded region copy moves just so many bytes";
    the_end "end-of-region" "a copy that reaches the end of a region succeeds with what there was";
    the_end_of_both "end-of-region-copy" "a region copy ends with the shorter region, and succeeds";
    pinned_local "pin-local" "PINLOCAL changes nothing about a copy that goes well";
    bad_read "bad-buffer-read" "a read into bad memory returns 0 with status failed, earlier pages written";
    bad_write "bad-buffer-write" "a write from bad memory is EFAULT";
    bad_pinned "bad-buffer-pin-local" "a read into bad memory with PINLOCAL is EFAULT";
    both_at_once "concurrent" "four processes copy from one region at once";
}

const SIZES: [usize; 8] = [1, 7, 64, 4095, 4096, 4097, 65_536 + 17, (1 << 20) + 3];

fn reads() -> Verdict {
    let client = Client::open()?;
    for bytes in SIZES {
        let memory = Area::with(&pattern(bytes, bytes));
        let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
        elsewhere(|| {
            for (how, kind) in [(PLAIN, "unbounded"), (bounded(bytes as u64), "bounded")] {
                let what = format!("{kind} read of {bytes} bytes");
                let local = Area::zeroed(bytes + 100);
                let status = Client::open()?.read(&[local.all()], start_of(cookie), how);
                equal(&what, status, Ok(SUCCESS))?;
                same_bytes(&what, &local.get(bytes), &pattern(bytes, bytes))?;
                same_bytes("memory behind it", &local.bytes()[bytes..], &[0; 100])?;
            }
            Ok(())
        })?;
        equal("DESTROY_REGION", client.destroy(cookie), Ok(()))?;
    }
    holds()
}

fn writes() -> Verdict {
    let client = Client::open()?;
    for bytes in SIZES {
        for (how, kind) in [(PLAIN, "unbounded"), (bounded(bytes as u64), "bounded")] {
            let what = format!("{kind} write of {bytes} bytes");
            // Anew for each copy: what is pinned is not written after a fork.
            let memory = Area::zeroed(bytes + 100);
            let cookie = client.region(&[memory.all()], abi::PROT_WRITE)?;
            elsewhere(|| {
                let local = Area::with(&pattern(bytes, bytes));
                let status = Client::open()?.write(&[local.all()], start_of(cookie), how);
                equal(&what, status, Ok(SUCCESS))?;
                same_bytes("the memory that was written from", &local.bytes(), &pattern(bytes, bytes))
            })?;
            same_bytes(&what, &memory.get(bytes), &pattern(bytes, bytes))?;
            same_bytes("memory behind it", &memory.bytes()[bytes..], &[0; 100])?;
            equal("DESTROY_REGION", client.destroy(cookie), Ok(()))?;
        }
    }
    holds()
}

fn offsets() -> Verdict {
    let total = 3 * PAGE_BYTES + 5;
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, total)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ | abi::PROT_WRITE)?;
    let mut expected = pattern(1, total);
    for (offset, bytes) in [(1, 100), (4090, 20), (4096, 4096), (5000, 3000), (total - 1, 1)] {
        let local = Area::zeroed(bytes);
        let place = Place { cookie, offset: offset as u64 };
        let what = format!("read of {bytes} bytes from offset {offset}");
        equal(&what, client.read(&[local.all()], place, PLAIN), Ok(SUCCESS))?;
        same_bytes(&what, &local.bytes(), &expected[offset..offset + bytes])?;
        local.put(&pattern(offset, bytes));
        equal("write", client.write(&[local.all()], place, PLAIN), Ok(SUCCESS))?;
        expected[offset..offset + bytes].copy_from_slice(&pattern(offset, bytes));
        same_bytes(&format!("write of {bytes} bytes to offset {offset}"), &memory.bytes(), &expected)?;
    }
    holds()
}

fn inline_bound() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 9000)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ | abi::PROT_WRITE)?;
    for bytes in [1, 4096, 5000] {
        let local = Area::zeroed(9000);
        let what = format!("read bounded to {bytes} bytes");
        equal(&what, client.read(&[local.all()], start_of(cookie), bounded(bytes as u64)), Ok(SUCCESS))?;
        let mut expected = vec![0; 9000];
        expected[..bytes].copy_from_slice(&pattern(1, bytes));
        same_bytes(&what, &local.bytes(), &expected)?;
    }
    let local = Area::with(&pattern(2, 9000));
    equal(
        "write bounded to 10 bytes",
        client.write(&[local.all()], start_of(cookie), bounded(10)),
        Ok(SUCCESS),
    )?;
    let expected = [&pattern(2, 10)[..], &pattern(1, 9000)[10..]].concat();
    same_bytes("write bounded to 10 bytes", &memory.bytes(), &expected)?;
    holds()
}

fn segments() -> Verdict {
    let total = 40_000;
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, total)));
    if client.always_uses_dma()? {
        return skip("this driver is loaded so that a DMA engine makes every copy, which may come late");
    }
    let (content, local) = (memory.bytes(), Area::zeroed(total));
    // Out of order, misaligned, some of them empty.
    let theirs = [(9000, 5000), (17, 1), (100, 0), (20_000, 8191), (3, 12)];
    let ours = [(11, 4096), (5000, 0), (6000, 3), (10_001, 9105)];
    let remote: Vec<_> = theirs.iter().map(|(at, bytes)| memory.piece(*at, *bytes)).collect();
    let cookie = client.region(&remote, abi::PROT_READ)?;
    let whole: Vec<u8> = theirs.iter().flat_map(|(at, bytes)| content[*at..at + bytes].to_vec()).collect();
    elsewhere(|| {
        let pieces: Vec<_> = ours.iter().map(|(at, bytes)| local.piece(*at, *bytes)).collect();
        let status = Client::open()?.read(&pieces, start_of(cookie), PLAIN);
        equal("read of 5 segments into 4", status, Ok(SUCCESS))?;
        let (mut expected, mut done) = (vec![0; total], 0);
        for (at, bytes) in ours {
            expected[at..at + bytes].copy_from_slice(&whole[done..done + bytes]);
            done += bytes;
        }
        same_bytes("read of 5 segments into 4", &local.bytes(), &expected)
    })?;
    let many: Vec<_> = (0..2000).map(|at| memory.piece(at * 19, 3)).collect();
    let cookie = client.region(&many, abi::PROT_READ)?;
    let short = Area::zeroed(6000);
    equal("read of 2000 segments", client.read(&[short.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    let expected: Vec<u8> = (0..2000).flat_map(|at| content[at * 19..at * 19 + 3].to_vec()).collect();
    same_bytes("read of 2000 segments", &short.bytes(), &expected)?;
    holds()
}

/// Two regions of another process, the second of them zeros, for a copy here;
/// then compares what is in the second there.
fn over_there(
    from_bytes: usize,
    to_bytes: usize,
    copy: impl FnOnce(&Client, u64, u64) -> Result<(), Stop>,
    expected: &[u8],
) -> Verdict {
    let mut owner = Peer::start(|channel| {
        let client = Client::open()?;
        let (from, to) = (Area::with(&pattern(1, from_bytes)), Area::zeroed(to_bytes));
        channel.send(client.region(&[from.all()], abi::PROT_READ)?)?;
        channel.send(client.region(&[to.all()], abi::PROT_WRITE)?)?;
        channel.receive()?;
        same_bytes("the source's memory", &from.bytes(), &pattern(1, from_bytes))?;
        same_bytes("the target's memory", &to.bytes(), expected)
    })?;
    let (from, to) = (owner.channel.receive()?, owner.channel.receive()?);
    copy(&Client::open()?, from, to)?;
    owner.channel.send(0)?;
    owner.join()?;
    holds()
}

fn between_regions() -> Verdict {
    let copy = |client: &Client, from, to| {
        equal("COPY", client.copy(start_of(from), start_of(to), PLAIN), Ok(SUCCESS))
    };
    over_there(20_000, 20_000, copy, &pattern(1, 20_000))
}

fn region_offsets() -> Verdict {
    let copy = |client: &Client, from, to| {
        let (from, to) = (Place { cookie: from, offset: 4099 }, Place { cookie: to, offset: 77 });
        equal("COPY with offsets", client.copy(from, to, PLAIN), Ok(SUCCESS))
    };
    let expected = [&vec![0; 77][..], &pattern(1, 20_000)[4099..], &vec![0; 4022]].concat();
    over_there(20_000, 20_000, copy, &expected)
}

fn region_bound() -> Verdict {
    let copy = |client: &Client, from, to| {
        let (from, to) = (Place { cookie: from, offset: 5 }, Place { cookie: to, offset: 6 });
        equal("COPY_BOUNDED", client.copy(from, to, bounded(4097)), Ok(SUCCESS))
    };
    let mut expected = vec![0; 20_000];
    expected[6..4103].copy_from_slice(&pattern(1, 20_000)[5..4102]);
    over_there(20_000, 20_000, copy, &expected)
}

fn the_end() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 5000)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    let local = Area::zeroed(9000);
    let cases: [(u64, usize, How); 7] = [
        (0, 5000, PLAIN),
        (4990, 10, PLAIN),
        (5000, 0, PLAIN),
        (1 << 40, 0, PLAIN),
        (0, 5000, bounded(9000)),
        (4999, 1, bounded(2)),
        (6000, 0, bounded(1)),
    ];
    for (offset, arrives, how) in cases {
        local.put(&[0; 9000]);
        let what =
            format!("read of {:?} bytes from offset {offset} of 5000", how.length_bytes.unwrap_or(9000));
        equal(&what, client.read(&[local.all()], Place { cookie, offset }, how), Ok(SUCCESS))?;
        let mut expected = vec![0; 9000];
        let start = (offset as usize).min(5000);
        expected[..arrives].copy_from_slice(&pattern(1, 5000)[start..start + arrives]);
        same_bytes(&what, &local.bytes(), &expected)?;
    }
    holds()
}

fn the_end_of_both() -> Verdict {
    let copy = |client: &Client, from, to| {
        equal("COPY into a shorter region", client.copy(start_of(from), start_of(to), PLAIN), Ok(SUCCESS))?;
        let (from, to) = (Place { cookie: from, offset: 7990 }, Place { cookie: to, offset: 100 });
        equal("COPY_BOUNDED past the end", client.copy(from, to, bounded(1000)), Ok(SUCCESS))
    };
    let source = pattern(1, 8000);
    let expected = [&source[..100], &source[7990..], &source[110..5000]].concat();
    over_there(8000, 5000, copy, &expected)
}

fn pinned_local() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 9000)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ | abi::PROT_WRITE)?;
    let (local, how) = (Area::zeroed(9000), flagged(abi::FLAG_PINLOCAL));
    equal("read with PINLOCAL", client.read(&[local.all()], start_of(cookie), how), Ok(SUCCESS))?;
    same_bytes("read with PINLOCAL", &local.bytes(), &pattern(1, 9000))?;
    local.put(&pattern(2, 9000));
    equal("write with PINLOCAL", client.write(&[local.all()], start_of(cookie), how), Ok(SUCCESS))?;
    same_bytes("write with PINLOCAL", &memory.bytes(), &pattern(2, 9000))?;
    holds()
}

/// A region of four pages, and local memory whose last page cannot be accessed.
fn bad_buffer() -> Result<(Client, u64, Area), Stop> {
    let (client, local) = (Client::open()?, Area::zeroed(4 * PAGE_BYTES));
    let memory = Area::with(&pattern(1, 4 * PAGE_BYTES));
    let cookie = client.region(&[memory.all()], abi::PROT_READ | abi::PROT_WRITE)?;
    local.close_from(3 * PAGE_BYTES);
    Ok((client, cookie, local))
}

fn bad_read() -> Verdict {
    let (client, cookie, local) = bad_buffer()?;
    if client.always_pins()? {
        return skip("this driver is loaded with forced flags that have local memory pinned");
    }
    equal("read into bad memory", client.read(&[local.all()], start_of(cookie), PLAIN), Ok(FAILED))?;
    same_bytes("the pages before it", &local.get(3 * PAGE_BYTES), &pattern(1, 3 * PAGE_BYTES))?;
    let again = client.read(&[local.piece(0, PAGE_BYTES)], start_of(cookie), PLAIN);
    equal("a good read afterwards", again, Ok(SUCCESS))?;
    holds()
}

fn bad_write() -> Verdict {
    let (client, cookie, local) = bad_buffer()?;
    let write = client.write(&[local.all()], start_of(cookie), PLAIN);
    equal("write from bad memory", write, Err(nix::errno::Errno::EFAULT))?;
    holds()
}

fn bad_pinned() -> Verdict {
    let (client, cookie, local) = bad_buffer()?;
    if client.ignores(abi::FLAG_PINLOCAL)? {
        return skip("this driver is loaded so that it ignores the flag");
    }
    let read = client.read(&[local.all()], start_of(cookie), flagged(abi::FLAG_PINLOCAL));
    equal("read into bad memory with PINLOCAL", read, Err(nix::errno::Errno::EFAULT))?;
    holds()
}

fn both_at_once() -> Verdict {
    const BYTES: usize = 300_000;
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, BYTES)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    let mut readers = Vec::new();
    for _ in 0..4 {
        readers.push(Peer::start(|_| {
            let (client, local) = (Client::open()?, Area::zeroed(BYTES));
            for round in 0..20 {
                local.put(&[0; BYTES]);
                let status = needed("read", client.read(&[local.all()], start_of(cookie), PLAIN))?;
                if status != SUCCESS {
                    return fails(format!("read {round}: expected status 1, found {status:#x}"));
                }
                same_bytes("a read beside others", &local.bytes(), &pattern(1, BYTES))?;
            }
            Ok(())
        })?);
    }
    for reader in readers {
        reader.join()?;
    }
    holds()
}
