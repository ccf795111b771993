//! The machine as hwloc sees it.

use lmt::diagnostic::{Finding, State};
use lmt_selector::topology::{Machine, TopologyError, WithoutHwloc, without_hwloc};

pub(super) fn findings() -> Vec<Finding> {
    vec![seen(Machine::load(), without_hwloc())]
}

fn seen(machine: Result<Machine, TopologyError>, without_hwloc: Option<&WithoutHwloc>) -> Finding {
    let name = "hwloc";
    let machine = match machine {
        Ok(machine) => machine,
        Err(error) => {
            return Finding::new(name, State::Blocked, error.to_string()).fixed_by(
                "unset HWLOC_SYNTHETIC HWLOC_XMLFILE HWLOC_FSROOT HWLOC_COMPONENTS HWLOC_CPUID_PATH, or give them what hwloc can read",
            );
        }
    };
    if let Some(WithoutHwloc { reason, remedy }) = without_hwloc {
        let meaning = format!("{machine}, by the kernel's files, for {reason}");
        return Finding::new(name, State::Limited, meaning).fixed_by(*remedy);
    }
    if machine.is_this_system() {
        let known = !machine.caches().is_empty();
        let state = if known { State::Good } else { State::Limited };
        return Finding::new(name, state, machine.to_string());
    }
    let variable = machine.source().variable();
    let meaning = format!("{}, which is not this machine: {machine}", machine.source());
    let finding = Finding::new(name, State::Limited, meaning);
    match variable {
        Some(variable) => finding.fixed_by(format!("unset {variable}, to see this machine")),
        None => finding,
    }
}

#[cfg(test)]
#[path = "topology_tests.rs"]
mod tests;
