use super::*;

#[test]
fn libraries_are_loaded_or_the_loader_says_why_not() {
    let libc = Library::load(Path::new("libc.so.6")).unwrap();
    assert!(libc.has(c"malloc") && !libc.has(c"fi_prov_ini"));
    assert_eq!(libc.libfabric_version(), None);
    let reason = Library::load(Path::new("/nowhere/libx-fi.so")).unwrap_err();
    assert!(reason.contains("/nowhere/libx-fi.so"), "{reason}");
}
