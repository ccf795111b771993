//! `make install` into a folder, and programs that find all they need through
//! pkg-config alone.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{Folder, compile_with, folder, is_there, succeed};

const EXAMPLE: &str = "device_layer.c";

/// cargo's folder of what is built, and the profile of this very test.
fn target_and_profile() -> (PathBuf, &'static str) {
    let test = std::env::current_exe().expect("this program has a path");
    // TARGET/PROFILE/deps/test-HASH
    let built = test.ancestors().nth(2).expect("the folder of the profile");
    let profile = if built.ends_with("release") { "release" } else { "dev" };
    (built.parent().expect("cargo's folder").to_owned(), profile)
}

/// `make install` with this PREFIX.
fn make_install(prefix: &str) -> Output {
    let (target, profile) = target_and_profile();
    let mut make = Command::new("make");
    // A make that runs this test has flags and variables of its own.
    for variable in ["MAKEFLAGS", "MAKELEVEL", "DESTDIR", "LIBDIR", "PREFIX"] {
        make.env_remove(variable);
    }
    make.env("CARGO_TARGET_DIR", target).arg("--directory").arg(folder().join("..")).arg("install");
    make.arg(format!("PREFIX={prefix}")).arg(format!("PROFILE={profile}"));
    // It builds what is not built yet: nextest's limit holds, not ours.
    make.output().expect("make runs")
}

/// Installs under `prefix`.
fn install(prefix: &Path) {
    let output = make_install(&prefix.display().to_string());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "make install: {}\n{errors}", output.status);
}

/// What pkg-config says of the library that is installed under `prefix`.
fn pkg_config(prefix: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).args(arguments).arg("lmt");
    // As a shell reads what it has escaped.
    succeed(&mut command).replace('\\', "").split_whitespace().map(str::to_owned).collect()
}

/// Compiles an example as pkg-config says, and gives the program.
fn compile(example: &str, name: &str, before: &[String], flags: &[String], into: &Path) -> PathBuf {
    let program = into.join(name);
    let source = folder().join("examples").join(example);
    // The archive comes behind the program that needs it.
    compile_with("cc", "c11", &source, &program, &[], &[before, flags].concat());
    program
}

fn needs_liblmt(program: &Path) -> bool {
    succeed(Command::new("readelf").arg("--dynamic").arg(program)).contains("[liblmt.so.0]")
}

fn lines_of(program: &mut Command) -> usize {
    succeed(program).lines().filter(|line| line.ends_with("6 messages, 6118216 bytes")).count()
}

/// The ranks of `lmt run` find each other, without anything being exchanged.
fn check_group(prefix: &Path, flags: &[String], folder: &Path) {
    let program = compile("group.c", "group", &[], flags, folder);
    let mut run = Command::new(prefix.join("bin/lmt"));
    run.args(["run", "-n", "3", "--"]).arg(program).env("LD_LIBRARY_PATH", prefix.join("lib"));
    let said = succeed(&mut run);
    for (rank, before) in [(0, 2), (1, 0), (2, 1)] {
        let line = format!("rank {rank} of 3 heard rank {before}");
        assert!(said.contains(&line), "{line}: {said}");
    }
}

/// The rates of the examples: each message is right, and all three patterns are told.
fn check_rates(prefix: &Path, flags: &[String], folder: &Path) {
    let program = compile("rates.c", "rates", &[], flags, folder);
    for bytes in ["8", "4096"] {
        let mut run = Command::new(prefix.join("bin/lmt"));
        run.args(["run", "-n", "2", "--"]).arg(&program).args([bytes, "300"]);
        let said = succeed(run.env("LD_LIBRARY_PATH", prefix.join("lib")));
        let told =
            ["ping-pong", "window of 64", "exchange"].into_iter().all(|pattern| said.contains(pattern));
        assert!(told && said.contains(&format!("{bytes} B: ")), "{said}");
    }
}

/// The provider is where the installed command looks for it.
fn check_provider(prefix: &Path) {
    let said = succeed(Command::new(prefix.join("bin/lmt")).args(["mpirun-env", "mpich"]));
    let libraries = prefix.join("lib").canonicalize().expect("it is there");
    assert!(libraries.join("liblmt-fi.so").is_file());
    assert!(said.contains("FI_PROVIDER_PATH") && said.contains(&*libraries.to_string_lossy()), "{said}");
}

#[test]
fn a_folder_that_cannot_be_named_is_refused() {
    if !is_there("make", "install") {
        return;
    }
    for prefix in ["relative/folder", "", "/tmp/two words"] {
        let output = make_install(prefix);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains("PREFIX"), "{prefix:?}: {errors}");
    }
}

#[test]
fn an_installed_library_is_found_by_pkg_config() {
    if !["make", "pkg-config", "readelf"].into_iter().all(|command| is_there(command, "install")) {
        return;
    }
    let root = Folder::new("install");
    // With characters that mean something to sed(1).
    let prefix = root.path().join("pre|fi&x");
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
    let shared = compile(EXAMPLE, "shared", &[], &flags, root.path());
    assert!(needs_liblmt(&shared));
    assert_eq!(lines_of(Command::new(&shared).env("LD_LIBRARY_PATH", &libraries)), 2);
    // `lmt run` starts programs in C, too.
    let mut run = Command::new(prefix.join("bin/lmt"));
    run.args(["run", "-n", "1", "--"]).arg(&shared).env("LD_LIBRARY_PATH", &libraries);
    assert_eq!(lines_of(&mut run), 2);

    check_group(&prefix, &flags, root.path());
    check_rates(&prefix, &flags, root.path());
    check_provider(&prefix);

    // The archive, with the shared library beside it ...
    let private = pkg_config(&prefix, &["--static", "--cflags", "--libs"]);
    let archive = pkg_config(&prefix, &["--variable=archive"]);
    let before = [&archive[..], &["-Wl,--as-needed".to_owned()]].concat();
    let archived = compile(EXAMPLE, "archived", &before, &private, root.path());
    assert!(!needs_liblmt(&archived));
    assert_eq!(lines_of(&mut Command::new(&archived)), 2);
    // ... and without it.
    std::fs::remove_file(libraries.join("liblmt.so")).expect("it is there");
    let alone = compile(EXAMPLE, "alone", &[], &private, root.path());
    assert!(!needs_liblmt(&alone));
    assert_eq!(lines_of(&mut Command::new(&alone)), 2);
}
