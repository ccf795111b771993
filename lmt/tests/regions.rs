//! Regions of the own process, and what ends with a scope.
#![allow(unsafe_code)] // Declares memory for writing.

use std::io::{IoSlice, IoSliceMut};

use lmt::{Direction, Endpoint, OperationError, Protection, RegionError, RegionKey, SharedEndpoint};

fn error_of<T: std::fmt::Debug>(result: Result<T, OperationError>) -> RegionError {
    match result {
        Err(OperationError::Region(error)) => error,
        other => panic!("a region's error was expected, not {other:?}"),
    }
}

#[test]
fn a_process_reaches_its_own_regions() {
    let endpoint = Endpoint::new().expect("an endpoint");
    let (mut a, mut b) = (*b"abcdef", *b"ghijkl");
    let (mut into, more) = ([0; 7], *b"XYZ");
    let key = endpoint.scope(|scope| {
        let pieces = &mut [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)];
        // SAFETY: only this thread knows the key, and waits for its put below.
        let region = unsafe { scope.register_segments(pieces, Protection::READ_WRITE) };
        let region = region.expect("a region");
        let put = scope.put(&region.key(), 5, &more).expect("a put");
        assert_eq!(put.wait().expect("it is done").bytes, 3);
        let get = scope.get(&region.key(), 2, &mut into).expect("a get");
        assert_eq!(get.wait().expect("it is done").bytes, 7);
        region.write_at(0, b"0").expect("within it");
        assert!(matches!(error_of(region.write_at(12, b"0")), RegionError::OutOfBounds { .. }));
        region.key()
    });
    assert_eq!((&a, &b, &into), (b"0bcdeX", b"YZijkl", b"cdeXYZi"));
    assert_eq!(error_of(endpoint.get(&key, 0, &mut into)), RegionError::NotRegistered);
}

#[test]
fn a_handle_alone_names_a_region_for_copies() {
    let endpoint = Endpoint::new().expect("an endpoint");
    let region = endpoint.allocate_region(8, Protection::READ_WRITE).expect("memory");
    let key = RegionKey::by_handle(endpoint.id(), region.key().handle());
    endpoint.put(&key, 2, b"abc").expect("it is declared");
    let mut text = [0; 4];
    endpoint.get(&key, 1, &mut text).expect("the same");
    assert_eq!(&text, b"\0abc");
    let past = RegionError::OutOfBounds { offset: 6, bytes: 3, total_bytes: 8 };
    assert_eq!(error_of(endpoint.put(&key, 6, b"abc")), past);
    let none = RegionKey::by_handle(endpoint.id(), region.key().handle() + 1);
    assert_eq!(error_of(endpoint.get(&none, 0, &mut text)), RegionError::NotRegistered);
}

#[test]
fn protection_binds_peers_and_not_the_owner() {
    let endpoint = Endpoint::new().expect("an endpoint");
    let region = endpoint.allocate_region(8, Protection::WRITE).expect("memory");
    endpoint.put(&region.key(), 0, b"12345678").expect("it is allowed");
    let mut text = [0; 8];
    let forbidden = RegionError::Forbidden(Direction::Get);
    assert_eq!(error_of(endpoint.get(&region.key(), 0, &mut text)), forbidden);
    region.read_at(0, &mut text).expect("its owner may");
    assert_eq!(&text, b"12345678");
}

#[test]
fn a_scope_left_by_a_panic_destroys_its_regions() {
    let endpoint = Endpoint::new().expect("an endpoint");
    let memory = [0; 8];
    let mut key = None;
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        endpoint.scope(|scope| {
            let pieces = [IoSlice::new(&memory)];
            key = scope.register_read_only(&pieces).ok().map(|region| region.key());
            panic!("on purpose");
        })
    }));
    assert!(unwound.is_err());
    let key = key.expect("it was declared");
    assert_eq!(error_of(endpoint.get(&key, 0, &mut [0; 8])), RegionError::NotRegistered);
}

#[test]
fn the_region_of_an_unknown_endpoint_is_refused() {
    let (endpoint, stranger) = (Endpoint::new().expect("one"), Endpoint::new().expect("another"));
    let region = stranger.allocate_region(8, Protection::READ).expect("memory");
    let key = RegionKey::from_bytes(region.key().to_bytes());
    assert_eq!(endpoint.get(&key, 0, &mut [0; 8]), Err(OperationError::UnknownPeer));
    endpoint.insert_peer(&stranger.address()).expect("room for a peer");
    // Nobody makes progress for the stranger here: the get can be taken back.
    let mut into = [0; 8];
    endpoint.scope(|scope| {
        let get = scope.get(&key, 0, &mut into).expect("it is begun");
        assert_eq!(get.cancel(), Err(OperationError::Cancelled));
    });
}

#[test]
fn a_region_of_single_use_is_used_once_by_whoever_is_first() {
    let endpoint = SharedEndpoint::new(Endpoint::new().expect("an endpoint"));
    let region = endpoint.allocate_region(8, Protection::READ_WRITE.single_use()).expect("memory");
    region.write_at(0, b"12345678").expect("its owner is not bound");
    // What is refused before it begins uses nothing up.
    assert!(matches!(error_of(endpoint.put(&region.key(), 8, b"9")), RegionError::OutOfBounds { .. }));
    let begin = std::sync::Barrier::new(4);
    let results: Vec<_> = std::thread::scope(|threads| {
        let one = || {
            begin.wait();
            let mut text = [0; 8];
            endpoint.get(&region.key(), 0, &mut text).map(|status| (status.bytes, text))
        };
        let all: Vec<_> = (0..4).map(|_| threads.spawn(one)).collect();
        all.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let (served, refused): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!(served, [Ok((8, *b"12345678"))]);
    assert!(refused.into_iter().all(|result| error_of(result) == RegionError::UsedUp));
    region.write_at(0, b"87654321").expect("its owner is not bound");
    let key = region.key();
    drop(region);
    assert_eq!(error_of(endpoint.get(&key, 0, &mut [0; 8])), RegionError::NotRegistered);
}

#[test]
fn a_scope_with_ten_thousand_regions_ends_at_once() {
    let endpoint = Endpoint::new().expect("an endpoint");
    let (memory, mut into) = ([7; 64], [0; 64]);
    let begun = std::time::Instant::now();
    endpoint.scope(|scope| {
        let register_memory = |_| scope.register_read_only(&[IoSlice::new(&memory)]).expect("a region");
        let regions: Vec<_> = (0..10_000).map(register_memory).collect();
        endpoint.get(&regions[9999].key(), 0, &mut into).expect("it is there");
        regions.into_iter().step_by(2).for_each(|region| region.destroy().expect("it is declared"));
    });
    assert_eq!(into, memory);
    // By looking through all for each it would take minutes.
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}
