//! `knem-check` on the stand-in for the driver: all holds on a good one, and
//! each faulty one is noticed by a check that has to do with its fault.
#![deny(unsafe_code)]

use std::process::{Command, Output};

use knem_stand_in::{Mutant, Options};
use nix::errno::Errno;

/// Runs it on a stand-in of this kind; nothing where none can be had.
fn run(options: Options, arguments: &[&str]) -> Option<Output> {
    if let Err(why) = knem_stand_in::ensure(options) {
        lmt_conformance::require::skipped("knem-stand-in", &why.to_string());
        return None;
    }
    let program = env!("CARGO_BIN_EXE_knem-check");
    Some(Command::new(program).args(arguments).output().expect("it can be run"))
}

fn text(output: &Output) -> String {
    let parts = [&output.stdout, &output.stderr].map(|part| String::from_utf8_lossy(part).into_owned());
    parts.concat()
}

/// The lines that begin with `word`, without it.
fn lines(output: &Output, word: &str) -> Vec<String> {
    let text = text(output);
    let found = text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    found.map(|line| line.trim_start().to_owned()).collect()
}

/// All holds; returns the lines of what was skipped.
fn holds(options: Options, arguments: &[&str]) -> Vec<String> {
    let Some(output) = run(options, arguments) else {
        return Vec::new();
    };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(lines(&output, "FAIL"), [""; 0]);
    assert!(lines(&output, "ok  ").len() > 3, "{}", text(&output));
    lines(&output, "skip")
}

#[test]
fn every_behaviour_holds() {
    for skipped in holds(Options::default(), &["--no-suite"]) {
        assert!(
            skipped.ends_with("the driver has no DMA channel") || skipped.contains("only root"),
            "{skipped}"
        );
    }
}

#[test]
fn every_behaviour_holds_with_an_engine() {
    for skipped in holds(Options::default().dma(true), &["--no-suite"]) {
        assert!(
            skipped.ends_with("the driver has a DMA channel") || skipped.contains("only root"),
            "{skipped}"
        );
    }
}

#[test]
fn a_small_tail_may_be_lost() {
    if let Some(output) = run(Options::default().loses_small_tails(), &["dma-"]) {
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert!(text(&output).contains("loses the small last piece"), "{}", text(&output));
    }
}

#[test]
fn the_suite_holds() {
    assert_eq!(holds(Options::default(), &["suite-"]), [""; 0]);
}

#[test]
fn the_suite_holds_with_an_engine() {
    assert_eq!(holds(Options::default().dma(true), &["suite-"]), [""; 0]);
}

fn no_device(options: Options, expected: &str) {
    if let Some(output) = run(options, &[]) {
        assert_eq!(output.status.code(), Some(3), "{}", text(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
        assert!(text(&output).contains(expected), "{}", text(&output));
    }
}

#[test]
fn no_module_is_told() {
    no_device(Options::default().open_error(Errno::ENOENT), "modprobe");
}

#[test]
fn no_permission_is_told() {
    no_device(Options::default().open_error(Errno::EACCES), "may not");
}

#[test]
fn another_version_is_told() {
    no_device(Options::default().abi(0xc), "version");
}

#[test]
fn wrong_command_lines_are_told() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_knem-check")).args(arguments).output();
        output.expect("it can be run").status.code()
    };
    assert_eq!(run(&["--no-such-option"]), Some(2));
    assert_eq!(run(&["no-such-check"]), Some(2));
    assert_eq!(run(&["--list"]), Some(0));
}

/// A check of `names` fails on the mutant, and so does the whole.
fn is_noticed(mutant: Mutant, names: &[&str]) {
    let options = Options::default().mutant(mutant);
    let Some(output) = run(options, &["--no-suite", "--wait-ms", "2000"]) else {
        return;
    };
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let failed = lines(&output, "FAIL");
    for name in names {
        let line = failed.iter().find(|line| line.split_whitespace().next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("{name} does not fail: {}", text(&output)));
        assert!(line.contains("expected") && line.contains("found"), "{line}");
    }
}

macro_rules! mutants {
    ($($test:ident $mutant:ident: $($name:literal)+;)+) => {
        const NOTICED: &[Mutant] = &[$(Mutant::$mutant),+];
        $(#[test]
        fn $test() {
            is_noticed(Mutant::$mutant, &[$($name),+]);
        })+
    };
}

mutants! {
    wrong_number WrongNumber: "cookie-destroyed" "destroy-foreign";
    engine_claimed EngineClaimed: "dma-sync" "dma-async-complete" "dma-thread";
    swapped_fields SwappedFields: "region-copy-offsets" "region-copy-bound";
    protection_unchecked ProtectionUnchecked: "protection" "protection-region-copy";
    protection_reversed ProtectionReversed: "protection" "protection-region-copy";
    short_copy ShortCopy: "inline-read" "inline-write" "region-copy" "async-read";
    first_segment_only FirstSegmentOnly: "segments";
    offset_ignored OffsetIgnored: "inline-offset";
    bound_ignored BoundIgnored: "inline-bound" "region-copy-bound";
    write_inverted WriteInverted: "inline-read" "inline-write" "protection";
    region_copy_reversed RegionCopyReversed: "region-copy" "async-region-copy";
    single_use_kept SingleUseKept: "single-use" "single-use-zero-bytes" "single-use-failed";
    single_use_lost_by_refusal SingleUseLostByRefusal: "single-use-refused";
    destroy_ignored DestroyIgnored: "cookie-destroyed" "cookie-recycled";
    foreign_destroy ForeignDestroy: "destroy-foreign";
    cookie_not_recycled CookieNotRecycled: "cookie-recycled";
    dead_owner DeadOwner: "owner-exited" "owner-killed" "owner-closed";
    zero_cookie ZeroCookie: "cookie-bad";
    end_is_an_error EndIsAnError: "end-of-region" "end-of-region-copy";
    bad_memory_creates BadMemoryCreates: "create-bad-memory";
    long_array_faults LongArrayFaults: "create-long-array";
    unknown_is_invalid UnknownIsInvalid: "unknown-request";
    read_only_works ReadOnlyWorks: "read-only";
    bad_buffer_faults BadBufferFaults: "bad-buffer-read";
    bad_source_succeeds BadSourceSucceeds: "bad-buffer-write";
    status_not_written StatusNotWritten: "async-read" "async-zero-bytes";
    status_next_slot StatusNextSlot: "async-read" "async-slots";
    status_swapped StatusSwapped: "inline-read" "async-read" "bad-buffer-read";
    current_status_not_written CurrentStatusNotWritten: "inline-read" "region-copy" "async-read";
    status_not_needed StatusNotNeeded: "async-no-array";
    index_unchecked IndexUnchecked: "async-index";
    second_status_array SecondStatusArray: "async-second-array";
    dma_without_channel DmaWithoutChannel: "dma-no-channel";
    not_pinned NotPinned: "pages-unmapped" "pages-discarded";
    unknown_flags_refused UnknownFlagsRefused: "silent-creation" "silent-copies";
}

#[test]
fn another_user_is_noticed() {
    if !nix::unistd::geteuid().is_root() {
        lmt_conformance::require::skipped("another user", "only root can become one");
        return;
    }
    is_noticed(Mutant::OtherUser, &["other-user", "other-user-root"]);
}

#[test]
fn every_mutant_is_tried() {
    let missing = |mutant: &&Mutant| !NOTICED.contains(mutant) && **mutant != Mutant::OtherUser;
    assert_eq!(Mutant::ALL.iter().filter(missing).collect::<Vec<_>>(), Vec::<&Mutant>::new());
}
