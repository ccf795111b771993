use super::*;

#[test]
fn units_are_powers_of_1024() {
    for (text, bytes) in [
        ("0", 0),
        ("8", 8),
        ("8B", 8),
        ("64KiB", 65536),
        ("64k", 65536),
        ("64K", 65536),
        (" 1 MiB ", 1 << 20),
        ("1M", 1 << 20),
        ("4GiB", 4 << 30),
    ] {
        assert_eq!(parse_size(text), Ok(bytes), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (text, part) in [
        ("12XB", "the unit 'XB'"),
        ("1MB", "the unit 'MB'"),
        ("1.5MiB", "the unit '.5MiB'"),
        ("", "missing"),
        ("8,", "missing"),
        (",,", "missing"),
        ("-1", "whole number"),
        ("KiB", "whole number"),
        ("0..", "no end"),
        ("..8", "no start"),
        ("..", "no start"),
        ("16..8", "no power of two"),
        ("5..7", "no power of two"),
        ("8..12XB", "the unit 'XB'"),
        ("99999999999999999999999", "too large"),
        ("18446744073709551615GiB", "too large"),
        ("5GiB", "too large"),
    ] {
        let error = parse_sizes(text).expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
        assert!(!error.contains('\n'));
    }
}

#[test]
fn ranges_are_powers_of_two() {
    assert_eq!(parse_sizes("1..16"), Ok(vec![1, 2, 4, 8, 16]));
    assert_eq!(parse_sizes("0..=4"), Ok(vec![0, 1, 2, 4]));
    assert_eq!(parse_sizes("3..20"), Ok(vec![4, 8, 16]));
    assert_eq!(parse_sizes("1..16MiB").map(|sizes| sizes.len()), Ok(25));
    assert_eq!(parse_sizes("1MiB,8,1..8"), Ok(vec![1, 2, 4, 8, 1 << 20]));
}

#[test]
fn sizes_for_people() {
    assert_eq!(human(100), "100 B");
    assert_eq!(human(65536), "64 KiB");
    assert_eq!(human(1 << 20), "1 MiB");
    assert_eq!(human((1 << 20) + 1), "1048577 B");
}
