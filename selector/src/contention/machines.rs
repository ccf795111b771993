//! The machines of contention-aware-cma.

use super::{Gamma, Parameters};

/// A machine whose figures were published.
#[derive(Clone, PartialEq, Debug)]
pub struct Published {
    /// As commands name it.
    pub name: &'static str,
    /// What it is.
    pub text: &'static str,
    /// Ranks of the paper's runs.
    pub ranks: u32,
    /// Its figures.
    pub parameters: Parameters,
}

/// A cache line from one core to another, in microseconds. The paper gives none;
/// this is usual within a package, and matters below a page only.
const LINE_US: f64 = 0.1;

/// Table IV, whose GBps are taken as 10^9 bytes a second. Copies within a process
/// take beta too, as in the paper's formulas.
const fn published(
    [alpha_us, gb_per_s, lock_us]: [f64; 3],
    page_bytes: u64,
    [squared, linear]: [f64; 2],
) -> Parameters {
    let byte_ns = 1.0 / gb_per_s;
    Parameters {
        alpha_us,
        byte_ns,
        lock_us,
        page_bytes,
        gamma: Gamma::curve(squared, linear),
        cpus: None,
        line_us: LINE_US,
        copy_ns: byte_ns,
        combine_ns: byte_ns,
        message: None,
    }
}

/// Xeon Phi 7250, Knights Landing: one socket.
pub static KNL: Published = Published {
    name: "knl",
    text: "Intel Xeon Phi 7250 (Knights Landing), 68 cores",
    ranks: 64,
    parameters: published([1.43, 3.29, 0.25], 4096, [0.11, 1.6]),
};

/// Xeon E5-2680, Broadwell: two sockets of 14 cores.
pub static BROADWELL: Published = Published {
    name: "broadwell",
    text: "Intel Xeon E5-2680 v4 (Broadwell), two sockets of 14 cores",
    ranks: 28,
    parameters: published([0.98, 13.2, 0.11], 4096, [0.18, 0.83]),
};

/// POWER8: two sockets of 10 cores with 8 threads each, pages of 64 KiB.
pub static POWER8: Published = Published {
    name: "power8",
    text: "IBM POWER8, two sockets of 10 cores, 160 ranks, pages of 64 KiB",
    ranks: 160,
    parameters: published([0.75, 3.17, 0.53], 65536, [0.04, 1.95]),
};

/// All of them.
pub static PUBLISHED: [&Published; 3] = [&KNL, &BROADWELL, &POWER8];
