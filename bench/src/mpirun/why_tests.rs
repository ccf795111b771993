use std::path::Path;

use super::*;
use crate::peers::installation::{Installation, Kind};
use crate::peers::transport::Transport;

#[test]
fn each_variable_has_its_reason() {
    for kind in [Kind::Mpich, Kind::OpenMpi, Kind::IntelMpi] {
        for (name, _) in Transport::Lmt.variables(kind, Path::new("/p"), None).unwrap() {
            assert!(REASONS.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}

#[test]
fn all_that_is_set_and_run_is_said() {
    let chosen = Chosen {
        mpi: Installation {
            name: "mpich".to_owned(),
            kind: Kind::Mpich,
            version: "5.0".to_owned(),
            mpicc: "/m/bin/mpicc".into(),
            mpiexec: "/m/bin/mpiexec".into(),
        },
        reason: "it is the only one".to_owned(),
        others: Vec::new(),
    };
    let libfabric = Libfabric {
        file: "/m/lib/libfabric.so.1".into(),
        version: Ok(Some((2, 5))),
        loads_providers: Some(true),
        is_certain: true,
    };
    let variables = vec![("FI_PROVIDER", OsString::from("lmt")), ("LMT_STATS", OsString::from("1"))];
    let lines = lines(&chosen, &libfabric, &variables, &["-n".into(), "2".into()]);
    let expected = [
        "MPICH 5.0, /m/bin/mpiexec: it is the only one",
        "libfabric 2.5, /m/lib/libfabric.so.1",
        "FI_PROVIDER=lmt: libfabric offers this provider only",
        "LMT_STATS=1: as was asked for",
        "runs /m/bin/mpiexec -n 2",
    ];
    assert_eq!(lines, expected);
}
