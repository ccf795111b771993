//! The name under which a machine's calibration is kept.

use std::fs::{self, File};
use std::io::Read;
use std::sync::OnceLock;

use lmt_core::cpu_set::count_of_list;

/// The machine's processor and how many CPUs it has, as a file's name: the
/// model's name of `/proc/cpuinfo` in lower case with hyphens, and the number.
///
/// ```
/// use lmt_selector::config::machine_fingerprint;
///
/// let cpuinfo = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) CPU E5345 @ 2.33GHz\n";
/// assert_eq!(machine_fingerprint(cpuinfo, 8), "intel-r-xeon-r-cpu-e5345-2-33ghz-8");
/// ```
pub fn machine_fingerprint(cpuinfo: &str, cpus: usize) -> String {
    let field = |name: &str| {
        let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
        values.next().filter(|value| !value.is_empty())
    };
    // ARM names no model, POWER calls it cpu, RISC-V tells its instruction set.
    let model = match (field("model name"), field("cpu"), field("CPU implementer"), field("CPU part")) {
        (Some(model), ..) | (None, Some(model), ..) => model.to_owned(),
        (None, None, Some(implementer), Some(part)) => format!("arm {implementer} {part}"),
        _ => field("uarch").or(field("isa")).unwrap_or("unknown").to_owned(),
    };
    format!("{}-{cpus}", slug(&model))
}

/// How much of `/proc/cpuinfo` describes one CPU for sure. The whole takes a
/// large machine milliseconds to write.
const FIRST_CPU_BYTES: u64 = 4096;

/// [`machine_fingerprint`] of the machine on which this runs, found once for the
/// process.
pub fn fingerprint_of_this_machine() -> String {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(find).clone()
}

fn find() -> String {
    let mut first = Vec::new();
    // Without it the machine is of an unknown model.
    let _ = File::open("/proc/cpuinfo").and_then(|file| file.take(FIRST_CPU_BYTES).read_to_end(&mut first));
    let present = fs::read_to_string("/sys/devices/system/cpu/present").unwrap_or_default();
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    let cpus = count_of_list(&present).unwrap_or_else(available);
    machine_fingerprint(&String::from_utf8_lossy(&first), cpus)
}

/// Letters and digits in lower case, everything else a single hyphen between
/// them.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
#[path = "fingerprint_tests.rs"]
mod tests;
