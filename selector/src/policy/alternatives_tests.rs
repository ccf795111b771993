use lmt_core::mechanism::{Model, Reach, SharedEnds};
use lmt_core::selection::{KnownMechanism, Message};

use super::super::test_support::{World, configuration, known, layer, rule};
use crate::rules::Authority;

const BYTES: u64 = 1 << 20;
const BOTH_SHARED: SharedEnds = SharedEnds { sender: true, receiver: true };

/// A rule for all messages, by this authority, and beside the usual mechanisms one
/// for shared buffers.
fn world(authority: Authority, take: &[&str]) -> World {
    let rules = layer(authority, vec![rule(1, None, None, take)]);
    let mut world = World::new(configuration(vec![rules]));
    let mapped = known("mapped", &[Model::Both, Model::Get]);
    world.mechanisms.push(KnownMechanism { reach: Reach::SharedBuffers, ..mapped });
    world
}

/// The ways for a message, and those among which the endpoint may choose.
fn ways_and_open(world: &World, shared: SharedEnds) -> (Vec<String>, Vec<String>) {
    let message = Message { shared, ..Message::of_bytes(BYTES) };
    let ways = world.ways(&message);
    let (_, open) = world.decide().alternatives(&message);
    let named = ways.iter().enumerate().filter(|(at, _)| open.contains(*at));
    let named = named.map(|(_, way)| way.clone()).collect();
    (ways, named)
}

#[test]
fn where_no_user_speaks_all_that_reaches_the_memory_is_open() {
    let world = world(Authority::Default, &["copy"]);
    let (ways, open) = ways_and_open(&world, BOTH_SHARED);
    assert_eq!(ways[0], "mapped:both");
    assert_eq!(open, ways);
    let (ways, open) = ways_and_open(&world, SharedEnds::default());
    assert_eq!(ways[0], "copy:get");
    assert!(ways.iter().all(|way| !way.starts_with("mapped")));
    assert_eq!(open, ways);
}

#[test]
fn a_users_rule_leaves_open_what_it_names_and_shared_buffers_alone() {
    let world = world(Authority::User, &["copy:get", "ring"]);
    let (ways, open) = ways_and_open(&world, SharedEnds::default());
    // A name stands for its family.
    assert_eq!(open, ["copy:get", "ring:cooperative", "ring-wide:cooperative"]);
    assert_eq!(ways.len(), open.len() + 1);
    let (ways, open) = ways_and_open(&world, BOTH_SHARED);
    assert_eq!(ways[0], "mapped:both");
    assert!(open.is_empty());
}

#[test]
fn a_users_rule_that_names_what_is_for_shared_buffers_has_it_tried_with_the_others() {
    let world = world(Authority::User, &["copy:get", "mapped"]);
    let (_, open) = ways_and_open(&world, BOTH_SHARED);
    assert_eq!(open, ["copy:get", "mapped:both", "mapped:get"]);
    let (_, open) = ways_and_open(&world, SharedEnds::default());
    assert_eq!(open, ["copy:get"]);
}

#[test]
fn what_does_not_show_in_time_is_not_open() {
    let mut world = world(Authority::Default, &["copy"]);
    world.mechanisms.iter_mut().filter(|known| known.name == "ring").for_each(|known| {
        known.shows_in_time = false;
    });
    let (ways, open) = ways_and_open(&world, SharedEnds::default());
    let is_ring = |way: &String| way == "ring:cooperative";
    assert!(ways.iter().any(is_ring) && !open.iter().any(is_ring));
    assert_eq!(ways.len(), open.len() + 1);
}

#[test]
fn of_ways_that_no_user_names_the_first_few_are_open() {
    const MORE: [&str; 5] = ["one", "two", "three", "four", "five"];
    for (authority, count) in [(Authority::Default, 6), (Authority::Calibration, 6), (Authority::User, 10)] {
        let mut world = world(authority, &MORE);
        world.mechanisms.extend(MORE.map(|name| known(name, &[Model::Get, Model::Put])));
        let (ways, open) = ways_and_open(&world, SharedEnds::default());
        assert_eq!(open, ways[..count], "{authority:?}");
    }
}
