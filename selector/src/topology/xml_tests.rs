use super::check;

const HYBRID: &str = include_str!("../../tests/machines/hybrid.xml");

#[test]
fn what_lstopo_writes_is_not_refused() {
    for xml in [
        HYBRID,
        include_str!("../../tests/machines/offline.xml"),
        include_str!("../../tests/machines/restricted.xml"),
    ] {
        assert_eq!(check(xml), Ok(()));
    }
    let sets = "cpuset='0xf...f' complete_cpuset='0xf...f,,0x1' nodeset='0x0,0x1' complete_nodeset=''";
    let xml = format!(
        "<?xml version='1.0'?><topology version='2.1'><object type='Machine' {sets}>\
         <object type='Bridge' depth='0'/></object></topology>"
    );
    assert_eq!(check(&xml), Ok(()));
}

/// The first edits are what made hwloc 2.9.0 crash.
#[test]
fn what_is_wrong_is_said() {
    let edited = |from: &str, to: &str| HYBRID.replacen(from, to, 1);
    let bad = [
        (edited(" complete_nodeset=", " complete_nodes9t="), "line 5: a Machine has no complete_nodeset"),
        (
            edited("PU\" os_index=\"7\" cpuset=\"0x00000080\"", "PU\" os_index=\"7\""),
            "line 43: a PU has no cpuset",
        ),
        (
            edited("0x000000ff", "0x000000fg"),
            "line 5: the cpuset '0x000000fg' of a Machine is no set of bits",
        ),
        (
            edited("0x000000ff", "0x0000000ff0"),
            "line 5: the cpuset '0x0000000ff0' of a Machine is no set of bits",
        ),
        (
            edited("topology version=\"2.0\"", "topology version=\"3.0\""),
            "line 4: the format has version 3.0",
        ),
        (edited("topology version=\"2.0\"", "topology"), "line 4: the format has version 1, and 2.x is read"),
        ("<html></html>".to_owned(), "it has no <topology>"),
        (String::new(), "it has no <topology>"),
        ("<topology version=\"2.0\"></topology>".to_owned(), "it has no <object>"),
        ("<topology version=\"2.0\"><object os_index=\"0\"/>".to_owned(), "line 1: an object has no type"),
    ];
    for (xml, reason) in bad {
        let error = check(&xml).expect_err(reason);
        assert!(error.starts_with(reason), "{error}");
    }
}
