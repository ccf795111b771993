//! What decides whether pipes work, and how large they may be (pipe(7),
//! proc_sys_fs(5)).

use lmt_core::diagnostic::{Finding, Host, State};
use lmt_core::errno_advice::advice;
use nix::errno::Errno;

use crate::pipe::LARGEST_PIPE_BYTES;
use crate::sys::Way;
use crate::trial;

/// CAP_SYS_ADMIN and CAP_SYS_RESOURCE (capabilities(7)): who has one of them is
/// bound by neither limit.
const EXEMPTING: [u32; 2] = [21, 24];
const PAGE_BYTES: u64 = 4096;
/// What a pipe is born with: 16 pages.
const BORN_BYTES: u64 = 16 * PAGE_BYTES;
/// The kernel's defaults, which nobody has a reason to go below.
const USUAL_BYTES: u64 = 1 << 20;

pub(crate) fn diagnostics(host: &Host, way: Way, name: &str) -> Vec<Finding> {
    let exempt = EXEMPTING.iter().any(|number| host.has_capability(*number) == Some(true));
    let largest = host.proc_number("sys/fs/pipe-max-size");
    let pages = host.proc_number("sys/fs/pipe-user-pages-soft");
    vec![try_it(way, name).by_call(host), size(&largest, exempt), total(&pages, &largest, exempt)]
}

fn try_it(way: Way, name: &str) -> Finding {
    let name = format!("{name} into a pipe");
    match trial::run(way) {
        Ok(()) => Finding::new(name, State::Good, "a trial within this process gave back what was put in"),
        Err(why) => {
            let fix = if trial::is_final(&why) {
                "allow pipe2, vmsplice, writev and readv in the seccomp filter".to_owned()
            } else {
                advice("pipe2", Errno::from_raw(why.errno))
            };
            Finding::new(name, State::Blocked, why.sentence).fixed_by(fix)
        }
    }
}

fn size(largest: &Result<Option<u64>, String>, exempt: bool) -> Finding {
    let name = "pipe-max-size";
    let bytes = match largest {
        Ok(Some(bytes)) => *bytes,
        Ok(None) => {
            return Finding::new(name, State::Unknown, "fs.pipe-max-size is not there; 1 MiB is assumed");
        }
        Err(why) => return Finding::new(name, State::Unknown, why.as_str()),
    };
    let used = bytes.min(LARGEST_PIPE_BYTES as u64);
    let meaning = format!("a pipe may hold {bytes} bytes, of which lmt asks for {used}");
    if exempt || bytes >= USUAL_BYTES {
        return Finding::new(name, State::Good, meaning);
    }
    let meaning = format!("{meaning}; with less than {USUAL_BYTES} the two processes take turns more often");
    Finding::new(name, State::Limited, meaning)
        .fixed_by(format!("sudo sysctl fs.pipe-max-size={USUAL_BYTES}"))
}

fn total(
    pages: &Result<Option<u64>, String>,
    largest: &Result<Option<u64>, String>,
    exempt: bool,
) -> Finding {
    let name = "pipe-user-pages-soft";
    let pages = match pages {
        Ok(Some(0)) => {
            return Finding::new(name, State::Good, "0: the pipes of one user together have no limit");
        }
        Ok(Some(pages)) => *pages,
        Ok(None) => return Finding::new(name, State::Unknown, "fs.pipe-user-pages-soft is not there"),
        Err(why) => return Finding::new(name, State::Unknown, why.as_str()),
    };
    if exempt {
        let meaning = format!("{pages} pages for all pipes of one user, from which this process is exempt");
        return Finding::new(name, State::Good, meaning);
    }
    let whole =
        largest.clone().ok().flatten().unwrap_or(USUAL_BYTES).clamp(PAGE_BYTES, LARGEST_PIPE_BYTES as u64);
    let pipes = pages.saturating_mul(PAGE_BYTES) / whole;
    let meaning = format!(
        "{pages} pages for all pipes of one user: {pipes} of the largest size, one for each direction between two processes; those beyond are smaller"
    );
    // A pair of processes has two pipes.
    let state = if pipes < 2 || pages.saturating_mul(PAGE_BYTES) < 2 * BORN_BYTES {
        State::Limited
    } else {
        State::Good
    };
    let finding = Finding::new(name, state, meaning);
    if state == State::Good { finding } else { finding.fixed_by("sudo sysctl fs.pipe-user-pages-soft=16384") }
}

#[cfg(test)]
#[path = "diagnostics_tests.rs"]
mod tests;
