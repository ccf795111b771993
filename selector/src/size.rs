//! Sizes as people write them.

/// A size with the largest unit of powers of 1024 that leaves it whole.
///
/// ```
/// assert_eq!(lmt_selector::size::written(65536), "64 KiB");
/// assert_eq!(lmt_selector::size::written(1000), "1000 B");
/// ```
pub fn written(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}
