use super::*;

/// A peek that found nothing, where others are to be let run: whether it lets them.
fn peek(peeks: &mut Peeks) -> bool {
    peeks.take_owed_yield() || peeks.yields_now()
}

#[test]
fn a_yield_that_a_peek_left_out_is_made_up_for_by_the_next_poll_or_peek() {
    let mut peeks = Peeks::default();
    assert!(!peeks.take_owed_yield());
    for _ in 0..3 {
        assert!(!peek(&mut peeks));
        assert!(peeks.take_owed_yield(), "a poll after each peek");
        assert!(!peeks.take_owed_yield(), "once");
    }
    assert_eq!([(); 4].map(|()| peek(&mut peeks)), [false, true, false, true]);
}

#[test]
fn another_threads_polls_make_up_for_nothing_and_its_peeks_wait_for_nobody() {
    let mut peeks = Peeks::default();
    for _ in 0..3 {
        assert!(!peek(&mut peeks));
        std::thread::scope(|threads| {
            let there = threads.spawn(|| (peeks.take_owed_yield(), peek(&mut peeks)));
            assert_eq!(there.join().expect("it is asked there"), (false, true));
        });
        assert!(peek(&mut peeks), "its own is still owed");
    }
}
