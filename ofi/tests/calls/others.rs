//! Other processes: copies of this test binary that run one of its functions, and
//! what passes between them and the test, line by line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::harness::{Side, free, getinfo, open_domain, open_side};

/// Names the function that a copy runs.
const ROLE: &str = "LMT_FI_TEST_ROLE";
/// No process takes longer.
pub const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Whether this process is one of those, for this role.
pub fn has_role(role: &str) -> bool {
    std::env::var_os(ROLE).is_some_and(|own| own == role)
}

/// An endpoint in a domain of its own.
pub fn open() -> Side {
    let info = getinfo(|_| {}).expect("an offer");
    let (_, domain) = open_domain(info);
    let side = open_side(domain, info, 0);
    free(info);
    side
}

pub fn to_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn from_text(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..][..2], 16).expect("digits")).collect()
}

/// Says this process's name, and reads the words that it is told.
pub fn introduce(side: &Side) -> Vec<String> {
    println!("says {}", to_text(&side.name()));
    hear()
}

/// A line's words.
pub fn hear() -> Vec<String> {
    std::io::stdout().flush().expect("a pipe");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a pipe");
    line.split_whitespace().map(str::to_owned).collect()
}

/// Another process, which ends whatever becomes of the test.
pub struct Other {
    child: Child,
    /// What it is told by.
    input: ChildStdin,
    /// What it says.
    pub says: Receiver<String>,
    /// Its endpoint's name.
    pub name: Vec<u8>,
}

impl Other {
    /// Starts one that runs the test `role`.
    pub fn start(role: &str, variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args([role, "--exact", "--nocapture"])
            .env(ROLE, role)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (sender, says) = channel();
        std::thread::spawn(move || {
            let said = lines.map_while(Result::ok);
            // The test binary writes before the first of them without ending its line.
            let said = said.filter_map(|line| line.split_once("says ").map(|(_, said)| said.to_owned()));
            said.for_each(|said| drop(sender.send(said)));
        });
        let input = child.stdin.take().expect("a pipe");
        let mut other = Self { child, input, says, name: Vec::new() };
        let name = other.says.recv_timeout(TIME_LIMIT).expect("the other process says its name");
        other.name = from_text(&name);
        other
    }

    /// Tells it a line.
    pub fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("a pipe");
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("it lives");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
