//! A peer killed with SIGKILL at any instant: every operation with it ends in
//! an error that names it within a second, and all others go on.
//!
//! Four kinds of processes: this one, which starts victims and kills them; the
//! survivor, which has dealings with all of them; the third rank, which
//! exchanges verified messages with the survivor throughout; and one victim a
//! round. Half of the victims are killed from outside at a random instant of
//! their first milliseconds, the others by themselves at a random mark of one
//! of five phases, so that each phase is met often. `LMT_DEATH_ROUNDS` says
//! how many rounds; `LMT_DEATH_SEED` repeats a run's choices.

#[path = "death/freed.rs"]
mod freed;
#[path = "death/marked.rs"]
mod marked;
#[path = "death/operation.rs"]
mod operation;
#[path = "death/page.rs"]
mod page;
#[path = "death/script.rs"]
mod script;
#[path = "death/survivor.rs"]
mod survivor;
#[path = "death/third.rs"]
mod third;
#[path = "death/victim.rs"]
mod victim;

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lmt::{Endpoint, EndpointId};
use lmt_conformance::{group, test_name};

use page::{Global, Page, Phase, Word};
use script::{Begin, Kill, Script};

/// Small enough that a message takes many steps.
const QUOTA_BYTES: u64 = 16 << 10;
/// Enough for a message in one step, of a victim that is hasty.
const HASTY_QUOTA_BYTES: u64 = 1 << 20;
/// A cell: writing it takes a while.
const STREAM_BYTES: usize = 4096;
/// Small enough that a flood blocks soon.
const UNEXPECTED_MAX_BYTES: u64 = 128 << 10;
/// Far fewer than there are rounds: numbers must be used again.
const MAX_PEERS: u32 = 32;
/// A peer that was dead before anybody had reached it cannot be told from one
/// that is still to come; this bounds the time.
const CONNECT_TIMEOUT_MS: u64 = 600;
/// Rounds at the same time.
const LANES: usize = 4;
/// How long a victim that is to kill itself has for that.
const INSIDE_LIMIT: Duration = Duration::from_millis(500);
/// What each phase must have of 1000 rounds.
const KILLS_OF_1000: usize = 50;
/// In so many rounds both ends must have copied, in either direction.
const ROUNDS_WITH_HELP: usize = 1000;
/// The longest pause of the exchange with the third rank.
const STALL_LIMIT: Duration = Duration::from_secs(2);

const ENV_ROUND: &str = "LMT_DEATH_VICTIM";
const ENV_PAGE: &str = "LMT_DEATH_PAGE";
const ENV_ROUNDS: &str = "LMT_DEATH_ROUNDS";
const ENV_SEED: &str = "LMT_DEATH_SEED";

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn victim_id(group: EndpointId, round: usize) -> EndpointId {
    group.member(1000 + round as u32)
}

/// Which round a victim's id belongs to.
fn round_of(group: EndpointId, id: EndpointId, rounds: usize) -> Option<usize> {
    let [group, id] = [group, id].map(|id| u128::from_be_bytes(id.to_bytes()));
    let member = usize::try_from(id.wrapping_sub(group)).ok()?;
    member.checked_sub(1000).filter(|round| *round < rounds)
}

/// Whether this round's victim sends a short message to a survivor that does
/// not know it.
fn is_eager_stranger(script: &Script, round: usize) -> bool {
    script.begin == Begin::Never && round.is_multiple_of(2)
}

fn group_of(page: &Page) -> EndpointId {
    let high = u128::from(page.global(Global::GroupHigh));
    EndpointId::from_bytes((high << 64 | u128::from(page.global(Global::GroupLow))).to_be_bytes())
}

#[test]
fn a_peer_may_be_killed_at_any_instant() {
    let rounds = number(ENV_ROUNDS).unwrap_or(1000) as usize;
    let seed = number(ENV_SEED).unwrap_or_else(|| page::now_ns() ^ u64::from(std::process::id()));
    if let (Some(round), Ok(path)) = (number(ENV_ROUND), std::env::var(ENV_PAGE)) {
        let page = Arc::new(Page::open(&path, rounds));
        let group = group_of(&page);
        victim::run(page, seed, round as usize, group);
    }
    let created = std::env::var(ENV_PAGE).is_err().then(|| Page::create(rounds));
    let path = created.as_ref().map_or_else(String::new, |(_, path)| path.clone());
    let results = group::Test::new(test_name!(), 2)
        .time_limit(Duration::from_secs(120 + rounds as u64 / 2))
        .env(ENV_PAGE, &path)
        .env(ENV_ROUNDS, &rounds.to_string())
        .env(ENV_SEED, &seed.to_string())
        .run_with(
            |_| {
                let (page, path) = created.as_ref().expect("the parent makes the page");
                kill_all(page, path, seed);
            },
            |group| {
                let path = std::env::var(ENV_PAGE).expect("the parent names the page");
                be_rank(group, &Arc::new(Page::open(&path, rounds)), seed);
            },
        );
    for line in results.reports.iter().flatten() {
        say(line);
    }
    let (page, _) = created.as_ref().expect("only the parent comes here");
    let kills = count(page, seed);
    assert_nothing_left(group_of(page));
    let wrong: Vec<&String> = results.reports.iter().flatten().filter(|l| l.starts_with("WRONG")).collect();
    assert!(wrong.is_empty(), "seed {seed}: {} findings; the first: {}", wrong.len(), wrong[0]);
    let needed = rounds * KILLS_OF_1000 / 1000;
    for (phase, kills) in Phase::COUNTED.into_iter().zip(kills) {
        assert!(kills >= needed, "seed {seed}: {kills} of at least {needed} victims died in {phase:?}");
    }
}

/// Writes a line past the test harness, which shows what a test prints only if
/// it fails.
fn say(line: &str) {
    // Without a standard error there is nobody to read it.
    let _written = writeln!(std::io::stderr(), "{line}");
}

fn be_rank(group: &group::Group, page: &Arc<Page>, seed: u64) {
    if group.rank() == 1 {
        group.barrier();
        let endpoint = Endpoint::builder().id(group.id().member(1)).build().expect("an endpoint");
        let survivor = endpoint.insert_peer(&group.address(0)).expect("insert_peer");
        let ready = || page.set_global(Global::Ready, 1);
        let (exchanges, gap) = third::run(&endpoint, survivor, page, ready);
        group.report(format!("third rank: {exchanges} exchanges, the longest took {gap:?}"));
        assert!(gap < STALL_LIMIT, "the exchange with the survivor stalled for {gap:?}");
        return;
    }
    let id = u128::from_be_bytes(group.id().to_bytes());
    page.set_global(Global::GroupHigh, (id >> 64) as u64);
    page.set_global(Global::GroupLow, id as u64);
    freed::count();
    let mut engine = survivor::engine(page, seed, group.id());
    // Messages are delivered from peers that are named, also to a receive from
    // anybody.
    engine.insert_peer(&group.address(1)).expect("insert_peer");
    group.barrier();
    let before = survivor::cell_ownership();
    let (findings, exchange) = survivor::run(&mut engine, page, seed, group.id());
    let after = survivor::cell_ownership();
    group.report(format!(
        "survivor: {} errors, the slowest after {:?}, where no connection had begun {:?}; \
         {} whole messages with victims; {} messages of dead strangers; \
         {} messages of streams, {} cells claimed and never published",
        findings.errors,
        findings.longest,
        findings.max_unreached,
        findings.messages,
        findings.strangers,
        findings.streamed,
        freed::cells()
    ));
    group.report(format!(
        "survivor: {} exchanges with the third rank, longest pause {:?}; descriptors and mappings {before:?} before, {after:?} after",
        exchange.number,
        exchange.max_gap()
    ));
    for (which, shares) in [("from", &findings.from_victims), ("to", &findings.to_victims)] {
        group.report(format!("both ends copy, {which} victims: {shares:?}"));
        // In a short run there may be none that lives long enough.
        let must_help = page.rounds() >= ROUNDS_WITH_HELP;
        if must_help && (shares.sender_bytes == 0 || shares.receiver_bytes == 0) {
            group.report(format!("WRONG of messages {which} victims one end has never copied: {shares:?}"));
        }
    }
    findings.wrong.iter().take(20).for_each(|wrong| group.report(format!("WRONG {wrong}")));
    // The third rank is connected only afterwards, and malloc keeps some.
    if after.0 > before.0 + 12 || after.1 > before.1 + 60 {
        group.report(format!("WRONG descriptors and mappings were {before:?} and are {after:?}"));
    }
}

/// Starts and kills the victims of all rounds.
fn kill_all(page: &Page, path: &str, seed: u64) {
    let begun = Instant::now();
    while page.global(Global::Ready) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the survivor and the third rank did not meet");
        std::thread::sleep(Duration::from_millis(1));
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for _ in 0..LANES {
            threads.spawn(|| {
                loop {
                    // Relaxed: each number is taken once, and nothing else hangs on it.
                    let round = next.fetch_add(1, Ordering::Relaxed);
                    if round >= page.rounds() {
                        return;
                    }
                    one_round(page, path, seed, round);
                }
            });
        }
    });
    page.set_global(Global::Stop, 1);
    say(&format!("{} rounds in {:?}", page.rounds(), begun.elapsed()));
}

/// Ends a victim that the round could not end.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // Both fail only when it has ended and was waited for.
        let _killed = self.0.kill();
        let _waited = self.0.wait();
    }
}

fn one_round(page: &Page, path: &str, seed: u64, round: usize) {
    let script = Script::of(seed, round);
    page.set(round, Word::Begun, 1);
    let executable = std::env::current_exe().expect("the test's own path");
    let victim = Command::new(executable)
        .args([test_name_of_this(), "--exact", "--nocapture", "--test-threads=1"])
        .env(ENV_ROUND, round.to_string())
        .env(ENV_PAGE, path)
        .env(ENV_ROUNDS, page.rounds().to_string())
        .env(ENV_SEED, seed.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("starting a victim");
    let mut victim = Reaped(victim);
    let mut ended = wait_until(Duration::from_secs(10), || {
        page.is_set(round, Word::Listening) || victim.0.try_wait().ok().flatten().is_some()
    });
    assert!(ended, "round {round}: the victim did not start: {}", what_it_does(victim.0.id()));
    match script.kill {
        Kill::Outside(after) => pause(after),
        Kill::Inside(..) => {
            ended = wait_until(INSIDE_LIMIT, || victim.0.try_wait().ok().flatten().is_some());
        }
    }
    if !ended || matches!(script.kill, Kill::Outside(_)) {
        page.note_kill(round);
        // It fails when the victim has ended by itself, which the status tells.
        let _killed = victim.0.kill();
    }
    let status = victim.0.wait().expect("waiting for a victim");
    page.set(round, Word::Reaped, 1);
    assert_eq!(status.signal(), Some(9), "round {round}: the victim ended by itself: {status} ({script:?})");
    let done = wait_until(Duration::from_secs(20), || page.is_set(round, Word::Done));
    assert!(done, "round {round}: the survivor does not come to an end ({script:?})");
}

/// What the kernel says of a process: its state, and in which calls its threads wait (proc(5)).
fn what_it_does(pid: u32) -> String {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let threads: Vec<String> = tasks
        .map(|task| {
            let of = |file: &str| read(format!("{}/{file}", task.path().display()));
            format!("{} in {} ({})", of("comm"), of("wchan"), of("syscall"))
        })
        .collect();
    format!("{}; {threads:?}; load {}", read(format!("/proc/{pid}/stat")), read("/proc/loadavg".into()))
}

fn test_name_of_this() -> &'static str {
    "a_peer_may_be_killed_at_any_instant"
}

fn wait_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !done() {
        if begun.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    true
}

/// Sleeps to the microsecond: the last stretch awake.
fn pause(time: Duration) {
    let begun = Instant::now();
    std::thread::sleep(time.saturating_sub(Duration::from_micros(100)));
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Counts and prints in which phases the victims died.
fn count(page: &Page, seed: u64) -> [usize; 5] {
    let mut kills = [0; 5];
    let (mut outside, mut starting, mut between) = (0, 0, 0);
    for round in 0..page.rounds() {
        let phase = page.phase(round);
        match Phase::COUNTED.iter().position(|counted| *counted == phase) {
            Some(at) => kills[at] += 1,
            None if phase == Phase::Starting => starting += 1,
            None => between += 1,
        }
        outside += usize::from(matches!(Script::of(seed, round).kill, Kill::Outside(_)));
    }
    let [connect, handshake, rts, chunk, finish] = kills;
    say(&format!(
        "victims killed in: connect {connect}, handshake {handshake}, RTS {rts}, chunk {chunk}, finish {finish}; \
         between messages {between}, before connecting {starting}; {outside} of {} from outside; seed {seed}",
        page.rounds()
    ));
    kills
}

/// No socket and no file of this group is left.
fn assert_nothing_left(group: EndpointId) {
    let sockets = std::fs::read_to_string("/proc/net/unix").expect("/proc/net/unix");
    // Members differ in the last digits only.
    let digits = &group.to_string()[..20];
    let left: Vec<&str> = sockets.lines().filter(|line| line.contains(digits)).collect();
    assert!(left.is_empty(), "sockets are left: {left:?}");
    let files = std::fs::read_dir("/dev/shm").map(|dir| {
        dir.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    });
    let left: Vec<String> =
        files.unwrap_or_default().into_iter().filter(|name| name.contains(digits)).collect();
    assert!(left.is_empty(), "files are left in /dev/shm: {left:?}");
}
