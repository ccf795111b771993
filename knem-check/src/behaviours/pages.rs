//! Pages are pinned when a region is created, and stay when the owner loses
//! them.

use lmt_knem::ioctl::abi;

use crate::client::{Client, PLAIN, SUCCESS, pattern, start_of};
use crate::peer::{Peer, elsewhere};
use crate::sys::{Area, PAGE_BYTES};
use crate::verdict::{Stop, Verdict, equal, fails, holds, same_bytes};

super::checks! {
    unmapped "pages-unmapped" "peers see the old pages after the owner's munmap";
    discarded "pages-discarded" "peers see the old pages after the owner's MADV_DONTNEED";
    parted "pages-forked" "peers see a page, old or new, after the owner has forked and written";
    untouched "pages-untouched" "memory that was touched before it was declared for reading is seen as it changes";
}

const BYTES: usize = 3 * PAGE_BYTES;

fn lost(what: &str, lose: fn(Area)) -> Result<(), Stop> {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, BYTES)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ | abi::PROT_WRITE)?;
    memory.put(&pattern(2, BYTES));
    lose(memory);
    elsewhere(|| {
        let local = Area::zeroed(BYTES);
        let read = Client::open()?.read(&[local.all()], start_of(cookie), PLAIN);
        equal(what, read, Ok(SUCCESS))?;
        same_bytes(what, &local.bytes(), &pattern(2, BYTES))
    })?;
    equal("DESTROY_REGION", client.destroy(cookie), Ok(()))
}

fn unmapped() -> Verdict {
    lost("a read after munmap", Area::unmap)?;
    holds()
}

fn discarded() -> Verdict {
    lost("a read after MADV_DONTNEED", Area::discard)?;
    holds()
}

fn parted() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, BYTES)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    // Has the pages too, until it is dropped.
    let _child = Peer::start(|channel| channel.receive().map(drop))?;
    memory.put_after_fork(&pattern(2, BYTES));
    let local = Area::zeroed(BYTES);
    equal("a read", client.read(&[local.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    let (seen, mut old) = (local.bytes(), 0);
    for page in 0..BYTES / PAGE_BYTES {
        let range = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        if seen[range.clone()] == pattern(1, BYTES)[range.clone()] {
            old += 1;
        } else if seen[range.clone()] != pattern(2, BYTES)[range] {
            return fails(format!("page {page}: expected the old page or the new one, found neither"));
        }
    }
    Ok(format!("{old} of {} pages are the old ones", BYTES / PAGE_BYTES))
}

fn untouched() -> Verdict {
    let (client, local) = (Client::open()?, Area::zeroed(BYTES));
    let touched = Area::zeroed(BYTES);
    let cookie = client.region(&[touched.all()], abi::PROT_READ)?;
    touched.put(&pattern(1, BYTES));
    equal("a read", client.read(&[local.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    same_bytes("touched memory, written since", &local.bytes(), &pattern(1, BYTES))?;
    let untouched = Area::untouched(BYTES);
    let cookie = client.region(&[untouched.all()], abi::PROT_READ)?;
    untouched.put(&pattern(1, BYTES));
    equal("a read", client.read(&[local.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    let seen = local.bytes();
    if seen == pattern(1, BYTES) {
        return Ok("so is memory that was not touched".to_owned());
    }
    same_bytes("untouched memory, written since", &seen, &[0; BYTES])?;
    Ok("memory that was not touched stays zeros".to_owned())
}
