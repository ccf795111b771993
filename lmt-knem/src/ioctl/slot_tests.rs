use super::*;

fn entry() -> Entry {
    Entry {
        cookie: 0x1_0000_0007,
        total_bytes: u64::MAX,
        read: true,
        write: false,
        single: false,
        shape: Shape { contiguous: true, offset_in_page: 4095, last_piece_bytes: 17 },
    }
}

#[test]
fn a_line_tells_what_was_published_of_its_generation_only() {
    let slot = Slot::empty();
    assert_eq!(slot.look_up(0), None);
    slot.publish(7, &entry());
    assert_eq!(slot.look_up(7).expect("published").entry, entry());
    assert_eq!((slot.look_up(6), slot.look_up(8), slot.look_up(0)), (None, None, None));
    let seen = slot.look_up(7).expect("published");
    slot.withdraw();
    assert!(slot.look_up(7).is_none() && !slot.revalidate(&seen));
    let write_only = Entry { read: false, write: true, shape: Shape::default(), ..entry() };
    slot.publish(u32::MAX, &write_only);
    assert_eq!(slot.look_up(u32::MAX).expect("published").entry, write_only);
    assert!(!slot.revalidate(&seen));
}

#[test]
fn a_single_use_is_taken_once() {
    let slot = Slot::empty();
    slot.publish(1, &Entry { single: true, ..entry() });
    let mut first = slot.look_up(1).expect("published");
    let mut second = slot.look_up(1).expect("published");
    assert!(slot.use_up(&mut first) && !slot.use_up(&mut second));
    assert!(slot.revalidate(&first));
    assert_eq!(slot.look_up(1), None);
    slot.withdraw();
    assert!(!slot.revalidate(&first));
}
