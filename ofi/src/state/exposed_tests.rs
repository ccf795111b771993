#![allow(unsafe_code)] // Lends memory.

use lmt::buffer::Access;

use super::*;
use crate::atomic::Family;

const KEY: u64 = 7;

fn exposed(memory: &mut [u32], protection: Protection) -> Exposed {
    let (address, bytes) = (memory.as_mut_ptr().expose_provenance(), size_of_val(memory));
    // SAFETY: the tests keep the memory for as long, and look at it in between only.
    let lent = unsafe { Lent::new(address, bytes, Access::Write) };
    let mut exposed = Exposed::default();
    exposed.insert(KEY, lent, protection);
    exposed
}

fn action(family: Family, op: i32) -> Action {
    Action::of(family, 5, op).expect("an action on FI_UINT32")
}

fn words(list: &[u32]) -> Vec<u8> {
    list.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn elements_are_changed_and_fetched() {
    let mut memory = [1, 2, 3, 4];
    let exposed = exposed(&mut memory, Protection::READ_WRITE);
    let mut old = Vec::new();
    let sum = action(Family::Fetch, 2);
    assert_eq!(exposed.atomic((sum, 2), (KEY, 4), &words(&[10, 20]), &mut old), Ok(()));
    assert_eq!(old, words(&[2, 3]));
    let swap = action(Family::Compare, 12);
    old.clear();
    assert_eq!(exposed.atomic((swap, 2), (KEY, 0), &words(&[7, 8, 1, 9]), &mut old), Ok(()));
    assert_eq!(old, words(&[1, 12]));
    old.clear();
    assert_eq!(exposed.atomic((action(Family::Base, 11), 1), (KEY, 12), &words(&[5]), &mut old), Ok(()));
    assert_eq!(exposed.atomic((action(Family::Fetch, 10), 4), (KEY, 0), &[], &mut old), Ok(()));
    assert_eq!(old, words(&[7, 12, 23, 5]));
}

#[test]
fn what_peers_ask_for_is_checked() {
    let touch = &mut FaultSafeCopy::default();
    let mut memory = [0; 4];
    let exposed = exposed(&mut memory, Protection::READ);
    let mut into = Vec::new();
    let fetch = action(Family::Fetch, 10);
    let sum = action(Family::Base, 2);
    let one = words(&[1]);
    assert_eq!(exposed.atomic((fetch, 1), (8, 0), &[], &mut into), Err(Errno::NOKEY));
    assert_eq!(exposed.atomic((sum, 1), (KEY, 0), &one, &mut into), Err(Errno::ACCES));
    assert_eq!(exposed.atomic((fetch, 1), (KEY, 16), &[], &mut into), Err(Errno::INVAL));
    assert_eq!(exposed.atomic((fetch, 1), (KEY, u64::MAX), &[], &mut into), Err(Errno::INVAL));
    assert_eq!(exposed.atomic((fetch, 0), (KEY, 0), &[], &mut into), Err(Errno::INVAL), "none");
    assert_eq!(exposed.atomic((fetch, usize::MAX), (KEY, 0), &[], &mut into), Err(Errno::INVAL));
    assert_eq!(
        exposed.atomic((sum, 1), (KEY, 0), &one[..3], &mut into),
        Err(Errno::INVAL),
        "half an operand"
    );
    assert_eq!(exposed.write(touch, (KEY, 0), 4, &one), Err(Errno::ACCES));
    assert_eq!(exposed.read(touch, (KEY, 13), 4, 4, &mut into), Err(Errno::INVAL));
    assert!(into.is_empty());
    assert_eq!(
        exposed.read(touch, (KEY, 12), 5, 1, &mut into),
        Err(Errno::INVAL),
        "a piece of too long a read"
    );
    assert_eq!(exposed.read(touch, (KEY, 12), 0, 5, &mut into), Err(Errno::INVAL));
    assert!(into.is_empty());
    assert_eq!(exposed.read(touch, (KEY, 12), 4, 4, &mut into), Ok(()));
    assert_eq!(into, [0; 4]);
}
