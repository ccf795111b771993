//! What a process knows of the group it belongs to.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lmt_core::identity::{Address, EndpointId};

use super::{ENV_GROUP, ENV_LAUNCHER_PID, ENV_RANK, ENV_SIZE, ENV_SOCKET_DIR, EnvError};

/// A group of ranks, seen by one of them.
///
/// ```
/// use lmt::launch::Group;
///
/// // Outside of `lmt run` there is no group.
/// match Group::from_env() {
///     Ok(Some(group)) => println!("rank {} of {}", group.rank, group.size),
///     Ok(None) => println!("on my own"),
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// This process's number, from 0 to `size - 1`.
    pub rank: u32,
    /// How many ranks there are.
    pub size: u32,
    /// The group's own id; the id of rank `r` is `id.member(r)`.
    pub id: EndpointId,
    /// The common ancestor of all ranks, if a launcher started them.
    pub launcher_pid: Option<i32>,
    /// Checked to fit into an address whenever it is set.
    socket_dir: Option<PathBuf>,
}

impl Group {
    /// The most ranks of one group.
    pub const MAX_SIZE: u32 = 4096;

    /// A group that something other than a launcher has put together.
    ///
    /// # Errors
    /// [`EnvError`] when `rank` is not below `size`, `size` is not from 1 to
    /// [`Self::MAX_SIZE`], or the folder does not fit into an address. It
    /// names the variable that would have carried the value.
    pub fn new(rank: u32, size: u32, id: EndpointId, socket_dir: Option<&Path>) -> Result<Self, EnvError> {
        if size == 0 || size > Self::MAX_SIZE {
            return Err(not(ENV_SIZE, &size, size_rule()));
        }
        if rank >= size {
            return Err(not(ENV_RANK, &rank, format!("a number from 0 to {}", size - 1)));
        }
        if let Some(folder) = socket_dir {
            Address::in_folder(id, folder).map_err(|_| {
                not(
                    ENV_SOCKET_DIR,
                    &folder.display(),
                    format!("a path of 1 to {} bytes", Address::MAX_FOLDER_BYTES),
                )
            })?;
        }
        Ok(Self { rank, size, id, launcher_pid: None, socket_dir: socket_dir.map(Path::to_owned) })
    }

    /// The group that the environment describes, or `None` when none of
    /// `LMT_RANK`, `LMT_SIZE` and `LMT_GROUP` is set.
    ///
    /// # Errors
    /// [`EnvError`] names the first variable that is missing beside the others
    /// or malformed, what it was, and what it should be.
    pub fn from_env() -> Result<Option<Self>, EnvError> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    pub(super) fn from_variables(get: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, EnvError> {
        if [ENV_RANK, ENV_SIZE, ENV_GROUP].iter().all(|name| get(name).is_none()) {
            return Ok(None);
        }
        let size: u32 = parse(ENV_SIZE, &get, size_rule())?;
        if size == 0 || size > Self::MAX_SIZE {
            return Err(not(ENV_SIZE, &size, size_rule()));
        }
        let rank = parse(ENV_RANK, &get, format!("a number from 0 to {}", size - 1))?;
        let id = parse(ENV_GROUP, &get, "32 hexadecimal digits".to_owned())?;
        let folder = get(ENV_SOCKET_DIR).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let mut group = Self::new(rank, size, id, folder.as_deref())?;
        if get(ENV_LAUNCHER_PID).is_some() {
            let rule = "the launcher's process number, 1 or more";
            let pid: i32 = parse(ENV_LAUNCHER_PID, &get, rule.to_owned())?;
            if pid < 1 {
                return Err(not(ENV_LAUNCHER_PID, &pid, rule.to_owned()));
            }
            group.launcher_pid = Some(pid);
        }
        Ok(Some(group))
    }

    /// Where the endpoint of `rank` listens. A rank that is not below `size`
    /// gets the address of a peer that is never there.
    pub fn address(&self, rank: u32) -> Address {
        let id = self.id.member(rank);
        // `new` let only a folder in that fits, and the id does not change its length.
        let fits =
            |folder: &PathBuf| Address::in_folder(id, folder).expect("the folder was checked by Group::new");
        self.socket_dir.as_ref().map_or_else(|| Address::abstract_socket(id), fits)
    }

    /// The folder of the sockets, or `None` for the abstract namespace.
    pub fn socket_dir(&self) -> Option<&Path> {
        self.socket_dir.as_deref()
    }
}

fn size_rule() -> String {
    format!("a number from 1 to {}", Group::MAX_SIZE)
}

fn not(variable: &'static str, value: &dyn std::fmt::Display, rule: String) -> EnvError {
    EnvError { variable, found: format!("is `{value}`"), rule }
}

fn parse<T: std::str::FromStr>(
    variable: &'static str,
    get: &impl Fn(&str) -> Option<OsString>,
    rule: String,
) -> Result<T, EnvError> {
    let Some(value) = get(variable) else {
        return Err(EnvError {
            variable,
            found: "is not set, though others of its kind are".to_owned(),
            rule,
        });
    };
    value
        .to_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| not(variable, &value.to_string_lossy(), rule))
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
