use super::*;

const MIB: u64 = 1 << 20;

fn grain(bytes: u64) -> Grain {
    Grain::new(Interval { start: 100, end: 100 + bytes }, 50, 32 << 10)
}

const EAGER: Appetite = Appetite { max_bytes: MIB, alone: false };

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
    assert_eq!(grain.for_receiver(view(0, 64, false), EAGER), 32);
    assert_eq!(grain.for_sender(view(32, 64, false), EAGER), 32);
    assert_eq!(grain.for_receiver(view(32, 64, true), EAGER), 16);
    assert_eq!(grain.for_receiver(view(32, 44, true), EAGER), 12, "too little to be shared");
    assert_eq!(grain.for_sender(view(8, 32, true), EAGER), 12);
    assert_eq!(grain.for_receiver(view(32, 64, false), EAGER), 32, "nobody has come");
    assert_eq!(grain.for_receiver(view(0, 64, false), Appetite { alone: true, ..EAGER }), 64);
    assert_eq!(grain.for_receiver(view(0, 64, true), Appetite { alone: true, ..EAGER }), 32, "somebody has");
    let quota = Appetite { max_bytes: 16 << 10, alone: true };
    assert_eq!(grain.for_receiver(view(0, 64, false), quota), 4);
    assert_eq!(grain.for_sender(view(0, 64, false), quota), 4);
    assert_eq!(grain.for_sender(view(0, 64, false), Appetite { max_bytes: 0, ..quota }), 0);
    assert_eq!(grain.for_receiver(view(0, 64, false), Appetite { max_bytes: 0, ..quota }), 1);
}
