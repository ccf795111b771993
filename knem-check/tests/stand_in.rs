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

/// Those of an asynchronous copy, DMA and PINLOCAL.
const COPY_FLAGS: u32 = 31;
const DMA: u32 = 1;
const ASYNC_DMA_COMPLETE: u32 = 2;
const DMA_THREAD: u32 = 4;
const MEMCPY_THREAD: u32 = 8;
const PIN_LOCAL: u32 = 16;

#[test]
fn what_is_ignored_is_skipped() {
    let options = Options::default().dma(true).ignored_flags(COPY_FLAGS);
    let skipped = holds(options.clone(), &["--no-suite"]);
    let name = |line: &String| line.split_whitespace().next().unwrap_or_default().to_owned();
    let names: Vec<String> = skipped.iter().map(name).collect();
    if let Some(output) = run(options, &["async-no-array", "async-index"]) {
        for expected in ["async-no-array", "async-read", "bad-buffer-pin-local", "dma-sync"] {
            assert!(names.iter().any(|name| name == expected), "{expected} is not among {names:?}");
        }
        // The last line says it to who reads no other.
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let last = text.lines().last().unwrap_or_default();
        assert!(last.starts_with("0 ok, 0 failed, 2 skipped: 1 as this driver "), "{text}");
        assert!(last.contains("ignores the flags of all asynchronous copies, 1 as "), "{text}");
    }
}

#[test]
fn what_is_ignored_in_part_is_tried_with_the_rest() {
    let options = Options::default().ignored_flags(MEMCPY_THREAD);
    if let Some(output) = run(options, &["async-no-array"]) {
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert!(text(&output).contains("tried with 2 of 3 flags"), "{}", text(&output));
    }
}

#[test]
fn every_behaviour_holds_where_local_memory_is_always_pinned() {
    for skipped in holds(Options::default().forced_flags(PIN_LOCAL), &["--no-suite"]) {
        assert!(
            skipped.ends_with("forced flags that have local memory pinned")
                || skipped.ends_with("the driver has no DMA channel")
                || skipped.contains("only root"),
            "{skipped}"
        );
    }
}

#[test]
fn what_dma_copies_may_come_late() {
    for small_bytes in [1024, 2000] {
        let options = Options::default().loses_small_tails().dmamin(Some(small_bytes));
        let output = std::thread::spawn(|| run(options, &["dma-"])).join().expect("it can be run");
        let Some(output) = output else { return };
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert!(text(&output).contains("reports success before DMA has copied"), "{}", text(&output));
        assert!(text(&output).contains(&format!("it is {small_bytes} bytes")), "{}", text(&output));
        let skipped = lines(&output, "skip");
        assert!(skipped.iter().all(|line| line.ends_with("the driver has a DMA channel")), "{skipped:?}");
    }
}

/// All flags by which the module makes every copy asynchronous.
#[test]
fn every_behaviour_holds_where_all_copies_are_asynchronous() {
    let engine = || Options::default().loses_small_tails();
    for options in [
        Options::default().forced_flags(MEMCPY_THREAD),
        engine().forced_flags(MEMCPY_THREAD),
        engine().forced_flags(DMA | ASYNC_DMA_COMPLETE),
        engine().forced_flags(DMA | DMA_THREAD),
    ] {
        let skipped = std::thread::spawn(|| holds(options, &["--no-suite"])).join().expect("all holds");
        for skipped in skipped {
            assert!(
                skipped.contains("this driver is loaded")
                    || skipped.contains("the driver has ")
                    || skipped.contains("only root"),
                "{skipped}"
            );
        }
    }
}

#[test]
fn copies_by_an_engine_that_is_not_there_are_skipped() {
    let Some(output) = run(Options::default().forced_flags(DMA | ASYNC_DMA_COMPLETE), &["--no-suite"]) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let skipped = lines(&output, "skip");
    let reason = "loaded so that a DMA engine makes every copy, and has none";
    assert!(skipped.iter().filter(|line| line.ends_with(reason)).count() > 40, "{skipped:?}");
}

/// That this program runs a case; all of them hold on this driver, as lmt-knem's tests have it.
#[test]
fn a_case_of_the_suite_holds() {
    let Some(output) = run(Options::default(), &["suite-sizes"]) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("1 ok, 0 failed, 0 skipped"), "{}", text(&output));
}

#[test]
fn the_suite_holds_with_an_engine() {
    assert_eq!(holds(Options::default().dma(true), &["suite-"]), [""; 0]);
}

#[test]
fn the_suite_holds_where_all_copies_are_asynchronous() {
    // All but the longest.
    let cases =
        ["sizes", "segments", "both-directions", "cancel", "truncation", "demotion", "death", "forked"];
    let names = cases.map(|case| format!("suite-{case}"));
    let names = names.each_ref().map(String::as_str);
    let skipped = holds(Options::default().forced_flags(MEMCPY_THREAD), &names);
    assert!(skipped.iter().all(|line| line.starts_with("suite-death-of-senders ")), "{skipped:?}");
}

#[test]
fn the_suite_is_skipped_where_an_engine_makes_every_copy() {
    let options = Options::default().loses_small_tails().forced_flags(DMA);
    let Some(output) = run(options, &["suite-"]) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("0 ok, 0 failed, "), "{}", text(&output));
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

/// The driver that has the fault: one in which it makes a difference.
fn driver_of(mutant: Mutant) -> Options {
    let driver = Options::default();
    match mutant {
        Mutant::DmaBadBufferFails
        | Mutant::DmaLosesPages
        | Mutant::DmaAlwaysLate
        | Mutant::ParameterHidden
        | Mutant::TailLostWithoutDma
        | Mutant::InfoFeaturesSwapped => driver.dma(true),
        Mutant::InfoFlagsSwapped | Mutant::IgnoredUntold => {
            driver.ignored_flags(MEMCPY_THREAD).forced_flags(PIN_LOCAL)
        }
        _ => driver,
    }
}

/// Each check of `names` fails on the mutant, and so does the whole.
fn is_noticed(mutant: Mutant, names: &[&str]) {
    let options = driver_of(mutant).mutant(mutant);
    let arguments = [&["--no-suite", "--wait-ms", "2000"], names].concat();
    let Some(output) = run(options, &arguments) else {
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
        /// The checks of which a test here shows that they can fail.
        const SHOWN: &[&str] = &[$($($name),+),+];
        $(#[test]
        fn $test() {
            is_noticed(Mutant::$mutant, &[$($name),+]);
        })+
    };
}

mutants! {
    wrong_number WrongNumber: "cookie-destroyed" "destroy-foreign";
    engine_claimed EngineClaimed: "dma-sync" "dma-async-complete" "dma-thread" "info-flags";
    swapped_fields SwappedFields: "region-copy-offsets" "region-copy-bound";
    protection_unchecked ProtectionUnchecked: "protection" "protection-region-copy";
    protection_reversed ProtectionReversed: "protection" "protection-region-copy";
    short_copy ShortCopy: "single-use-bit" "inline-read" "inline-write" "region-copy" "async-read" "pages-forked";
    first_segment_only FirstSegmentOnly: "segments";
    offset_ignored OffsetIgnored: "inline-offset";
    bound_ignored BoundIgnored: "inline-bound" "region-copy-bound";
    write_inverted WriteInverted: "inline-read" "inline-write" "protection";
    region_copy_reversed RegionCopyReversed: "region-copy" "async-region-copy";
    single_use_kept SingleUseKept: "single-use" "single-use-zero-bytes" "single-use-failed" "single-use-region-copy"
        "single-use-destroyed";
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
    dies_with_owner DiesWithOwner: "owner-child";
    dies_with_descriptor DiesWithDescriptor: "owner-mapped";
    destroy_ends_copies DestroyEndsCopies: "async-destroyed";
    async_bad_buffer_pends AsyncBadBufferPends: "async-bad-buffer";
    async_write_reversed AsyncWriteReversed: "async-write";
    pin_local_copies_nothing PinLocalCopiesNothing: "pin-local";
    pin_local_ignored PinLocalIgnored: "bad-buffer-pin-local" "info-flags";
    first_comer FirstComer: "concurrent";
    few_regions FewRegions: "many-regions";
    bind_refused BindRefused: "binding";
    bad_array_creates BadArrayCreates: "create-bad-array";
    frozen_pages FrozenPages: "pages-untouched";
    dma_bad_buffer_fails DmaBadBufferFails: "dma-bad-buffer" "info-flags";
    dma_loses_pages DmaLosesPages: "dma-small-tail";
    dma_always_late DmaAlwaysLate: "dma-large-tail";
    parameter_hidden ParameterHidden: "dma-parameter" "dma-large-tail";
    tail_lost_without_dma TailLostWithoutDma: "dma-small-tail" "inline-read" "inline-write";
    info_flags_swapped InfoFlagsSwapped: "info-flags" "async-no-array";
    info_features_swapped InfoFeaturesSwapped: "info-flags";
    info_short InfoShort: "info";
    ignored_untold IgnoredUntold: "info-flags" "bad-buffer-read" "async-no-array";
}

/// What [`another_user_is_noticed`] shows to fail.
const OTHER_USER: &[&str] = &["other-user", "other-user-root"];

#[test]
fn another_user_is_noticed() {
    if !nix::unistd::geteuid().is_root() {
        lmt_conformance::require::skipped("another user", "only root can become one");
        return;
    }
    is_noticed(Mutant::OtherUser, OTHER_USER);
}

#[test]
fn every_mutant_is_tried() {
    let missing = |mutant: &&Mutant| !NOTICED.contains(mutant) && **mutant != Mutant::OtherUser;
    assert_eq!(Mutant::ALL.iter().filter(missing).collect::<Vec<_>>(), Vec::<&Mutant>::new());
}

/// Names of checks, or what they begin with, that no test here shows to fail,
/// and why not.
const NOT_SHOWN: &[(&str, &str)] = &[(
    "suite-",
    "a case of the conformance suite is a test of a mechanism, and whether it can fail is that suite's to \
     show; that its failure is one of this program's shows the_suite_fails_on_a_short_copy",
)];

#[test]
fn every_check_is_seen_to_fail() {
    let output = Command::new(env!("CARGO_BIN_EXE_knem-check")).arg("--list").output();
    let list = String::from_utf8(output.expect("it can be run").stdout).expect("names are text");
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let excepted = |name: &str| NOT_SHOWN.iter().any(|(begin, _)| name.starts_with(begin));
    let shown = |name: &str| SHOWN.contains(&name) || OTHER_USER.contains(&name);
    let missing: Vec<_> = names.iter().filter(|name| !shown(name) && !excepted(name)).collect();
    assert_eq!(missing, [&""; 0], "checks that fail on no mutant");
    for (begin, why) in NOT_SHOWN {
        let stands = names.iter().any(|name| name.starts_with(begin) && !shown(name));
        assert!(stands && !why.is_empty(), "{begin} is no exception");
    }
}

/// The mechanism itself refuses such a driver, and that must be a failure here
/// and no skip.
#[test]
fn the_suite_fails_on_a_short_copy() {
    let options = Options::default().mutant(Mutant::ShortCopy);
    if let Some(output) = run(options, &["suite-sizes"]) {
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(lines(&output, "FAIL")[0].starts_with("suite-sizes "), "{}", text(&output));
    }
}
