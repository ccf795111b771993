//! How the comparison of an MPI's transports is written for people.

use std::io::{self, Write};

use super::super::figures::{self, Figure};
use super::super::result::Row;
use super::super::show::{PeerCard, begin_all, title};
use super::super::transport::{ALL, Transport};
use super::judge::{is_long, mean, over};
use super::{Measured, name_of};
use crate::console::written;
use crate::error::BenchError;
use crate::output::usec;
use crate::sizes::human;
use crate::stats::Spread;

/// What lmt is compared with.
const OTHERS: [Transport; 2] = [Transport::Shm, Transport::Default];

/// The table of one MPI; where it was measured stands above the first only.
pub fn table(
    card: &PeerCard,
    measured: &Measured,
    figures: &[Figure],
    is_first: bool,
) -> Result<String, BenchError> {
    Ok(written(|out| write(out, card, measured, is_first))? + &figures::text(figures) + "\n")
}

fn write(out: &mut dyn Write, card: &PeerCard, measured: &Measured, is_first: bool) -> io::Result<()> {
    let job = &measured.scene.settings;
    let name = format!("lmt compare --mpi: {} {}, {}", card.name, card.version, title(job));
    if is_first {
        begin_all(out, &name, &measured.scene.environment, &[])?;
        writeln!(out, "# {}", job.pattern.definition().text)?;
        writeln!(
            out,
            "# microseconds, median of {} rounds; in a round each transport has one turn with as many iterations; between passes over the sizes all are started anew",
            job.repetitions
        )?;
        writeln!(
            out,
            "# lmt/shm, lmt/default: the time over lmt by that over the other, round by round: median, quartiles; below 1 lmt is faster"
        )?;
    } else {
        writeln!(out, "# {name}")?;
    }
    writeln!(out, "# {}", card.mpiexec)?;
    for left_out in &measured.left_out {
        writeln!(out, "# {} is left out: {}", left_out.name, left_out.reason)?;
    }
    write!(out, "{:>8} {:>7}", "size", "iter")?;
    ALL.iter().try_for_each(|transport| write!(out, " {:>9}", transport.name()))?;
    for other in OTHERS {
        write!(out, " {:>11} {:>12}", format!("lmt/{}", other.name()), "quartiles")?;
    }
    writeln!(out)?;
    measured.scene.rows.iter().try_for_each(|row| line(out, &card.name, row))?;
    means(out, &card.name, &measured.scene.rows)
}

fn line(out: &mut dyn Write, mpi: &str, row: &Row) -> io::Result<()> {
    write!(out, "{:>8} {:>7}", human(row.bytes), row.iterations)?;
    for transport in ALL {
        let contender = row.contender(&name_of(mpi, transport));
        let time = contender.map_or_else(|| "-".to_owned(), |contender| usec(contender.usec.median));
        write!(out, " {time:>9}")?;
    }
    OTHERS.iter().try_for_each(|other| ratio(out, over(row, mpi, *other)))?;
    writeln!(out)
}

fn ratio(out: &mut dyn Write, spread: Option<Spread>) -> io::Result<()> {
    match spread {
        Some(Spread { lower, median, upper }) => {
            write!(out, " {median:>11.3} {:>12}", format!("{lower:.2}..{upper:.2}"))
        }
        None => write!(out, " {:>11} {:>12}", "-", "-"),
    }
}

/// The geometric means over the long messages, below their columns.
fn means(out: &mut dyn Write, mpi: &str, rows: &[Row]) -> io::Result<()> {
    if !rows.iter().any(|row| is_long(&row)) {
        return Ok(());
    }
    write!(out, "{:<46}", "# geometric means, 64 KiB to 16 MiB")?;
    for other in OTHERS {
        ratio(out, mean(rows.iter().filter(is_long), |row| over(row, mpi, other)))?;
    }
    writeln!(out)
}
