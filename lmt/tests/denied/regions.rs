//! Regions of a process whose memory is closed to others.

use std::io::IoSlice;

use lmt::{Protection, RegionKey, Source, TagMatch};
use lmt_conformance::denials::Confinement;
use lmt_conformance::test_name;
use nix::sys::prctl::set_dumpable;

use crate::common::{check, pattern};
use crate::party::{Party, two};

const BYTES: usize = 1 << 20;
const KEYS: u64 = 1;
const DONE: u64 = 2;

/// Allocated memory is shared and needs no right to the owner's; what the owner
/// has declared of its own memory is out of reach, and the error says why.
#[test]
fn allocated_memory_is_reached_and_declared_memory_is_not() {
    let plain = Confinement::new();
    two(test_name!(), &plain, &plain).run(|group| {
        set_dumpable(false).expect("prctl allows it");
        let party = Party::new(group);
        if group.rank() == 0 {
            own(&party)
        } else {
            reach(&party)
        }
        group.barrier();
    });
}

fn own(party: &Party<'_>) {
    let memory = pattern(2, BYTES);
    let allocated = party.endpoint.allocate_region(BYTES, Protection::READ_WRITE).expect("memory");
    allocated.write_at(0, &pattern(1, BYTES)).expect("within it");
    party.endpoint.scope(|scope| {
        let declared = scope.register_read_only(&[IoSlice::new(&memory)]).expect("a region");
        let keys = [allocated.key().to_bytes(), declared.key().to_bytes()].concat();
        party.endpoint.send(party.peer, KEYS, &keys).expect("it is sent");
        // Hands the allocated memory over meanwhile.
        party.endpoint.receive(from(party), TagMatch::exactly(DONE), &mut []).expect("the peer is done");
    });
    let mut changed = vec![0; BYTES];
    allocated.read_at(0, &mut changed).expect("within it");
    check(3, &changed);
}

fn reach(party: &Party<'_>) {
    let mut keys = [0; 2 * RegionKey::BYTES];
    party.endpoint.receive(from(party), TagMatch::exactly(KEYS), &mut keys).expect("the keys");
    let (allocated, declared) = keys.split_at(RegionKey::BYTES);
    let key = |bytes: &[u8]| RegionKey::from_bytes(bytes.try_into().expect("of a key's length"));
    let mut into = vec![0; BYTES];
    party.endpoint.get(&key(allocated), 0, &mut into).expect("it is shared");
    check(1, &into);
    party.endpoint.put(&key(allocated), 0, &pattern(3, BYTES)).expect("it is shared");
    let error = party.endpoint.get(&key(declared), 0, &mut into).expect_err("it is closed").to_string();
    for word in ["not dumpable", "EPERM", "allocate the region"] {
        assert!(error.contains(word), "no `{word}` in {error}");
    }
    party.endpoint.send(party.peer, DONE, &[]).expect("it is sent");
}

fn from(party: &Party<'_>) -> Source {
    Source::Peer(party.peer)
}
