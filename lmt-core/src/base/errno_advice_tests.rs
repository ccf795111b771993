use super::*;

/// Words that say that something is short.
const SHORT: [&str; 3] = ["free memory", "ulimit", "RLIMIT"];

#[test]
fn a_refusal_is_no_shortage() {
    for errno in [Errno::EPERM, Errno::EACCES, Errno::ENOSYS] {
        let said = advice("memfd_create", errno);
        assert!(said.contains("seccomp filter") && said.contains("memfd_create"), "{said}");
        assert!(SHORT.iter().all(|word| !said.contains(word)), "{said}");
    }
    assert!(advice("memfd_create", Errno::ENOSYS).contains("kernel"));
    assert!(!advice("memfd_create", Errno::EPERM).contains("kernel"));
}

#[test]
fn a_file_that_may_not_be_reached_is_no_filter() {
    let said = socket_file_advice("connect", Errno::EACCES);
    assert!(said.contains("permissions") && said.contains("folder") && !said.contains("seccomp"), "{said}");
    assert!(socket_file_advice("connect", Errno::EPERM).contains("seccomp"));
    assert!(socket_file_advice("connect", Errno::EMFILE).contains("ulimit -n"));
}

#[test]
fn a_shortage_names_what_is_short() {
    for (errno, word) in [
        (Errno::EMFILE, "ulimit -n"),
        (Errno::ENFILE, "file-max"),
        (Errno::ENOMEM, "ulimit -v"),
        (Errno::EAGAIN, "ulimit -l"),
    ] {
        let said = advice("mmap", errno);
        assert!(said.contains(word) && !said.contains("seccomp"), "{said}");
    }
    assert!(advice("epoll_ctl", Errno::ENOSPC).contains("max_user_watches"));
    assert!(advice("fallocate", Errno::ENOSPC).contains("free memory"));
}

#[test]
fn any_other_answer_names_the_manual_page() {
    assert!(advice("ftruncate", Errno::EINVAL).contains("manual page of ftruncate"));
}

#[test]
fn a_thread_that_is_refused_is_no_shortage() {
    assert!(thread_advice(Errno::EAGAIN).contains("ulimit -u"));
    let refused = thread_advice(Errno::EPERM);
    assert!(refused.contains("seccomp") && !refused.contains("ulimit"), "{refused}");
}
