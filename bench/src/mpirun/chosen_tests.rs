use super::*;

fn launcher(name: &str) -> Launcher {
    Launcher { file: PathBuf::from(format!("/{name}/mpiexec")), place: "on the PATH" }
}

/// Launchers answer by the folder that they are in.
fn answer(launcher: &Launcher) -> Asked {
    let kind = match launcher.file.to_str().unwrap() {
        "/mpich/mpiexec" => Kind::Mpich,
        "/openmpi/mpiexec" => Kind::OpenMpi,
        "/other/mpiexec" => Kind::Other,
        _ => return Err("it does not say its version".to_owned()),
    };
    Ok(Installation {
        name: kind.name().to_owned(),
        kind,
        version: "5.0".to_owned(),
        mpicc: PathBuf::new(),
        mpiexec: launcher.file.clone(),
    })
}

#[test]
fn the_first_is_taken_and_the_others_are_named() {
    let chosen = first(&["mpich", "broken", "openmpi", "other"].map(launcher), answer).unwrap();
    assert_eq!(
        (chosen.mpi.kind, chosen.reason.as_str()),
        (Kind::Mpich, "its mpiexec is the first on the PATH")
    );
    assert_eq!(chosen.others_named().unwrap(), "--mpi /openmpi/mpiexec takes Open MPI 5.0");
    let alone = first(&[launcher("openmpi")], answer).unwrap();
    assert_eq!((alone.mpi.kind, alone.others_named()), (Kind::OpenMpi, None));
}

#[test]
fn none_or_one_that_does_not_answer_is_said_with_what_would_do() {
    let none = first(&[], answer).unwrap_err();
    assert!(none.contains("no mpiexec on the PATH") && none.contains("--mpi FOLDER"), "{none}");
    let broken = first(&["broken", "openmpi"].map(launcher), answer).unwrap_err();
    assert!(broken.starts_with("/broken/mpiexec cannot be used"), "{broken}");
    assert!(broken.ends_with("--mpi /openmpi/mpiexec takes Open MPI"), "{broken}");
}

#[test]
fn one_is_named_by_its_kind() {
    let kinds = ["mpich", "openmpi", "intelmpi", "mpi", "./mpich"].map(|name| kind_of(OsStr::new(name)));
    assert_eq!(kinds, [Some(Kind::Mpich), Some(Kind::OpenMpi), Some(Kind::IntelMpi), None, None]);
    let launchers = ["mpich", "openmpi"].map(launcher);
    let chosen = of_kind(Kind::OpenMpi, &launchers, answer).unwrap();
    assert_eq!((chosen.mpi.kind, chosen.others.len()), (Kind::OpenMpi, 0));
    let none = of_kind(Kind::IntelMpi, &launchers, answer).unwrap_err();
    assert!(none.contains("no Intel MPI"), "{none}");
}

#[test]
fn an_mpi_that_is_not_known_is_refused() {
    let other = answer(&launcher("other")).unwrap();
    let obstacle = obstacle(&other).unwrap();
    assert!(obstacle.reason.contains("neither MPICH nor Open MPI nor Intel MPI"), "{obstacle:?}");
}
