use super::*;
use crate::doctor::fixture::Files;

fn at(files: &Files, path: &[&str]) -> Surroundings {
    let path = path.iter().map(|folder| files.root().join(folder));
    Surroundings { path: std::env::join_paths(path).unwrap(), ..Surroundings::default() }
}

/// The launchers, below the folder of the test.
fn found(files: &Files, surroundings: &Surroundings, arguments: &[&str]) -> Vec<String> {
    let root = files.root().canonicalize().unwrap();
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    let launchers = surroundings.launchers(&arguments);
    launchers.iter().map(|one| one.file.strip_prefix(&root).unwrap().display().to_string()).collect()
}

#[test]
fn each_is_found_once_in_the_order_of_the_path() {
    let files = Files::new("order")
        .with("a/mpiexec", "")
        .with("b/mpiexec.openmpi", "")
        .linked("b/mpiexec", "mpiexec.openmpi")
        .with("b/mpiexec.mpich", "")
        .linked("c", "a");
    let both = at(&files, &["b", "c", "a"]);
    assert_eq!(found(&files, &both, &[]), ["b/mpiexec", "b/mpiexec.mpich", "a/mpiexec"]);
    assert_eq!(found(&files, &at(&files, &["nowhere"]), &[]), [""; 0]);
}

#[test]
fn the_environment_of_the_python_that_is_to_run_comes_first() {
    let files = Files::new("python")
        .with("usr/mpiexec", "")
        .with("usr/python", "")
        .with("venv/pyvenv.cfg", "")
        .with("venv/bin/python3.11", "")
        .with("venv/bin/mpiexec", "");
    let python = files.root().join("venv/bin/python3.11");
    let surroundings = at(&files, &["usr", "venv/bin"]);
    let first = |program: &str| found(&files, &surroundings, &["-n", "2", program, "x.py"])[0].clone();
    assert_eq!(first(python.to_str().unwrap()), "venv/bin/mpiexec");
    // By its name it is found as the shell finds it.
    assert_eq!(first("python3.11"), "venv/bin/mpiexec");
    // That of the system says nothing of the MPI.
    assert_eq!(first("python"), "usr/mpiexec");
    assert_eq!(first("pythonic"), "usr/mpiexec");
}

#[test]
fn an_environment_that_is_not_on_the_path_comes_last() {
    let files =
        Files::new("last").with("usr/mpiexec", "").with("venv/bin/mpiexec", "").with("own/mpiexec", "");
    let surroundings = Surroundings {
        active: Some(files.root().join("venv")),
        own_folder: Some(files.root().join("own")),
        ..at(&files, &["usr"])
    };
    assert_eq!(found(&files, &surroundings, &[]), ["usr/mpiexec", "venv/bin/mpiexec", "own/mpiexec"]);
}

#[test]
fn a_folder_or_a_file_names_a_launcher() {
    let files = Files::new("named").with("mpi/bin/mpiexec", "").with("debian/mpiexec.mpich", "");
    let root = files.root().canonicalize().unwrap();
    for (place, launcher) in [
        ("mpi", "mpi/bin/mpiexec"),
        ("mpi/bin", "mpi/bin/mpiexec"),
        ("mpi/bin/mpiexec", "mpi/bin/mpiexec"),
        ("debian", "debian/mpiexec.mpich"),
    ] {
        assert_eq!(launcher_in(&root.join(place)), Some(root.join(launcher)), "{place}");
    }
    assert_eq!(launcher_in(&root.join("nowhere")), None);
}
