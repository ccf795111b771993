use super::*;

#[test]
fn every_line_is_read_once() {
    for bytes in [0, 4096, 64 * 1000, 64 * 1021, 1 << 20] {
        let mut set = WorkingSet::new(bytes).unwrap();
        assert!(set.memory.len() >= bytes / 64 * 64);
        assert_eq!(set.read(), set.lines as u64, "{bytes}");
        // Each line counts: a sum of distinct powers would overflow, so two.
        let last = set.memory.len() - LINE_BYTES;
        set.memory[last] = 200;
        set.memory[LINE_BYTES] = 100;
        assert_eq!(set.read(), set.lines as u64 + 199 + 99, "{bytes}");
    }
}

#[test]
fn the_next_line_is_far() {
    for lines in [64, 1000, 1021, 1 << 14] {
        let stride = stride(lines);
        assert_eq!(greatest_divisor(stride, lines), 1);
        assert!(stride > lines / 2 && stride < lines, "{lines}: {stride}");
    }
}
