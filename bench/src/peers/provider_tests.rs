use std::fs;

use super::*;
use crate::doctor::fixture::Files;

#[test]
fn it_is_where_it_is_built_or_installed() {
    let files = Files::new("provider").with("bin/lmt", "").with("lib/liblmt-fi.so", "");
    let bin = files.root().join("bin");
    let found = Provider::beside(&bin).unwrap();
    assert_eq!(found.folder(), files.root().canonicalize().unwrap().join("lib"));
    fs::write(bin.join(FILE), "").unwrap();
    assert_eq!(Provider::beside(&bin).unwrap().file(), bin.canonicalize().unwrap().join(FILE));
    assert_eq!(Provider::find(Some(&bin.join(FILE))), Provider::beside(&bin));
}

#[test]
fn what_is_missing_is_said_with_what_makes_it() {
    let files = Files::new("no-provider").with("liblmt_fi.so", "").with("a:b/liblmt-fi.so", "");
    let sentence = Provider::beside(files.root()).unwrap_err();
    assert!(sentence.contains("make fi builds it") && sentence.contains("--provider"), "{sentence}");
    let at = |name: &str| Provider::find(Some(&files.root().join(name))).unwrap_err();
    assert!(at("liblmt_fi.so").contains("ends in -fi.so"), "{}", at("liblmt_fi.so"));
    assert!(at("x-fi.so").contains("cannot be found"), "{}", at("x-fi.so"));
    assert!(at("a:b/liblmt-fi.so").contains("colon"), "{}", at("a:b/liblmt-fi.so"));
}

#[test]
fn a_package_has_it_in_a_folder_of_its_own_and_libfabrics_path_may_name_it() {
    let files = Files::new("own-folder").with("bin/lmt", "").with("lib/lmt/liblmt-fi.so", "");
    let file = files.root().canonicalize().unwrap().join("lib/lmt/liblmt-fi.so");
    assert_eq!(Provider::beside(&files.root().join("bin")).unwrap().file(), file);
    let folders = std::env::join_paths([Path::new("/nowhere"), &files.root().join("lib/lmt")]).unwrap();
    assert_eq!(Provider::in_one_of(&folders).unwrap().file(), file);
    assert_eq!(Provider::in_one_of(OsStr::new("")), None);
}
