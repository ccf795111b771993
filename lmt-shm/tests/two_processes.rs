//! The pipeline between two real processes.
#![allow(missing_docs)]

mod pair;

use lmt_core::mechanism::*;
use lmt_shm::{Config, Shm};
use pair::{Memory, Message, Side, child_script, messages};

fn make(script: &str) -> Shm {
    // The two pools differ, so that each side must go by the other's geometry.
    let parent = Config { buffers: 3, buffer_bytes: 8192, ..Config::default() };
    let config = if script == "parent" { parent } else { Config::default() };
    Shm::new(config).unwrap()
}

/// Not a test of its own: the other process of the tests below.
#[test]
fn child() {
    let Some(script) = child_script() else { return };
    let (mut side, abilities) = Side::child(make("child"));
    assert_eq!(abilities, Ok(Abilities { cooperate: true, ..Abilities::default() }));
    match script.as_str() {
        "exchange" => messages(&[Model::Cooperative]).iter().for_each(|message| side.exchange(message)),
        "dies" => {
            let message = long_message();
            let mut memory = Memory::new(&message, 1, Role::Receiver);
            let data = memory.lend(lmt_core::buffer::Access::Write);
            let whole = Interval { start: 0, end: message.bytes };
            let plan = Plan::new(Role::Receiver, message.model, whole);
            let _transfer = side.begin(&plan, &data, whole);
            std::thread::sleep(pair::TIME_LIMIT);
        }
        other => panic!("no script {other}"),
    }
}

#[test]
fn messages_of_every_shape_arrive_whole() {
    let (mut side, abilities) = Side::parent("exchange", make("parent"));
    assert!(abilities.unwrap().cooperate);
    for message in messages(&[Model::Cooperative]) {
        side.exchange(&message);
    }
    side.end();
}

fn long_message() -> Message {
    Message {
        seed: 1,
        bytes: 1 << 20,
        model: Model::Cooperative,
        parent_sends: true,
        sender_segments: 1,
        receiver_segments: 1,
    }
}

#[test]
fn a_dead_receiver_stops_the_sender_but_holds_nothing() {
    let (mut side, _) = Side::parent("dies", make("parent"));
    let message = long_message();
    let mut memory = Memory::new(&message, 1, Role::Sender);
    let mut data = memory.lend(lmt_core::buffer::Access::Read);
    let whole = Interval { start: 0, end: message.bytes };
    let plan = Plan::new(Role::Sender, message.model, whole);
    let mut transfer = side.begin(&plan, &data, whole);
    side.kill_child();
    for _ in 0..10 {
        let step = side.step(&mut transfer, &mut data, u64::MAX).unwrap();
        assert_eq!(step, Step { bytes: 0, done: false });
    }
    assert!(!side.process.is_alive());
    side.finish(transfer);
}
