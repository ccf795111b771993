//! What a process that is killed leaves: libfabric's shm provider names an endpoint's
//! region after its process, as `PID:UID:NUMBER`, and refuses (`-FI_EBUSY`) to enable
//! one whose name is there already. Numbers of processes come again.

use std::path::Path;

/// Removes the regions of this process of ours, which is gone or has opened none yet.
pub fn remove(pid: u32) {
    remove_from(Path::new("/dev/shm"), pid);
}

fn remove_from(folder: &Path, pid: u32) {
    let of_it = format!("{pid}:{}:", nix::unistd::getuid());
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&of_it) {
            // Another's file is not ours to remove; the provider says so then.
            let _removed = std::fs::remove_file(entry.path());
        }
    }
}

#[test]
fn regions_of_this_process_are_removed_and_no_others() {
    let folder = crate::scratch::folder("lmt-fi-leftovers");
    let uid = nix::unistd::getuid();
    let name = |pid: u32| folder.0.join(format!("{pid}:{uid}:0"));
    for pid in [12, 112, 123] {
        std::fs::write(name(pid), "").expect("room for a file");
    }
    remove_from(&folder.0, 12);
    assert_eq!([12, 112, 123].map(|pid| name(pid).exists()), [false, true, true]);
}
