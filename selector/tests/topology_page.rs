//! The table in docs/topology.md is what the code computes.
#![cfg(not(loom))]

use std::path::Path;

use lmt_core::cpu_set::CpuSet;
use lmt_selector::dma_min::DmaMin;
use lmt_selector::topology::Machine;

/// "1.5 MiB", "1398101 B", "= 1 MiB" at the end of a cell, in bytes.
fn bytes(cell: &str) -> u64 {
    let size = cell.rsplit('=').next().unwrap_or(cell).trim();
    let (number, unit) = size.split_once(' ').expect("a number and a unit");
    let shift = match unit {
        "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        other => panic!("{other} in {cell}"),
    };
    let number: f64 = number.parse().expect("a number");
    (number * f64::from(1 << shift)) as u64
}

/// The first CPU, one on its largest cache besides, and one that is not.
fn chosen(machine: &Machine) -> [CpuSet; 3] {
    let cache = machine.largest_cache(0).expect("the papers' machines have caches");
    let cores = machine.cores().iter().filter_map(|core| core.cpus.iter().next());
    let beside = cores.clone().find(|cpu| *cpu > 0 && cache.cpus.contains(*cpu)).expect("it is shared");
    let apart = cores.clone().find(|cpu| !cache.cpus.contains(*cpu)).expect("there are several");
    [0, beside, apart].map(|cpu| CpuSet::from_iter([cpu]))
}

#[test]
fn the_papers_machines() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/topology.md");
    let page = std::fs::read_to_string(page).expect("the page is beside the crate");
    for name in ["E5345", "X5460", "X5650", "Barcelona", "Dunnington"] {
        let description = page.lines().find_map(|line| line.strip_prefix("    ")?.strip_prefix(name));
        let machine = Machine::synthetic(description.expect(name).trim()).expect("the page is right");
        let row = page.lines().find(|line| line.starts_with('|') && line.contains(name)).expect(name);
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [first, beside, apart] = chosen(&machine);
        let by_processes = |other| DmaMin::by_processes(&machine, &first, &[first, other]);
        let computed = [DmaMin::by_cores(&machine, &first), by_processes(beside), by_processes(apart)];
        let computed = computed.map(|dma_min| dma_min.expect("its caches are known").bytes);
        assert_eq!([bytes(cells[3]), bytes(cells[4]), bytes(cells[5])], computed, "{row}");
        let cache = machine.largest_cache(0).expect("it has one");
        assert!(cells[2].ends_with(&format!("{} cores", cache.cores)), "{row}");
        let (level, size) = cells[2].split_once(' ').expect("the cache's level and size");
        let size = size.split(',').next().expect("the size");
        assert_eq!((level, bytes(size)), (format!("L{}", cache.level).as_str(), cache.bytes), "{row}");
    }
}
