use super::*;

fn shown(transport: Transport, kind: Kind, others: Option<&str>) -> String {
    let variables = transport.variables(kind, Path::new("/p"), others.map(OsString::from)).unwrap();
    let one = |(name, value): (&str, OsString)| format!("{name}={}", value.display());
    variables.into_iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_mpi_is_told_in_its_own_words() {
    assert_eq!(
        shown(Transport::Lmt, Kind::Mpich, None),
        "FI_PROVIDER_PATH=/p FI_PROVIDER=lmt MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1"
    );
    assert_eq!(
        shown(Transport::Lmt, Kind::OpenMpi, None),
        "FI_PROVIDER_PATH=/p LMT_FI=1 OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include=lmt"
    );
    assert_eq!(
        shown(Transport::Lmt, Kind::IntelMpi, Some("/i/lib:/p")),
        "FI_PROVIDER_PATH=/p:/i/lib I_MPI_FABRICS=ofi I_MPI_OFI_PROVIDER=lmt"
    );
    assert_eq!(
        shown(Transport::Shm, Kind::IntelMpi, Some("/i/lib")),
        "I_MPI_FABRICS=ofi I_MPI_OFI_PROVIDER=shm"
    );
    for kind in [Kind::Mpich, Kind::OpenMpi, Kind::IntelMpi, Kind::Other] {
        assert_eq!(shown(Transport::Default, kind, None), "");
    }
}

#[test]
fn the_documentation_has_the_same_variables() {
    let page = include_str!("../../../docs/libfabric.md");
    for kind in [Kind::Mpich, Kind::OpenMpi, Kind::IntelMpi] {
        for (name, value) in Transport::Lmt.choice(kind).unwrap() {
            assert!(page.contains(&format!("{name}={value}")), "docs/libfabric.md lacks {name}={value}");
        }
    }
}

#[test]
fn what_cannot_be_had_is_said() {
    let refused = |transport: Transport, kind| transport.variables(kind, Path::new("/p"), None).unwrap_err();
    assert!(refused(Transport::Shm, Kind::OpenMpi).contains("FI_REMOTE_COMM"));
    assert!(refused(Transport::Lmt, Kind::Other).contains("neither MPICH"));
}

#[test]
fn what_chooses_is_known_and_the_later_value_holds() {
    let names = choosing();
    assert!(
        names.contains(&"FI_PROVIDER") && names.contains(&"OMPI_MCA_mtl") && !names.contains(&PROVIDER_PATH)
    );
    let merged = with(vec![("A", "1".into()), ("B", "1".into())], vec![("A", "2".into())]);
    assert_eq!(merged, [("B", OsString::from("1")), ("A", OsString::from("2"))]);
}
