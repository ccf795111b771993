//! The two processes of a case: each a run of this binary, with lines that go from
//! one to the other through their parent.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use crate::leftovers;

/// Tells a run what it is: provider, case and number of the process.
pub const ROLE: &str = "LMT_FI_EXERCISE";
/// No case takes longer.
pub const TIME_LIMIT: Duration = Duration::from_secs(20);
/// What a line that is for the other process begins with.
const MARK: &str = "@";
/// What a process says last.
const DONE: &str = "@done";

/// One process's end.
pub struct Link(Receiver<String>);

impl Link {
    pub fn new() -> Self {
        let (told, heard) = channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    break;
                }
            }
        });
        Self(heard)
    }

    pub fn say(&self, line: &str) {
        // A line of its own: libtest has begun one.
        println!("\n{MARK}{line}");
        std::io::stdout().flush().expect("the parent reads");
    }

    /// The other's next line; `wait` is called while there is none.
    pub fn hear(&self, mut wait: impl FnMut()) -> String {
        let start = Instant::now();
        loop {
            match self.0.try_recv() {
                Ok(line) => return line,
                Err(TryRecvError::Disconnected) => panic!("the other process has ended"),
                Err(TryRecvError::Empty) => wait(),
            }
            assert!(start.elapsed() < TIME_LIMIT, "the other process says nothing");
            std::thread::yield_now();
        }
    }
}

/// Ends a process whatever becomes of the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
        leftovers::remove(self.0.id());
    }
}

fn start(provider: &str, case: &str, number: usize, folder: &Path) -> Ended {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["member", "--exact", "--nocapture"]).env(ROLE, format!("{provider} {case} {number}"));
    for variable in ["LMT_FI", "FI_PROVIDER", "LMT_STATS"] {
        command.env_remove(variable);
    }
    // Found by its name in the hints, as a program does that wants it.
    if provider == "lmt" {
        command.env("FI_PROVIDER_PATH", folder);
    } else {
        command.env_remove("FI_PROVIDER_PATH");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ended(command.spawn().expect("a process"))
}

/// Passes lines on to the other process until this one ends; whether it said that it
/// was done.
fn pass_on(from: impl Read, mut to: ChildStdin) -> bool {
    let mut is_done = false;
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        if line == DONE {
            is_done = true;
        } else if let Some(line) = line.strip_prefix(MARK) {
            // The other may have ended; then it says why.
            let _passed = writeln!(to, "{line}");
        }
    }
    is_done
}

/// A process says that its part was right.
pub fn done(link: &Link) {
    link.say(&DONE[MARK.len()..]);
}

/// Runs a case for at most so long; what went wrong otherwise.
pub fn run(provider: &str, case: &str, folder: &Path, limit: Duration) -> Result<(), String> {
    let mut members = [0, 1].map(|number| start(provider, case, number, folder));
    let outputs = members.each_mut().map(|member| member.0.stdout.take().expect("a pipe"));
    let errors = members.each_mut().map(|member| member.0.stderr.take().expect("a pipe"));
    let [first, second] = members.each_mut().map(|member| member.0.stdin.take().expect("a pipe"));
    let inputs = [second, first];
    let passing = outputs.into_iter().zip(inputs).map(|(from, to)| std::thread::spawn(|| pass_on(from, to)));
    let passing: Vec<_> = passing.collect();
    let telling = errors.map(|mut from| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _read = from.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    let start = Instant::now();
    let mut statuses = [None, None];
    while statuses.contains(&None) && start.elapsed() < limit {
        for (member, status) in members.iter_mut().zip(&mut statuses) {
            *status = member.0.try_wait().expect("a child of ours");
        }
        // One that failed leaves the other waiting.
        if statuses.iter().flatten().any(|status| !status.success()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(members);
    let are_done = passing.into_iter().all(|thread| thread.join().expect("no panic"));
    let told = telling.map(|thread| thread.join().expect("no panic"));
    if are_done && statuses.iter().all(|status| status.is_some_and(|status| status.success())) {
        return Ok(());
    }
    Err(format!("the processes ended with {statuses:?} and said:\n{}\n{}", told[0].trim(), told[1].trim()))
}
