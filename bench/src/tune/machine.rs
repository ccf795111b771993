//! This machine, as far as tuning has to know it.

use lmt_selector::calibration::{Provenance, fingerprint};
use lmt_selector::topology::Machine;

use crate::environment::{self, allowed_cpus};
use crate::error::BenchError;

/// The machine on which this runs.
#[derive(Debug)]
pub struct Here {
    /// As hwloc describes it, where it does.
    pub machine: Option<Machine>,
    /// The CPUs on which this process may run.
    pub cpus: Vec<usize>,
    /// Its name in files.
    pub fingerprint: String,
    /// What ought to be known of the above, a sentence each.
    pub remarks: Vec<String>,
}

impl Here {
    /// Asks the kernel and hwloc.
    ///
    /// # Errors
    /// hwloc describes another machine, or the kernel does not say which CPUs
    /// may be used.
    pub fn find() -> Result<Self, BenchError> {
        let mut remarks = Vec::new();
        let machine = match Machine::load() {
            Ok(machine) if machine.is_this_system() => Some(machine),
            Ok(_) => {
                return Err(BenchError::Usage(
                    "HWLOC_* variables describe another machine than this one, which is what would be measured; \
                     unset them"
                        .into(),
                ));
            }
            Err(error) => {
                remarks.push(format!("the places of processes are not known, all count as `other`: {error}"));
                None
            }
        };
        let mut cpus = allowed_cpus()?;
        if let Some(machine) = &machine {
            cpus.retain(|cpu| machine.online().contains(*cpu));
        }
        let count = machine.as_ref().map_or(cpus.len() as u32, |machine| machine.online().count());
        Ok(Self { machine, fingerprint: fingerprint(&environment::cpu_model(), count), cpus, remarks })
    }

    /// Where a calibration that is made now comes from.
    pub fn provenance(&self, options: String, complete: bool, skipped: Vec<String>) -> Provenance {
        Provenance {
            date: environment::now_rfc3339(),
            machine: self.fingerprint.clone(),
            cpu: environment::cpu_model(),
            kernel: environment::kernel(),
            cpus: environment::join(&self.cpus),
            lmt: env!("CARGO_PKG_VERSION").to_owned(),
            hwloc: self.machine.as_ref().map(ToString::to_string),
            options,
            complete,
            skipped,
        }
    }
}
