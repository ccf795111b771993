//! `lmt doctor` as users start it, also where rights are taken away for real:
//! as an unprivileged user, since root is exempt from some of the rules.

#[path = "doctor/start.rs"]
mod start;
#[path = "doctor/sys.rs"]
mod sys;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use start::{
    Folder, JSON, as_nobody, doctor, finish, is_free, mechanism, named, report, says, text, unprivileged,
};

#[test]
fn an_ordinary_run_is_well_and_ends_with_one_sentence() {
    let program = Path::new(env!("CARGO_BIN_EXE_lmt"));
    let plain = report(doctor(program, &JSON));
    if plain["ok"] != true {
        lmt_conformance::require::skipped("cma", &plain["verdict"].to_string());
        return;
    }
    let output = finish(doctor(program, &[]));
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let shown = text(&output.stdout);
    assert!(!shown.contains('\x1b'), "colours only on a terminal");
    assert_eq!(shown.lines().last().unwrap(), plain["verdict"], "{shown}");
    for part in ["[ok]      cma", "[ok]      shm", "seccomp", "hwloc", "ranks and CPUs"] {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
    assert_eq!(plain["best"], serde_json::json!(["cma", "shm"]));
    let names = plain["mechanisms"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), lmt::mechanism_names());
}

#[test]
fn every_finding_has_all_its_parts() {
    let report = report(doctor(Path::new(env!("CARGO_BIN_EXE_lmt")), &JSON));
    let states = ["good", "limited", "missing", "blocked", "unknown"];
    let check = |finding: &Value| {
        assert!(states.contains(&finding["state"].as_str().unwrap()), "{finding}");
        assert!(!finding["name"].as_str().unwrap().is_empty(), "{finding}");
        assert!(!finding["meaning"].as_str().unwrap().is_empty(), "{finding}");
        assert!(finding["fix"].is_null() || finding["fix"].is_string(), "{finding}");
    };
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.len() >= 18, "{findings:#?}");
    findings.iter().for_each(check);
    for mechanism in report["mechanisms"].as_array().unwrap() {
        check(mechanism);
        mechanism["findings"].as_array().unwrap().iter().for_each(check);
    }
}

#[test]
fn an_unprivileged_user_is_well_too() {
    let folder = Folder::new("unprivileged");
    let program = folder.program(0o755);
    if !is_free(&program, "an unprivileged user") {
        return;
    }
    let report = report(unprivileged(&program, &JSON));
    assert!(says(&named(&report["findings"], "capabilities")["meaning"], "none that lifts"), "{report:#}");
}

/// Linux takes the dumpability of an executable that its user cannot read, as
/// PR_SET_DUMPABLE 0 would: PR_SET_DUMPABLE itself does not outlive execve(2).
#[test]
fn an_unreadable_program_is_told_to_be_readable() {
    let folder = Folder::new("unreadable");
    if !is_free(&folder.program(0o755), "an unreadable program") {
        return;
    }
    let program = folder.program(0o111);
    let report = report(unprivileged(&program, &JSON));
    assert_eq!(report["ok"], false, "{report:#}");
    let cma = mechanism(&report, "cma");
    assert_eq!(cma["state"], "blocked", "{cma:#}");
    assert_eq!(cma["errno"], libc::EPERM, "{cma:#}");
    assert!(says(&cma["fix"], "chmod a+r"), "{cma:#}");
    assert_eq!(named(&cma["findings"], "dumpability")["state"], "blocked");
    assert_eq!(named(&cma["findings"], "process_vm_readv and process_vm_writev")["state"], "good");
    assert_eq!(mechanism(&report, "shm")["state"], "good");
    assert!(says(&report["verdict"], "cma does not work"), "{}", report["verdict"]);
    assert!(says(&report["verdict"], "messages go by shm instead"), "{}", report["verdict"]);
}

#[test]
fn a_filter_that_refuses_the_calls_is_named_with_what_helps() {
    let folder = Folder::new("filter");
    let program = folder.program(0o755);
    if !is_free(&program, "a filter of both calls") {
        return;
    }
    let mut command = unprivileged(&program, &JSON);
    sys::refuse_calls(&mut command, &[libc::SYS_process_vm_readv, libc::SYS_process_vm_writev]);
    let report = report(command);
    assert_eq!(report["ok"], false, "{report:#}");
    let cma = mechanism(&report, "cma");
    assert_eq!(cma["state"], "blocked", "{cma:#}");
    assert!(says(&cma["fix"], "--security-opt seccomp=FILE"), "{cma:#}");
    let calls = named(&cma["findings"], "process_vm_readv and process_vm_writev");
    assert!(says(&calls["meaning"], "process_vm_readv (EPERM"), "{calls}");
    assert!(says(&calls["meaning"], "process_vm_writev (EPERM"), "{calls}");
    assert!(says(&named(&report["findings"], "seccomp")["meaning"], "filters in force: 1"));
    assert_eq!(mechanism(&report, "shm")["state"], "good");
    assert_eq!(mechanism(&report, "vmsplice")["state"], "good");
    assert!(says(&report["verdict"], "cma does not work"), "{}", report["verdict"]);
}

#[test]
fn a_filter_that_refuses_one_direction_leaves_the_other() {
    let folder = Folder::new("one-way");
    let program = folder.program(0o755);
    if !is_free(&program, "a filter of writing") {
        return;
    }
    let mut command = unprivileged(&program, &JSON);
    sys::refuse_calls(&mut command, &[libc::SYS_process_vm_writev]);
    let report = report(command);
    assert_eq!(report["ok"], false, "{report:#}");
    let cma = mechanism(&report, "cma");
    assert_eq!(cma["state"], "limited", "{cma:#}");
    assert!(says(&cma["meaning"], "the sender cannot copy into the receiver's memory"), "{cma:#}");
    assert!(says(&report["verdict"], "does not work fully"), "{}", report["verdict"]);
}

#[test]
fn what_is_not_of_the_best_may_be_refused() {
    let folder = Folder::new("others");
    let program = folder.program(0o755);
    if !is_free(&program, "a filter of vmsplice") {
        return;
    }
    let mut command = unprivileged(&program, &JSON);
    sys::refuse_calls(&mut command, &[libc::SYS_vmsplice]);
    let report = report(command);
    assert_eq!(report["ok"], true, "{report:#}");
    let vmsplice = mechanism(&report, "vmsplice");
    assert_eq!(
        (&vmsplice["state"], &vmsplice["is_best"]),
        (&"blocked".into(), &false.into()),
        "{vmsplice:#}"
    );
}

#[test]
fn a_user_namespace_of_its_own_changes_nothing() {
    let folder = Folder::new("userns");
    let program = folder.program(0o755);
    if !is_free(&program, "a user namespace") {
        return;
    }
    let mut trial = Command::new("true");
    sys::in_own_user_namespace(&mut trial);
    if let Err(error) = trial.status() {
        lmt_conformance::require::skipped("userns", &error.to_string());
        return;
    }
    let mut command = unprivileged(&program, &JSON);
    sys::in_own_user_namespace(&mut command);
    let report = report(command);
    assert_eq!(report["ok"], true, "{report:#}");
    let namespace = named(&report["findings"], "user namespace");
    assert_eq!(namespace["state"], "limited", "{namespace}");
    assert!(says(&namespace["meaning"], "not the initial one"), "{namespace}");
}

#[test]
fn children_in_another_pid_namespace_are_told() {
    let folder = Folder::new("pidns");
    let program = folder.program(0o755);
    if !is_free(&program, "a pid namespace") {
        return;
    }
    let mut trial = Command::new("true");
    sys::with_children_in_own_pid_namespace(&mut trial);
    if let Err(error) = trial.status() {
        // A user namespace comes with it, which may be what is refused.
        lmt_conformance::require::skipped("pidns", &error.to_string());
        lmt_conformance::require::skipped("userns", &error.to_string());
        return;
    }
    let mut command = unprivileged(&program, &JSON);
    sys::with_children_in_own_pid_namespace(&mut command);
    let report = report(command);
    assert_eq!(report["ok"], false, "{report:#}");
    let cma = mechanism(&report, "cma");
    assert_eq!(cma["state"], "limited", "{cma:#}");
    assert!(says(&cma["meaning"], "when this process sends"), "{cma:#}");
    let namespace = named(&report["findings"], "pid namespace");
    assert!(says(&namespace["fix"], "--fork"), "{namespace}");
    assert_eq!(mechanism(&report, "shm")["state"], "good");
}

/// The shell sets limits for what it becomes.
#[test]
fn limits_of_the_shell_are_told() {
    let folder = Folder::new("limits");
    let program = folder.program(0o755);
    let with = |limits: &str| {
        let inner = doctor(&program, &["-n", "64", "--format", "json"]);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")]).arg(inner.get_program());
        command.args(inner.get_args()).stdin(Stdio::null());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        as_nobody(&mut command);
        report(command)
    };
    let little = with("ulimit -l 64");
    assert_eq!(named(&little["findings"], "locked memory (ulimit -l)")["state"], "good");
    assert!(says(&named(&little["findings"], "locked memory (ulimit -l)")["meaning"], "64 KiB;"));
    let none = with("ulimit -l 0; ulimit -n 100");
    assert_eq!(named(&none["findings"], "locked memory (ulimit -l)")["state"], "limited");
    assert_eq!(none["ok"], little["ok"], "no message is locked: {none:#}");
    let files = named(&none["findings"], "open files (ulimit -n)");
    assert_eq!(files["state"], "limited", "{files}");
    assert!(says(&files["fix"], "nofile"), "the hard limit is as low: {files}");
}

#[test]
fn a_topology_by_a_variable_is_described_and_told_not_to_be_this_machines() {
    let program = Path::new(env!("CARGO_BIN_EXE_lmt"));
    let plain = report(doctor(program, &JSON));
    let mut command = doctor(program, &JSON);
    command.env("HWLOC_SYNTHETIC", "package:2 l2:2(size=4194304) core:2 pu:1");
    let synthetic = report(command);
    let hwloc = named(&synthetic["findings"], "hwloc");
    assert!(says(&hwloc["meaning"], "which is not this machine"), "{hwloc}");
    assert!(says(&hwloc["meaning"], "2 packages"), "{hwloc}");
    assert!(says(&hwloc["fix"], "unset HWLOC_SYNTHETIC"), "{hwloc}");
    assert_eq!(synthetic["ok"], plain["ok"]);
    let mut command = doctor(program, &JSON);
    command.env("HWLOC_XMLFILE", "/nowhere/at/all.xml");
    let hwloc = report(command);
    let hwloc = named(&hwloc["findings"], "hwloc");
    assert_eq!(hwloc["state"], "blocked", "{hwloc}");
}

#[test]
fn variables_that_nobody_reads_are_told() {
    let program = Path::new(env!("CARGO_BIN_EXE_lmt"));
    let plain = report(doctor(program, &JSON));
    let mut command = doctor(program, &JSON);
    command.env("LMT_MECHANSIM", "shm");
    let slip = report(command);
    let found = named(&slip["findings"], "LMT_MECHANSIM");
    assert!(says(&found["fix"], "did you mean LMT_MECHANISM?"), "{found}");
    assert_eq!(slip["ok"], plain["ok"], "a slip changes nothing that works");
    let mut command = doctor(program, &JSON);
    command.env("LMT_EAGER_MAX", "much");
    let wrong = report(command);
    assert_eq!(wrong["ok"], false, "no endpoint can be opened: {wrong:#}");
    assert!(says(&wrong["verdict"], "cannot send each other messages"), "{}", wrong["verdict"]);
    assert!(says(&named(&wrong["findings"], "variables")["meaning"], "LMT_EAGER_MAX"), "{wrong:#}");
    let mut command = doctor(program, &JSON);
    command.env("LMT_MECHANISM", "shm");
    assert_eq!(report(command)["ok"], plain["ok"], "what is chosen is not what there is");
}

#[test]
fn more_ranks_than_cpus_are_told() {
    let report = report(doctor(Path::new(env!("CARGO_BIN_EXE_lmt")), &["-n", "4096", "--format", "json"]));
    assert_eq!(report["ranks"], 4096);
    assert_eq!(named(&report["findings"], "ranks and CPUs")["state"], "limited");
}

#[test]
fn yama_in_the_files_given_decides() {
    let folder = Folder::new("yama");
    let program = folder.program(0o755);
    if !is_free(&program, "Yama in files") {
        return;
    }
    folder.with("files/proc/self/status", "CapEff:\t0000000000000000\nSeccomp:\t0\n");
    let root = folder.0.join("files");
    for (scope, ok, state) in
        [("0", true, "good"), ("1", true, "limited"), ("2", false, "blocked"), ("3", false, "blocked")]
    {
        folder.with("files/proc/sys/kernel/yama/ptrace_scope", &format!("{scope}\n"));
        let report = report(unprivileged(&program, &["--root", root.to_str().unwrap(), "--format", "json"]));
        assert_eq!(report["ok"], ok, "scope {scope}: {report:#}");
        let cma = mechanism(&report, "cma");
        assert_eq!(named(&cma["findings"], "Yama")["state"], state, "scope {scope}");
        let called = named(&cma["findings"], "dumpability");
        assert!(says(&called["meaning"], "found by a call on this machine"), "{called}");
        assert_eq!(says(&report["verdict"], "By the files given"), !ok, "{}", report["verdict"]);
    }
    let shown = finish(unprivileged(&program, &["--root", root.to_str().unwrap()]));
    assert!(text(&shown.stdout).starts_with("Files are read below"), "{}", text(&shown.stdout));
}

#[test]
fn a_work_queue_without_permission_is_blocked_and_fails_nothing() {
    let folder = Folder::new("queue");
    let program = folder.program(0o755);
    if !is_free(&program, "a work queue") {
        return;
    }
    for (attribute, value) in [
        ("state", "enabled"),
        ("type", "user"),
        ("mode", "shared"),
        ("size", "16"),
        ("max_transfer_size", "2147483648"),
    ] {
        folder.with(&format!("files/sys/bus/dsa/devices/wq0.0/{attribute}"), value);
    }
    let device = folder.with("files/dev/dsa/wq0.0", "");
    fs::set_permissions(&device, fs::Permissions::from_mode(0o000)).unwrap();
    let knem = folder.with("files/dev/knem", "");
    fs::set_permissions(&knem, fs::Permissions::from_mode(0o444)).unwrap();
    let root = folder.0.join("files");
    let report = report(unprivileged(&program, &["--root", root.to_str().unwrap(), "--format", "json"]));
    let dsa = mechanism(&report, "ioat-dsa");
    let queue = named(&dsa["findings"], "DSA work queue wq0.0");
    assert_eq!(queue["state"], "blocked", "{dsa:#}");
    assert!(says(&queue["fix"], "chmod g+rw /dev/dsa/wq0.0"), "{queue}");
    let knem = mechanism(&report, "knem-ioctl");
    assert_eq!(named(&knem["findings"], "/dev/knem")["state"], "blocked", "{knem:#}");
    assert_eq!(report["ok"], true, "{}", report["verdict"]);
}

#[test]
fn mistakes_are_one_line_and_status_2() {
    let program = Path::new(env!("CARGO_BIN_EXE_lmt"));
    for (arguments, part) in [
        (&["--root", "/nowhere/at/all"][..], "holds no proc"),
        (&["-n", "0"], "from 1"),
        (&["--format", "csv"], "json"),
        (&["cma"], "unexpected"),
    ] {
        let output = finish(doctor(program, arguments));
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.lines().count() == 1 && error.contains(part), "{arguments:?}: {error}");
    }
}

/// Names that are made of what a machine has are explained by their beginning.
#[test]
fn the_page_explains_every_line() {
    let page = include_str!("../../docs/doctor.md");
    let report = report(doctor(Path::new(env!("CARGO_BIN_EXE_lmt")), &JSON));
    let of = |findings: &Value| {
        let names =
            findings.as_array().unwrap().iter().map(|finding| finding["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let mut names = of(&report["findings"]);
    report["mechanisms"].as_array().unwrap().iter().for_each(|entry| names.extend(of(&entry["findings"])));
    assert!(names.len() > 25, "{names:?}");
    for name in names.iter().filter(|name| !name.starts_with("LMT_")) {
        let name = name.split(" wq").next().unwrap();
        assert!(page.contains(&format!("**{name}**")), "docs/doctor.md does not explain '{name}'");
    }
}
