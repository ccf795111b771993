use crate::base::cpu_set::{CpuSet, STATUS, count_of_list};

#[test]
fn lists_of_the_kernel_are_read_as_they_are_written() {
    for text in ["", "3", "0-1", "0-2,8,1023", "0-1023"] {
        assert_eq!(CpuSet::of_list(text).map(|set| set.to_string()).as_deref(), Some(text));
    }
    // A kernel for 8192 CPUs: the first 1024 are kept.
    assert_eq!(CpuSet::of_list("1000-8191").map(|set| set.to_string()).as_deref(), Some("1000-1023"));
    assert_eq!(CpuSet::of_list("5,2000-3000,8191").map(|set| set.to_string()).as_deref(), Some("5"));
    for text in ["-", "1-", "3-1", "1,,2", "x", "1-2-3", "0x1", ","] {
        assert_eq!(CpuSet::of_list(text), None, "{text}");
    }
}

#[test]
fn lists_are_counted_whatever_a_set_holds() {
    for (list, count) in [("0-3,8\n", 5), ("0", 1), ("0-3,8,10-11", 7), ("0-8191", 8192)] {
        assert_eq!(count_of_list(list), Some(count), "{list}");
    }
    for list in ["", "a", "3-1", "0-", "0-18446744073709551615", "1-18446744073709551615,0-1"] {
        assert_eq!(count_of_list(list), None, "{list}");
    }
}

#[test]
fn a_status_tells_the_cpus_of_its_thread() {
    let status = "Name:\tlmt\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\nMems_allowed:\t1\n";
    assert_eq!(CpuSet::of_status(status).to_string(), "0-3");
    assert!(CpuSet::of_status("Name:\tlmt\n").is_empty());
    let own = std::fs::read_to_string(STATUS).expect("there is a /proc");
    assert_eq!(CpuSet::of_status(&own), CpuSet::of_this_thread());
}

#[test]
fn a_set_is_written_as_the_kernel_writes_it() {
    let cases: [(&[usize], &str); 5] =
        [(&[], ""), (&[3], "3"), (&[0, 1], "0-1"), (&[0, 1, 2, 8, 1023], "0-2,8,1023"), (&[5, 2000], "5")];
    for (cpus, text) in cases {
        assert_eq!(cpus.iter().copied().collect::<CpuSet>().to_string(), text);
    }
}

#[test]
fn sets_are_compared_by_their_members() {
    let [none, one, pair]: [CpuSet; 3] = [&[][..], &[9], &[8, 9]].map(|cpus| cpus.iter().copied().collect());
    assert!(none.is_empty() && none.is_within(&one) && !none.meets(&one));
    assert!(one.is_within(&pair) && !pair.is_within(&one) && pair.meets(&one));
    assert_eq!(pair.iter().collect::<Vec<_>>(), [8, 9]);
    assert_eq!(pair.union(&one), pair);
    assert_eq!(pair.count(), 2);
}
