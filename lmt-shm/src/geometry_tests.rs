use proptest::prelude::*;

use super::*;

#[test]
fn wrong_numbers_are_named() {
    let default = Config::default();
    assert_eq!(default.check(), Ok(()));
    for (config, key) in [
        (Config { buffer_bytes: 0, ..default.clone() }, "buffer_bytes"),
        (Config { buffer_bytes: 5000, ..default.clone() }, "buffer_bytes"),
        (Config { buffers: 0, ..default.clone() }, "buffers"),
        (Config { pool_transfers: 0, ..default.clone() }, "pool_transfers"),
        (
            Config { buffer_bytes: 1 << 24, buffers: 64, pool_transfers: 65536, kept_transfers: 1 },
            "pool_transfers",
        ),
    ] {
        assert!(config.check().unwrap_err().to_string().starts_with(key), "{config:?}");
    }
}

#[test]
fn a_configuration_is_read_and_unknown_keys_refused() {
    let config: Config = toml::from_str("buffers = 4").unwrap();
    assert_eq!(config, Config { buffers: 4, ..Config::default() });
    assert!(toml::from_str::<Config>("bufers = 4").is_err());
}

proptest! {
    #[test]
    fn nothing_in_a_pool_overlaps_or_leaves_it(
        pages in 1u32..40, buffers in 1u32..=64, lanes in 1u32..300, lane in 0u32..300, mailbox in 0..MAILBOXES,
    ) {
        let geometry = Geometry { buffer_bytes: pages * 4096, buffers, lanes }.checked().unwrap();
        let lane = lane % lanes;
        let (produced, consumed) = Geometry::words_offsets(lane);
        prop_assert!(Geometry::slot_offset(mailbox, SLOTS - 1) + 8 <= Geometry::words_offsets(0).0);
        prop_assert!(produced + 128 <= consumed && consumed + 8 <= geometry.lane_range(0).start);
        let range = geometry.lane_range(lane);
        prop_assert_eq!(geometry.buffer_offset(lane, buffers - 1) + u64::from(pages) * 4096, range.end);
        prop_assert!(range.start.is_multiple_of(PAGE_BYTES) && range.end <= geometry.pool_bytes());
        prop_assert!(lane + 1 < lanes || range.end == geometry.pool_bytes());
    }

    #[test]
    fn chunks_make_up_the_whole(total_bytes in 0u64..1 << 40, pages in 1u32..40) {
        let chunks = Chunks { total_bytes, chunk_bytes: pages * 4096 };
        prop_assert_eq!(chunks.bytes_of(chunks.count()), total_bytes);
        if let Some(last) = chunks.count().checked_sub(1) {
            prop_assert!((1..=u64::from(pages) * 4096).contains(&chunks.bytes_at(last)));
            prop_assert_eq!(chunks.bytes_of(last) + chunks.bytes_at(last), total_bytes);
        }
    }
}
