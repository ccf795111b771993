use super::*;

#[test]
fn each_length_is_in_the_class_whose_bounds_hold_it() {
    for bytes in (2049..70_000).chain([1 << 20, (1 << 20) + 1, 16 << 20, (16 << 20) + 1, usize::MAX]) {
        let (above, up_to) = bounds(class_of(bytes));
        assert!(above < bytes && bytes <= up_to, "{bytes} is not within {above}..={up_to}");
    }
    assert_eq!(bounds(0).0, MIN_TABLE_BYTES);
    assert_eq!(bounds(CLASSES - 1), (LARGEST_CLASS_BYTES, usize::MAX));
}

#[test]
fn a_table_keeps_to_what_was_set() {
    let mut copier = Copier::default();
    copier.set(Distance::Away, Alignment::Other, 3, Routine::Portable);
    copier.set(Distance::Near, Alignment::Same, 1, Routine::Portable);
    copier.set(Distance::Near, Alignment::Same, CLASSES - 1, Routine::Portable);
    for bytes in [1, 2048, 2049, 4096, 4097, 8192, 8193, 16384, 16385, 32768, 32769, 16 << 20, usize::MAX] {
        let near = copier.routine(Distance::Near, Alignment::Same, bytes);
        let is_set = (4097..=8192).contains(&bytes) || bytes > 16 << 20;
        assert_eq!(near == Routine::Portable, is_set, "{bytes}");
        let away = copier.routine(Distance::Away, Alignment::Other, bytes);
        assert_eq!(away == Routine::Portable, (16385..=32768).contains(&bytes), "{bytes}");
        assert_eq!(copier.routine(Distance::Peer, Alignment::Other, bytes), Routine::Libc);
    }
    copier.set(Distance::Near, Alignment::Same, 1, Routine::Libc);
    copier.set(Distance::Near, Alignment::Same, CLASSES - 1, Routine::Libc);
    copier.set(Distance::Away, Alignment::Other, 3, Routine::Libc);
    assert_eq!(copier, Copier::default());
}

#[test]
fn what_this_machine_lacks_is_not_in_a_table() {
    for routine in Routine::ALL {
        let mut copier = Copier::default();
        copier.set(Distance::Near, Alignment::Same, 0, routine);
        let is_there = copier.routine(Distance::Near, Alignment::Same, 3000) == routine;
        assert_eq!(is_there, routine.is_available(), "{routine:?}");
    }
}

#[test]
fn aliased_copies_are_the_librarys_only_where_they_are_short_or_long() {
    let usual = Copier::usual();
    for distance in Distance::ALL {
        for bytes in [2048, 2049, 256 << 10, (256 << 10) + 1, 1 << 25] {
            let is_vectors = (2049..=256 << 10).contains(&bytes) && Routine::Avx2.is_available();
            let aliased = usual.routine(distance, Alignment::Aliased, bytes);
            assert_eq!(aliased == Routine::Avx2, is_vectors, "{bytes}");
            for alignment in [Alignment::Same, Alignment::Other] {
                assert_eq!(usual.routine(distance, alignment, bytes), Routine::Libc);
            }
        }
    }
}
