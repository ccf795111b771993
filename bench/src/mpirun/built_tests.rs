use super::*;
use crate::doctor::fixture::Files;

fn reason(obstacle: Option<Obstacle>) -> String {
    obstacle.map(|obstacle| obstacle.reason).unwrap_or_default()
}

#[test]
fn an_mpich_without_libfabric_is_known_by_its_device() {
    // As Debian's and PyPI's say it.
    let debian =
        "MPICH Version:    \t4.0.2\nMPICH Device:    \tch4:ucx\nMPICH configure: \t--with-libfabric=/usr\n";
    let found = mpich_by_its_words(debian).unwrap();
    assert_eq!(found.reason, "this MPICH is built for ch4:ucx and never asks libfabric");
    assert!(found.remedy.contains("--with-device=ch4:ofi"), "{found:?}");
    assert_eq!(mpich_by_its_words("MPICH Version:      5.0.2\nMPICH Device:       ch4:ucx ofi\n"), None);
    assert!(reason(mpich_by_its_words("MPICH Device: ch3:nemesis\n")).contains("ch3:nemesis"));
    assert_eq!(mpich_by_its_words("what?"), None);
}

#[test]
fn an_open_mpi_without_libfabric_lacks_a_component() {
    let with = "mca:mtl:ofi:version:\"mca:2.1.0\"\nmca:mtl:psm2:version:\"mca:2.1.0\"\n";
    assert_eq!(open_mpi_by_its_words(with), None);
    let without = "mca:mtl:psm2:version:\"mca:2.1.0\"\n";
    assert!(reason(open_mpi_by_its_words(without)).contains("mtl ofi"));
    assert_eq!(open_mpi_by_its_words("what?"), None);
}

#[test]
fn an_old_intel_mpi_is_known_by_its_version() {
    assert_eq!(intel_mpi_by_its_version("2021.18.1"), None);
    assert!(reason(intel_mpi_by_its_version("5.1.3")).contains("before 2019"));
    assert_eq!(intel_mpi_by_its_version("of unknown version"), None);
}

#[test]
fn a_library_tells_by_the_names_of_those_that_it_needs() {
    let files = Files::new("needed")
        .with("ucx", "\u{7f}ELF\0libc.so.6\0libucp.so.0\0")
        .with("both", "\0libucp.so.0\0libfabric.so.1\0")
        .with("inside", "\0a_provider_path\0")
        .with("none", "\0libc.so.6\0");
    let of = |name: &str| reason(mpich_by_its_library(&files.root().join(name)));
    assert!(of("ucx").contains("is built for UCX"), "{}", of("ucx"));
    assert!(of("none").contains("needs no libfabric"), "{}", of("none"));
    assert_eq!([of("both"), of("inside"), of("absent")], [""; 3]);
}

#[test]
fn the_library_is_looked_for_where_no_command_tells() {
    let files = Files::new("debian").with("usr/bin/mpiexec", "");
    let files = files.with("usr/lib/x86_64-linux-gnu/libmpich.so.12", "\0libucp.so.0\0");
    let bin = files.root().join("usr/bin");
    let mpi = Installation {
        name: "mpich".to_owned(),
        kind: Kind::Mpich,
        version: "4.0.2".to_owned(),
        mpicc: bin.join("mpicc"),
        mpiexec: bin.join("mpiexec"),
    };
    let obstacle = without_libfabric(&mpi).unwrap();
    let sentence = obstacle.sentence(&mpi);
    assert!(sentence.starts_with("MPICH 4.0.2 (/") && sentence.contains("; what would do is "), "{sentence}");
    assert!(!sentence.contains('\n'));
}
