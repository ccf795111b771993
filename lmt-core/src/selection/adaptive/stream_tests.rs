use super::*;
use crate::selection::adaptive::simulation::{Disturbances, PingPong, Random};

/// Ways as they cost in traffic that touches its buffers and in traffic that does
/// not: the best of one is bad in the other.
const TOUCHED: [f64; 9] = [52e3, 50e3, 58e3, 49e3, 24e3, 61e3, 70e3, 55e3, 56e3];
const UNTOUCHED: [f64; 9] = [7.5e3, 7.9e3, 4.6e3, 9e3, 15e3, 21e3, 33e3, 8e3, 8.2e3];

#[test]
fn explore() {
    for (noise, alone) in [(0.02, true), (0.02, false), (0.05, false), (0.1, false)] {
        let mut losses = Vec::new();
        let mut detail = String::new();
        for seed in 0..40 {
            let mut pair = PingPong::new(9, seed, Disturbances { noise, ..Disturbances::FEW });
            for phase in 0..12 {
                let costs = if phase % 2 == 0 { &UNTOUCHED } else { &TOUCHED };
                let first = pair.run(200, costs, alone);
                let rest = pair.run(800, costs, alone);
                losses.push(rest.loss());
                if seed == 0 {
                    detail += &format!(" {:.3}/{:.3}", first.loss(), rest.loss());
                }
            }
            if seed == 0 {
                println!("{}", pair.ends[0].report(|w| format!("{w:?}")).sentences().join("\n"));
            }
        }
        losses.sort_by(f64::total_cmp);
        let within = losses.iter().filter(|l| **l < 0.05).count();
        println!(
            "noise {noise} alone {alone}: within {within}/{}, median {:.3} worst {:.3} p95 {:.3};{detail}",
            losses.len(),
            losses[losses.len() / 2],
            losses.last().unwrap(),
            losses[losses.len() * 95 / 100]
        );
    }
}
