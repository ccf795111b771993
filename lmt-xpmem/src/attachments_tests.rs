use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Mutex;

use lmt_core::process::PeerProcess;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use proptest::prelude::*;

use super::*;
use crate::driver::Permit;

/// A driver whose attachments are memory of this process, and which notes what it did.
#[derive(Clone, Debug, Default)]
struct Noted(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    /// What is attached: permit, block, address.
    attached: Vec<(i64, u64, usize)>,
    attaches: u64,
    released: Vec<i64>,
}

// SAFETY: anonymous memory, mapped until it is detached.
unsafe impl Driver for Noted {
    const NAME: &'static str = "noted";

    fn segment(&self) -> Result<i64, Errno> {
        Ok(1)
    }

    fn get(&self, segment: i64) -> Result<i64, Errno> {
        Ok(segment)
    }

    fn release(&self, permit: i64) {
        let mut notes = self.0.lock().expect("no panic");
        assert!(notes.attached.iter().all(|(of, ..)| *of != permit), "released while attached");
        notes.released.push(permit);
    }

    fn attach(&self, permit: i64, address: u64, bytes: u64) -> Result<usize, Errno> {
        assert!(
            address.is_multiple_of(BLOCK_BYTES) && bytes <= BLOCK_BYTES && address + bytes <= ADDRESSES_END
        );
        let length = NonZeroUsize::new(bytes as usize).ok_or(Errno::EINVAL)?;
        let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: at an address of the kernel's choice.
        let here = unsafe { mmap_anonymous(None, length, both, flags) }?.as_ptr().expose_provenance();
        let mut notes = self.0.lock().expect("no panic");
        notes.attached.push((permit, address / BLOCK_BYTES, here));
        notes.attaches += 1;
        Ok(here)
    }

    unsafe fn detach(&self, address: usize, bytes: u64) {
        let mut notes = self.0.lock().expect("no panic");
        let found = notes.attached.iter().position(|(.., here)| *here == address).expect("it is attached");
        notes.attached.swap_remove(found);
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut(address)).expect("mapped");
        // SAFETY: `attach` mapped it, and nobody uses it.
        unsafe { munmap(start, bytes as usize) }.expect("it was mapped");
    }
}

impl Noted {
    fn peer(&self, number: u64) -> XpmemPeer<Self> {
        let permit = Permit::get(self.clone(), number as i64).expect("given");
        XpmemPeer { number, process: Arc::new(PeerProcess::this()), permit: Some(permit) }
    }

    /// The blocks of a peer's that are attached.
    fn blocks(&self, peer: u64) -> Vec<u64> {
        let notes = self.0.lock().expect("no panic");
        let of = notes.attached.iter().filter(|(permit, ..)| *permit == peer as i64);
        let mut blocks: Vec<_> = of.map(|(_, block, _)| *block).collect();
        blocks.sort_unstable();
        blocks
    }
}

fn keeping(blocks: u64) -> Attachments<Noted> {
    Attachments::new(Config { kept_bytes: blocks * BLOCK_BYTES })
}

#[test]
fn what_is_put_somewhere_is_fetched_from_there_also_across_blocks() {
    let (driver, mut attachments) = (Noted::default(), keeping(8));
    let peer = driver.peer(3);
    for address in [1, BLOCK_BYTES - 5, 7 * BLOCK_BYTES - 3000, ADDRESSES_END - 5000] {
        let sent: Vec<u8> = (0..5000).map(|at| (at * 31) as u8).collect();
        attachments.put(&peer, address, &mut sent.clone()).expect("memory");
        let mut received = vec![0; 5000];
        attachments.fetch(&peer, address, &mut received).expect("memory");
        assert!(received == sent, "at {address:#x}");
    }
    assert_eq!(driver.blocks(3), [0, 1, 6, 7, ADDRESSES_END / BLOCK_BYTES]);
}

#[test]
fn addresses_that_no_process_has_are_a_fault_of_the_transfer() {
    let (driver, mut attachments) = (Noted::default(), keeping(8));
    let peer = driver.peer(1);
    for address in [ADDRESSES_END - 2, ADDRESSES_END, 1 << 47, u64::MAX - 3, u64::MAX] {
        let fault = attachments.fetch(&peer, address, &mut [0; 4]).expect_err("there is none");
        assert!(matches!(fault, Fault::Demote { for_good: false, .. }), "{fault}");
    }
    assert_eq!(driver.blocks(1), [] as [u64; 0], "after a fault nothing stays");
}

#[test]
fn the_least_recently_used_block_goes_first() {
    let (driver, mut attachments) = (Noted::default(), keeping(3));
    let peer = driver.peer(1);
    let mut touch = |block: u64| {
        attachments.fetch(&peer, block * BLOCK_BYTES, &mut [0; 4]).expect("memory");
        attachments.trim();
    };
    [0, 1, 2, 0, 3].into_iter().for_each(&mut touch);
    assert_eq!(driver.blocks(1), [0, 2, 3]);
    touch(0);
    assert_eq!(driver.0.lock().expect("no panic").attaches, 4, "what is kept is not attached again");
}

#[test]
fn a_permit_is_given_back_after_the_last_attachment() {
    let (driver, mut attachments) = (Noted::default(), keeping(9));
    let (one, other) = (driver.peer(1), driver.peer(2));
    for peer in [&one, &other] {
        attachments.fetch(peer, 99, &mut [0; 4]).expect("memory");
    }
    drop(one);
    assert_eq!((driver.blocks(1).len(), driver.0.lock().expect("no panic").released.len()), (1, 0));
    attachments.forget(1);
    assert_eq!((driver.blocks(1).len(), driver.blocks(2).len()), (0, 1));
    assert_eq!(driver.0.lock().expect("no panic").released, [1]);
    drop(attachments);
    drop(other);
    assert_eq!(driver.0.lock().expect("no panic").released, [1, 2]);
}

proptest! {
    #[test]
    fn the_bound_holds(blocks in 0u64..5, touched in prop::collection::vec((1u64..3, 0u64..9), 1..60)) {
        let (driver, mut attachments) = (Noted::default(), keeping(blocks));
        let peers = [driver.peer(1), driver.peer(2)];
        for (peer, block) in touched {
            let peer = &peers[peer as usize - 1];
            attachments.fetch(peer, block * BLOCK_BYTES + 7, &mut [0; 9]).expect("memory");
            // What was copied last stays until the transfer ends.
            prop_assert!((driver.blocks(1).len() + driver.blocks(2).len()) as u64 <= blocks.max(1));
            attachments.trim();
            prop_assert!((driver.blocks(1).len() + driver.blocks(2).len()) as u64 <= blocks);
        }
    }
}
