use super::super::Machine;
use super::check;

#[test]
fn what_hwloc_takes_is_not_refused() {
    let good = [
        "2 3",
        "pu:1",
        "Package:2 L3Cache:1(size=12582912) Core:6 PU:2",
        "pack:2 numa:1(memory=1073741824 indexes=0,1) l2u:2 l1d:2 co:1 pu:2(indexes=0,2,4,6,1,3,5,7,8,9,10,11,12,13,14,15)",
        "socket:1 die:2 group:2 core:2 pu:1",
        "package:2 [numa(memory=1073741824)] [numa] core:2 pu:1",
    ];
    for description in good {
        assert_eq!(check(description), Ok(()), "{description}");
        Machine::synthetic(description).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn what_is_wrong_is_said() {
    let bad = [
        ("", "it has no levels"),
        (" \t", "it has no levels"),
        ("package", "the level 'package' has no ':' and count"),
        ("chip:2 pu:1", "'chip' is not a type"),
        ("package:two pu:1", "the count of 'package:two' is not a whole number"),
        ("package:0 pu:1", "the count of 'package:0' is 0"),
        ("package:2 core:2", "its last level is 'core' and must be pu"),
        ("l2:2(size=4 pu:1", "a ')' is missing"),
        ("l2:2 size=4) pu:1", "a ')' closes nothing"),
        ("core:100000 pu:1", "more than 8192 CPUs"),
        ("core:99999999999999999999 pu:1", "not a whole number"),
        ("core:4294967296 core:4294967296 pu:1", "more than 8192 CPUs"),
        ("pu\0:1", "'pu\\0:1' is not a synthetic machine, for it holds a NUL"),
        // What only hwloc sees.
        ("package:2 package:2 pu:1", "hwloc refuses"),
        ("l2:2(size=4XB) pu:1", "hwloc refuses"),
        ("l2:2(colour=4) pu:1", "hwloc refuses"),
    ];
    for (description, reason) in bad {
        let error = Machine::synthetic(description).expect_err(description).to_string();
        assert!(error.contains(reason), "{error}");
        assert!(error.contains("'package:2 l2:2(size=4194304) core:2 pu:1'"), "what would be right: {error}");
    }
}
