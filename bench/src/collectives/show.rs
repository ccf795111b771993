//! How the results are written: a table for people, CSV, JSON.
#![forbid(unsafe_code)]

use std::io::{self, Write};

use serde::Serialize;

use super::args::AUTO;
use super::plan::{Plan, Turns};
use super::result::{Contender, Row};
use super::workload::Work;
use crate::environment::Environment;
use crate::output::{quoted, usec};
use crate::peers::show::{PeerCard, begin_all};
use crate::sizes::human;
use crate::stats::{Spread, geometric_mean, mb_per_s};

/// What was asked, where, and what came of it.
#[derive(Debug, Serialize)]
pub struct Findings {
    /// Where and how.
    pub environment: Environment,
    /// What was asked.
    pub settings: Plan,
    /// Who was compared.
    pub peers: Vec<PeerCard>,
    /// One for each size.
    pub rows: Vec<Row>,
}

/// What the time and the sizes of an operation are.
fn text(plan: &Plan) -> String {
    match plan.work {
        Work::Collective(kind) => {
            let size = match kind {
                lmt_collectives::Kind::Barrier => "There are no bytes.",
                lmt_collectives::Kind::Broadcast => "Size: what the root sends.",
                kind if super::plan::is_reduction(kind) => {
                    "Size: a rank's vector of floats, of reduce_scatter a block of it."
                }
                _ => "Size: one block.",
            };
            format!(
                "{kind} behind a barrier. Time: the operation alone, on the slowest rank; a barrier between any two. {size}"
            )
        }
        Work::Contention(access) => access.text().to_owned(),
    }
}

/// What stands above the rows.
///
/// # Errors
/// The output cannot be written.
pub fn begin_table(
    out: &mut dyn Write,
    plan: &Plan,
    environment: &Environment,
    peers: &[PeerCard],
) -> io::Result<()> {
    let title = format!("lmt bench {}, {} ranks", plan.work, plan.ranks);
    begin_all(out, &title, environment, peers)?;
    writeln!(out, "# {}", text(plan))?;
    writeln!(
        out,
        "# microseconds: median and quartiles of {} rounds in which everybody has one turn with as many iterations",
        plan.repetitions
    )?;
    let reference =
        if peers.is_empty() { "the first one's" } else { "that of the peer with the smallest median" };
    match plan.work {
        Work::Collective(_) => {
            writeln!(
                out,
                "# ratio: its time by {reference}, round by round: median and quartiles; * is our fastest"
            )?;
        }
        Work::Contention(_) => writeln!(out, "# relative: round by round: median and quartiles")?,
    }
    let last = match plan.work {
        Work::Collective(_) => format!("{:>8} {:>13}", "ratio", "quartiles"),
        Work::Contention(_) => format!("{:>10} {:>8} {:>13}", "MB/s", "relative", "quartiles"),
    };
    writeln!(
        out,
        "{:>8} {:>7} {:<NAME_WIDTH$} {:>10} {:>19} {last}",
        "size", "iter", "by", "median", "quartiles"
    )
}

/// Room for a name and what `auto` has taken.
const NAME_WIDTH: usize = 26;

/// The lines of one size.
///
/// # Errors
/// The output cannot be written.
pub fn table_rows(out: &mut dyn Write, plan: &Plan, row: &Row) -> io::Result<()> {
    for contender in &row.contenders {
        let is_fastest = row.fastest().is_some_and(|fastest| fastest.name == contender.name);
        let mark = if is_fastest && matches!(plan.work, Work::Collective(_)) { " *" } else { "" };
        let name = match &row.auto {
            Some(chosen) if contender.name == AUTO => format!("{AUTO} ({}){mark}", chosen.algorithm),
            _ => format!("{}{mark}", contender.name),
        };
        let Contender { usec: time, .. } = contender;
        let quartiles = format!("{}..{}", usec(time.lower), usec(time.upper));
        write!(
            out,
            "{:>8} {:>7} {name:<NAME_WIDTH$} {:>10} {quartiles:>19}",
            human(row.bytes),
            row.iterations,
            usec(time.median)
        )?;
        if let Some(speed) = speed(plan, row.bytes, contender) {
            write!(out, " {speed:>10.0}")?;
        }
        let ratio = relative(plan, row, contender);
        let shown = ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.3}", ratio.median));
        let quartiles =
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.2}..{:.2}", ratio.lower, ratio.upper));
        writeln!(out, " {shown:>8} {quartiles:>13}")?;
    }
    Ok(())
}

/// How many are at it at once.
fn at_once(plan: &Plan, name: &str) -> Option<u32> {
    plan.contenders.iter().find_map(|turns| match turns {
        Turns::Reach(reach) if reach.name() == name => Some(reach.at_once),
        _ => None,
    })
}

/// Megabytes per second of all together, where bytes are only moved.
fn speed(plan: &Plan, bytes: u64, contender: &Contender) -> Option<f64> {
    let number = at_once(plan, &contender.name)?;
    Some(mb_per_s(bytes as f64 * f64::from(number), contender.usec.median))
}

/// Of operations the ratio of times, of accesses that of throughputs.
fn relative(plan: &Plan, row: &Row, contender: &Contender) -> Option<Spread> {
    let over = contender.over_reference?;
    let (Some(number), Some(alone)) = (at_once(plan, &contender.name), at_once(plan, &row.reference)) else {
        return Some(over);
    };
    let times = |over: f64| f64::from(number) / f64::from(alone) / over;
    Some(Spread { lower: times(over.upper), median: times(over.median), upper: times(over.lower) })
}

/// What stands below the rows: geometric means.
///
/// # Errors
/// The output cannot be written.
pub fn end_table(out: &mut dyn Write, plan: &Plan, rows: &[Row]) -> io::Result<()> {
    if matches!(plan.work, Work::Contention(_)) {
        return Ok(());
    }
    if rows.iter().all(Row::has_peers) {
        for name in plan.contenders.iter().map(Turns::name) {
            let ratio = |row: &Row| row.contender(&name)?.over_reference.map(|over| over.median);
            write_mean(out, &name, rows.iter().map(ratio))?;
        }
        let best = |row: &Row| row.fastest()?.over_reference.map(|over| over.median);
        write_mean(out, "the fastest of ours at each size", rows.iter().map(best))?;
    }
    let checked: u64 = rows.iter().map(|row| row.verified_calls).sum();
    if checked > 0 {
        writeln!(out, "# {checked} calls of ours were checked byte by byte, on every rank")?;
    }
    Ok(())
}

/// Of what was measured at every size.
fn write_mean(out: &mut dyn Write, name: &str, ratios: impl Iterator<Item = Option<f64>>) -> io::Result<()> {
    let ratios: Option<Vec<f64>> = ratios.collect();
    let mean = ratios.as_ref().and_then(|ratios| geometric_mean(ratios));
    let (Some(ratios), Some(mean)) = (ratios, mean) else { return Ok(()) };
    writeln!(
        out,
        "# {name} / best peer: geometric mean over {} sizes {mean:.3}, which is {:.2} times as fast",
        ratios.len(),
        1.0 / mean
    )
}

const CSV_COLUMNS: &str = "operation,ranks,in_use,off_cache,bytes,iterations,rounds,name,is_peer,algorithm,usec_median,\
                           usec_lower,usec_upper,mb_per_s,reference,ratio,ratio_lower,ratio_upper,verified_calls";

/// Comma-separated values: a line for each size and contender.
///
/// # Errors
/// The output cannot be written.
pub fn csv(out: &mut dyn Write, findings: &Findings) -> io::Result<()> {
    writeln!(out, "{CSV_COLUMNS}")?;
    let plan = &findings.settings;
    for row in &findings.rows {
        for contender in &row.contenders {
            let algorithm = match &row.auto {
                Some(chosen) if contender.name == AUTO => chosen.algorithm.as_str(),
                _ => "",
            };
            let speed =
                speed(plan, row.bytes, contender).map(|speed| format!("{speed:.3}")).unwrap_or_default();
            let ratio = relative(plan, row, contender);
            let ratio = ratio.map_or_else(
                || ",,".to_owned(),
                |ratio| format!("{:.4},{:.4},{:.4}", ratio.median, ratio.lower, ratio.upper),
            );
            writeln!(
                out,
                "{},{},{},{},{},{},{},{},{},{algorithm},{:.4},{:.4},{:.4},{speed},{},{ratio},{}",
                plan.work,
                plan.ranks,
                plan.in_use,
                plan.rotation_bytes.is_some(),
                row.bytes,
                row.iterations,
                row.rounds,
                quoted(&contender.name),
                contender.is_peer,
                contender.usec.median,
                contender.usec.lower,
                contender.usec.upper,
                quoted(&row.reference),
                row.verified_calls,
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
