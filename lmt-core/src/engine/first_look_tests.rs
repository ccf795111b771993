use std::time::{Duration, Instant};

use super::{BEFORE_FIRST, FirstLook, KEPT, MOST_REST, Phase, REST, ROUND, TRIAL};

const MOST_NS: u32 = 600;
/// What two looks at the clock take.
const CLOCK_NS: u32 = 40;
const RECEIVES_OF_TRIAL: u32 = ROUND as u32 * TRIAL.len() as u32;

/// A peer and a clock.
struct World<T: FnMut(u32) -> (u64, u64)> {
    look: FirstLook,
    now: Instant,
    /// For a wait of so many ns: when the message is there, and how long the receive takes.
    takes: T,
}

impl<T: FnMut(u32) -> (u64, u64)> World<T> {
    fn new(takes: T) -> Self {
        Self { look: FirstLook::new(MOST_NS), now: Instant::now(), takes }
    }

    /// So many receives; how long they have taken.
    fn receive(&mut self, count: u32) -> Duration {
        let begun = self.now;
        for _ in 0..count {
            let now = self.now;
            let waits = if self.look.resting == 0 { self.look.learn(|| now) } else { None };
            let wait_ns = waits.map_or(0, |ns| ns + CLOCK_NS);
            let (there_ns, took_ns) = (self.takes)(wait_ns);
            self.now += Duration::from_nanos(took_ns);
            self.look.came(u64::from(wait_ns) >= there_ns);
        }
        self.now - begun
    }
}

/// An answer that is there after 300 ns, and comes after 150 more where it was looked for later,
/// after 250 where it was not.
fn far(wait_ns: u32) -> (u64, u64) {
    (300, if wait_ns >= 300 { u64::from(wait_ns) + 150 } else { 550 })
}

#[test]
fn answers_of_the_same_time_are_waited_for() {
    let mut world = World::new(far);
    world.receive(BEFORE_FIRST);
    assert_eq!((world.look.phase, world.look.waits()), (Phase::Resting, false));
    world.receive(RECEIVES_OF_TRIAL + 2);
    assert_eq!(world.look.phase, Phase::Kept(KEPT));
    assert!(world.look.is_far());
    // 450 ns each, and a little more for what is found by failing.
    assert!(world.receive(6400) < Duration::from_nanos(480) * 6400);
    // It is tried again and stays so, and trials are few.
    let took = world.receive(100_000);
    assert!(took < Duration::from_nanos(485) * 100_000, "{took:?}");
    assert!(matches!(world.look.phase, Phase::Kept(_) | Phase::Trial(_)));
}

#[test]
fn answers_that_are_near_are_waited_for_where_that_is_faster_and_their_lines_not_asked_for() {
    let near = |wait_ns: u32| (60, if wait_ns >= 60 { u64::from(wait_ns) + 20 } else { 110 });
    let mut world = World::new(near);
    world.receive(BEFORE_FIRST + RECEIVES_OF_TRIAL + 2);
    assert_eq!(world.look.phase, Phase::Kept(KEPT));
    assert!(!world.look.is_far());
}

/// Trials of these lose, and cost ever less.
fn is_left_alone(takes: impl FnMut(u32) -> (u64, u64), at_once_ns: u64) {
    let mut world = World::new(takes);
    let count = 2_000_000;
    let took = world.receive(count);
    assert_eq!((world.look.phase, world.look.waits()), (Phase::Resting, false));
    assert!(took < Duration::from_nanos(at_once_ns) * count * 101 / 100, "{took:?}");
}

#[test]
fn messages_that_come_at_any_time_are_looked_for_at_once() {
    let mut number = 7_u64;
    let mut any = move || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (number >> 33) % 600
    };
    let takes = move |wait_ns: u32| {
        let there_ns = any();
        (there_ns, there_ns.max(wait_ns.into()) + if u64::from(wait_ns) >= there_ns { 150 } else { 250 })
    };
    is_left_alone(takes, 550);
}

#[test]
fn messages_that_are_there_already_are_looked_for_at_once() {
    is_left_alone(|wait_ns| (0, 20 + u64::from(wait_ns)), 20);
}

#[test]
fn messages_that_come_late_are_looked_for_at_once() {
    is_left_alone(|_| (5000, 5250), 5250);
}

#[test]
fn what_changes_is_noticed_within_a_round() {
    let mut world = World::new(far);
    world.receive(BEFORE_FIRST + RECEIVES_OF_TRIAL + 2 * u32::from(ROUND));
    assert!(matches!(world.look.phase, Phase::Kept(_)));
    let look = std::mem::replace(&mut world.look, FirstLook::new(0));
    // Answers come late from now on.
    let mut late = World { look, now: world.now, takes: |_| (5000, 5250) };
    late.receive(2 * u32::from(ROUND));
    assert!(!late.look.waits(), "{:?}", late.look);
    assert!(!late.look.is_far());
    // And sooner, in another: not waited for as long as before.
    let mut world = World::new(far);
    world.receive(BEFORE_FIRST + RECEIVES_OF_TRIAL + 2 * u32::from(ROUND));
    let look = std::mem::replace(&mut world.look, FirstLook::new(0));
    let soon = |wait_ns: u32| (20, u64::from(wait_ns.max(20)) + 20);
    let mut soon = World { look, now: world.now, takes: soon };
    let took = soon.receive(4096);
    assert!(took < Duration::from_nanos(160) * 4096, "{took:?}");
}

#[test]
fn the_rests_grow_up_to_the_longest_and_a_trial_that_is_won_makes_them_short_again() {
    let mut world = World::new(|_| (5000, 5250));
    let mut rests = Vec::new();
    while rests.last() != Some(&MOST_REST) {
        world.receive(1);
        let rest = world.look.next_rest;
        if rests.last() != Some(&rest) {
            rests.push(rest);
        }
    }
    assert_eq!(rests, (0..=8).map(|power| REST << power).collect::<Vec<_>>());
    let mut won = World { look: world.look, now: world.now, takes: far };
    won.receive(MOST_REST);
    assert!(matches!(won.look.phase, Phase::Kept(_) | Phase::Trial(_)), "{:?}", won.look);
    assert_eq!(won.look.next_rest, REST);
}

#[test]
fn nobody_waits_where_that_is_turned_off() {
    let mut look = FirstLook::new(0);
    for _ in 0..BEFORE_FIRST + 10 {
        look.wait();
        look.came(false);
    }
    assert!(!look.waits() && look.resting > MOST_REST);
}

#[test]
fn a_wait_lasts_as_long_as_it_is_to() {
    let mut look = FirstLook::new(MOST_NS);
    (look.resting, look.phase, look.after_ns) = (0, Phase::Kept(9), 400);
    let begun = Instant::now();
    for _ in 0..30 {
        look.found = true;
        look.wait();
    }
    let took = begun.elapsed();
    assert!(took >= Duration::from_nanos(30 * 370) && took < Duration::from_secs(5), "{took:?}");
}
