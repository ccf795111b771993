//! This process's limits (proc_pid_limits(5)) and its cgroups (cgroups(7)), as
//! the files tell them.

use std::path::PathBuf;

use lmt::diagnostic::Host;

/// A limit of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limit {
    /// What holds; `None` for unlimited.
    pub soft: Option<u64>,
    /// Up to where the process itself may raise it.
    pub hard: Option<u64>,
}

/// The limit of this name, as `Max open files`.
///
/// # Errors
/// One sentence on why it is not known.
pub(super) fn limit(host: &Host, name: &str) -> Result<Limit, String> {
    let text = host.proc_text("self/limits")?.ok_or("there is no /proc/self/limits")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let mut words = line.ok_or_else(|| format!("/proc/self/limits has no line '{name}'"))?.split_whitespace();
    let mut next = || match words.next()? {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    };
    let unread = || format!("/proc/self/limits has a line '{name}' that cannot be read");
    let (soft, hard) = (next().ok_or_else(unread)?, next().ok_or_else(unread)?);
    Ok(Limit { soft, hard })
}

/// Which generation of cgroups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    One,
    Two,
}

/// The folders, below /sys, of the cgroups that bind this process by this
/// controller: its own first, then those above.
pub(crate) fn cgroups(host: &Host, controller: &str) -> Vec<(Version, PathBuf)> {
    let text = host.proc_text("self/cgroup").ok().flatten().unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (version, root) = if controllers.is_empty() {
            (Version::Two, PathBuf::from("fs/cgroup"))
        } else if controllers.split(',').any(|name| name == controller) {
            (Version::One, PathBuf::from("fs/cgroup").join(controllers))
        } else {
            continue;
        };
        let own = root.join(path.trim_start_matches('/'));
        let up = own.ancestors().take_while(|folder| folder.starts_with(&root));
        found.extend(
            up.filter(|folder| host.sys_dir.join(folder).is_dir()).map(|folder| (version, folder.into())),
        );
    }
    found
}

/// A number in a cgroup's file; none for `max`.
pub(crate) fn number(host: &Host, folder: &std::path::Path, file: &str) -> Option<u64> {
    let text = host.sys_text(&folder.join(file).to_string_lossy()).ok()??;
    text.trim().parse().ok()
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
