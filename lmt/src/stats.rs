//! What an endpoint has moved, told at its end (`LMT_STATS`).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use lmt_core::endpoint::{CreateError, EagerCounters};
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::Counters;

use crate::launch::Group;

/// The variable that asks for it.
const VARIABLE: &str = "LMT_STATS";

/// Where the tables go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// To standard error.
    StandardError,
    /// Behind what is in this file.
    File(PathBuf),
}

/// Whether the environment asks for them, and where they are to go.
///
/// # Errors
/// The variable is neither 0 nor 1 nor the path of a file that can be written.
pub fn place() -> Result<Option<Place>, CreateError> {
    let refused = |sentence: String| Err(CreateError::Configuration { sentence });
    match std::env::var_os(VARIABLE) {
        None => Ok(None),
        Some(value) if value.is_empty() || value == "0" => Ok(None),
        Some(value) if value == "1" => Ok(Some(Place::StandardError)),
        Some(value) if value.as_bytes().contains(&b'/') => {
            // It may be written when the program has gone to another folder.
            let path = std::path::absolute(Path::new(&value)).unwrap_or_else(|_| value.clone().into());
            match open(&path) {
                Ok(_) => Ok(Some(Place::File(path))),
                Err(error) => refused(format!(
                    "the environment variable {VARIABLE} names the file `{}`, which cannot be written: {error}; name another, or 1 for standard error",
                    value.display()
                )),
            }
        }
        Some(value) => refused(format!(
            "the environment variable {VARIABLE} is `{}`; it must be 1, for a table of what was moved at the end of each endpoint, the path of a file for these tables, with a slash in it, or 0",
            value.display()
        )),
    }
}

fn open(path: &Path) -> io::Result<File> {
    // Nothing is waited for: a FIFO without a reader is refused.
    OpenOptions::new().create(true).append(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// Writes the table; a device layer has no cells, and no line of them.
pub fn write(
    place: &Place,
    id: EndpointId,
    eager: Option<EagerCounters>,
    mechanisms: &[(&'static str, Counters)],
) {
    let text = table(&who(id), &id.to_string(), eager, mechanisms);
    // One call, so that the tables of several ranks do not mix. If nobody reads
    // standard error, or the disk is full, nobody wants to know.
    let _written = match place {
        Place::StandardError => io::stderr().lock().write_all(text.as_bytes()),
        Place::File(path) => open(path).and_then(|mut file| file.write_all(text.as_bytes())),
    };
}

/// The rank that has this identity in the launcher's group, or the process.
fn who(id: EndpointId) -> String {
    let group = Group::from_env().ok().flatten();
    match group.filter(|group| group.id.member(group.rank) == id) {
        Some(group) => format!("rank={}", group.rank),
        None => format!("pid={}", std::process::id()),
    }
}

/// What a line of the table has (`docs/explain.md`).
const COLUMNS: [&str; 7] =
    ["path", "sent", "sent_bytes", "received", "received_bytes", "demotions", "by_sender_bytes"];

/// One line for each path that was used, between a line that says who and the
/// names of the columns.
fn table(
    who: &str,
    id: &str,
    eager: Option<EagerCounters>,
    mechanisms: &[(&'static str, Counters)],
) -> String {
    let of_cells = eager.map(|eager| {
        let EagerCounters { sent, received } = eager;
        ("eager", Counters { sent, received, ..Counters::default() })
    });
    let used =
        |counters: &Counters| counters.sent.messages + counters.received.messages + counters.demotions > 0;
    let mechanisms = mechanisms.iter().filter(|(_, counters)| used(counters)).copied();
    let start = format!("lmt stats {who}");
    let mut text = format!("{start} pid={} endpoint={id}\n", std::process::id());
    text += &format!(
        "{start} {:<14} {:>10} {:>16} {:>10} {:>16} {:>9} {:>16}\n",
        COLUMNS[0], COLUMNS[1], COLUMNS[2], COLUMNS[3], COLUMNS[4], COLUMNS[5], COLUMNS[6]
    );
    for (path, counters) in of_cells.into_iter().chain(mechanisms) {
        let Counters { sent, received, peer_bytes, demotions, .. } = counters;
        text += &format!(
            "{start} {path:<14} {:>10} {:>16} {:>10} {:>16} {demotions:>9} {peer_bytes:>16}\n",
            sent.messages, sent.bytes, received.messages, received.bytes
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use lmt_core::mechanism::Tally;

    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_path_that_was_used() {
        let tally = |messages, bytes| Tally { messages, bytes };
        let eager = EagerCounters { sent: tally(1, 8), received: tally(2, 16) };
        let used = Counters { sent: tally(3, 3 << 20), demotions: 4, ..Counters::default() };
        let text = table("rank=1", "ab", Some(eager), &[("x", used), ("unused", Counters::default())]);
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().skip(2).collect()).collect();
        let pid = format!("pid={}", std::process::id());
        assert_eq!(rows[0], ["rank=1", &pid, "endpoint=ab"]);
        assert_eq!(rows[1][1..], COLUMNS);
        assert_eq!(rows[2][1..], ["eager", "1", "8", "2", "16", "0", "0"]);
        assert_eq!(rows[3][1..], ["x", "3", "3145728", "0", "0", "4", "0"]);
        assert_eq!(rows.len(), 4);
        let of_layer = table("rank=1", "ab", None, &[("x", used)]);
        assert_eq!(of_layer, text.replace(text.lines().nth(2).unwrap(), "").replace("\n\n", "\n"));
    }
}
