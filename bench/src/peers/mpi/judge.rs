//! What is asked of an MPI over lmt, and whether it was met.

use super::super::figures::{Figure, not_measured, worst};
use super::super::result::Row;
use super::super::transport::Transport;
use super::{Measured, name_of};
use crate::sizes::human;
use crate::stats::{Spread, geometric_mean};

/// The long messages.
const LONG: std::ops::RangeInclusive<u64> = 64 << 10..=16 << 20;
/// A short one.
const SHORT_BYTES: u64 = 8;

/// The verdicts on one MPI.
pub fn judge(mpi: &str, measured: &Measured) -> Vec<Figure> {
    let rows = &measured.scene.rows;
    vec![
        short(mpi, rows, measured),
        long(2, mpi, rows, measured, Transport::Shm, 1.3),
        long(3, mpi, rows, measured, Transport::Default, 1.1),
        path(mpi, measured),
    ]
}

/// Ours by another transport's time, taken round by round.
pub fn over(row: &Row, mpi: &str, transport: Transport) -> Option<Spread> {
    row.contender(&name_of(mpi, transport)).map(|other| other.ours_over_this)
}

/// The geometric means of a ratio's quartiles and medians over the rows.
pub fn mean<'a>(
    rows: impl Iterator<Item = &'a Row>,
    ratio: impl Fn(&Row) -> Option<Spread>,
) -> Option<Spread> {
    let spreads: Option<Vec<Spread>> = rows.map(ratio).collect();
    let spreads = spreads?;
    let of = |part: fn(&Spread) -> f64| geometric_mean(&spreads.iter().map(part).collect::<Vec<_>>());
    Some(Spread { lower: of(|s| s.lower)?, median: of(|s| s.median)?, upper: of(|s| s.upper)? })
}

/// The long messages among all.
pub fn is_long(row: &&Row) -> bool {
    LONG.contains(&row.bytes)
}

fn short(mpi: &str, rows: &[Row], measured: &Measured) -> Figure {
    let asked = format!("{mpi}, {}: no slower over lmt than over libfabric's shm", human(SHORT_BYTES));
    let meant: Vec<&Row> = rows.iter().filter(|row| row.bytes == SHORT_BYTES).collect();
    let figure = worst(1, asked, &meant, |row| over(row, mpi, Transport::Shm), 1.0, "of the time over shm");
    with_reason(figure, measured, &name_of(mpi, Transport::Shm))
}

fn long(number: u32, mpi: &str, rows: &[Row], measured: &Measured, other: Transport, least: f64) -> Figure {
    let whose = match other {
        Transport::Shm => "libfabric's shm",
        _ => "its own transport",
    };
    let asked = format!("{mpi}, 64 KiB to 16 MiB: {least} times the speed over {whose} in geometric mean");
    let number_of_sizes = rows.iter().filter(is_long).count();
    let figure = match mean(rows.iter().filter(is_long), |row| over(row, mpi, other)) {
        Some(mean) => Figure {
            number,
            asked,
            found: format!(
                "{:.2} times over {number_of_sizes} sizes (quartiles {:.2}..{:.2})",
                1.0 / mean.median,
                1.0 / mean.upper,
                1.0 / mean.lower
            ),
            met: Some(1.0 / mean.median >= least),
            is_shown_only: false,
        },
        None => not_measured(number, asked),
    };
    with_reason(figure, measured, &name_of(mpi, other))
}

/// Says why a transport was not measured.
fn with_reason(figure: Figure, measured: &Measured, name: &str) -> Figure {
    match measured.left_out.iter().find(|left_out| left_out.name == name) {
        Some(left_out) if figure.met.is_none() => {
            Figure { found: format!("not measured: {}", left_out.reason), ..figure }
        }
        _ => figure,
    }
}

/// Whether it was lmt that was measured.
fn path(mpi: &str, measured: &Measured) -> Figure {
    let statistics = &measured.statistics;
    let largest = measured.scene.rows.iter().map(|row| row.bytes).max().unwrap_or(0);
    // At the least one message of each size has come that way.
    let went = statistics.endpoints > 0 && statistics.bytes() >= largest;
    let found = match went {
        true => format!(
            "{:.1} GB received at {} endpoints: {}",
            statistics.bytes() as f64 / 1e9,
            statistics.endpoints,
            statistics.shares()
        ),
        false => "lmt's endpoints tell of no such bytes".to_owned(),
    };
    Figure {
        number: 4,
        asked: format!("{mpi}: its messages go through lmt"),
        found,
        met: Some(went),
        is_shown_only: false,
    }
}
