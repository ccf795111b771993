//! What `LMT_STATS=1` says of the ranks.

use std::collections::BTreeMap;

use lmt_bench::statistics::{PREFIX, Statistics};

/// How many bytes each process that says so has received.
pub fn received_bytes(text: &str) -> BTreeMap<&str, u64> {
    let mut lines: BTreeMap<&str, String> = BTreeMap::new();
    for line in text.lines() {
        let Some(at) = line.find(PREFIX) else { continue };
        let who = line[at + PREFIX.len()..].split(' ').next().unwrap_or_default();
        lines.entry(who).or_default().extend([&line[at..], "\n"]);
    }
    let all = lines.into_iter().map(|(who, lines)| (who, Statistics::of(&lines).bytes()));
    all.filter(|(_, bytes)| *bytes > 0).collect()
}

/// Checks that every rank has received bytes through lmt; says how many all have.
pub fn check(text: &str, ranks: u32, what: &str) -> u64 {
    let received = received_bytes(text);
    assert_eq!(received.len(), ranks as usize, "{what}: every rank's bytes go through lmt:\n{text}");
    received.into_values().sum()
}

#[test]
fn statistics_are_read() {
    let text = "lmt stats pid=1 pid=1 endpoint=ab\n\
        lmt stats pid=1 path       sent sent_bytes received received_bytes demotions by_sender_bytes\n\
        lmt stats pid=1 eager      2    16         2        16             0         0\n\
        lmt stats pid=1 cma        2    16         2        8              0         0\n\
        lmt stats pid=2 eager      2    16         0        0              0         0\n";
    assert_eq!(received_bytes(text).into_iter().collect::<Vec<_>>(), [("pid=1", 24)]);
}
