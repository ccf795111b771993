//! What `LMT_STATS=1` says of the ranks.

use std::collections::BTreeMap;

/// How many bytes each process that says so has received.
pub fn received_bytes(text: &str) -> BTreeMap<&str, u64> {
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let Some((_, row)) = line.split_once("lmt stats ") else { continue };
        let words: Vec<&str> = row.split_whitespace().collect();
        // Who, path, sent, sent_bytes, received, received_bytes, ...
        if let Some(bytes) = words.get(5).and_then(|word| word.parse::<u64>().ok()) {
            *all.entry(words[0]).or_default() += bytes;
        }
    }
    all.retain(|_, bytes| *bytes > 0);
    all
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
