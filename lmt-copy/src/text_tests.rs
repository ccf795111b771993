use proptest::prelude::*;

use super::*;

fn table(text: &str) -> Copier {
    text.parse::<Plan>().unwrap_or_else(|error| panic!("{text}: {error}")).copier()
}

#[test]
fn a_name_alone_is_for_all_lengths_of_the_table() {
    let copier = table("portable");
    for distance in Distance::ALL {
        for alignment in Alignment::ALL {
            for bytes in [2049, 4096, usize::MAX] {
                assert_eq!(copier.routine(distance, alignment, bytes), Routine::Portable);
            }
            assert_eq!(copier.routine(distance, alignment, 2048), Routine::Libc);
        }
    }
    assert_eq!(table("libc"), Copier::default());
    assert_eq!("auto".parse(), Ok(Plan::Auto));
}

#[test]
fn the_first_entry_that_fits_speaks() {
    let copier = table("libc aliased near 4KiB-8KiB, portable aliased 2KiB-64KiB");
    let near = |bytes| copier.routine(Distance::Near, Alignment::Aliased, bytes);
    assert_eq!(
        [near(2048), near(2049), near(4097), near(8193)].map(Routine::name),
        ["libc", "portable", "libc", "portable"]
    );
    assert_eq!(copier.routine(Distance::Peer, Alignment::Aliased, 5000), Routine::Portable);
    assert_eq!(copier.routine(Distance::Near, Alignment::Same, 5000), Routine::Libc);
}

#[test]
fn what_means_nothing_is_refused_with_what_would_be_right() {
    for (text, part) in [
        ("", "``"),
        ("avx3", "there is no copy routine `avx3`"),
        ("auto, libc", "there is no copy routine `auto`"),
        ("libc 3KiB-4KiB", "`3KiB-4KiB`"),
        ("libc 4KiB-4KiB", "powers of two"),
        ("libc 1024-2048", "from 2KiB"),
        ("libc 1kB-2kB", "KiB"),
        ("libc near near", "each once"),
        ("libc -4KiB", "`-4KiB`"),
        ("libc,", "``"),
        ("libc 99999999999999999999-", "range"),
        ("libc ü", "`ü`"),
    ] {
        let error = text.parse::<Plan>().expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_it_was(
        cells in proptest::collection::vec((0usize..3, 0usize..3, 0..CLASSES, 0usize..6), 0..40),
    ) {
        let mut copier = Copier::default();
        for (distance, alignment, class, routine) in cells {
            copier.set(Distance::ALL[distance], Alignment::ALL[alignment], class, Routine::ALL[routine]);
        }
        prop_assert_eq!(table(&copier.to_string()), copier);
    }
}
