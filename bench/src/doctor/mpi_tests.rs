use std::path::PathBuf;

use super::super::fixture::Files;
use super::*;

fn installation(kind: Kind) -> Installation {
    Installation {
        name: kind.name().to_owned(),
        kind,
        version: "5.0".to_owned(),
        mpicc: PathBuf::from("/nowhere/bin/mpicc"),
        mpiexec: PathBuf::from("/nowhere/bin/mpiexec"),
    }
}

#[test]
fn the_mpi_is_named_or_said_to_be_missing() {
    assert_eq!(of_mpi(None).state, State::Missing);
    let found = of_mpi(Some(&Ok(installation(Kind::OpenMpi))));
    assert!(found.state == State::Good && found.meaning.starts_with("Open MPI 5.0, /nowhere"), "{found:?}");
    assert_eq!(of_mpi(Some(&Ok(installation(Kind::Other)))).state, State::Unknown);
    assert!(first_on_path(OsStr::new("/nowhere")).is_none());
}

#[test]
fn the_libfabric_is_told_with_what_would_do() {
    let of = |version| {
        let file = PathBuf::from("/x");
        of_version(&Libfabric { file, version, loads_providers: Some(true), is_certain: true })
    };
    assert_eq!(of(Ok(Some((1, 17)))).state, State::Good);
    assert_eq!(of(Ok(Some((2, 5)))).state, State::Good);
    let old = of(Ok(Some((1, 12))));
    assert!(old.state == State::Blocked && old.meaning.contains("is 1.12"), "{old:?}");
    assert_eq!(of(Ok(None)).state, State::Unknown);
    let file = PathBuf::from("/x");
    let (version, loads_providers) = (Ok(Some((1, 12))), Some(true));
    let another = of_version(&Libfabric { file, version, loads_providers, is_certain: false });
    assert!(another.state == State::Unknown && another.meaning.contains("is not known"), "{another:?}");
    assert_eq!(of(Err("no such file".to_owned())).state, State::Unknown);
    let obstacle = Obstacle { reason: "it is built for ch4:ucx".to_owned(), remedy: "another" };
    let other = of_libfabric(&installation(Kind::Mpich), Some(&obstacle));
    assert_eq!((other.state, other.fix.as_deref()), (State::Blocked, Some("another")));
}

#[test]
fn a_provider_is_loaded() {
    let missing = of_provider(&Err("there is none".to_owned()));
    assert_eq!((missing.state, missing.fix.as_deref()), (State::Missing, Some("make fi")));
    let files = Files::new("rubbish").with("liblmt-fi.so", "rubbish");
    let rubbish = of_provider(&Provider::find(Some(&files.root().join("liblmt-fi.so"))));
    assert!(rubbish.state == State::Blocked && rubbish.meaning.contains("cannot be loaded"), "{rubbish:?}");
}

#[test]
fn what_the_environment_lacks_is_named() {
    let files = Files::new("chosen").with("liblmt-fi.so", "");
    let provider = Provider::find(Some(&files.root().join("liblmt-fi.so"))).unwrap();
    let mpi = installation(Kind::Mpich);
    let own = provider.folder().as_os_str().to_owned();
    let all = |name: &str| match name {
        PROVIDER_PATH => Some([OsStr::new("/others:"), &own].into_iter().collect()),
        "FI_PROVIDER" => Some("lmt".into()),
        "MPIR_CVAR_CH4_NETMOD" => Some("ofi".into()),
        _ => Some("1".into()),
    };
    assert_eq!(of_environment(&mpi, &provider, all).state, State::Good);
    let other = |name: &str| if name == "FI_PROVIDER" { Some("shm".into()) } else { all(name) };
    let found = of_environment(&mpi, &provider, other);
    assert!(found.state == State::Limited && found.meaning.ends_with("lacks FI_PROVIDER"), "{found:?}");
    assert_eq!(found.fix.as_deref(), Some("eval \"$(lmt mpirun-env mpich)\""));
}
