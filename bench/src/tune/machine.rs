//! This machine, as far as tuning has to know it.

use lmt_selector::calibration::Provenance;
use lmt_selector::config::fingerprint_of_this_machine;
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
    /// When it was found.
    pub date: String,
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
        let date = environment::now_rfc3339();
        Ok(Self { machine, fingerprint: fingerprint_of_this_machine(), cpus, remarks, date })
    }

    /// Where a calibration that is made now comes from.
    pub fn provenance(&self) -> Provenance {
        Provenance {
            date: self.date.clone(),
            machine: self.fingerprint.clone(),
            cpu: environment::cpu_model(),
            kernel: environment::kernel(),
            cpus: environment::join(&self.cpus),
            lmt: env!("CARGO_PKG_VERSION").to_owned(),
            hwloc: self.machine.as_ref().map(ToString::to_string),
            ..Provenance::default()
        }
    }
}
