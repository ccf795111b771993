use super::*;

fn short() -> MemoryError {
    SharedMemory::create(PURPOSE, "pool_transfers", usize::MAX >> 1, true).unwrap_err()
}

#[test]
fn a_memory_file_is_made_here() {
    let config = Config::default();
    let found = diagnostics(&Host::default(), &config, config.geometry().unwrap());
    assert_eq!(found.iter().map(|f| f.state).collect::<Vec<_>>(), [State::Good, State::Good], "{found:?}");
}

#[test]
fn too_little_memory_is_blocked_and_names_the_limit() {
    // Made once: what is free changes from one moment to the next.
    let error = short();
    let sentence = error.to_string();
    let found = pool_finding(Err(error));
    assert_eq!(found.state, State::Blocked);
    assert!(found.fix.unwrap().contains("ulimit"));
    assert_eq!(found.meaning, sentence);
}

#[test]
fn the_policy_on_memory_files_is_named_where_it_may_be_the_reason() {
    let root = std::env::temp_dir().join(format!("lmt-shm-checkups-{}", std::process::id()));
    std::fs::create_dir_all(root.join("proc/sys/vm")).unwrap();
    std::fs::write(root.join("proc/sys/vm/memfd_noexec"), "2\n").unwrap();
    let refused = || MemoryError::Call { purpose: PURPOSE, call: "memfd_create", errno: Errno::EACCES };
    let strict = file_finding(&Host::under(&root), Err(refused()));
    let no_refusal = file_finding(&Host::under(&root), Err(short()));
    std::fs::remove_dir_all(&root).unwrap();
    assert!(strict.fix.unwrap().contains("vm.memfd_noexec=1"));
    assert!(no_refusal.fix.unwrap().contains("ulimit"));
    let loose = file_finding(&Host::under(&root), Err(refused()));
    assert!(loose.fix.unwrap().contains("seccomp"));
}
