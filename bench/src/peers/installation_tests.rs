use std::fs;

use super::*;

#[test]
fn each_mpi_is_known_by_what_it_says() {
    let hydra =
        "HYDRA build details:\n    Version:                                 5.0.2\n    Release Date: x\n";
    assert_eq!(identify(hydra), (Kind::Mpich, "5.0.2".to_owned()));
    let open = "mpiexec (Open MPI) 5.0.11\n\nReport bugs to https://www.open-mpi.org/community/help/\n";
    assert_eq!(identify(open), (Kind::OpenMpi, "5.0.11".to_owned()));
    let intel = "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)\n";
    assert_eq!(identify(intel), (Kind::IntelMpi, "2021.18.1".to_owned()));
    assert_eq!(identify("somebody's"), (Kind::Other, "of unknown version".to_owned()));
}

fn installation(kind: Kind) -> Installation {
    let path = |name: &str| PathBuf::from("/nowhere/bin").join(name);
    Installation {
        name: kind.name().to_owned(),
        kind,
        version: "1.0".to_owned(),
        mpicc: path("mpicc"),
        mpiexec: path("mpiexec"),
    }
}

fn launched(kind: Kind, ranks: u32, cores: usize) -> String {
    let arguments =
        installation(kind).launch_arguments(ranks, cores, Path::new("/c/peer"), Path::new("/t/socket"));
    arguments.join(&OsString::from(" ")).into_string().unwrap()
}

#[test]
fn launchers_are_told_to_bind_while_there_are_cores() {
    assert_eq!(launched(Kind::Mpich, 2, 2), "-bind-to core -n 2 /c/peer /t/socket");
    assert_eq!(launched(Kind::Mpich, 4, 2), "-bind-to none -n 4 /c/peer /t/socket");
    assert_eq!(launched(Kind::OpenMpi, 2, 4), "--bind-to core -n 2 /c/peer /t/socket");
    assert_eq!(launched(Kind::OpenMpi, 4, 2), "--bind-to none --oversubscribe -n 4 /c/peer /t/socket");
    assert_eq!(launched(Kind::IntelMpi, 4, 2), "-n 4 /c/peer /t/socket");
    assert_eq!(launched(Kind::Other, 2, 2), "-n 2 /c/peer /t/socket");
}

#[test]
fn only_root_tells_open_mpi_that_it_is_root() {
    let names = |variables: Variables| variables.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(installation(Kind::OpenMpi).variables(false)), [""; 0]);
    assert!(names(installation(Kind::OpenMpi).variables(true)).contains(&"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"));
    assert_eq!(names(installation(Kind::Mpich).variables(true)), [""; 0]);
}

#[test]
fn intel_mpi_from_a_package_is_told_where_it_is() {
    let folder = Folder::new("intel");
    fs::create_dir_all(folder.0.join("lib")).unwrap();
    let mpi = Installation { mpiexec: folder.0.join("bin/mpiexec"), ..installation(Kind::IntelMpi) };
    // With setvars.sh there is nothing to tell.
    assert_eq!(mpi.variables(false), []);
    fs::write(folder.0.join("lib/libfabric.so.1"), "").unwrap();
    let variables = mpi.variables(false);
    let of = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    assert_eq!(of("I_MPI_ROOT"), Some(folder.0.clone().into()));
    assert_eq!(of("FI_PROVIDER_PATH"), Some(folder.0.join("lib").into()));
    assert!(
        of("LD_LIBRARY_PATH")
            .unwrap()
            .to_string_lossy()
            .starts_with(&*folder.0.join("lib").to_string_lossy())
    );
    assert_eq!(before(Path::new("/a"), Some("/b:/c".into())), "/a:/b:/c");
    assert_eq!(before(Path::new("/a"), Some("".into())), "/a");
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lmt-installation-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_mpi_is_a_compiler_and_a_launcher_and_counts_once() {
    let folder = Folder::new("candidates");
    let (one, other) = (folder.0.join("one"), folder.0.join("other"));
    fs::create_dir_all(&one).unwrap();
    fs::create_dir_all(&other).unwrap();
    for name in ["mpicc", "mpiexec", "mpicc.openmpi", "mpiexec.openmpi", "mpicc.mpich"] {
        fs::write(one.join(name), "").unwrap();
    }
    fs::write(other.join("mpicc"), "").unwrap();
    std::os::unix::fs::symlink(one.join("mpiexec"), other.join("mpiexec")).unwrap();
    let found = candidates([one.clone(), other, folder.0.join("absent")]);
    let pair = |suffix: &str| (one.join(format!("mpicc{suffix}")), one.join(format!("mpiexec{suffix}")));
    assert_eq!(found, [pair(""), pair(".openmpi")]);
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&one, &link).unwrap();
    assert_eq!(candidates([link, one.clone()]), [pair(""), pair(".openmpi")], "by the folder's own name");
}
