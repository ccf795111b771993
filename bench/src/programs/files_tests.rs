use super::*;
use crate::own_folder::OwnFolder;

#[test]
fn ranks_form_a_grid() {
    let fill = |ranks| Places { ranks, ..Places::default() }.fill("@RANKS@ @ROWS@x@COLUMNS@");
    let all: Vec<String> = [1, 2, 4, 6, 7, 12].map(fill).into();
    assert_eq!(all, ["1 1x1", "2 1x2", "4 2x2", "6 2x3", "7 1x7", "12 3x4"]);
    let places = Places { ranks: 2, mpi: "/m".into(), python: "/p".into() };
    assert_eq!(places.fill("@MPI@/bin @PYTHON@"), "/m/bin /p");
}

#[test]
fn files_are_those_beside_the_table_or_those_within() {
    let own = OwnFolder::new(&std::env::temp_dir()).unwrap();
    let (tables, target) = (own.path().join("tables"), own.path().join("target"));
    fs::create_dir_all(&tables).unwrap();
    fs::create_dir_all(&target).unwrap();
    fs::write(tables.join("mine"), "@RANKS@ ranks").unwrap();
    let files = Files { beside: Some(tables) };
    let places = Places { ranks: 4, ..Places::default() };
    files.write(&["mine".into(), "short/hpccinf.txt".into()], &places, &target).unwrap();
    assert_eq!(fs::read_to_string(target.join("mine")).unwrap(), "4 ranks");
    assert!(fs::read_to_string(target.join("hpccinf.txt")).unwrap().starts_with("HPLinpack"));
    let sentence = files.text("absent").unwrap_err();
    assert!(sentence.contains("neither beside the table nor in bench/apps"), "{sentence}");
}

#[test]
fn a_folder_is_copied_with_those_in_it() {
    let own = OwnFolder::new(&std::env::temp_dir()).unwrap();
    let (from, to) = (own.path().join("from"), own.path().join("to"));
    fs::create_dir_all(from.join("deep")).unwrap();
    fs::write(from.join("deep/file"), "text").unwrap();
    copy_folder(&from, &to).unwrap();
    assert_eq!(fs::read_to_string(to.join("deep/file")).unwrap(), "text");
}
