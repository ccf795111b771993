//! How the comparison with peers is written: a table for people, CSV, JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::peer::Peer;
use super::result::{Contender, Role, Row};
use crate::environment::Environment;
use crate::job::Job;
use crate::memory::Memory;
use crate::output::{head, quoted, usec};
use crate::sizes::human;
use crate::stats::{Spread, geometric_mean};

/// One pattern in one mode: what was asked and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scene {
    /// The settings.
    pub settings: Job,
    /// Where and how.
    pub environment: Environment,
    /// One for each size.
    pub rows: Vec<Row>,
}

/// A peer in the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PeerCard {
    /// Its name in tables.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its launcher.
    pub mpiexec: String,
}

impl PeerCard {
    /// What is told of a peer.
    pub fn of(peer: &Peer) -> Self {
        Self {
            name: peer.name.clone(),
            version: peer.mpi.version.clone(),
            mpiexec: peer.mpi.mpiexec.display().to_string(),
        }
    }
}

/// A scene's name: pattern, ranks and how the buffers are used.
pub fn title(job: &Job) -> String {
    let in_use = if job.in_use { "in use" } else { "unmodified (as IMB and OSU measure)" };
    let cache = if job.rotation_bytes.is_some() { "off cache" } else { "on cache" };
    let ranks = if job.ranks == 2 { String::new() } else { format!(", {} ranks", job.ranks) };
    let buffers = match job.buffers {
        Memory::Private => "",
        Memory::Shared => ", shared buffers",
    };
    format!("{}{ranks}{buffers}, {in_use}, {cache}", job.pattern.name())
}

/// Geometric means over the sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Means {
    /// Our time by the best peer's.
    pub over_peer: Option<f64>,
    /// Our time by the limit's.
    pub over_limit: Option<f64>,
    /// The limit's time by the best peer's.
    pub limit_over_peer: Option<f64>,
}

impl Means {
    /// Those of a scene; a mean is there when every size has its ratio.
    pub fn of(rows: &[Row]) -> Self {
        let mean = |ratio: fn(&Row) -> Option<Spread>| {
            let all: Option<Vec<f64>> =
                rows.iter().map(|row| ratio(row).map(|spread| spread.median)).collect();
            geometric_mean(&all?)
        };
        Self {
            over_peer: mean(Row::over_peer),
            over_limit: mean(Row::over_limit),
            limit_over_peer: mean(|row| row.limit_over_peer),
        }
    }
}

/// A title, where it is measured and with whom.
///
/// # Errors
/// The output cannot be written.
pub fn begin_all(
    out: &mut dyn Write,
    name: &str,
    environment: &Environment,
    peers: &[PeerCard],
) -> io::Result<()> {
    head(out, name, environment)?;
    for PeerCard { name, version, mpiexec } in peers {
        writeln!(out, "# {name}: {version}, {mpiexec}")?;
    }
    Ok(())
}

/// The table: what stands above a scene's rows; where and with whom only once,
/// above the first.
///
/// # Errors
/// The output cannot be written.
pub fn begin_table(
    out: &mut dyn Write,
    job: &Job,
    environment: &Environment,
    peers: &[PeerCard],
    is_first: bool,
) -> io::Result<()> {
    let name = format!("lmt compare --peers: {}", title(job));
    if is_first {
        begin_all(out, &name, environment, peers)?;
    } else {
        writeln!(out, "# {name}")?;
    }
    writeln!(out, "# {}", job.pattern.definition().text)?;
    writeln!(
        out,
        "# microseconds, median of {} rounds in which everybody has one turn with as many iterations",
        job.repetitions
    )?;
    writeln!(
        out,
        "# ours/best: {}'s time by that of the peer with the smallest median, round by round: median, quartiles; \
         below 1 ours is faster",
        job.mechanisms.first().map_or("our", String::as_str)
    )?;
    if job.limits {
        writeln!(
            out,
            "# limit: the fastest bare method; limit/ours: how near we come; limit/best: what is left to win"
        )?;
    }
    write!(out, "{:>8} {:>7}", "size", "iter")?;
    let names = job.mechanisms.iter().chain(peers.iter().map(|peer| &peer.name));
    names.clone().try_for_each(|name| write!(out, " {:>width$}", name, width = width(name)))?;
    write!(out, " {:>9} {:>13} {:<9}", "ours/best", "quartiles", "best")?;
    if job.limits {
        write!(out, " {:>9} {:>10} {:>10} {:<12}", "limit", "limit/ours", "limit/best", "method")?;
    }
    writeln!(out, " way")
}

fn width(name: &str) -> usize {
    name.len().max(9)
}

/// One line of the table.
///
/// # Errors
/// The output cannot be written.
pub fn table_row(out: &mut dyn Write, job: &Job, peers: &[PeerCard], row: &Row) -> io::Result<()> {
    write!(out, "{:>8} {:>7}", human(row.bytes), row.iterations)?;
    let names = job.mechanisms.iter().chain(peers.iter().map(|peer| &peer.name));
    for name in names {
        let time = row.contender(name).map_or_else(|| "-".to_owned(), |one| usec(one.usec.median));
        write!(out, " {time:>width$}", width = width(name))?;
    }
    let over = row.over_peer();
    let quartiles =
        over.map_or_else(|| "-".to_owned(), |over| format!("{:.2}..{:.2}", over.lower, over.upper));
    write!(
        out,
        " {:>9} {quartiles:>13} {:<9}",
        ratio(over.map(|over| over.median)),
        row.best_peer.as_deref().unwrap_or("-")
    )?;
    if job.limits {
        let limit = row.limit.as_deref().and_then(|name| row.contender(name));
        write!(
            out,
            " {:>9} {:>10} {:>10} {:<12}",
            limit.map_or_else(|| "-".to_owned(), |limit| usec(limit.usec.median)),
            ratio(row.over_limit().map(|over| 1.0 / over.median)),
            ratio(row.limit_over_peer.map(|over| over.median)),
            row.limit.as_deref().unwrap_or("-"),
        )?;
    }
    writeln!(out, " {}", row.way())
}

/// What stands below a scene's rows.
///
/// # Errors
/// The output cannot be written.
pub fn end_table(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let means = Means::of(rows);
    if let Some(over_peer) = means.over_peer {
        write!(
            out,
            "# geometric means over {} sizes: ours/best {over_peer:.3}, which is {:.2} times as fast",
            rows.len(),
            1.0 / over_peer
        )?;
        if let (Some(over_limit), Some(limit_over_peer)) = (means.over_limit, means.limit_over_peer) {
            write!(out, "; limit/ours {:.3}; limit/best {limit_over_peer:.3}", 1.0 / over_limit)?;
        }
        writeln!(out)?;
    }
    let checked: u64 = rows.iter().map(|row| row.verified_messages).sum();
    if checked > 0 {
        writeln!(out, "# {checked} messages of ours were checked byte by byte")?;
    }
    writeln!(out)
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

const CSV_COLUMNS: &str = "pattern,ranks,in_use,off_cache,bytes,iterations,rounds,name,role,usec_median,usec_lower,\
                           usec_upper,mb_per_s,ours_over_this,ours_over_this_lower,ours_over_this_upper,best_peer,\
                           limit,limit_over_peer,way";

/// Comma-separated values: a line for each size and contender.
///
/// # Errors
/// The output cannot be written.
pub fn csv(out: &mut dyn Write, scenes: &[Scene]) -> io::Result<()> {
    writeln!(out, "{CSV_COLUMNS}")?;
    for Scene { settings, rows, .. } in scenes {
        for row in rows {
            row.contenders.iter().try_for_each(|contender| csv_line(out, settings, row, contender))?;
        }
    }
    Ok(())
}

fn csv_line(out: &mut dyn Write, job: &Job, row: &Row, contender: &Contender) -> io::Result<()> {
    let Contender { name, role, usec, ours_over_this: over } = contender;
    let role = match role {
        Role::Ours => "ours",
        Role::Peer => "peer",
        Role::Limit => "limit",
    };
    // A bare method is a ping-pong whatever the pattern.
    let bytes =
        if role == "limit" { row.bytes as f64 } else { job.pattern.counted_bytes(row.bytes, job.ranks) };
    writeln!(
        out,
        "{},{},{},{},{},{},{},{},{role},{:.4},{:.4},{:.4},{:.3},{:.4},{:.4},{:.4},{},{},{},{}",
        job.pattern.name(),
        job.ranks,
        job.in_use,
        job.rotation_bytes.is_some(),
        row.bytes,
        row.iterations,
        row.rounds,
        quoted(name),
        usec.median,
        usec.lower,
        usec.upper,
        crate::stats::mb_per_s(bytes, usec.median),
        over.median,
        over.lower,
        over.upper,
        row.best_peer.as_deref().unwrap_or_default(),
        row.limit.as_deref().unwrap_or_default(),
        row.limit_over_peer.map(|over| format!("{:.4}", over.median)).unwrap_or_default(),
        quoted(&row.way()),
    )
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
