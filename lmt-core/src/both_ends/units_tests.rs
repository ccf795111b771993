use super::*;

const MIB: u64 = 1 << 20;

fn grain(bytes: u64) -> Grain {
    Grain::new(Interval { start: 100, end: 100 + bytes }, 50, 32 << 10)
}

const EAGER: Expectation = Expectation { max_bytes: MIB, alone: false };

#[test]
fn units_cover_the_interval_whatever_its_length() {
    for bytes in [1, 4095, 4096, 4097, MIB + 1, 1 << 31, (1 << 31) + 1, 1 << 45, u64::MAX - 200] {
        let grain = grain(bytes);
        assert!((1..=MAX_UNITS).contains(&grain.units()), "{bytes}");
        assert_eq!(grain.bytes(0, grain.units()), Interval { start: 100, end: 100 + bytes });
        let before_last = grain.bytes(0, grain.units() - 1);
        assert!(before_last.bytes() < bytes, "the last unit of {bytes} is empty");
    }
}

#[test]
fn each_end_takes_its_side_in_one_go_and_half_of_what_is_left_of_the_other_s() {
    let grain = grain(256 << 10);
    let view = |front, back, joined| View { front, back, joined };
    // Half of 64, and one more, since its sender begins later.
    assert_eq!(grain.for_receiver(view(0, 64, false), EAGER), 33);
    assert_eq!(grain.for_sender(view(33, 64, false), EAGER), 31);
    assert_eq!(grain.for_receiver(view(33, 64, true), EAGER), 15);
    assert_eq!(grain.for_receiver(view(33, 45, true), EAGER), 12, "too little to be shared");
    assert_eq!(grain.for_sender(view(8, 32, true), EAGER), 12);
    assert_eq!(grain.for_receiver(view(33, 64, false), EAGER), 31, "nobody has come");
    assert_eq!(grain.for_receiver(view(0, 64, false), Expectation { alone: true, ..EAGER }), 64);
    assert_eq!(
        grain.for_receiver(view(0, 64, true), Expectation { alone: true, ..EAGER }),
        33,
        "somebody has"
    );
    let quota = Expectation { max_bytes: 16 << 10, alone: true };
    assert_eq!(grain.for_receiver(view(0, 64, false), quota), 4);
    assert_eq!(grain.for_sender(view(0, 64, false), quota), 4);
    assert_eq!(grain.for_sender(view(0, 64, false), Expectation { max_bytes: 0, ..quota }), 0);
    assert_eq!(grain.for_receiver(view(0, 64, false), Expectation { max_bytes: 0, ..quota }), 1);
}

#[test]
fn who_copies_nothing_or_all_has_no_head_start() {
    let middle = |bytes, percent| Grain::new(Interval { start: 0, end: bytes }, percent, 32 << 10).middle;
    assert_eq!((middle(256 << 10, 0), middle(256 << 10, 100)), (0, 64));
    assert_eq!(middle(4096, 50), 1, "one unit is nobody's to share");
    assert_eq!(middle(8192, 50), 2, "the whole of the least that could be shared");
    assert_eq!(middle(1 << 40, 50), MAX_UNITS.div_ceil(4), "units of 8 MiB, and no head start");
}
