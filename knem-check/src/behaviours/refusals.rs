//! What the driver refuses, and with which errno.

use lmt_knem::ioctl::abi;
use nix::errno::Errno;
use nix::unistd::{Uid, geteuid, setresuid};

use crate::client::{Client, PLAIN, SUCCESS, bounded, pattern, start_of};
use crate::peer::{Peer, elsewhere};
use crate::sys::{self, Area, NOWHERE, Piece};
use crate::verdict::{Stop, Verdict, equal, fails, holds, needed, same_bytes, skip};

super::checks! {
    bad_cookies "cookie-bad" "cookies that are none are EINVAL, 0 among them, in every request";
    destroyed "cookie-destroyed" "a destroyed region is EINVAL, also to be destroyed again";
    foreign "destroy-foreign" "a region is destroyed through its own descriptor only";
    protection "protection" "what a region's protection forbids is EACCES, in both directions";
    region_protection "protection-region-copy" "a region copy needs a readable source and a writable target";
    bad_memory "create-bad-memory" "a region of memory that is not there is EFAULT";
    bad_array "create-bad-array" "an array of segments that is not there is EFAULT";
    long_array "create-long-array" "an oversized array of segments is ENOMEM";
    unknown "unknown-request" "unknown requests are ENOSYS";
    read_only "read-only" "a descriptor opened for reading only is EBADF";
    other_user "other-user" "another user's region is EPERM, by the opener's user against the caller's";
    root_too "other-user-root" "root is not exempt from that";
}

fn bad_cookies() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let good = client.region(&[memory.all()], abi::PROT_READ | abi::PROT_WRITE)?;
    let other_descriptor = good ^ 0x5555;
    for cookie in [0, u64::MAX, other_descriptor, good ^ (0x5555 << 32)] {
        let (bad, local) = (start_of(cookie), Area::zeroed(100));
        let what = |request: &str| format!("{request} of cookie {cookie:#x}");
        let invalid = Err(Errno::EINVAL);
        equal(&what("INLINE_COPY"), client.read(&[local.all()], bad, PLAIN), invalid)?;
        equal(&what("INLINE_COPY, writing,"), client.write(&[local.all()], bad, PLAIN), invalid)?;
        equal(&what("INLINE_COPY_BOUNDED"), client.read(&[local.all()], bad, bounded(1)), invalid)?;
        equal(&what("COPY from"), client.copy(bad, start_of(good), PLAIN), invalid)?;
        equal(&what("COPY_BOUNDED to"), client.copy(start_of(good), bad, bounded(1)), invalid)?;
        if cookie != other_descriptor {
            equal(&what("DESTROY_REGION"), client.destroy(cookie), Err(Errno::EINVAL))?;
        }
        same_bytes("memory after refusals", &local.bytes(), &[0; 100])?;
    }
    // Drivers may look at the region's number within its descriptor alone.
    let by_number = client.destroy(other_descriptor);
    let gone = client.destroy(good);
    match by_number {
        Ok(()) => {
            equal("DESTROY_REGION of the good one after that of its number", gone, Err(Errno::EINVAL))?;
            Ok("a region is destroyed by the upper half of its cookie".to_owned())
        }
        Err(errno) => {
            equal("DESTROY_REGION of another descriptor's cookie", errno, Errno::EINVAL)?;
            equal("DESTROY_REGION of the good one", gone, Ok(()))?;
            holds()
        }
    }
}

fn destroyed() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    equal("DESTROY_REGION", client.destroy(cookie), Ok(()))?;
    let local = Area::zeroed(100);
    let read = client.read(&[local.all()], start_of(cookie), PLAIN);
    equal("read of a destroyed region", read, Err(Errno::EINVAL))?;
    equal("destroying it again", client.destroy(cookie), Err(Errno::EINVAL))?;
    holds()
}

fn foreign() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    let same_process = Client::open()?.destroy(cookie);
    equal("DESTROY_REGION through another descriptor", same_process, Err(Errno::EINVAL))?;
    elsewhere(|| {
        let other_process = Client::open()?.destroy(cookie);
        equal("DESTROY_REGION by another process", other_process, Err(Errno::EINVAL))
    })?;
    let local = Area::zeroed(100);
    equal("a read afterwards", client.read(&[local.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    equal("DESTROY_REGION by its owner", client.destroy(cookie), Ok(()))?;
    holds()
}

fn protection() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let (read, write) = (abi::PROT_READ, abi::PROT_WRITE);
    for allowed in [0, read, write, read | write] {
        let cookie = client.region(&[memory.all()], allowed)?;
        let local = Area::with(&pattern(1, 100));
        let expected = |needed| if allowed & needed != 0 { Ok(SUCCESS) } else { Err(Errno::EACCES) };
        let what = format!("read of a region with protection {allowed}");
        equal(&what, client.read(&[local.all()], start_of(cookie), PLAIN), expected(read))?;
        let what = format!("write of a region with protection {allowed}");
        equal(&what, client.write(&[local.all()], start_of(cookie), PLAIN), expected(write))?;
    }
    same_bytes("the memory", &memory.bytes(), &pattern(1, 100))?;
    holds()
}

fn region_protection() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let (read, write) = (abi::PROT_READ, abi::PROT_WRITE);
    let other = Area::with(&pattern(2, 100));
    for (from, to) in [(read, read), (write, write), (write, read), (0, write), (read, 0)] {
        let source = client.region(&[memory.all()], from)?;
        let target = client.region(&[other.all()], to)?;
        let what = format!("COPY from protection {from} to protection {to}");
        let copy = client.copy(start_of(source), start_of(target), PLAIN);
        equal(&what, copy, Err(Errno::EACCES))?;
    }
    same_bytes("the source's memory", &memory.bytes(), &pattern(1, 100))?;
    same_bytes("the target's memory", &other.bytes(), &pattern(2, 100))?;
    holds()
}

fn bad_memory() -> Verdict {
    let (client, memory) = (Client::bare()?, Area::with(&pattern(1, 100)));
    let fault = Err(Errno::EFAULT);
    equal("a segment at nothing", client.create(&[Piece::nowhere(100)], 0, abi::PROT_READ), fault)?;
    let second = [memory.all(), Piece::nowhere(1)];
    equal("a second segment at nothing", client.create(&second, 0, abi::PROT_READ | abi::PROT_WRITE), fault)?;
    let gone = Area::zeroed(10_000);
    gone.unmap();
    equal("memory that was unmapped", client.create(&[gone.all()], 0, abi::PROT_READ), fault)?;
    holds()
}

fn bad_array() -> Verdict {
    let create = Client::bare()?.create_at(NOWHERE, 1, 0, abi::PROT_READ);
    equal("an array at nothing", create, Err(Errno::EFAULT))?;
    holds()
}

fn long_array() -> Verdict {
    let create = Client::bare()?.create_at(NOWHERE, u32::MAX, 0, abi::PROT_READ);
    equal("an array of 2^32 - 1 segments", create, Err(Errno::ENOMEM))?;
    holds()
}

fn unknown() -> Verdict {
    let client = Client::bare()?;
    // Numbers next to the known ones, with sizes that are no request's.
    for number in [0xc020_4b24_u32, 0x8038_4b36, 0x8008_4b2f, 0x8010_4b1f] {
        let found = sys::request(&client.device, number, &mut [0_u64; 8]);
        equal(&format!("request {number:#x}"), found, Err(Errno::ENOSYS))?;
    }
    holds()
}

fn read_only() -> Verdict {
    let memory = Area::with(&pattern(1, 100));
    match Client::open_read_only() {
        Err(Errno::EBADF) => Ok("opening it so is EBADF already".to_owned()),
        Err(errno) => fails(format!("open for reading only: expected success or EBADF, found {errno}")),
        Ok(client) => {
            let create = client.create(&[memory.all()], 0, abi::PROT_READ);
            equal("CREATE_REGION through it", create, Err(Errno::EBADF))?;
            holds()
        }
    }
}

/// A user that is not this one.
const NOBODY: Uid = Uid::from_raw(65_534);

fn become_nobody() -> Result<(), Stop> {
    needed("setresuid", setresuid(NOBODY, NOBODY, NOBODY))
}

fn other_user() -> Verdict {
    if !geteuid().is_root() {
        return skip("only root can become another user");
    }
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ | abi::PROT_WRITE)?;
    elsewhere(|| {
        let (before, local) = (Client::open()?, Area::zeroed(100));
        become_nobody()?;
        let refused = Err(Errno::EPERM);
        equal("read by another user", before.read(&[local.all()], start_of(cookie), PLAIN), refused)?;
        equal("write by another user", before.write(&[local.all()], start_of(cookie), PLAIN), refused)?;
        same_bytes("the other user's memory", &local.bytes(), &[0; 100])
    })?;
    let local = Area::zeroed(100);
    equal("a read by the same user", client.read(&[local.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    holds()
}

fn root_too() -> Verdict {
    if !geteuid().is_root() {
        return skip("only root can become another user");
    }
    let other = Client::open()?;
    let mut owner = Peer::start(|channel| {
        become_nobody()?;
        let Ok(client) = Client::open() else {
            return channel.send(0);
        };
        let memory = Area::with(&pattern(1, 100));
        channel.send(1)?;
        channel.send(client.region(&[memory.all()], abi::PROT_READ)?)?;
        channel.receive().map(drop)
    })?;
    if owner.channel.receive()? == 0 {
        owner.join()?;
        return skip("another user may not open /dev/knem, so only root has regions");
    }
    let cookie = owner.channel.receive()?;
    let local = Area::zeroed(100);
    let read = other.read(&[local.all()], start_of(cookie), PLAIN);
    equal("read by root of another user's region", read, Err(Errno::EPERM))?;
    owner.channel.send(0)?;
    owner.join()?;
    holds()
}
