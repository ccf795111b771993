use super::*;

fn is_cold_here(memory: &[u8]) -> Option<bool> {
    // SAFETY: it is borrowed.
    unsafe { is_cold(memory.as_ptr(), memory.len()) }
}

#[test]
fn what_is_too_short_says_nothing() {
    let memory = vec![0; (PAGES + 1) * PAGE_BYTES];
    for bytes in [0, 1, 64, PAGES * PAGE_BYTES - 1] {
        assert_eq!(is_cold_here(&memory[..bytes]), None, "{bytes}");
    }
    let _ = is_cold_here(&memory);
}

/// Most looks, since any of them may be disturbed.
#[test]
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn a_cache_and_memory_are_told_apart() {
    let memory = vec![1u8; 64 << 10];
    let mut cold = 0;
    let mut warm = 0;
    for _ in 0..100 {
        memory.iter().step_by(LINE_BYTES).for_each(|byte| assert!(empty(byte)));
        cold += u32::from(is_cold_here(&memory) == Some(true));
        black_box(memory.iter().map(|byte| u32::from(*byte)).sum::<u32>());
        warm += u32::from(is_cold_here(&memory) == Some(false));
    }
    assert!(cold > 50 && warm > 50, "{cold} looks of 100 found lines that were emptied, {warm} others warm");
}
