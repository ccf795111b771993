//! What the DMA engine behind KNEM's module needs besides the module.

use lmt_core::diagnostic::{Finding, Host, State};

/// Whether the kernel has DMA channels that a driver can copy by: its class dma
/// has a folder for each.
pub(super) fn dma_channels(host: &Host) -> Finding {
    let name = "DMA channels";
    let entries = std::fs::read_dir(host.sys_dir.join("class/dma"));
    match entries.map_or(0, |entries| entries.flatten().count()) {
        0 => Finding::new(
            name,
            State::Missing,
            "the kernel has none (I/OAT or the like); nothing depends on them",
        )
        .fixed_by("on a machine with I/OAT: sudo modprobe ioatdma, then load KNEM again"),
        count => Finding::new(name, State::Good, format!("the kernel has {count}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_counted_and_none_is_no_fault() {
        let root = std::env::temp_dir().join(format!("lmt-dma-checkups-{}", std::process::id()));
        let host = Host::under(&root);
        assert_eq!(dma_channels(&host).state, State::Missing);
        for channel in ["dma0chan0", "dma0chan1"] {
            std::fs::create_dir_all(root.join("sys/class/dma").join(channel)).unwrap();
        }
        let found = dma_channels(&host);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!((found.state, found.meaning.as_str()), (State::Good, "the kernel has 2"));
    }
}
