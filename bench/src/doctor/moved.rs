//! What a run has moved, by the file that `LMT_STATS` named.

use lmt::diagnostic::{Finding, State};

use crate::statistics::Statistics;

pub(super) fn findings(statistics: &Statistics) -> Vec<Finding> {
    let bytes = statistics.bytes();
    let meaning = match bytes {
        0 => format!(
            "{} endpoints, and none has received a byte: messages went by another transport",
            statistics.endpoints
        ),
        _ => format!("{} endpoints received {bytes} bytes", statistics.endpoints),
    };
    let state = if bytes == 0 { State::Limited } else { State::Good };
    let mut found = vec![Finding::new("all paths", state, meaning)];
    found.extend(statistics.received.iter().map(|way| {
        let percent = 100.0 * way.bytes as f64 / bytes.max(1) as f64;
        let meaning = format!("{} messages, {} bytes, {percent:.1} %", way.messages, way.bytes);
        Finding::new(way.way.clone(), State::Good, meaning)
    }));
    if statistics.demotions > 0 {
        let meaning = format!("{} messages were left to another path in their midst", statistics.demotions);
        found.push(Finding::new("demotions", State::Limited, meaning));
    }
    found
}

#[cfg(test)]
#[path = "moved_tests.rs"]
mod tests;
