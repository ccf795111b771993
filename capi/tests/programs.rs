//! Programs in C, and one in C++, compiled strictly and run as real processes.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

use common::{compile, declared, folder, is_there, libraries, succeed};
use lmt_conformance::require;

/// Compiles a program of `tests/c` or `examples` and runs it; what it has printed.
fn program(path: &str) -> String {
    let source = folder().join(path);
    let name = source.file_stem().expect("a file").to_string_lossy().into_owned();
    let libraries = libraries(&name);
    succeed(&mut Command::new(compile("cc", "c11", &source, libraries.path())))
}

/// The lines that a program prints, in order.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn messages_between_two_processes() {
    program("tests/c/messages.c");
}

#[test]
fn waiting_memory_and_regions_between_two_processes() {
    program("tests/c/extras.c");
}

#[test]
fn the_second_device_between_two_processes() {
    program("tests/c/device.c");
}

#[test]
fn a_killed_peer_is_told_in_time() {
    program("tests/c/death.c");
}

#[test]
fn misuse_gives_codes() {
    program("tests/c/misuse.c");
}

#[test]
fn every_function_is_misused() {
    let source = std::fs::read_to_string(folder().join("tests/c/misuse.c")).expect("the source is there");
    let missing: Vec<String> =
        declared().into_iter().filter(|name| !source.contains(&format!("{name}("))).collect();
    assert!(missing.is_empty(), "tests/c/misuse.c calls these nowhere: {missing:?}");
}

#[test]
fn the_device_layer_of_the_examples() {
    let text = program("examples/device_layer.c");
    assert_eq!(sorted(&text), [0, 1].map(|rank| format!("rank {rank}: 6 messages, 6118216 bytes")));
}

#[test]
fn the_own_packets_of_the_examples() {
    let text = program("examples/own_packets.c");
    assert_eq!(sorted(&text), [0, 1].map(|rank| format!("rank {rank}: 4 messages, 8589708 bytes")));
}

#[test]
fn the_example_of_the_documentation() {
    let page = std::fs::read_to_string(folder().join("../docs/c-interface.md")).expect("the page is there");
    let (_, rest) = page.split_once("```c\n").expect("an example in C");
    let (source, _) = rest.split_once("```").expect("it ends");
    let libraries = libraries("documentation");
    let path = libraries.path().join("documented.c");
    std::fs::write(&path, source).expect("the folder can be written");
    let program = compile("cc", "c11", &path, libraries.path());
    assert_eq!(succeed(&mut Command::new(program)), "6 bytes: hello\n");
}

#[test]
fn the_header_is_cpp_too() {
    if !is_there("c++", "c++") {
        return;
    }
    let libraries = libraries("cpp");
    let program = compile("c++", "c++11", &folder().join("tests/c/header.cc"), libraries.path());
    assert_eq!(succeed(&mut Command::new(program)), "hello\n");
}

#[test]
fn an_exception_of_cpp_ends_the_process() {
    if !is_there("c++", "c++") {
        return;
    }
    let libraries = libraries("exception");
    let program = compile("c++", "c++11", &folder().join("tests/c/exception.cc"), libraries.path());
    let output = common::run(&mut Command::new(program));
    assert_eq!(output.stdout, b"thrown\n");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{}", output.status);
}

/// Compiles the header as a source of its own.
fn check_header(standard: &str) -> Command {
    let mut command = Command::new("cc");
    command.arg(format!("-std={standard}")).args(common::STRICT).args(["-fsyntax-only", "-x", "c"]);
    command
}

#[test]
fn the_header_is_strict_c_of_each_standard() {
    let header = folder().join("include/lmt.h");
    for standard in ["c99", "c11", "c17"] {
        succeed(check_header(standard).arg(&header));
    }
    // The name depends on the compiler's age.
    let is_known = |standard: &&str| {
        let mut command = Command::new("cc");
        command.arg(format!("-std={standard}")).args(["-fsyntax-only", "-x", "c", "/dev/null"]);
        common::run(&mut command).status.success()
    };
    match ["c23", "c2x"].into_iter().find(is_known) {
        Some(standard) => drop(succeed(check_header(standard).arg(&header))),
        None => require::skipped("c23", "this C compiler knows neither c23 nor c2x"),
    }
}

/// What the shared library offers is what the header declares, and no more.
#[test]
fn the_library_exports_what_the_header_declares() {
    let library: PathBuf = common::built("liblmt_capi.so");
    let text =
        succeed(Command::new("nm").args(["--dynamic", "--defined-only", "--format=posix"]).arg(library));
    let mut exported: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    let mut declared = declared();
    exported.sort_unstable();
    declared.sort_unstable();
    assert_eq!(exported, declared);
}
