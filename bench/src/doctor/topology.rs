//! The machine as hwloc sees it.

use lmt::diagnostic::{Finding, State};
use lmt_selector::topology::{Machine, TopologyError};

pub(super) fn findings() -> Vec<Finding> {
    vec![seen(Machine::load())]
}

fn seen(machine: Result<Machine, TopologyError>) -> Finding {
    let name = "hwloc";
    let machine = match machine {
        Ok(machine) => machine,
        Err(error) => {
            return Finding::new(name, State::Blocked, error.to_string()).fixed_by(
                "unset HWLOC_SYNTHETIC HWLOC_XMLFILE HWLOC_FSROOT HWLOC_COMPONENTS HWLOC_CPUID_PATH, or give them what hwloc can read",
            );
        }
    };
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
