//! Groups of real processes: how they start, fail, and are ended whole.

use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output as ProcessOutput, Stdio};
use std::time::{Duration, Instant};

use lmt::launch::{Launcher, Output, RunOptions, hook, run_launcher};
use lmt_core::identity::EndpointId;
use nix::sys::signal::{SigSet, Signal};

/// No test takes longer than this to see what it waits for.
const LIMIT: Duration = Duration::from_secs(20);
const NOBODY: [u32; 0] = [];
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// Arguments with which this test executable reaches the hook.
const TO_HOOK: [&str; 4] = ["--exact", "as_lmt_run", "--nocapture", "--test-threads=1"];

fn launcher(size: u32) -> Launcher {
    hook();
    Launcher::new(size).supervisor_arguments(TO_HOOK).no_stdin()
}

fn shell(size: u32, script: &str) -> Launcher {
    launcher(size).command("/bin/sh", ["-c", script]).output(Output::Capture)
}

/// Not a test by itself: what a supervisor is started as, and what the tests
/// below start in place of `lmt run -n RANKS -- sh -c SCRIPT`.
#[test]
fn as_lmt_run() {
    hook();
    let Ok(script) = std::env::var("TEST_RUN_SCRIPT") else {
        return;
    };
    let ranks = std::env::var("TEST_RUN_RANKS").ok().and_then(|ranks| ranks.parse().ok()).unwrap_or(2);
    let id: EndpointId =
        std::env::var("TEST_RUN_GROUP").ok().and_then(|id| id.parse().ok()).expect("a group id");
    let options =
        RunOptions { prefix: std::env::var_os("TEST_RUN_PREFIX").is_some(), ..RunOptions::default() };
    let output = if options.prefix { Output::Prefix } else { Output::Inherit };
    let launcher = Launcher::new(ranks)
        .command("/bin/sh", ["-c", &script])
        .output(output)
        .supervisor_arguments(TO_HOOK)
        .group(id);
    std::process::exit(run_launcher(launcher));
}

fn lmt_run(ranks: u32, id: EndpointId, script: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test's own path"));
    command.args(TO_HOOK);
    command.env("TEST_RUN_SCRIPT", script).env("TEST_RUN_RANKS", ranks.to_string());
    command.env("TEST_RUN_GROUP", id.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command
}

fn unique_id() -> EndpointId {
    let mut bytes = [0; 16];
    let mut random = std::fs::File::open("/dev/urandom").expect("random bytes");
    std::io::Read::read_exact(&mut random, &mut bytes).expect("random bytes");
    EndpointId::from_bytes(bytes)
}

/// Processes, zombies aside, whose environment names the group.
fn members(id: EndpointId) -> Vec<u32> {
    let wanted = format!("LMT_GROUP={id}");
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    })
    .collect()
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LIMIT, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn each_rank_gets_its_environment() {
    let script = "echo $LMT_RANK/$LMT_SIZE $LMT_GROUP $EXTRA; test $PPID = $LMT_LAUNCHER_PID";
    let running = shell(3, script).env("EXTRA", "more").spawn().expect("sh is there");
    let id = running.group();
    let outcome = running.wait();
    assert!(outcome.success(), "{outcome}");
    for (rank, output) in outcome.output.iter().enumerate() {
        assert_eq!(text(&output.stdout), format!("{rank}/3 {id} more\n"));
    }
    assert_eq!(outcome.output.len(), 3);
}

#[test]
fn a_rank_hears_the_signal_that_ends_it_if_its_launcher_blocks_it() {
    SigSet::from_iter([Signal::SIGTERM, Signal::SIGHUP]).thread_block().expect("a thread may block them");
    let outcome = shell(1, "exec grep SigBlk /proc/self/status").spawn().expect("sh is there").wait();
    assert_eq!(text(&outcome.output[0].stdout), "SigBlk:\t0000000000000001\n");
}

#[test]
fn a_failing_rank_ends_the_others_and_is_named() {
    let started = Instant::now();
    const GRACE: Duration = Duration::from_secs(60);
    let ranks = shell(3, "if [ $LMT_RANK = 1 ]; then exit 7; fi; sleep 1000").grace(GRACE);
    let running = ranks.spawn().expect("sh is there");
    let id = running.group();
    let outcome = running.wait();
    assert!(!outcome.success());
    assert_eq!(outcome.failure, Some(1));
    assert_eq!(outcome.to_string(), "rank 1 ended with status 7; the other ranks were ended");
    assert_eq!(outcome.exits[0].and_then(|exit| exit.signal()), Some(SIGTERM));
    assert!(started.elapsed() < GRACE, "SIGTERM was enough, no grace had to pass");
    assert_eq!(members(id), NOBODY);
}

#[test]
fn a_rank_that_ignores_sigterm_is_killed_after_the_grace() {
    let script =
        "if [ $LMT_RANK = 1 ]; then sleep 0.3; exit 1; fi; trap '' TERM; while :; do sleep 0.05; done";
    let running = shell(2, script).grace(Duration::from_millis(200)).spawn().expect("sh is there");
    let outcome = running.wait();
    assert_eq!(outcome.exits[0].and_then(|exit| exit.signal()), Some(SIGKILL));
    assert_eq!(outcome.failure, Some(1));
}

#[test]
fn a_killed_rank_is_reported_with_its_signal() {
    let outcome =
        shell(2, "if [ $LMT_RANK = 0 ]; then kill -9 $$; fi; sleep 1000").spawn().expect("sh").wait();
    assert_eq!(outcome.to_string(), "rank 0 was killed by signal 9 (SIGKILL); the other ranks were ended");
}

#[test]
fn an_expected_death_leaves_the_others_running() {
    let running =
        shell(2, "if [ $LMT_RANK = 0 ]; then sleep 1000; fi; read -r x < /dev/null; sleep 0.4; echo on")
            .spawn()
            .expect("sh");
    running.kill(0, SIGKILL).expect("rank 0 is there");
    assert_eq!(running.wait_rank(0, LIMIT).and_then(|exit| exit.signal()), Some(SIGKILL));
    assert_eq!(running.exit_of(1), None);
    let outcome = running.wait();
    assert!(outcome.success(), "{outcome}");
    assert_eq!(text(&outcome.output[1].stdout), "on\n");
}

#[test]
fn daemons_of_ranks_that_ended_well_are_ended() {
    let script = "setsid sh -c 'sleep 1000 & sleep 1000' >/dev/null 2>&1 & sleep 0.1";
    let running = shell(2, script).spawn().expect("sh");
    let id = running.group();
    wait_for("daemons", || members(id).len() >= 6);
    let outcome = running.wait();
    assert!(outcome.success(), "{outcome}");
    assert_eq!(members(id), NOBODY);
}

#[test]
fn dropping_a_group_ends_it() {
    let running = shell(2, "sleep 1000").spawn().expect("sh");
    let id = running.group();
    wait_for("ranks", || members(id).len() >= 2);
    drop(running);
    assert_eq!(members(id), NOBODY);
}

#[test]
fn a_killed_launcher_leaves_nothing_and_harms_nobody() {
    let mut stranger = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().expect("sleep");
    for round in 0..10 {
        let id = unique_id();
        let script = "sh -c 'setsid sh -c \"sleep 1000 & exec sleep 1000\" & trap \"\" TERM; sleep 1000' & \
                      trap '' TERM; sleep 1000";
        let mut run =
            lmt_run(3, id, script).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("this test");
        // Later rounds kill while ranks and their children are being started.
        if round < 5 {
            wait_for("the ranks' daemons", || members(id).len() >= 15);
        } else {
            wait_for("the first rank", || !members(id).is_empty());
        }
        run.kill().expect("it runs");
        run.wait().expect("it ends");
        wait_for("the end of everything", || members(id).is_empty());
    }
    assert!(stranger.try_wait().expect("it can be asked").is_none(), "a stranger was killed");
    stranger.kill().expect("it runs");
    stranger.wait().expect("it ends");
}

#[test]
fn killing_the_launchers_process_group_leaves_nothing() {
    let id = unique_id();
    let script = "setsid sh -c 'sleep 1000 & sleep 1000' & sleep 1000";
    let mut run =
        lmt_run(2, id, script).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("this test");
    wait_for("the ranks' daemons", || members(id).len() >= 8);
    let group = nix::unistd::Pid::from_raw(run.id() as i32);
    nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL).expect("it runs");
    run.wait().expect("it ends");
    wait_for("the end of everything", || members(id).is_empty());
}

#[test]
fn killing_the_supervisor_ends_the_ranks() {
    let running = shell(2, "exec sleep 1000").spawn().expect("sh");
    let id = running.group();
    wait_for("ranks", || members(id).len() == 2);
    let rank = running.pid(0).expect("rank 0");
    let stat = std::fs::read_to_string(format!("/proc/{rank}/stat")).expect("it runs");
    let supervisor: i32 =
        stat.split_ascii_whitespace().nth(3).and_then(|pid| pid.parse().ok()).expect("a parent");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(supervisor), nix::sys::signal::Signal::SIGKILL)
        .expect("ours");
    let outcome = running.wait();
    assert!(outcome.supervisor_died && !outcome.success());
    assert_eq!(outcome.to_string(), "the supervisor of the ranks was killed, and the ranks with it");
    wait_for("the end of the ranks", || members(id).is_empty());
}

#[test]
fn sigterm_to_the_launcher_ends_the_ranks_in_peace() {
    let id = unique_id();
    let script = "trap 'echo bye; exit 0' TERM; while :; do sleep 0.02; done";
    let run = lmt_run(2, id, script).spawn().expect("this test");
    wait_for("ranks", || members(id).iter().filter(|pid| is_shell(**pid)).count() >= 2);
    std::thread::sleep(Duration::from_millis(100));
    let pid = nix::unistd::Pid::from_raw(run.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("it runs");
    let ProcessOutput { status, stdout, stderr } = run.wait_with_output().expect("it ends");
    assert_eq!(status.code(), Some(128 + SIGTERM));
    assert_eq!(text(&stdout).matches("bye\n").count(), 2, "{}", text(&stdout));
    assert_eq!(text(&stderr), "lmt: ended by signal 15 (SIGTERM)\n");
    assert_eq!(members(id), NOBODY);
}

fn is_shell(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"/bin/sh"))
}

#[test]
fn prefixed_lines_never_mix() {
    let script = "i=0; while [ $i -lt 300 ]; do echo line $i of $LMT_RANK; i=$((i+1)); done; printf end";
    let output = lmt_run(3, unique_id(), script).env("TEST_RUN_PREFIX", "1").output().expect("this test");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    for rank in 0..3 {
        for line in 0..300 {
            assert!(
                stdout.contains(&format!("[{rank}] line {line} of {rank}\n")),
                "line {line} of rank {rank}"
            );
        }
        assert!(stdout.contains(&format!("[{rank}] end\n")));
    }
}

#[test]
fn rank_0_reads_standard_input_and_others_an_empty_one() {
    let mut command = lmt_run(2, unique_id(), "read x; echo $LMT_RANK got $x");
    let mut run = command.stdin(Stdio::piped()).spawn().expect("this test");
    run.stdin.take().expect("a pipe").write_all(b"words\n").expect("it reads");
    let stdout = text(&run.wait_with_output().expect("it ends").stdout);
    assert!(stdout.contains("0 got words\n") && stdout.contains("1 got\n"), "{stdout}");
}

#[test]
fn ranks_are_pinned_in_turn() {
    let cpus = lmt::launch::allowed_cpus();
    let wanted: Vec<usize> = cpus.iter().rev().copied().collect();
    let outcome =
        shell(3, "grep Cpus_allowed_list /proc/self/status").pin(&wanted).spawn().expect("sh").wait();
    for (rank, output) in outcome.output.iter().enumerate() {
        let cpu = wanted[rank % wanted.len()];
        assert_eq!(text(&output.stdout), format!("Cpus_allowed_list:\t{cpu}\n"));
    }
}

#[test]
fn what_cannot_be_started_is_said_in_one_line() {
    let error = |launcher: Launcher| launcher.spawn().expect_err("it cannot be started").to_string();
    let no = Vec::<String>::new;
    assert_eq!(
        error(launcher(0).command("true", no())),
        "a group of 0 ranks cannot be started; the number of ranks must be from 1 to 4096"
    );
    assert_eq!(error(launcher(2)), "no program was given; name the one that every rank shall run");
    assert_eq!(
        error(launcher(2).command("no-such-program", no())),
        "program `no-such-program` was not found; give its path, or a name that PATH leads to"
    );
    assert!(error(launcher(2).command("/etc/passwd/x", no())).contains("was not found"));
    assert!(
        error(launcher(2).command("/etc/passwd", no()))
            .contains("`/etc/passwd` cannot be executed: Permission")
    );
    assert!(error(launcher(2).command("/etc", no())).contains("it is a folder"));
    assert!(
        error(launcher(2).command("true", no()).pin(&[100_000]))
            .starts_with("CPU 100000 cannot be pinned to")
    );
    assert!(error(launcher(2).command("true", no()).may_die(2)).contains("ranks 0 to 1"));
    let script = std::env::temp_dir().join(format!("lmt-test-{}", unique_id()));
    write_executable(&script, "#!/no/such/interpreter\n");
    let message = error(launcher(1).command(&script, no()));
    std::fs::remove_file(&script).expect("it was written");
    assert!(message.contains("names an interpreter or loader that is not on this machine"), "{message}");
}

fn write_executable(path: &Path, content: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, content).expect("the temporary folder can be written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}

#[test]
fn usage_errors_have_status_2_and_failures_1() {
    let run = |ranks: u32, script: &str| lmt_run(ranks, unique_id(), script).output().expect("this test");
    let output = run(0, "true");
    assert_eq!((output.status.code(), text(&output.stderr).lines().count()), (Some(2), 1));
    let output = run(2, "exit $((3 * LMT_RANK))");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "lmt: rank 1 ended with status 3; the other ranks were ended\n");
    assert_eq!(run(2, "exit 0").status.code(), Some(0));
}

#[test]
fn sixty_four_ranks_start_and_end() {
    let running = shell(64, "echo $LMT_RANK").spawn().expect("sh");
    let outcome = running.wait();
    assert!(outcome.success(), "{outcome}");
    assert!(
        outcome.output.iter().enumerate().all(|(rank, output)| text(&output.stdout) == format!("{rank}\n"))
    );
}
