use std::process::Command;

use super::*;
use crate::doctor::fixture::Files;

fn provider(files: &Files) -> Provider {
    Provider::find(Some(&files.root().join("a folder's/liblmt-fi.so"))).unwrap()
}

/// What a shell knows after it has taken the lines.
fn evaluated(text: &str, name: &str) -> String {
    let output = Command::new("sh").args(["-c", &format!("{text}printenv {name}")]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn a_shell_takes_the_lines_whatever_the_folder_is() {
    let files = Files::new("env").with("a folder's/liblmt-fi.so", "");
    let provider = provider(&files);
    let none = |_: &str| None;
    let text = shell(Kind::Mpich, &variables(Kind::Mpich, None, &provider, none).unwrap());
    assert_eq!(evaluated(&text, "FI_PROVIDER_PATH"), provider.folder().display().to_string());
    assert_eq!(evaluated(&text, "FI_PROVIDER"), "lmt");
    let first_remark = text.lines().position(|line| line.starts_with('#')).unwrap();
    assert!(text.lines().skip(first_remark).all(|line| line.starts_with('#')), "{text}");
}

#[test]
fn who_takes_mpich_is_told_that_each_rank_is_a_node() {
    let remark = node_remark(Kind::Mpich);
    assert!(remark.contains("MPI_Win_allocate_shared") && remark.lines().all(|line| line.starts_with("# ")));
    assert_eq!([node_remark(Kind::OpenMpi), node_remark(Kind::IntelMpi)], ["", ""]);
}

#[test]
fn the_mpi_is_named_in_a_remark() {
    let bin = std::path::Path::new("/no\nwhere/bin");
    let (mpicc, mpiexec) = (bin.join("mpicc"), bin.join("mpiexec"));
    let mpi = Installation { name: "mpich".into(), kind: Kind::Mpich, version: "5.0".into(), mpicc, mpiexec };
    let remark = built_with(&mpi);
    assert!(
        remark.starts_with("# MPICH 5.0, /no where/bin/mpiexec: ") && remark.lines().count() == 1,
        "{remark}"
    );
}

#[test]
fn providers_of_others_stay_within_reach() {
    let files = Files::new("others").with("a folder's/liblmt-fi.so", "");
    let provider = provider(&files);
    let path = |found: Option<&Installation>, set: Option<&str>| {
        let variables = variables(Kind::IntelMpi, found, &provider, |_| set.map(OsString::from)).unwrap();
        let of =
            variables.iter().filter(|(name, _)| *name == PROVIDER_PATH).map(|(_, value)| value.display());
        let all: Vec<String> = of.map(|value| value.to_string()).collect();
        all.join(" and ")
    };
    let own = provider.folder().display().to_string();
    assert_eq!(path(None, None), own);
    assert_eq!(path(None, Some("/x")), format!("{own}:/x"));
    // Taken again it is the same.
    assert_eq!(path(None, Some(&format!("{own}:/x"))), format!("{own}:/x"));
    let files = files.with("mpi/lib/libfabric.so.1", "");
    let bin = files.root().join("mpi/bin");
    let mpi = Installation {
        name: "intelmpi".into(),
        kind: Kind::IntelMpi,
        version: "1".into(),
        mpicc: bin.join("mpicc"),
        mpiexec: bin.join("mpiexec"),
    };
    assert_eq!(path(Some(&mpi), None), format!("{own}:{}", files.root().join("mpi/lib").display()));
}

#[test]
fn words_are_quoted_where_a_shell_would_see_more() {
    assert_eq!(quoted("/a/b:c"), "/a/b:c");
    assert_eq!(quoted("a b"), "'a b'");
    assert_eq!(quoted("it's"), "'it'\\''s'");
    assert_eq!(quoted(""), "''");
}
