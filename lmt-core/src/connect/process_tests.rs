//! Connections between real processes: this test binary, started again with a
//! role in its environment.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::test_support::*;
use crate::connect::{Closed, Connector, yama};
use crate::vocabulary::config::Config;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::{Address, EndpointId};

/// Begins each line by which a child speaks to its parent, to tell it from
/// what the test harness prints.
const MARK: &str = "lmt-test:";

/// No child lives longer, whatever happens.
const CHILD_LIMIT: Duration = Duration::from_secs(120);

/// A child process; killed when dropped.
struct Role {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Role {
    /// Starts this binary again to run only the test `name`, which finds its
    /// role in `LMT_TEST_ROLE`.
    fn start(name: &str, arguments: &[String]) -> Self {
        Self::start_by(Command::new(std::env::current_exe().unwrap()), name, arguments)
    }

    /// The same by a command that runs this binary.
    fn start_by(mut command: Command, name: &str, arguments: &[String]) -> Self {
        command
            .args(["--exact", &format!("connect::process_tests::{name}"), "--nocapture", "--test-threads=1"])
            .env("LMT_TEST_ROLE", arguments.join(" "))
            .env(yama::LAUNCHER_PID, std::process::id().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    /// The child's next line, or what it said last when it ended.
    fn line(&mut self) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the child ended after:\n{all}");
            // The harness may have begun the line ("test name ... ").
            if let Some(at) = line.find(MARK) {
                return line[at + MARK.len()..].trim().to_owned();
            }
            all.push_str(&line);
        }
    }

    fn go(&mut self) {
        self.stdin.write_all(b"g").unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The arguments of this process's role, in a child.
fn role() -> Option<Vec<String>> {
    let text = std::env::var("LMT_TEST_ROLE").ok()?;
    // A child whose parent was killed, or that hangs, ends by itself.
    std::thread::spawn(|| {
        std::thread::sleep(CHILD_LIMIT);
        std::process::exit(9);
    });
    Some(text.split(' ').map(str::to_owned).collect())
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{MARK}{text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn wait_for_go() {
    // A parent that is gone ends the child.
    if std::io::stdin().read_exact(&mut [0]).is_err() {
        std::process::exit(8);
    }
}

fn id(text: &str) -> EndpointId {
    text.parse().unwrap()
}

/// Works until `done`; false when `limit` is over.
fn work(party: &mut Party, limit: Duration, done: impl Fn(&Party) -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        party.step();
        if done(party) {
            return true;
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        party.connector.wait(Some(left.min(Duration::from_millis(100))));
    }
}

const TEN_SECONDS: Duration = Duration::from_secs(10);

fn work_long(party: &mut Party, done: impl Fn(&Party) -> bool) {
    assert!(work(party, TEN_SECONDS, done), "not done in time: {:#?}", party.recorder.log);
}

/// A child that listens, connects if told so, and serves until it is killed.
fn serve(arguments: &[String]) -> ! {
    let (me, peer) = (id(&arguments[0]), id(&arguments[1]));
    let mut party = Party::new(me);
    say("ready");
    wait_for_go();
    if arguments[2] == "connect" {
        party.connector.connect(&Address::abstract_socket(peer));
    }
    if let Some(probe_us) = arguments.get(3) {
        party.recorder.probe_takes = Duration::from_micros(probe_us.parse().unwrap());
    }
    loop {
        party.step();
        party.connector.wait(Some(Duration::from_millis(100)));
        if party.recorder.closed_how(peer).is_some() {
            say("closed");
            std::process::exit(0);
        }
    }
}

fn served(name: &str, me: EndpointId, peer: EndpointId, connect: bool) -> Role {
    let what = if connect { "connect" } else { "listen" };
    let mut role = Role::start(name, &[me.to_string(), peer.to_string(), what.to_owned()]);
    assert_eq!(role.line(), "ready");
    role
}

#[test]
fn two_processes_exchange_a_memfd_and_read_each_others_nonce() {
    if let Some(arguments) = role() {
        serve(&arguments);
    }
    // Who begins: we, the other, both.
    for (here, there) in [(true, false), (false, true), (true, true)] {
        let (a, b) = two_ids();
        let mut one = Party::new(a);
        let mut other = served("two_processes_exchange_a_memfd_and_read_each_others_nonce", b, a, there);
        other.go();
        if here {
            one.connector.connect(&Address::abstract_socket(b));
        }
        work_long(&mut one, |p| p.connector.is_established(b));
        let log = &one.recorder.log;
        let Some(Happened::Established(facts, report)) =
            log.iter().find(|e| matches!(e, Happened::Established(..)))
        else {
            panic!("{log:?}");
        };
        assert_eq!(facts.process.pid(), Some(other.pid().as_raw()));
        assert_eq!(report, b"read your nonce");
        one.connector.goodbye(b);
        assert_eq!(other.line(), "closed");
    }
}

#[test]
fn a_killed_peer_is_told_within_a_second_and_leaves_no_name() {
    if let Some(arguments) = role() {
        serve(&arguments);
    }
    let (a, b) = two_ids();
    let mut one = Party::new(a);
    let mut other = served("a_killed_peer_is_told_within_a_second_and_leaves_no_name", b, a, true);
    other.go();
    work_long(&mut one, |p| p.connector.is_established(b));
    let names = || std::fs::read_to_string("/proc/net/unix").unwrap();
    assert!(names().contains(&format!("@lmt-{b}")));
    other.kill();
    assert!(work(&mut one, Duration::from_secs(1), |p| p.recorder.closed_how(b) == Some(Closed::Died)));
    assert!(!names().contains(&b.to_string()), "{}", names());
    // Its successor is welcome.
    let mut other = served("a_killed_peer_is_told_within_a_second_and_leaves_no_name", b, a, false);
    other.go();
    one.connector.connect(&Address::abstract_socket(b));
    work_long(&mut one, |p| p.connector.is_established(b));
}

#[test]
fn a_peer_killed_at_any_instant_of_the_handshake_is_told_within_a_second() {
    const NAME: &str = "a_peer_killed_at_any_instant_of_the_handshake_is_told_within_a_second";
    if let Some(arguments) = role() {
        serve(&arguments);
    }
    let mut counts = [0; 4];
    let mut random = [0; 4];
    for round in 0..200u32 {
        crate::base::random::fill(&mut random).unwrap();
        let (low, high) = two_ids();
        let (a, b) = if round & 1 == 0 { (low, high) } else { (high, low) };
        let config = Config { connect_timeout_ms: 700, ..Config::default() };
        let mut one = Party::with(a, &config);
        let connects = if round & 2 == 0 { "connect" } else { "listen" };
        let arguments = [b.to_string(), a.to_string(), connects.to_owned(), "150".to_owned()];
        let mut other = Role::start(NAME, &arguments);
        assert_eq!(other.line(), "ready");
        one.recorder.probe_takes = Duration::from_micros(100);
        if round & 4 == 0 || connects == "listen" {
            one.connector.connect(&Address::abstract_socket(b));
        }
        other.go();
        // The kill comes while we work, from another thread.
        let delay = Duration::from_micros(u64::from(u32::from_ne_bytes(random) % 1500));
        let killer = std::thread::spawn(move || {
            let at = Instant::now() + delay;
            while Instant::now() < at {
                std::hint::spin_loop();
            }
            other.kill();
        });
        while !killer.is_finished() {
            one.step();
        }
        killer.join().unwrap();
        let told = work(&mut one, Duration::from_secs(1), |p| {
            p.connector.connecting() == 0 && !p.connector.is_established(b)
        });
        assert!(told, "round {round}: {:#?}", one.recorder.log);
        let log = &one.recorder.log;
        let had = |what: fn(&Happened) -> bool| log.iter().any(what);
        let stage = match () {
            _ if had(|e| matches!(e, Happened::Established(..))) => 3,
            _ if had(|e| matches!(e, Happened::Probe)) => 2,
            _ if had(|e| matches!(e, Happened::Hello)) => 1,
            _ => 0,
        };
        counts[stage] += 1;
        let ended = one.recorder.error_of(b).is_some() || one.recorder.closed_how(b).is_some();
        assert!(ended || stage == 0, "round {round}: {log:#?}");
    }
    let [before, hello, probe, established] = counts;
    println!(
        "killed before contact {before}, after HELLO {hello}, after the probe {probe}, established {established}"
    );
    assert!(hello > 0 && probe > 0 && established > 0, "the kills did not hit the handshake");
}

#[test]
fn a_killed_listener_whose_child_lives_does_not_keep_us_waiting() {
    if let Some(arguments) = role() {
        let mut party = Party::new(id(&arguments[0]));
        party.step();
        // exec closes the descriptors of the child, so hand it the listening
        // socket as its standard input.
        let listener = party.connector.listener_for_test();
        let child = Command::new("sleep").arg("60").stdin(listener).spawn().unwrap();
        say(&child.id().to_string());
        wait_for_go();
        std::process::exit(0);
    }
    let (a, b) = two_ids();
    let mut other =
        Role::start("a_killed_listener_whose_child_lives_does_not_keep_us_waiting", &[b.to_string()]);
    let child = Pid::from_raw(other.line().parse().unwrap());
    other.kill();
    let mut one = Party::new(a);
    one.connector.connect(&Address::abstract_socket(b));
    let told = work(&mut one, Duration::from_secs(1), |p| p.recorder.error_of(b).is_some());
    kill(child, Signal::SIGKILL).unwrap();
    assert!(told);
    assert_eq!(one.recorder.error_of(b), Some(&PeerError::Dead { id: b }));
}

/// Returns once the process has stopped.
fn stop(role: &Role) {
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    kill(role.pid(), Signal::SIGSTOP).unwrap();
    let stopped = waitpid(role.pid(), Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert_eq!(stopped, WaitStatus::Stopped(role.pid(), Signal::SIGSTOP));
}

#[test]
fn a_stopped_peer_is_waited_for_as_long_as_it_may_take_to_answer() {
    const NAME: &str = "a_stopped_peer_is_waited_for_as_long_as_it_may_take_to_answer";
    if let Some(arguments) = role() {
        serve(&arguments);
    }
    let config = Config { connect_timeout_ms: 50, answer_timeout_ms: 60_000, ..Config::default() };
    for is_killed in [false, true] {
        let (a, b) = two_ids();
        let mut other = served(NAME, b, a, false);
        other.go();
        stop(&other);
        let mut one = Party::with(a, &config);
        one.connector.connect(&Address::abstract_socket(b));
        let told = work(&mut one, Duration::from_millis(400), |p| p.recorder.error_of(b).is_some());
        assert!(!told, "{:?}", one.recorder.error_of(b));
        if is_killed {
            other.kill();
            assert!(work(&mut one, TEN_SECONDS, |p| p.recorder.error_of(b).is_some()));
            assert_eq!(one.recorder.error_of(b), Some(&PeerError::Dead { id: b }));
        } else {
            kill(other.pid(), Signal::SIGCONT).unwrap();
            assert!(work(&mut one, TEN_SECONDS, |p| p.connector.is_established(b)));
        }
    }
}

#[test]
fn a_stopped_peer_is_unreachable_in_time_and_harms_nobody() {
    if let Some(arguments) = role() {
        serve(&arguments);
    }
    let (a, b) = two_ids();
    let mut other = served("a_stopped_peer_is_unreachable_in_time_and_harms_nobody", b, a, false);
    other.go();
    stop(&other);
    let config = Config { connect_timeout_ms: 300, ..Config::default() };
    let mut one = Party::with(a, &config);
    one.connector.connect(&Address::abstract_socket(b));
    let told = work(&mut one, Duration::from_secs(2), |p| p.recorder.error_of(b).is_some());
    assert!(told && matches!(one.recorder.error_of(b), Some(PeerError::Unreachable { .. })));
    kill(other.pid(), Signal::SIGCONT).unwrap();
    // A busy machine may need more than one of these short attempts.
    let end = Instant::now() + TEN_SECONDS;
    while !one.connector.is_established(b) {
        assert!(Instant::now() < end, "{:#?}", one.recorder.log);
        one.connector.connect(&Address::abstract_socket(b));
        work(&mut one, Duration::from_millis(400), |p| p.connector.is_established(b));
    }
}

#[test]
fn another_users_process_is_refused_unless_allowed() {
    const NAME: &str = "another_users_process_is_refused_unless_allowed";
    let config = |allowed| Config { allow_other_users: allowed, ..quick_config() };
    if let Some(arguments) = role() {
        nix::unistd::setgid(nix::unistd::Gid::from_raw(65534)).unwrap();
        nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).unwrap();
        let (me, peer) = (id(&arguments[0]), id(&arguments[1]));
        let mut party = Party::with(me, &config(arguments[2] == "allowed"));
        say("ready");
        party.connector.connect(&Address::abstract_socket(peer));
        work_long(&mut party, |p| p.connector.is_established(peer) || p.recorder.error_of(peer).is_some());
        say(&party.recorder.error_of(peer).map_or("established".to_owned(), ToString::to_string));
        wait_for_go();
        std::process::exit(0);
    }
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can start a process of another user");
        return;
    }
    for (here, there, works) in [(false, false, false), (true, true, true), (false, true, false)] {
        let (a, b) = two_ids();
        let mut one = Party::with(a, &config(here));
        let arguments = [b.to_string(), a.to_string(), if there { "allowed" } else { "not" }.to_owned()];
        let mut other = Role::start(NAME, &arguments);
        assert_eq!(other.line(), "ready");
        one.connector.connect(&Address::abstract_socket(b));
        work_long(&mut one, |p| p.connector.is_established(b) || p.recorder.error_of(b).is_some());
        for _ in 0..50 {
            one.step();
            one.connector.wait(Some(Duration::from_millis(2)));
        }
        let told = other.line();
        assert_eq!(one.connector.is_established(b), works, "{:?}", one.recorder.log);
        if works {
            assert_eq!(told, "established");
        } else {
            assert!(told.contains("was refused") && told.contains("users"), "{told}");
            assert!(matches!(one.recorder.error_of(b), Some(PeerError::Refused { .. })));
        }
    }
}

#[test]
fn another_users_socket_in_a_folder_is_told_as_the_folders_permissions() {
    const NAME: &str = "another_users_socket_in_a_folder_is_told_as_the_folders_permissions";
    if let Some(arguments) = role() {
        nix::unistd::setgid(nix::unistd::Gid::from_raw(65534)).unwrap();
        nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).unwrap();
        let (me, peer) = (id(&arguments[0]), id(&arguments[1]));
        let mut party = Party::new(me);
        say("ready");
        party.connector.connect(&Address::in_folder(peer, Path::new(&arguments[2])).unwrap());
        work_long(&mut party, |p| p.recorder.error_of(peer).is_some());
        say(&party.recorder.error_of(peer).unwrap().to_string());
        std::process::exit(0);
    }
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can start a process of another user");
        return;
    }
    let (a, b) = two_ids();
    let folder = std::env::temp_dir().join(format!("lmt-test-{a}"));
    std::fs::create_dir(&folder).unwrap();
    let one = Party::with(a, &Config { socket_dir: Some(folder.clone()), ..quick_config() });
    let arguments = [b.to_string(), a.to_string(), folder.to_str().unwrap().to_owned()];
    let mut other = Role::start(NAME, &arguments);
    assert_eq!(other.line(), "ready");
    let told = other.line();
    assert!(told.contains("EACCES") && told.contains("permissions") && !told.contains("seccomp"), "{told}");
    drop(one);
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn a_peer_in_another_pid_namespace_has_no_pid_but_a_pidfd() {
    const NAME: &str = "a_peer_in_another_pid_namespace_has_no_pid_but_a_pidfd";
    if let Some(arguments) = role() {
        let (me, peer) = (id(&arguments[0]), id(&arguments[1]));
        let mut party = Party::new(me);
        party.connector.connect(&Address::abstract_socket(peer));
        work_long(&mut party, |p| p.connector.is_established(peer));
        let process = party.recorder.log.iter().find_map(|e| match e {
            Happened::Established(facts, _) => Some(facts.process.clone()),
            _ => None,
        });
        let process = process.unwrap();
        say(&format!("{:?} {} {}", process.pid(), process.pidfd().is_some(), process.is_alive()));
        work_long(&mut party, |p| p.recorder.closed_how(peer).is_some());
        say("closed");
        wait_for_go();
        std::process::exit(0);
    }
    let into = ["--pid", "--fork", "--kill-child"];
    if !Command::new("unshare").args(into).arg("true").status().is_ok_and(|status| status.success()) {
        println!("skipped: unshare(1) cannot make a pid namespace here");
        return;
    }
    let (a, b) = two_ids();
    let mut one = Party::new(a);
    let mut command = Command::new("unshare");
    command.args(into).arg(std::env::current_exe().unwrap());
    let mut other = Role::start_by(command, NAME, &[b.to_string(), a.to_string()]);
    work_long(&mut one, |p| p.connector.is_established(b));
    // It cannot name us, we can name it.
    let pid = one.recorder.log.iter().find_map(|e| match e {
        Happened::Established(facts, report) => {
            assert_eq!(report, b"cannot read you");
            facts.process.pid()
        }
        _ => None,
    });
    assert!(pid.is_some());
    let pidfd = crate::base::pidfd::pidfd_open(std::process::id() as i32).is_ok();
    assert_eq!(other.line(), format!("None {pidfd} true"));
    one.connector.goodbye(b);
    assert_eq!(other.line(), "closed");
}

/// Opens files until the process may open no more.
fn take_all_descriptors() -> Vec<std::fs::File> {
    std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect()
}

#[test]
fn without_descriptors_one_waits_says_so_and_recovers() {
    use nix::sys::resource::{Resource, setrlimit};
    const NAME: &str = "without_descriptors_one_waits_says_so_and_recovers";
    if let Some(arguments) = role() {
        setrlimit(Resource::RLIMIT_NOFILE, 64, 64).unwrap();
        let (me, peer) = (id(&arguments[0]), id(&arguments[1]));
        let mut party = Party::with(me, &Config { connect_timeout_ms: 300, ..Config::default() });
        let files = take_all_descriptors();
        party.connector.connect(&Address::abstract_socket(peer));
        work_long(&mut party, |p| p.recorder.error_of(peer).is_some());
        say(&party.recorder.error_of(peer).unwrap().to_string());
        // Now somebody calls, and cannot be accepted.
        let cpu = cpu_time();
        let start = Instant::now();
        work(&mut party, Duration::from_millis(200), |_| false);
        let busy = cpu_time() - cpu;
        assert!(busy < start.elapsed() / 4, "busy for {busy:?} of {:?}", start.elapsed());
        assert!(!party.connector.is_established(peer));
        drop(files);
        work_long(&mut party, |p| p.connector.is_established(peer));
        say("established");
        wait_for_go();
        std::process::exit(0);
    }
    let (a, b) = two_ids();
    let mut one = Party::new(a);
    let mut other = Role::start(NAME, &[b.to_string(), a.to_string()]);
    let sentence = other.line();
    assert!(sentence.contains("ulimit -n") && sentence.contains("EMFILE"), "{sentence}");
    one.connector.connect(&Address::abstract_socket(b));
    work_long(&mut one, |p| p.connector.is_established(b));
    assert_eq!(other.line(), "established");
}

/// A peer that may answer for an hour is not waited for that long if it is known to be short.
#[test]
fn who_calls_one_that_stays_without_descriptors_is_told() {
    use nix::sys::resource::{Resource, setrlimit};
    const NAME: &str = "who_calls_one_that_stays_without_descriptors_is_told";
    if let Some(arguments) = role() {
        setrlimit(Resource::RLIMIT_NOFILE, 64, 64).unwrap();
        let left: usize = arguments[1].parse().unwrap();
        let mut party =
            Party::with(id(&arguments[0]), &Config { connect_timeout_ms: 300, ..Config::default() });
        let mut files = take_all_descriptors();
        files.truncate(files.len() - left);
        say("short");
        work(&mut party, Duration::from_secs(60), |_| false);
        std::process::exit(0);
    }
    // None for its socket, or only for that and not for what comes with its HELLO.
    for left in [0, 1, 2] {
        let (a, b) = two_ids();
        let mut one = Party::with(a, &Config { answer_timeout_ms: 3_600_000, ..Config::default() });
        let mut other = Role::start(NAME, &[b.to_string(), left.to_string()]);
        assert_eq!(other.line(), "short");
        one.connector.connect(&Address::abstract_socket(b));
        work_long(&mut one, |p| p.recorder.error_of(b).is_some());
        let error = one.recorder.error_of(b).unwrap();
        assert!(matches!(error, PeerError::System { errno: Errno::EMFILE, .. }), "{left} left: {error:?}");
        let sentence = error.to_string();
        assert!(sentence.contains("in the peer's process"), "{sentence}");
    }
}

/// What this process has computed so far.
fn cpu_time() -> Duration {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let span = |t: nix::sys::time::TimeVal| Duration::new(t.tv_sec() as u64, t.tv_usec() as u32 * 1000);
    span(usage.user_time()) + span(usage.system_time())
}

/// One rank of the storm: in each round all connect to all, and each stays
/// until it has met every other.
fn storm(arguments: &[String]) -> ! {
    let base = id(&arguments[0]);
    let [rank, ranks, rounds] = [1, 2, 3].map(|at| arguments[at].parse::<u32>().unwrap());
    for round in 0..rounds {
        let group = base.member(round << 12);
        let make = || {
            Connector::new(group.member(rank), &Config { connect_timeout_ms: 60_000, ..Config::default() })
        };
        // In every other round nobody listens before everybody may connect.
        let early = (round & 1 == 0).then(&make);
        say("ready");
        wait_for_go();
        let recorder = Recorder { name: format!("rank {rank}"), ..Recorder::default() };
        let mut party = Party { connector: early.unwrap_or_else(&make).unwrap(), recorder };
        let others: Vec<_> =
            (0..ranks).filter(|other| *other != rank).map(|other| group.member(other)).collect();
        for other in &others {
            party.connector.connect(&Address::abstract_socket(*other));
        }
        let met =
            |p: &Party| p.recorder.log.iter().filter(|e| matches!(e, Happened::Established(..))).count();
        if !work(&mut party, Duration::from_secs(60), |p| met(p) >= others.len()) {
            let missing: Vec<_> =
                others.iter().filter(|o| party.recorder.established_with(**o) == 0).collect();
            say(&format!("rank {rank} in round {round} misses {missing:?}"));
            std::process::exit(1);
        }
        let twice = others.iter().any(|other| party.recorder.established_with(*other) != 1);
        let failed = party.recorder.log.iter().any(|e| matches!(e, Happened::Failed(..)));
        if twice || failed {
            say(&format!("rank {rank} in round {round}: {:?}", party.recorder.log));
            std::process::exit(1);
        }
    }
    say("done");
    wait_for_go();
    std::process::exit(0);
}

#[test]
fn sixty_four_processes_all_connect_to_each_other_a_hundred_times() {
    const NAME: &str = "sixty_four_processes_all_connect_to_each_other_a_hundred_times";
    if let Some(arguments) = role() {
        storm(&arguments);
    }
    let (ranks, rounds) = (64u32, 100u32);
    let start = Instant::now();
    // Ids that do not wrap within the rounds.
    let mut bytes = random_id().to_bytes();
    bytes[12..].fill(0);
    let base = EndpointId::from_bytes(bytes);
    let arguments = |rank| [base.to_string(), rank, ranks.to_string(), rounds.to_string()];
    let mut roles: Vec<_> = (0..ranks).map(|rank| Role::start(NAME, &arguments(rank.to_string()))).collect();
    for _ in 0..rounds {
        for role in &mut roles {
            assert_eq!(role.line(), "ready");
        }
        for role in &mut roles {
            role.go();
        }
    }
    for role in &mut roles {
        assert_eq!(role.line(), "done");
    }
    println!("{ranks} processes connected to each other {rounds} times in {:.1?}", start.elapsed());
    assert!(start.elapsed() < CHILD_LIMIT, "{:?}", start.elapsed());
    let names = std::fs::read_to_string("/proc/net/unix").unwrap();
    assert!(!names.contains(&base.to_string()[..24]), "{names}");
}
