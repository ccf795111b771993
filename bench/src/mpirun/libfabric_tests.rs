use super::*;
use crate::doctor::fixture::Files;
use crate::peers::installation::Kind;

fn libfabric(version: (u32, u32), loads_providers: Option<bool>) -> Libfabric {
    Libfabric { file: PathBuf::from("/x"), version: Ok(Some(version)), loads_providers, is_certain: true }
}

#[test]
fn one_that_is_too_old_or_loads_no_providers_is_an_obstacle() {
    assert_eq!(libfabric((1, 17), Some(true)).obstacle(), None);
    assert_eq!(libfabric((2, 5), None).obstacle(), None);
    let old = libfabric((1, 12), Some(true)).obstacle().unwrap();
    assert!(old.reason.contains("is 1.12") && old.remedy.contains("newer"), "{old:?}");
    let closed = libfabric((2, 5), Some(false)).obstacle().unwrap();
    assert!(closed.reason.contains("without external providers"), "{closed:?}");
}

#[test]
fn the_one_in_the_mpis_folder_is_its_own() {
    let files = Files::new("libfabric").with("lib/mpich/libfabric.so.1", "rubbish");
    let of = |prefix: &Path| {
        let bin = prefix.join("bin");
        Libfabric::of(&Installation {
            name: "mpich".to_owned(),
            kind: Kind::Mpich,
            version: "5".to_owned(),
            mpicc: bin.join("mpicc"),
            mpiexec: bin.join("mpiexec"),
        })
    };
    let own = of(files.root());
    assert_eq!(own.file, files.root().join("lib/mpich/libfabric.so.1"));
    // What cannot be loaded here is no reason to refuse the MPI.
    assert!(own.is_certain && own.version.is_err() && own.obstacle().is_none(), "{own:?}");
    let other = of(Path::new("/nowhere"));
    assert!(!other.is_certain && other.file == Path::new(LIBFABRIC), "{other:?}");
}

#[test]
fn a_distributions_mpi_takes_the_systems() {
    assert!(is_of_system(Path::new("/usr")) && is_of_system(Path::new("/usr/lib64/mpich")));
    assert!(!is_of_system(Path::new("/usr/local")) && !is_of_system(Path::new("/opt/mpich")));
}
