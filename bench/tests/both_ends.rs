//! Messages that both ends copy, as `lmt bench` tells of them.

mod common;

use common::{lmt, text};
use lmt_conformance::group::allowed_cpus;
use lmt_conformance::require;

const BYTES: u64 = 4 << 20;
const ITERATIONS: u64 = 20;
const REPETITIONS: u64 = 2;
/// On a machine that is busy, one end may get no time while the other copies.
const ATTEMPTS: u32 = 5;

#[test]
fn both_ends_copy_and_their_bytes_are_the_messages() {
    if allowed_cpus().len() < 2 {
        println!("SKIPPED: of two processes on one core who receives copies alone");
        return;
    }
    let (bytes, iterations, repetitions) =
        (BYTES.to_string(), ITERATIONS.to_string(), REPETITIONS.to_string());
    let mut arguments = vec!["bench", "pingpong", "--mechanism", "cma:both", "--format", "csv"];
    arguments.extend(["--sizes", &bytes, "--iterations", &iterations, "--repetitions", &repetitions]);
    for _ in 0..ATTEMPTS {
        let output = lmt(&arguments);
        let (said, complaints) = (text(&output.stdout), text(&output.stderr));
        if !output.status.success() && complaints.contains("does not work here") {
            return require::skipped("cma", complaints);
        }
        assert!(output.status.success(), "{complaints}");
        let lines: Vec<Vec<&str>> = said.lines().map(|line| line.split(',').collect()).collect();
        let [names, row] = &lines[..] else { panic!("{said}") };
        let of = |name: &str| {
            let at = names.iter().position(|one| *one == name).unwrap_or_else(|| panic!("{name}: {said}"));
            row[at].parse::<u64>().ok()
        };
        // Empty where the sender copied nothing at all.
        let (Some(by_sender), Some(by_receiver)) = (of("sender_bytes"), of("receiver_bytes")) else {
            continue;
        };
        assert_eq!(by_sender + by_receiver, BYTES * ITERATIONS * REPETITIONS, "{said}");
        if by_sender > 0 && by_receiver > 0 {
            return;
        }
    }
    panic!("in {ATTEMPTS} runs never both ends copied");
}
