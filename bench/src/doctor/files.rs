//! Open files.

use lmt::diagnostic::{Finding, Host, State};

use super::limits::{Limit, limit};
use crate::engine::met::ProbeReport;

/// Descriptors that a connected peer may take later: both ends of a pipe to it,
/// one end of its pipe, and one region that it has allocated.
const LATER_PER_PEER: u64 = 4;
/// Descriptors that are passed by one message, for a moment; and what a program
/// has open itself.
const SPARE: u64 = 64;

pub(super) fn findings(host: &Host, ranks: u32, meeting: Option<&ProbeReport>) -> Vec<Finding> {
    let measured = meeting.map(|met| (met.own_descriptors, met.peer_descriptors));
    vec![open_files(limit(host, "Max open files"), ranks, measured)]
}

/// `measured`: what this process had open by itself, and what one peer took.
fn open_files(limit: Result<Limit, String>, ranks: u32, measured: Option<(u64, u64)>) -> Finding {
    let name = "open files (ulimit -n)";
    let limit = match limit {
        Ok(limit) => limit,
        Err(why) => return Finding::new(name, State::Unknown, why),
    };
    let Some(most) = limit.soft else { return Finding::new(name, State::Good, "unlimited") };
    let Some((own, per_peer)) = measured.filter(|(own, per_peer)| own + per_peer > 0) else {
        return Finding::new(name, State::Unknown, format!("{most}; what a peer takes could not be counted"));
    };
    let per_peer = per_peer + LATER_PER_PEER;
    let peers = most.saturating_sub(own + SPARE) / per_peer.max(1);
    let needed = own + SPARE + u64::from(ranks.saturating_sub(1)) * per_peer;
    let meaning = format!(
        "{most}; a rank that is connected to all others takes up to {per_peer} for each of them, so {peers} peers fit"
    );
    if most >= needed {
        return Finding::new(name, State::Good, meaning);
    }
    let meaning = format!("{meaning}, and {ranks} ranks need {needed}");
    let fix = match limit.hard {
        Some(hard) if hard < needed => {
            format!(
                "raise the hard limit in /etc/security/limits.conf (nofile {needed}), then: ulimit -n {needed}"
            )
        }
        _ => format!("ulimit -n {needed}"),
    };
    Finding::new(name, State::Limited, meaning).fixed_by(fix)
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
