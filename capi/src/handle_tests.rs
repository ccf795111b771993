use super::*;
use crate::code::lmt_code;
use crate::error::guard;

fn code<R: std::fmt::Debug>(result: Result<R, Error>) -> lmt_code {
    result.expect_err("this must fail").code
}

fn whole<T>(object: T) -> Result<Out<T>, Error> {
    Ok(Out { object, is_broken: false })
}

#[test]
fn a_handle_names_its_object_until_it_is_taken() {
    let table = Table::new(Kind::Endpoint);
    let one = table.insert(|_| 1).expect("room");
    let two = table.insert(|_| 2).expect("room");
    assert_eq!(table.with(two, |object| Ok(*object)), Ok(2));
    assert_eq!(table.with(one, |object| Ok(std::mem::replace(object, 3))), Ok(1));
    assert_eq!(table.take(one), whole(3));
    assert_eq!(code(table.take(one)), LMT_ERR_HANDLE);
    // Its place is another's now, which the old handle does not name.
    let other = table.insert(|_| 4).expect("room");
    assert_eq!(chunk_of(other as u32 & 0xff_ffff), chunk_of(one as u32 & 0xff_ffff));
    assert_eq!(code(table.with(one, |_| Ok(()))), LMT_ERR_HANDLE);
    assert_eq!(code(table.take(one)), LMT_ERR_HANDLE);
    assert_eq!(table.take(other), whole(4));
}

#[test]
fn what_is_no_handle_of_this_kind_is_found_out() {
    let (endpoints, devices) = (Table::new(Kind::Endpoint), Table::new(Kind::DeviceLayer));
    let endpoint = endpoints.insert(|_| ()).expect("room");
    let device = devices.insert(|_| ()).expect("room");
    assert_eq!(code(devices.with(endpoint, |()| Ok(()))), LMT_ERR_HANDLE);
    assert_eq!(code(endpoints.take(device)), LMT_ERR_HANDLE);
    assert_eq!(code(endpoints.with(0, |()| Ok(()))), lmt_code::LMT_ERR_NULL);
    // The address of something, all bits, and places that were never used.
    for number in
        [&raw const endpoint as u64, u64::MAX, endpoint + 1, endpoint | 0xff_ffff, 1, endpoint & !NO_ADDRESS]
    {
        assert_eq!(code(endpoints.with(number, |()| Ok(()))), LMT_ERR_HANDLE, "{number:x}");
        assert_eq!(code(endpoints.take(number)), LMT_ERR_HANDLE, "{number:x}");
    }
    assert_eq!(endpoints.take(endpoint), whole(()));
}

#[test]
fn who_comes_meanwhile_is_told_and_does_not_wait() {
    let table = Table::new(Kind::DeviceLayer);
    let device = table.insert(|_| 0).expect("room");
    let inner = table.with(device, |_| {
        assert_eq!(code(table.take(device)), LMT_ERR_BUSY);
        let elsewhere = std::thread::scope(|s| s.spawn(|| code(table.with(device, |_| Ok(())))).join());
        assert_eq!(elsewhere.expect("no panic"), LMT_ERR_BUSY);
        // Others can be used, and made.
        let other = table.insert(|_| 1)?;
        table.take(other)
    });
    assert_eq!(inner, whole(1));
    assert_eq!(table.with(device, |_| Ok(())), Ok(()));
}

#[test]
fn what_a_panic_has_left_can_only_be_taken() {
    let table = Table::new(Kind::Message);
    let message = table.insert(|_| 5).expect("room");
    let fault = guard(|| table.with(message, |_| panic!("within")));
    assert_eq!(fault, LMT_ERR_PANIC);
    assert_eq!(code(table.with(message, |_| Ok(()))), LMT_ERR_PANIC);
    assert_eq!(table.take(message), Ok(Out { object: 5, is_broken: true }));
    // The place is as good as new.
    let next = table.insert(|_| 6).expect("room");
    assert_eq!(table.with(next, |object| Ok(*object)), Ok(6));
}

#[test]
fn there_is_room_for_many() {
    let table = Table::new(Kind::Announcement);
    let all: Vec<Number> = (0..1000).map(|at| table.insert(|_| at).expect("room")).collect();
    for (at, number) in all.iter().enumerate() {
        assert_eq!(table.take(*number), whole(at));
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
                    let number = table.insert(|_| (thread, round)).expect("room");
                    assert_eq!(table.with(number, |object| Ok(*object)), Ok((thread, round)));
                    assert_eq!(table.take(number), whole((thread, round)));
                }
            });
        }
    });
    // Places were used again: there were four objects at a time.
    let places = table.next.load(Ordering::Relaxed);
    assert!(places < 20, "{places}");
}

#[test]
fn a_place_that_is_kept_is_there_when_the_table_is_full() {
    let table = Table::new(Kind::Message);
    let kept = table.reserve().expect("room");
    let spare = table.reserve().expect("room");
    table.next.store(((FIRST_PLACES << CHUNKS) - FIRST_PLACES) as u32, Ordering::Relaxed);
    assert_eq!(code(table.insert(|_| 1)), LMT_ERR_NO_MEMORY);
    let number = kept.fill(2);
    assert_eq!(table.with(number, |object| Ok(*object)), Ok(2));
    assert_eq!(code(table.insert(|_| 1)), LMT_ERR_NO_MEMORY);
    // What is not used goes back.
    drop(spare);
    let number = table.insert(|number| number).expect("room");
    assert_eq!(table.take(number), whole(number));
}

#[test]
fn what_is_not_to_be_taken_stays() {
    let table = Table::new(Kind::Message);
    let message = table.insert(|_| 5).expect("room");
    assert_eq!(code(table.take_if(message, |_| Err(Error::invalid("not this")))), lmt_code::LMT_ERR_INVALID);
    assert_eq!(table.take_if(message, |_| Ok(())), whole(5));
}

/// As a forked child finds what its parent has put in.
fn inherit<T>(table: &Table<T>, number: Number) {
    table.slot_of(number).expect("it is there").process.store(u64::MAX, Ordering::Relaxed);
}

#[test]
fn what_is_the_parent_s_is_told_also_while_it_is_held() {
    let table = Table::new(Kind::Endpoint);
    let endpoint = table.insert(|_| 7).expect("room");
    let refused = table.with(endpoint, |_| {
        inherit(&table, endpoint);
        assert_eq!(code(table.with(endpoint, |_| Ok(()))), LMT_ERR_FORKED);
        assert_eq!(code(table.with_waiting(endpoint, |_| Ok(()))), LMT_ERR_FORKED);
        assert_eq!(code(table.take(endpoint)), LMT_ERR_FORKED);
        assert_eq!(table.take_inherited(endpoint), None);
        Ok(())
    });
    assert_eq!(refused, Ok(()));
    assert_eq!(table.take_inherited(endpoint), Some(7));
    assert_eq!(code(table.take(endpoint)), LMT_ERR_HANDLE);
}

#[test]
fn a_list_that_is_held_for_ever_stops_nothing_but_growth() {
    let table = Table::new(Kind::Options);
    let one = table.insert(|_| 1).expect("room");
    std::thread::scope(|threads| {
        let _held = table.free.lock();
        table.free.forget_holder();
        let other = threads.spawn(|| {
            let two = table.insert(|_| 2).expect("the first chunk is there");
            table.next.store(FIRST_PLACES as u32, Ordering::Relaxed);
            (table.take(two), code(table.insert(|_| 3)))
        });
        assert_eq!(other.join().expect("no panic"), (whole(2), LMT_ERR_FORKED));
    });
    assert_eq!(table.take(one), whole(1));
}

#[test]
fn who_is_patient_gets_its_turn() {
    let table = Table::new(Kind::Options);
    let options = table.insert(|_| 1).expect("room");
    std::thread::scope(|threads| {
        let (tell, told) = std::sync::mpsc::channel();
        let table = &table;
        threads.spawn(move || {
            table.with(options, |object| {
                tell.send(()).expect("somebody listens");
                std::thread::sleep(std::time::Duration::from_millis(50));
                *object = 2;
                Ok(())
            })
        });
        told.recv().expect("it is held");
        assert_eq!(code(table.with(options, |_| Ok(()))), LMT_ERR_BUSY);
        assert_eq!(table.with_waiting(options, |object| Ok(*object)), Ok(2));
    });
}
