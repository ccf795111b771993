use super::*;

/// More than any last cache there is, or nearly: most of its lines are misses.
const READ_BYTES: usize = 64 << 20;

/// Where the machine counts, the count grows with what is read; where it does
/// not, one line says why.
#[test]
fn it_counts_or_says_why_not() {
    match MissCounter::start() {
        Ok(mut counter) => {
            let memory = vec![1u8; READ_BYTES];
            let before = counter.misses().unwrap();
            std::hint::black_box(memory.iter().step_by(64).map(|&byte| u64::from(byte)).sum::<u64>());
            let counted = counter.misses().unwrap() - before;
            assert!(counted > 0, "no miss was counted while {READ_BYTES} bytes were read");
        }
        Err(sentence) => {
            lmt_conformance::require::skipped("cache-misses", &sentence);
            assert!(!sentence.contains('\n') && sentence.starts_with("cache misses are not counted: "));
        }
    }
}

#[test]
fn refusals_say_what_would_help() {
    for (errno, part) in [
        (libc::EACCES, "perf_event_paranoid is"),
        (libc::ENOENT, "virtual machine"),
        (libc::ENOSYS, "filter"),
        (libc::E2BIG, "see perf_event_open(2)"),
    ] {
        let sentence = refusal(&io::Error::from_raw_os_error(errno));
        assert!(sentence.contains(part), "{sentence}");
    }
}
