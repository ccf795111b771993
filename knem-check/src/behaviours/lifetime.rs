//! How long regions live.

use std::time::{Duration, Instant};

use lmt_knem::ioctl::abi;
use nix::errno::Errno;

use crate::client::{Client, PLAIN, SUCCESS, pattern, start_of};
use crate::peer::Peer;
use crate::sys::{Area, SharedByte};
use crate::verdict::{Stop, Verdict, equal, fails, holds, same_bytes};

super::checks! {
    closed "owner-closed" "regions are EINVAL once their descriptor is closed";
    exited "owner-exited" "regions are EINVAL once their owner has ended";
    killed "owner-killed" "regions are EINVAL once their owner was killed and waited for";
    held "owner-child" "regions live on while a forked child has the descriptor";
    mapped "owner-mapped" "regions live on while the status array is mapped";
}

const BYTES: usize = 9000;

fn reads(what: &str, cookie: u64) -> Result<(), Stop> {
    let local = Area::zeroed(BYTES);
    let read = Client::open()?.read(&[local.all()], start_of(cookie), PLAIN);
    equal(what, read, Ok(SUCCESS))?;
    same_bytes(what, &local.bytes(), &pattern(1, BYTES))
}

/// Waits a little: a driver may take a descriptor's end in hand later.
fn is_gone(what: &str, cookie: u64) -> Result<(), Stop> {
    let (client, local) = (Client::open()?, Area::zeroed(BYTES));
    let read = || client.read(&[local.all()], start_of(cookie), PLAIN);
    wait_until(Duration::from_secs(1), || read() == Err(Errno::EINVAL));
    equal(what, read(), Err(Errno::EINVAL))
}

/// A process with a region, which it keeps until it gets a word.
fn owner() -> Result<(Peer, u64), Stop> {
    let mut owner = Peer::start(|channel| {
        let (client, memory) = (Client::open()?, Area::with(&pattern(1, BYTES)));
        channel.send(client.region(&[memory.all()], abi::PROT_READ)?)?;
        channel.receive().map(drop)
    })?;
    let cookie = owner.channel.receive()?;
    Ok((owner, cookie))
}

fn closed() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, BYTES)));
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    reads("a read while it is open", cookie)?;
    drop(client);
    is_gone("a read after closing", cookie)?;
    holds()
}

fn exited() -> Verdict {
    let (mut owner, cookie) = owner()?;
    reads("a read while the owner lives", cookie)?;
    owner.channel.send(0)?;
    owner.join()?;
    is_gone("a read after the owner's end", cookie)?;
    holds()
}

fn killed() -> Verdict {
    let (mut owner, cookie) = owner()?;
    owner.kill();
    // Until the owner is waited for both are right: nothing is expected.
    let local = Area::zeroed(BYTES);
    let at_once = Client::open()?.read(&[local.all()], start_of(cookie), PLAIN);
    owner.reap();
    is_gone("a read after the owner's death", cookie)?;
    match at_once {
        Ok(SUCCESS) => same_bytes("a read just after the kill", &local.bytes(), &pattern(1, BYTES))?,
        Ok(_) | Err(Errno::EINVAL) => {}
        Err(errno) => {
            return fails(format!("a read just after the kill: expected success or EINVAL, found {errno}"));
        }
    }
    Ok(format!("just after the kill a read gave {at_once:?}"))
}

fn held() -> Verdict {
    let (end, backoff) = (SharedByte::new(), Duration::from_secs(10));
    let mut owner = Peer::start(|channel| {
        let (client, memory) = (Client::open()?, Area::with(&pattern(1, BYTES)));
        let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
        // The child that keeps the descriptor when the owner has ended.
        let child = Peer::start(|_| {
            wait_until(backoff, || end.is_set());
            drop(client);
            Ok(())
        })?;
        channel.send(cookie)?;
        channel.receive()?;
        std::mem::forget(child);
        Ok(())
    })?;
    let cookie = owner.channel.receive()?;
    reads("a read while the owner lives", cookie)?;
    owner.channel.send(0)?;
    owner.reap();
    let after = reads("a read after the owner's end, with a child that has the descriptor", cookie);
    end.set();
    after?;
    // The child is nobody's to wait for; it ends soon.
    is_gone("a read after the child's end too", cookie)?;
    holds()
}

fn wait_until(backoff: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + backoff;
    while !holds() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn mapped() -> Verdict {
    let (client, memory) = (Client::open()?, Area::with(&pattern(1, BYTES)));
    let slots = client.map_status()?;
    let cookie = client.region(&[memory.all()], abi::PROT_READ)?;
    drop(client);
    reads("a read with the descriptor closed and the status array mapped", cookie)?;
    drop(slots);
    is_gone("a read after unmapping too", cookie)?;
    holds()
}
