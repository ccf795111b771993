//! Regions for a single use.

use lmt_knem::ioctl::abi;
use nix::errno::Errno;

use crate::client::{Client, FAILED, PLAIN, SUCCESS, bounded, pattern, start_of};
use crate::sys::{Area, Piece};
use crate::verdict::{Stop, Verdict, equal, holds, same_bytes, skip};

super::checks! {
    once "single-use" "a region for a single use is gone after one copy";
    by_nothing "single-use-zero-bytes" "a copy of no bytes consumes it";
    by_failure "single-use-failed" "a copy that fails consumes it";
    not_by_refusal "single-use-refused" "a copy that its protection forbids does not consume it";
    between_regions "single-use-region-copy" "a region copy consumes both sides";
    last_by_word "single-use-bit" "a copy of a region for many uses that says it is the last moves all bytes, if it is made";
    destroyed "single-use-destroyed" "one that was not used can be destroyed, one that was used cannot";
}

fn gone(client: &Client, what: &str, cookie: u64) -> Result<(), Stop> {
    let local = Area::zeroed(10);
    let read = client.read(&[local.all()], start_of(cookie), PLAIN);
    equal(&format!("a second copy, after {what}"), read, Err(Errno::EINVAL))
}

fn once() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 5000)));
    let (cookie, local) = (client.region_once(&[memory.all()], abi::PROT_READ)?, Area::zeroed(5000));
    equal("the first copy", client.read(&[local.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    same_bytes("the first copy", &local.bytes(), &pattern(1, 5000))?;
    gone(&client, "the first", cookie)?;
    holds()
}

fn by_nothing() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let local = Area::zeroed(100);
    let cookie = client.region_once(&[memory.all()], abi::PROT_READ)?;
    equal("a copy of 0 bytes", client.read(&[local.all()], start_of(cookie), bounded(0)), Ok(SUCCESS))?;
    gone(&client, "a copy of 0 bytes", cookie)?;
    let cookie = client.region_once(&[memory.all()], abi::PROT_READ)?;
    equal("a copy of no segments", client.read(&[], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    gone(&client, "a copy of no segments", cookie)?;
    holds()
}

fn by_failure() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let cookie = client.region_once(&[memory.all()], abi::PROT_READ)?;
    let read = client.read(&[Piece::nowhere(100)], start_of(cookie), PLAIN);
    if client.always_pins()? {
        return skip("this driver is loaded with forced flags that have local memory pinned");
    }
    equal("a read into bad memory", read, Ok(FAILED))?;
    gone(&client, "a copy that failed", cookie)?;
    holds()
}

fn not_by_refusal() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let local = Area::with(&pattern(2, 100));
    let cookie = client.region_once(&[memory.all()], abi::PROT_READ)?;
    let write = client.write(&[local.all()], start_of(cookie), PLAIN);
    equal("a write of a region for reading", write, Err(Errno::EACCES))?;
    equal("a read afterwards", client.read(&[local.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    same_bytes("a read afterwards", &local.bytes(), &pattern(1, 100))?;
    gone(&client, "that", cookie)?;
    holds()
}

fn between_regions() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let other = Area::zeroed(100);
    let source = client.region_once(&[memory.all()], abi::PROT_READ)?;
    let target = client.region_once(&[other.all()], abi::PROT_READ | abi::PROT_WRITE)?;
    equal("COPY", client.copy(start_of(source), start_of(target), PLAIN), Ok(SUCCESS))?;
    same_bytes("COPY", &other.bytes(), &pattern(1, 100))?;
    gone(&client, "COPY from it", source)?;
    gone(&client, "COPY to it", target)?;
    holds()
}

fn last_by_word() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let (cookie, local) = (client.region(&[memory.all()], abi::PROT_READ)?, Area::zeroed(100));
    let read = |cookie| client.read(&[local.all()], start_of(cookie), PLAIN);
    match read(cookie | abi::COOKIE_SINGLE_USE) {
        Err(Errno::EINVAL) => {
            equal("a read afterwards", read(cookie), Ok(SUCCESS))?;
            return Ok("it is refused".to_owned());
        }
        last => equal("a read that says it is the last", last, Ok(SUCCESS))?,
    }
    same_bytes("a read that says it is the last", &local.bytes(), &pattern(1, 100))?;
    match read(cookie) {
        Err(Errno::EINVAL) => Ok("it takes the region away: this driver believes the asker".to_owned()),
        again => {
            equal("a read afterwards", again, Ok(SUCCESS))?;
            Ok("it is as any other".to_owned())
        }
    }
}

fn destroyed() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, 100)));
    let local = Area::zeroed(100);
    let cookie = client.region_once(&[memory.all()], abi::PROT_READ)?;
    equal("DESTROY_REGION of an unused one", client.destroy(cookie), Ok(()))?;
    let cookie = client.region_once(&[memory.all()], abi::PROT_READ)?;
    equal("the first copy", client.read(&[local.all()], start_of(cookie), PLAIN), Ok(SUCCESS))?;
    equal("DESTROY_REGION of a used one", client.destroy(cookie), Err(Errno::EINVAL))?;
    holds()
}
