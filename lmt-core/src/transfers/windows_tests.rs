use super::*;
use crate::rendezvous::{Choice, MechanismTag};

const BYTES: u64 = 256 << 10;

/// What one of several messages takes first, where a stream is the first way.
fn first(window: &mut Window, crowded: bool) -> Model {
    let choice = |tag, model| Choice { mechanism: MechanismTag(tag), model };
    let ways: Candidates = [choice(1, Model::Stream), choice(2, Model::Get)].into_iter().collect();
    window.ways(BYTES, &ways, crowded).as_slice()[0].model
}

/// A window of just as many messages as make one, and what the last of them took.
fn pass(window: &mut Window) -> Model {
    (0..STREAMS_AT_ONCE).for_each(|_| window.begin(BYTES));
    let model = first(window, false);
    (0..STREAMS_AT_ONCE).for_each(|_| window.end(BYTES));
    model
}

#[test]
fn windows_take_streams_until_the_other_order_is_tried() {
    let mut window = Window::new();
    let models: Vec<Model> =
        (0..100).map(|_| pass(&mut window)).take_while(|m| *m == Model::Stream).collect();
    assert!((1..100).contains(&models.len()), "{}", models.len());
    window.forget();
    assert_eq!(pass(&mut window), Model::Stream, "another peer's windows are none of these");
}

#[test]
fn nobody_who_shares_a_core_with_others_fills_a_stream() {
    let mut window = Window::new();
    (0..STREAMS_AT_ONCE).for_each(|_| window.begin(BYTES));
    assert_eq!((first(&mut window, true), first(&mut window, false)), (Model::Get, Model::Stream));
}

#[test]
fn behind_several_at_once_the_next_is_likely_one_of_several() {
    let mut window = Window::new();
    let at_once = |window: &mut Window, messages: u32| {
        (0..messages).for_each(|_| window.begin(BYTES));
        (0..messages).for_each(|_| window.end(BYTES));
        window.is_likely_of_several()
    };
    assert!(!window.is_likely_of_several(), "nothing is known");
    for (messages, is_likely) in [(1, false), (2, true), (1, false), (64, true), (64, true), (1, false)] {
        assert_eq!(at_once(&mut window, messages), is_likely, "{messages}");
    }
    at_once(&mut window, 2);
    window.forget();
    assert!(!window.is_likely_of_several(), "another peer");
}
