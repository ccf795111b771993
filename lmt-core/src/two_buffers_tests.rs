use super::*;

#[test]
fn both_begin_with_a_page() {
    for bytes in [0, 1, 4096, 65_537] {
        let mut buffers = TwoBuffers::of(bytes);
        let (source, target) = buffers.both();
        assert_eq!((source.len(), target.len()), (bytes, bytes));
        for address in [source.as_ptr().addr(), target.as_ptr().addr()] {
            assert_eq!(address % PAGE_BYTES, 0, "{bytes} bytes");
        }
    }
}
