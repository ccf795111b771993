//! The machines of the papers, for tests. Synthetic CPUs are numbered from the
//! outside in: the CPUs of a cache, a package follow each other. Sizes are in
//! bytes, since hwloc 2.8 changed what MB means.

use lmt_core::cpu_set::CpuSet;

use super::Machine;

/// Xeon E5345 (ICPP 2009 section 4): two packages, in each two L2 of 4 MiB for
/// two cores. CPUs 0 and 1 share an L2, 0 to 3 a package.
pub(crate) const E5345: &str = "package:2 l2:2(size=4194304) l1:2(size=32768) core:1 pu:1";

/// Xeon X5460 (the same): one package with two L2 of 6 MiB for two cores.
pub(crate) const X5460: &str = "package:1 l2:2(size=6291456) l1:2(size=32768) core:1 pu:1";

/// Dual Westmere X5650 (JPDC 2013 figure 8a): two packages, each a NUMA node
/// with an L3 of 12 MiB for six cores of two hardware threads. Core c has CPUs
/// 2c and 2c + 1, so package 0 has CPUs 0 to 11.
pub(crate) const X5650: &str =
    "package:2 numa:1 l3:1(size=12582912) l2:6(size=262144) l1:1(size=32768) core:1 pu:2";

/// Quad Barcelona 8437HE (figure 8b): four packages, each a NUMA node with an
/// L3 of 2 MiB for four cores with an L2 of 512 KiB each.
pub(crate) const BARCELONA: &str =
    "package:4 numa:1 l3:1(size=2097152) l2:4(size=524288) l1:1(size=65536) core:1 pu:1";

/// Sixteen packages of Dunnington (figure 13b): four NUMA nodes of four
/// packages, in each an L3 of 16 MiB for six cores and three L2 of 3 MiB for
/// two. Package p has CPUs 6p to 6p + 5, node n has 24n to 24n + 23.
pub(crate) const DUNNINGTON: &str =
    "numa:4 package:4 l3:1(size=16777216) l2:3(size=3145728) l1:2(size=32768) core:1 pu:1";

/// Two dies, so two NUMA nodes, in each of two packages, as Magny-Cours: each
/// die with an L3 of 5 MiB for six cores. Package 0 has CPUs 0 to 11, its first
/// node 0 to 5.
pub(crate) const MAGNY_COURS: &str =
    "package:2 numa:2 l3:1(size=5242880) l2:6(size=524288) l1:1(size=65536) core:1 pu:1";

pub(crate) fn machine(description: &str) -> Machine {
    Machine::synthetic(description).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn cpus<const N: usize>(cpus: [usize; N]) -> CpuSet {
    CpuSet::from_iter(cpus)
}
