//! `lmt apps` with programs and an MPI of shell scripts: what is right, fails, hangs,
//! is wrong or sends nothing through lmt.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An MPI that starts one process, whatever it is told.
const MPIEXEC: &str = r#"[ "$1" = --version ] && { echo 'mpiexec (OpenRTE) 4.1.4'; exit 0; }
while [ "$1" != -n ]; do shift; done
export OMPI_COMM_WORLD_RANK=0
shift 2
"$@""#;

/// A program that does what its first argument says.
const PROGRAM: &str = r#"over=own
[ -n "$LMT_STATS" ] && over=lmt
energy=-1.50
case $1-$over in
wrong-lmt) energy=-1.90;;
fails-lmt) echo "error: no such peer"; exit 3;;
hangs-lmt | hangs-always-*) sleep 600;;
talks-lmt) yes | head -c 5000000;;
pipes-lmt) mkfifo result; exit 0;;
esac
[ $over = lmt ] && [ $1 != silent ] && cat >"$LMT_STATS" <<END
lmt stats pid=1 rank endpoint=1
lmt stats 1 cma a b 3 300 0 x
END
[ "$(cat input)" = "2 ranks" ] || exit 4
read -r line
echo "energy $energy $line"
echo "time 2.0 s"
echo PASSED >>result"#;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lmt-test-apps-{}-{name}", std::process::id()));
        fs::create_dir_all(path.join("bin")).unwrap();
        fs::create_dir_all(path.join("tmp")).unwrap();
        let folder = Self(path);
        folder.script("bin/mpiexec.openmpi", MPIEXEC);
        folder.script("bin/program", PROGRAM);
        fs::write(folder.0.join("liblmt-fi.so"), "").unwrap();
        fs::write(folder.0.join("input"), "@RANKS@ ranks").unwrap();
        folder
    }

    fn script(&self, name: &str, text: &str) {
        let file = self.0.join(name);
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A table of a program that does each of these.
    fn table(&self, what: &[&str]) {
        let entry = |what: &&str| {
            // Of one that hangs it is waited out; others end by themselves, however loaded the machine is.
            let limit_s = if what.starts_with("hangs") { 2 } else { 100 };
            format!(
                "[[program]]\nname = '{what}'\ntitle = 'A script'\nkind = 'halo'\nmpi = 'debian'\npackages = ['a-{what}']\n\
                 files = ['input']\nprepare = 'echo a line >stdin'\ncommand = ['program', '{what}']\nstdin = 'stdin'\n\
                 output_files = ['result']\nranks = [2]\nlimit_s = {limit_s}\nmust_match = ['^PASSED$']\nagree = ['^energy (\\S+) a line$']\n\
                 figures = [{{ name = 'loop', pattern = '^time (\\S+) s', unit = 's', better = 'lower', role = 'time' }}]\nshort = {{}}\n"
            )
        };
        fs::write(self.0.join("table.toml"), what.iter().map(entry).collect::<String>()).unwrap();
    }

    /// Runs the command: its status, what it said and its complaints.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lmt"));
        command.args(["apps", "--table"]).arg(self.0.join("table.toml")).arg("--out").arg(self.0.join("out"));
        command.arg("--provider").arg(self.0.join("liblmt-fi.so")).arg("--cache").arg(self.0.join("cache"));
        command.args(arguments).env("PATH", format!("{}/bin:/usr/bin:/bin", self.0.display()));
        for name in ["LMT_FI", "LMT_STATS", "FI_PROVIDER"] {
            command.env_remove(name);
        }
        let ended = command.env("TMPDIR", self.0.join("tmp")).stdin(Stdio::null()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (ended.status.code(), text(ended.stdout), text(ended.stderr))
    }

    fn page(&self) -> String {
        fs::read_to_string(self.0.join("out/apps.html")).unwrap()
    }

    /// Nothing of it runs any more, and no folder is left.
    fn is_clean(&self) {
        let needle = self.0.join("tmp").display().to_string();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let names_it = String::from_utf8_lossy(&environment).contains(&needle);
            assert!(!names_it, "{} is still there", entry.path().display());
        }
        assert_eq!(fs::read_dir(self.0.join("tmp")).unwrap().count(), 0);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn the_line<'a>(text: &'a str, program: &str) -> &'a str {
    let is_its = |line: &&str| line.split_whitespace().next() == Some(program);
    text.lines().find(is_its).unwrap_or_else(|| panic!("no line of {program} in\n{text}"))
}

#[test]
fn a_program_that_is_right_is_measured_in_turns() {
    let folder = Folder::new("right");
    folder.table(&["right"]);
    let (status, text, complaints) = folder.run(&["--turns", "3"]);
    assert_eq!(status, Some(0), "{text}{complaints}");
    let words: Vec<&str> = the_line(&text, "right").split_whitespace().collect();
    assert_eq!(words[..8], ["right", "openmpi", "4.1.4", "2", "loop", "2.00", "2.00", "s"]);
    assert_eq!(words[8..], ["1.00", "1.00..1.00", "cma", "100.0", "%"]);
    assert!(text.contains("No more than 5 % slower over lmt: 1 of 1"), "{text}");
    assert!(folder.page().contains("cma 100.0 %"));
    let figures: String = fs::read_to_string(folder.0.join("out/apps.json")).unwrap();
    assert!(figures.contains("\"verdict\": \"right\""), "{figures}");
    folder.is_clean();
}

#[test]
fn one_that_fails_over_lmt_alone_ends_the_command_with_a_failure() {
    let folder = Folder::new("fails");
    folder.table(&["fails", "wrong", "silent", "talks", "pipes", "right"]);
    let (status, text, complaints) = folder.run(&["--turns", "1"]);
    assert_eq!(status, Some(1), "{text}{complaints}");
    for (program, part) in [
        ("fails", "FAILS over lmt: its launcher ended with status 3: error: no such peer"),
        ("wrong", "FAILS over lmt: its result is wrong: it prints -1.90, and -1.50 over its own transport"),
        ("silent", "FAILS over lmt: no byte of its messages went through lmt"),
        ("talks", "FAILS over lmt: it prints 2 MiB or more"),
        ("pipes", "FAILS over lmt: its result is wrong: nothing that it prints matches"),
    ] {
        assert!(the_line(&text, program).contains(part), "{text}");
        assert!(complaints.contains(&format!("{program} (openmpi 4.1.4, 2 ranks)")), "{complaints}");
    }
    assert!(the_line(&text, "right").contains("1.00"), "{text}");
    let kept = folder.0.join("out/failed/fails-openmpi-2-lmt-1/output");
    assert!(fs::read_to_string(kept).unwrap().contains("no such peer"));
    assert!(folder.page().contains("FAILS over lmt"));
    folder.is_clean();
}

#[test]
fn one_that_hangs_over_lmt_is_ended_and_its_stacks_are_kept() {
    let folder = Folder::new("hangs");
    folder.table(&["hangs"]);
    let (status, text, complaints) = folder.run(&["--turns", "1"]);
    assert_eq!(status, Some(1), "{text}{complaints}");
    assert!(the_line(&text, "hangs").contains("FAILS over lmt: it did not end within 2 s"), "{text}");
    let kept = folder.0.join("out/failed/hangs-openmpi-2-lmt-1");
    let ranks = fs::read_dir(&kept).unwrap().flatten().filter(|entry| is_rank(&entry.path()));
    assert!(ranks.count() >= 1, "{kept:?}");
    folder.is_clean();
}

fn is_rank(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.starts_with("rank-0-") && fs::read_to_string(file).is_ok_and(|text| text.contains("/status:"))
}

#[test]
fn one_that_hangs_over_its_own_transport_too_counts_for_nothing() {
    let folder = Folder::new("always");
    folder.table(&["hangs-always", "right"]);
    let (status, text, complaints) = folder.run(&["--turns", "1"]);
    assert_eq!(status, Some(0), "{text}{complaints}");
    assert!(the_line(&text, "hangs-always").contains("fails over its own transport too"), "{text}");
    assert!(text.contains("Ended and right in every turn: 1 of 1"), "{text}");
    folder.is_clean();
}

#[test]
fn what_cannot_be_run_is_left_out_or_required() {
    let folder = Folder::new("left-out");
    folder.table(&["right"]);
    let entry = fs::read_to_string(folder.0.join("table.toml")).unwrap();
    let absent = entry
        .replace("'right'", "'absent'")
        .replace("a-right", "a-absent")
        .replace("['program'", "['no-such-program'");
    fs::write(folder.0.join("table.toml"), entry + &absent).unwrap();
    let (status, text, _) = folder.run(&["--short"]);
    let sentence = "absent with 2 ranks under Open MPI 4.1.4 is left out: no-such-program is not there; apt-get install a-absent";
    assert!(status == Some(0) && text.contains(sentence), "{text}");
    let (status, _, complaints) = folder.run(&["--short", "--require"]);
    assert!(status == Some(1) && complaints.contains("all are required"), "{complaints}");
    let (status, text, _) = folder.run(&["--packages"]);
    assert_eq!((status, text.as_str()), (Some(0), "a-absent\na-right\n"));
}

#[test]
fn what_is_wrong_is_one_sentence() {
    let folder = Folder::new("wrong");
    folder.table(&["right"]);
    let cases: [(&[&str], i32, &str); 3] = [
        (&["--programs", "other"], 2, "there is no program other; take of right"),
        (&["--turns", "0"], 2, "turns"),
        (&["--ranks", "0"], 2, "ranks"),
    ];
    for (arguments, expected, part) in cases {
        let (status, text, complaints) = folder.run(arguments);
        assert!(status == Some(expected) && complaints.contains(part), "{arguments:?}: {complaints}");
        assert_eq!((complaints.lines().count(), text.as_str()), (1, ""), "{complaints}");
    }
    fs::remove_file(folder.0.join("bin/mpiexec.openmpi")).unwrap();
    fs::remove_file(folder.0.join("liblmt-fi.so")).unwrap();
    let (status, _, complaints) = folder.run(&[]);
    assert!(status == Some(1) && complaints.contains("make fi builds"), "{complaints}");
}
