//! Starting the command as users do, with a time limit.
#![allow(dead_code)] // Each test uses a part.

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(120);

/// What the command with these arguments said.
pub fn lmt(arguments: &[&str]) -> Output {
    outcome(Command::new(env!("CARGO_BIN_EXE_lmt")).args(arguments), arguments)
}

/// What a command said; it is killed when it does not end in time.
pub fn outcome(command: &mut Command, arguments: &[&str]) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let readers =
        (std::thread::spawn(move || read(&mut stdout)), std::thread::spawn(move || read(&mut stderr)));
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("{arguments:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    Output { status, stdout: readers.0.join().unwrap(), stderr: readers.1.join().unwrap() }
}

/// All that comes, until the end.
pub fn read(from: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    bytes
}

/// What was said, as text.
pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The children of a process's main thread, which is the one that starts ranks.
pub fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// Whether a process runs; one that has ended and waits for its new parent to
/// notice does not.
pub fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}
