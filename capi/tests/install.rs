//! `make install` into a folder, and programs that find all they need through
//! pkg-config alone.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Folder, STRICT, folder, succeed};
use lmt_conformance::require;

/// cargo's folder of what is built, and the profile of this very test.
fn target_and_profile() -> (PathBuf, &'static str) {
    let test = std::env::current_exe().expect("this program has a path");
    // TARGET/PROFILE/deps/test-HASH
    let built = test.ancestors().nth(2).expect("the folder of the profile");
    let profile = if built.ends_with("release") { "release" } else { "dev" };
    (built.parent().expect("cargo's folder").to_owned(), profile)
}

/// Installs under `prefix`.
fn install(prefix: &Path) {
    let (target, profile) = target_and_profile();
    let mut make = Command::new("make");
    // A make that runs this test has flags and variables of its own.
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("DESTDIR").env_remove("LIBDIR");
    make.env("CARGO_TARGET_DIR", target).arg("--directory").arg(folder().join("..")).arg("install");
    make.arg(format!("PREFIX={}", prefix.display())).arg(format!("PROFILE={profile}"));
    // It builds what is not built yet: nextest's limit holds, not ours.
    let output = make.output().expect("make runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "make install: {}\n{errors}", output.status);
}

/// What pkg-config says of the library that is installed under `prefix`.
fn pkg_config(prefix: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).args(arguments).arg("lmt");
    succeed(&mut command).split_whitespace().map(str::to_owned).collect()
}

/// Compiles the example with `flags`, and gives the program.
fn compile(name: &str, before: &[String], flags: &[String], into: &Path) -> PathBuf {
    let program = into.join(name);
    let mut command = Command::new("cc");
    command.arg("-std=c11").args(STRICT).arg(folder().join("examples/device_layer.c"));
    succeed(command.arg("-o").arg(&program).args(before).args(flags));
    program
}

fn needs_liblmt(program: &Path) -> bool {
    succeed(Command::new("readelf").arg("--dynamic").arg(program)).contains("[liblmt.so.0]")
}

fn lines_of(program: &mut Command) -> usize {
    succeed(program).lines().filter(|line| line.ends_with("6 messages, 6118216 bytes")).count()
}

fn is_there(command: &str) -> bool {
    let found = Command::new(command).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        require::skipped("install", &format!("{command} is not here"));
    }
    found
}

#[test]
fn an_installed_library_is_found_by_pkg_config() {
    if !["make", "pkg-config", "readelf"].into_iter().all(is_there) {
        return;
    }
    let root = Folder::new("install");
    let prefix = root.path().join("prefix");
    install(&prefix);
    let libraries = prefix.join("lib");
    let version = env!("CARGO_PKG_VERSION");
    let link = |name: &str| std::fs::read_link(libraries.join(name)).expect("a link");
    assert_eq!(link("liblmt.so"), Path::new("liblmt.so.0"));
    assert_eq!(link("liblmt.so.0"), Path::new(&format!("liblmt.so.{version}")));
    assert_eq!(pkg_config(&prefix, &["--modversion"]), [version]);
    let said = succeed(Command::new(prefix.join("bin/lmt")).arg("--version"));
    assert!(said.contains(version), "{said}");

    let flags = pkg_config(&prefix, &["--cflags", "--libs"]);
    let shared = compile("shared", &[], &flags, root.path());
    assert!(needs_liblmt(&shared));
    assert_eq!(lines_of(Command::new(&shared).env("LD_LIBRARY_PATH", &libraries)), 2);
    // `lmt run` starts programs in C, too.
    let mut run = Command::new(prefix.join("bin/lmt"));
    run.args(["run", "-n", "1", "--"]).arg(&shared).env("LD_LIBRARY_PATH", &libraries);
    assert_eq!(lines_of(&mut run), 2);

    // The archive, with the shared library beside it ...
    let private = pkg_config(&prefix, &["--static", "--cflags", "--libs"]);
    let archive = pkg_config(&prefix, &["--variable=archive"]);
    let before = [&archive[..], &["-Wl,--as-needed".to_owned()]].concat();
    let archived = compile("archived", &before, &private, root.path());
    assert!(!needs_liblmt(&archived));
    assert_eq!(lines_of(&mut Command::new(&archived)), 2);
    // ... and without it.
    std::fs::remove_file(libraries.join("liblmt.so")).expect("it is there");
    let alone = compile("alone", &[], &private, root.path());
    assert!(!needs_liblmt(&alone));
    assert_eq!(lines_of(&mut Command::new(&alone)), 2);
}
