//! Machines that do not exist: curves with noise, the same for the same seed.

use crate::calibration::{Course, EAGER, EAGER_MAX_BYTES, Load};

/// Numbers that look random (SplitMix64).
pub struct Noise(pub u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// A normal value by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A way whose time is a start and so much for each byte.
#[derive(Clone, Debug)]
pub struct Line {
    pub way: &'static str,
    pub start_ns: f64,
    pub byte_ns: f64,
}

impl Line {
    pub fn ns(&self, bytes: u64) -> f64 {
        self.start_ns + self.byte_ns * bytes as f64
    }
}

/// A machine with cells, a mechanism with a slow start that is fast later, and
/// one between; two more that differ by next to nothing from another.
pub const MACHINE: [Line; 5] = [
    Line { way: EAGER, start_ns: 300.0, byte_ns: 0.35 },
    Line { way: "read:get", start_ns: 1500.0, byte_ns: 0.12 },
    Line { way: "read:put", start_ns: 1505.0, byte_ns: 0.1202 },
    Line { way: "driver:get", start_ns: 9000.0, byte_ns: 0.07 },
    Line { way: "ring:cooperative", start_ns: 2500.0, byte_ns: 0.16 },
];

/// Powers of two from 1 B to 16 MiB.
pub fn sizes() -> impl DoubleEndedIterator<Item = u64> {
    (0..25).map(|power| 1 << power)
}

/// The names of lines, in order.
pub fn order(lines: &[Line]) -> Vec<String> {
    lines.iter().map(|line| line.way.to_owned()).collect()
}

/// How times scatter.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    /// The standard deviation of each time's logarithm.
    pub deviation: f64,
    /// How much each way, for itself, is slower or faster in each pass and
    /// class: the standard deviation of the logarithm.
    pub drift: f64,
    /// The passes.
    pub passes: usize,
    /// The times of each way in a pass; three in the first.
    pub times: usize,
}

/// These lines as measured: in some passes with so many repetitions, each time
/// with noise of that standard deviation and now and then an outlier, each pass
/// slower or faster as a whole.
pub fn measured(
    lines: &[Line],
    load: Load,
    seed: u64,
    deviation: f64,
    passes: usize,
    times: usize,
) -> Course {
    scattered(lines, load, seed, Scatter { deviation, drift: 0.0, passes, times })
}

/// The same, with ways that drift from pass to pass each for itself.
pub fn scattered(lines: &[Line], load: Load, seed: u64, scatter: Scatter) -> Course {
    let mut noise = Noise(seed);
    let mut course = Course::new(load);
    for pass in 0..scatter.passes {
        let times = if pass == 0 { scatter.times.min(3) } else { scatter.times };
        for bytes in sizes() {
            let of_pass = 1.0 + 0.1 * noise.uniform();
            for line in lines.iter().filter(|line| line.way != EAGER || bytes <= EAGER_MAX_BYTES) {
                let drift = of_pass * (scatter.drift * noise.normal()).exp();
                let samples: Vec<f64> = (0..times)
                    .map(|_| {
                        let outlier = if noise.uniform() < 0.05 { 2.0 } else { 1.0 };
                        line.ns(bytes) * drift * outlier * (scatter.deviation * noise.normal()).exp()
                    })
                    .collect();
                course.add(bytes, line.way, pass, &samples);
            }
        }
    }
    course
}
