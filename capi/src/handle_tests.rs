use super::*;
use crate::code::lmt_code;
use crate::error::guard;

fn code<R: std::fmt::Debug>(result: Result<R, Error>) -> lmt_code {
    result.expect_err("this must fail").code
}

#[test]
fn a_handle_names_its_object_until_it_is_taken() {
    let table = Table::new(Kind::Endpoint);
    let one = table.insert(1).expect("room");
    let two = table.insert(2).expect("room");
    assert_eq!(table.with(two, |object| Ok(*object)), Ok(2));
    assert_eq!(table.with(one, |object| Ok(std::mem::replace(object, 3))), Ok(1));
    assert_eq!(table.take(one), Ok(3));
    assert_eq!(code(table.take(one)), LMT_ERR_HANDLE);
    // Its place is another's now, which the old handle does not name.
    let other = table.insert(4).expect("room");
    assert_eq!(chunk_of(other as u32 & 0xff_ffff), chunk_of(one as u32 & 0xff_ffff));
    assert_eq!(code(table.with(one, |_| Ok(()))), LMT_ERR_HANDLE);
    assert_eq!(code(table.take(one)), LMT_ERR_HANDLE);
    assert_eq!(table.take(other), Ok(4));
}

#[test]
fn what_is_no_handle_of_this_kind_is_found_out() {
    let (endpoints, doors) = (Table::new(Kind::Endpoint), Table::new(Kind::Door));
    let endpoint = endpoints.insert(()).expect("room");
    let door = doors.insert(()).expect("room");
    assert_eq!(code(doors.with(endpoint, |()| Ok(()))), LMT_ERR_HANDLE);
    assert_eq!(code(endpoints.take(door)), LMT_ERR_HANDLE);
    assert_eq!(code(endpoints.with(0, |()| Ok(()))), lmt_code::LMT_ERR_NULL);
    // The address of something, all bits, and places that were never used.
    for number in
        [&raw const endpoint as u64, u64::MAX, endpoint + 1, endpoint | 0xff_ffff, 1, endpoint & !NO_ADDRESS]
    {
        assert_eq!(code(endpoints.with(number, |()| Ok(()))), LMT_ERR_HANDLE, "{number:x}");
        assert_eq!(code(endpoints.take(number)), LMT_ERR_HANDLE, "{number:x}");
    }
    assert_eq!(endpoints.take(endpoint), Ok(()));
}

#[test]
fn who_comes_meanwhile_is_told_and_does_not_wait() {
    let table = Table::new(Kind::Door);
    let door = table.insert(0).expect("room");
    let inner = table.with(door, |_| {
        assert_eq!(code(table.take(door)), LMT_ERR_BUSY);
        let elsewhere = std::thread::scope(|s| s.spawn(|| code(table.with(door, |_| Ok(())))).join());
        assert_eq!(elsewhere.expect("no panic"), LMT_ERR_BUSY);
        // Others can be used, and made.
        let other = table.insert(1)?;
        table.take(other)
    });
    assert_eq!(inner, Ok(1));
    assert_eq!(table.with(door, |_| Ok(())), Ok(()));
}

#[test]
fn what_a_panic_has_left_can_only_be_taken() {
    let table = Table::new(Kind::Message);
    let message = table.insert(5).expect("room");
    let fault = guard(|| table.with(message, |_| panic!("within")));
    assert_eq!(fault, LMT_ERR_PANIC);
    assert_eq!(code(table.with(message, |_| Ok(()))), LMT_ERR_PANIC);
    assert_eq!(table.take(message), Ok(5));
    // The place is as good as new.
    let next = table.insert(6).expect("room");
    assert_eq!(table.with(next, |object| Ok(*object)), Ok(6));
}

#[test]
fn there_is_room_for_many() {
    let table = Table::new(Kind::Announcement);
    let all: Vec<Number> = (0..1000).map(|at| table.insert(at).expect("room")).collect();
    for (at, number) in all.iter().enumerate() {
        assert_eq!(table.take(*number), Ok(at));
    }
    assert_eq!(chunk_of(0), (0, 0));
    assert_eq!(chunk_of(63), (0, 63));
    assert_eq!(chunk_of(64), (1, 0));
    assert_eq!(chunk_of((1 << 24) - 65), (CHUNKS - 1, (FIRST_PLACES << (CHUNKS - 1)) - 1));
}

#[test]
fn threads_take_in_and_out_at_once() {
    let table = Table::new(Kind::Options);
    std::thread::scope(|threads| {
        for thread in 0..4u64 {
            let table = &table;
            threads.spawn(move || {
                for round in 0..2000 {
                    let number = table.insert((thread, round)).expect("room");
                    assert_eq!(table.with(number, |object| Ok(*object)), Ok((thread, round)));
                    assert_eq!(table.take(number), Ok((thread, round)));
                }
            });
        }
    });
    // Places were used again: there were four objects at a time.
    let places = table.next.load(Ordering::Relaxed);
    assert!(places < 20, "{places}");
}
