use super::*;

#[test]
fn every_pattern_is_found_by_its_name() {
    assert_eq!(DEFINITIONS.len(), 13);
    for definition in DEFINITIONS {
        assert_eq!(definition.name.parse(), Ok(definition.pattern));
        assert_eq!(definition.pattern.name(), definition.name);
        assert!(crate::sizes::parse_sizes(definition.default_sizes).is_ok());
    }
    let error = "pingpon".parse::<Pattern>().unwrap_err();
    assert!(error.contains("did you mean 'pingpong'"), "{error}");
}

#[test]
fn times_are_those_of_the_field() {
    // One second, ten iterations.
    assert_eq!(Pattern::Pingpong.usec(1.0, 10, 8), 50_000.0);
    assert_eq!(Pattern::Pingping.usec(1.0, 10, 8), 100_000.0);
    assert_eq!(Pattern::Exchange.usec(1.0, 10, 8), 100_000.0);
    assert_eq!(Pattern::Bw.usec(1.0, 10, 8), 100_000.0 / 64.0);
    assert_eq!(Pattern::Alltoall.usec(1.0, 10, 8), 100_000.0);
    assert_eq!((Pattern::Ring.usec(1.0, 10, 8), Pattern::Pairs.usec(1.0, 10, 8)), (100_000.0, 100_000.0));
    assert_eq!((Pattern::Ring.counted_bytes(8, 4), Pattern::Pairs.window(8, 4)), (8.0, 1));
    assert_eq!(Pattern::Exchange.counted_bytes(8, 2), 32.0);
    assert_eq!(Pattern::Bibw.counted_bytes(8, 2), 16.0);
    assert_eq!(Pattern::Alltoall.counted_bytes(8, 4), 48.0);
}

#[test]
fn windows_are_bounded_in_bytes() {
    assert_eq!(Pattern::Bw.window(0, 2), 64);
    assert_eq!(Pattern::Bw.window(1 << 20, 2), 64);
    assert_eq!(Pattern::Bw.window(16 << 20, 2), 4);
    assert_eq!(Pattern::Bibw.window(4 << 30, 2), 1);
    assert_eq!(Pattern::Alltoall.window(8, 4), 3);
}
