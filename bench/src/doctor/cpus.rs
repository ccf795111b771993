//! Ranks against CPUs.

use lmt::diagnostic::{Finding, Host, State};
use lmt_core::cpu_set::count_of_list;

use super::limits::{Version, cgroups};

pub(super) fn findings(host: &Host, ranks: u32) -> Vec<Finding> {
    let count = |list: &str| count_of_list(list).and_then(|cpus| u32::try_from(cpus).ok());
    let allowed = host.status("Cpus_allowed_list").and_then(|list| Some((count(&list)?, list)));
    let cpus = allowed.as_ref().map(|(cpus, _)| *cpus);
    let mut found = vec![match allowed {
        Some((cpus, list)) => ranks_on(ranks, cpus, &list),
        None => Finding::new(
            "ranks and CPUs",
            State::Unknown,
            "the status of this process does not tell which CPUs it may use",
        ),
    }];
    found.extend(quota(host, ranks, cpus));
    found
}

fn ranks_on(ranks: u32, cpus: u32, list: &str) -> Finding {
    let name = "ranks and CPUs";
    if ranks <= cpus {
        let meaning = format!(
            "{ranks} ranks, and this process may use {cpus} CPUs ({list}): waits spin first, then sleep"
        );
        return Finding::new(name, State::Good, meaning);
    }
    let meaning = format!(
        "{ranks} ranks, and this process may use {cpus} CPUs ({list}): waits sleep almost at once, so no rank takes another's time, and a message costs a wake-up more"
    );
    let fix = format!(
        "start at most {cpus} ranks, or allow more CPUs (taskset, the cgroup's cpuset, the batch system)"
    );
    Finding::new(name, State::Limited, meaning).fixed_by(fix)
}

/// The least share of CPU time that a cgroup gives, if one limits it.
fn quota(host: &Host, ranks: u32, cpus: Option<u32>) -> Option<Finding> {
    let share = |(version, folder): (Version, std::path::PathBuf)| {
        let text = |file: &str| host.sys_text(&folder.join(file).to_string_lossy()).ok().flatten();
        let (quota, period) = match version {
            Version::Two => {
                let line = text("cpu.max")?;
                let (quota, period) = line.split_once(' ')?;
                (quota.to_owned(), period.to_owned())
            }
            Version::One => (text("cpu.cfs_quota_us")?, text("cpu.cfs_period_us")?),
        };
        // "max" and -1 are no limit.
        let (quota, period): (u64, u64) = (quota.trim().parse().ok()?, period.trim().parse().ok()?);
        (period > 0).then(|| quota as f64 / period as f64)
    };
    let least = cgroups(host, "cpu").into_iter().filter_map(share).min_by(f64::total_cmp)?;
    let name = "CPU quota";
    let wanted = ranks.min(cpus.unwrap_or(ranks));
    if least >= f64::from(wanted) {
        return Some(Finding::new(name, State::Good, format!("the cgroup allows {least:.1} CPUs' time")));
    }
    let meaning = format!(
        "the cgroup allows {least:.1} CPUs' time to {wanted} ranks that run at once: they are stopped for the rest of each period, in the middle of a message too"
    );
    Some(
        Finding::new(name, State::Limited, meaning)
            .fixed_by("raise cpu.max of the cgroup (with Docker: --cpus), or start fewer ranks"),
    )
}

#[cfg(test)]
#[path = "cpus_tests.rs"]
mod tests;
