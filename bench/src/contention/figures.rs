//! From times to parameters.

use lmt_selector::contention::{Gamma, Parameters};

use super::fit::fit;
use super::measuring::{Readers, Stop, page_counts};
use super::rank::Work;
use super::{median, slope};
use crate::memory::page_bytes;

/// Measurements of everything, of which medians are taken.
const ROUNDS: usize = 7;
/// About so many windows are measured, at most, unless one round alone has more.
const MAX_WINDOWS: usize = 700;
/// A cache line where there is no second CPU to send it to, in microseconds.
const USUAL_LINE_US: f64 = 0.1;
/// Bytes of the copies by which the time of a byte is found.
const COPY_BYTES: usize = 1 << 20;

/// The time of locking and pinning so many pages with so many readers.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Pinned {
    /// Readers at once.
    pub readers: u32,
    /// Pages of a call.
    pub pages: usize,
    /// The median, in microseconds.
    pub us: f64,
}

/// What single copy costs here.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// All figures but those of messages.
    pub parameters: Parameters,
    /// The times of which l and gamma are made.
    pub pinned: Vec<Pinned>,
}

/// Measures with 1, 2, ... readers, up to so many, one on each of the CPUs.
///
/// # Errors
/// A signal came, or a process failed.
pub fn measure(group: &mut Readers<'_>, readers: u32) -> Result<Figures, Stop> {
    let line_us = if readers > 1 { group.line_us()? } else { USUAL_LINE_US };
    let pages = page_counts();
    // As many as there are CPUs.
    let rounds = (MAX_WINDOWS / (readers as usize * pages.len())).clamp(1, ROUNDS);
    let mut pins = vec![vec![Vec::new(); pages.len()]; readers as usize];
    let [mut byte, mut copy, mut own, mut combine] = [const { Vec::new() }; 4];
    for _ in 0..rounds {
        for (pinned, readers) in pins.iter_mut().zip(1..) {
            for (times, pages) in pinned.iter_mut().zip(&pages) {
                times.push(group.window(readers, Work::Pin, pages * page())?.us);
            }
        }
    }
    for _ in 0..ROUNDS {
        byte.push(group.window(1, Work::Copy, 1)?.us);
        copy.push(group.window(1, Work::Copy, copy_bytes())?.us);
        own.push(group.window(1, Work::Own, copy_bytes())?.us);
        combine.push(group.window(1, Work::Combine, copy_bytes())?.us);
    }
    let mut pinned = Vec::new();
    let mut locks_us = Vec::new();
    for (times, readers) in pins.iter().zip(1..) {
        let points: Vec<(f64, f64)> =
            times.iter().zip(&pages).map(|(times, pages)| (*pages as f64, median(times))).collect();
        pinned.extend(points.iter().zip(&pages).map(|((_, us), pages)| Pinned {
            readers,
            pages: *pages,
            us: *us,
        }));
        locks_us.push(slope(&points).max(0.0));
    }
    let costs = Costs {
        byte_us: median(&byte),
        copy_us: median(&copy),
        own_us: median(&own),
        combine_us: median(&combine),
        copy_bytes: copy_bytes(),
        page_bytes: page(),
    };
    Ok(Figures { parameters: parameters(&costs, &locks_us, line_us), pinned })
}

fn page() -> usize {
    // A page is no more than a size.
    page_bytes() as usize
}

/// Whole pages, no more than what is read.
fn copy_bytes() -> usize {
    COPY_BYTES.next_multiple_of(page()).min(super::measuring::memory_bytes())
}

/// Medians of what one process alone takes, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// A copy of one byte out of another process.
    byte_us: f64,
    /// A copy of `copy_bytes` out of another process.
    copy_us: f64,
    /// The same within the process.
    own_us: f64,
    /// The same, combined with other bytes.
    combine_us: f64,
    copy_bytes: usize,
    page_bytes: usize,
}

/// `locks_us`: the time of a page with 1, 2, ... readers.
fn parameters(costs: &Costs, locks_us: &[f64], line_us: f64) -> Parameters {
    let lock_us = locks_us.first().copied().unwrap_or(0.0);
    // One byte is in one page.
    let alpha_us = (costs.byte_us - lock_us).max(0.0);
    let pages = costs.copy_bytes.div_ceil(costs.page_bytes) as f64;
    let of_bytes_us = (costs.copy_us - alpha_us - lock_us * pages).max(0.0);
    let each_ns = |us: f64| us * 1e3 / costs.copy_bytes as f64;
    // Where a page takes no time that can be measured nobody waits for one.
    let factor = |us: &f64| if lock_us > 0.0 { (us / lock_us).max(1.0) } else { 1.0 };
    let measured: Vec<f64> = locks_us.iter().map(factor).collect();
    let fit = fit(&measured);
    Parameters {
        alpha_us,
        byte_ns: each_ns(of_bytes_us),
        lock_us,
        page_bytes: costs.page_bytes as u64,
        cpus: Some(u32::try_from(measured.len()).unwrap_or(u32::MAX)),
        gamma: Gamma { measured: measured.into(), fit },
        line_us,
        copy_ns: each_ns(costs.own_us),
        combine_ns: each_ns(costs.combine_us),
        message: None,
    }
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
