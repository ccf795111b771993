use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use lmt_core::config_key::Value;

use super::{known_variables, read, remarks};
use crate::config::test_support::known;
use crate::configuration::DmaMinSetting;

fn complaints(name: &str, value: OsString) -> Vec<String> {
    let mut problems = Vec::new();
    read(&[(name.to_owned(), value)], &known(), &mut problems);
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn sizes_and_times_may_have_units_or_none() {
    let value = |name: &str, text: &str| {
        let mut problems = Vec::new();
        let read = read(&[(name.to_owned(), text.into())], &known(), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        read.endpoint.first().map(|(_, value, _)| value.clone())
    };
    assert_eq!(value("LMT_EAGER_MAX", "64 KiB"), Some(Value::Number(65536)));
    assert_eq!(value("LMT_EAGER_MAX", "4096"), Some(Value::Number(4096)));
    assert_eq!(value("LMT_CONNECT_TIMEOUT_MS", "2 s"), Some(Value::Number(2000)));
    assert_eq!(value("LMT_CONNECT_TIMEOUT_MS", "250"), Some(Value::Number(250)));
    assert_eq!(value("LMT_ALLOW_OTHER_USERS", "1"), Some(Value::Flag(true)));
    assert_eq!(value("LMT_EAGER_MAX", ""), None);
}

#[test]
fn what_a_variable_holds_wrongly_is_told_by_its_name() {
    let wrong = [
        ("LMT_EAGER_MAX", "2 MiB", "at most 1 MiB"),
        ("LMT_EAGER_MAX", "many", "does not begin with a whole number"),
        ("LMT_SPINS", "1 KiB", "a whole number"),
        ("LMT_ALLOW_OTHER_USERS", "yes", "true or false"),
        ("LMT_MECHANISM", "cma,rdma", "names `rdma`, which is no mechanism"),
        ("LMT_MECHANISM", "shm:get", "it has `shm:cooperative`"),
        ("LMT_MAX_READERS", "0", "it must be"),
        ("LMT_DMA_MIN", "by-core", "did you mean `by-cores`?"),
        ("LMT_NET_SLOW_CPU", "-1", "the number of a CPU"),
    ];
    for (name, value, words) in wrong {
        let told = complaints(name, value.into());
        assert_eq!(told.len(), 1, "{name}={value}: {told:?}");
        assert!(told[0].contains(name) && told[0].contains(words), "{}", told[0]);
    }
    let told = complaints("LMT_SPINS", OsString::from_vec(vec![b'1', 0xff]));
    assert!(told[0].contains("is no UTF-8"), "{told:?}");
}

#[test]
fn what_a_variable_may_hold_does_not_depend_on_its_kind() {
    let read_one = |name: &str, text: &str| {
        let mut problems = Vec::new();
        let read = read(&[(name.to_owned(), text.into())], &known(), &mut problems);
        assert!(problems.is_empty(), "{name}={text}: {problems:?}");
        read
    };
    for text in ["1048576", "1 MiB", " 1048576 ", " 1MiB"] {
        assert_eq!(read_one("LMT_DMA_MIN", text).dma_min, Some(DmaMinSetting::Bytes(1 << 20)), "{text}");
        let eager = read_one("LMT_EAGER_MAX", text).endpoint;
        assert_eq!(eager.first().map(|(_, value, _)| value.clone()), Some(Value::Number(1 << 20)), "{text}");
    }
    assert_eq!(read_one("LMT_DMA_MIN", " by-processes").dma_min, Some(DmaMinSetting::ByProcesses));
    assert_eq!(read_one("LMT_MAX_READERS", " 3").max_readers, Some(3));
    // No help is one that would be refused next.
    let refused = [
        ("LMT_DMA_MIN", "0", "it must be \"by-cores\""),
        ("LMT_DMA_MIN", "0 kB", "it must be \"by-cores\""),
        ("LMT_DMA_MIN", "99999999999999999999", "it must be \"by-cores\""),
        ("LMT_QUOTA", "1 kB", "it must be a size, at least 4 KiB"),
        ("LMT_CELL_BYTES", "5 mb", "it must be a size that is"),
        ("LMT_SPINS", "+5", "a whole number"),
        ("LMT_SPINS", "99999999999999999999", "too large"),
        ("LMT_MECHANISM", "cma,", "names ``, which is no mechanism"),
    ];
    for (name, value, words) in refused {
        let told = complaints(name, value.into());
        assert!(told.len() == 1 && told[0].contains(words), "{name}={value}: {told:?}");
    }
}

#[test]
fn variables_that_nobody_reads_are_told() {
    let set = |name: &str, value: &str| (name.to_owned(), OsString::from(value));
    let environment = [
        set("LMT_MECHANISMS", "shm"),
        set("LMT_EAGERMAX", "0"),
        set("LMT_ZEBRA", "1"),
        set("LMT_QUOTA", "1 MiB"),
        set("LMT_RANK", "3"),
        set("LMT_EMPTY", ""),
        set("PATH", "/bin"),
    ];
    let told = remarks(&environment, &known(), &["LMT_RANK".to_owned()]);
    let expected = [
        "LMT_EAGERMAX is set, and lmt reads no such variable; did you mean LMT_EAGER_MAX?",
        "LMT_MECHANISMS is set, and lmt reads no such variable; did you mean LMT_MECHANISM?",
        "LMT_ZEBRA is set, and lmt reads no such variable",
    ];
    assert_eq!(told, expected);
}

#[test]
fn variables_of_all_kinds_are_known() {
    let known = known_variables(&known());
    for name in
        ["LMT_CONFIG", "LMT_STATS", "LMT_MECHANISM", "LMT_DMA_MIN", "LMT_MAX_READERS", "LMT_NET_SLOW_CPU"]
    {
        assert!(known.iter().any(|other| other == name), "{name}");
    }
    let mut sorted = known.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), known.len());
}
