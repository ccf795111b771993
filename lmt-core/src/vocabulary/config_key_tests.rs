use crate::vocabulary::config_key::{Key, Kind, Value};

const fn key(kind: Kind) -> Key {
    Key { name: "some_key", kind, variable: None, meaning: "", reason: "" }
}

#[test]
fn a_value_outside_the_bounds_is_told_what_would_be_right() {
    let cases = [
        (
            Kind::Bytes { least: 512, most: 1 << 20, multiple_of: 64 },
            Value::Number(100),
            "a number of bytes that is a multiple of 64 from 512 to 1048576",
        ),
        (Kind::Count { least: 1, most: u64::MAX }, Value::Number(0), "a whole number, at least 1"),
        (Kind::Count { least: 0, most: 9 }, Value::Number(10), "a whole number, at most 9"),
        (Kind::PowerOfTwo { least: 8, most: 65536 }, Value::Number(9), "a power of two from 8 to 65536"),
        (Kind::Flag, Value::Number(1), "true or false"),
        (Kind::Mechanisms, Value::Names(Vec::new()), "a list of mechanisms"),
        (Kind::Word(&["a", "b"]), Value::Text("c".into()), "one of a, b"),
        (
            Kind::Copies,
            Value::Text("memcpy".into()),
            "auto, or one of libc, portable, rep-movsb, avx2, avx512, non-temporal, or a list of them by alignment, distance and length",
        ),
    ];
    for (kind, value, expected) in cases {
        assert_eq!(key(kind).check(&value).unwrap_err(), expected);
    }
}

#[test]
fn values_within_the_bounds_are_taken() {
    let cases = [
        (Kind::Bytes { least: 512, most: 1 << 20, multiple_of: 64 }, Value::Number(1 << 20)),
        (Kind::PowerOfTwo { least: 8, most: 8 }, Value::Number(8)),
        (Kind::Cpu, Value::Absent),
        (Kind::Folder, Value::Text("/run".into())),
        (Kind::Copies, Value::Text("auto".into())),
        (Kind::Copies, Value::Text("portable aliased 2KiB-, libc".into())),
        (Kind::Word(&["a", "b"]), Value::Text("b".into())),
        (Kind::Milliseconds { least: 0, most: u64::MAX }, Value::Number(7)),
    ];
    for (kind, value) in cases {
        assert_eq!(key(kind).check(&value), Ok(()), "{kind:?} {value}");
    }
}
