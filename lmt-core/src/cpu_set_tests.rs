use super::CpuSet;

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
