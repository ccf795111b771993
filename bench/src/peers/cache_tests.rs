use super::*;

fn folder(variables: &[(&str, &str)], named: Option<&str>) -> Result<PathBuf, BenchError> {
    let variable = |name: &str| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
    };
    Cache::new(named.map(Path::new), variable).map(|cache| cache.0)
}

#[test]
fn the_folder_is_the_one_named_or_the_users() {
    let home = ("HOME", "/home/x");
    assert_eq!(folder(&[home], None).unwrap(), Path::new("/home/x/.cache/lmt"));
    assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "/c")], None).unwrap(), Path::new("/c/lmt"));
    assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "c")], None).unwrap(), Path::new("/home/x/.cache/lmt"));
    assert_eq!(folder(&[home], Some("/named")).unwrap(), Path::new("/named"));
    assert!(folder(&[home], Some("named")).unwrap().is_absolute());
    let error = folder(&[], None).unwrap_err().to_string();
    assert!(error.contains("--cache"), "{error}");
}

#[test]
fn what_is_not_complete_is_not_used() {
    let path = std::env::temp_dir().join(format!("lmt-cache-{}", std::process::id()));
    let cache = Cache(path.clone());
    fs::create_dir_all(path.join("mpi/mpich/bin")).unwrap();
    fs::create_dir_all(path.join("mpi/openmpi/bin")).unwrap();
    fs::write(path.join("mpi/openmpi").join(COMPLETE), "").unwrap();
    let folders = cache.fetched_folders();
    let _ = fs::remove_dir_all(&path);
    assert_eq!(folders, [path.join("mpi/openmpi/bin")]);
}

#[test]
fn fingerprints_tell_parts_apart() {
    assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
    assert_eq!(fingerprint(&["a"]), fingerprint(&["a"]));
}
