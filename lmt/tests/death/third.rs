//! The exchange between the survivor and the third rank, which no death may
//! disturb: verified messages of 0 to 300 KiB back and forth without end.

use std::time::Duration;

use lmt::{Endpoint, Engine, PeerId, SendMode, Source, TagMatch};

use super::operation::Operation;
use super::page::{Global, Page, now_ns};
use super::script::{content, exchange_bytes, is_content, tag};

/// The longest pause between two events.
#[derive(Debug)]
pub struct Gap {
    last_ns: u64,
    max_ns: u64,
}

impl Gap {
    pub fn new() -> Self {
        Self { last_ns: now_ns(), max_ns: 0 }
    }

    pub fn event(&mut self) {
        let now = now_ns();
        self.max_ns = self.max_ns.max(now - self.last_ns);
        self.last_ns = now;
    }

    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.max_ns)
    }
}

/// The third rank: begins each exchange. Returns how many there were and the
/// longest that one took.
pub fn run(endpoint: &Endpoint, survivor: PeerId, page: &Page, ready: impl FnOnce()) -> (u64, Duration) {
    let mut number = 0;
    let mut ready = Some(ready);
    let mut gap = Gap::new();
    while page.global(Global::Stop) == 0 {
        let data = content(tag::THIRD, number, exchange_bytes(tag::THIRD, number));
        endpoint.send(survivor, tag::THIRD, &data).expect("sending to the survivor");
        let mut reply = vec![0; exchange_bytes(tag::REPLY, number)];
        let status = endpoint
            .receive(Source::Peer(survivor), TagMatch::exactly(tag::REPLY), &mut reply)
            .expect("receiving from the survivor");
        assert_eq!(status.bytes, reply.len() as u64, "the length of reply {number}");
        assert!(is_content(tag::REPLY, number, &reply), "the bytes of reply {number}");
        number += 1;
        match ready.take() {
            // Connecting is not part of the exchange.
            Some(ready) => {
                ready();
                gap = Gap::new();
            }
            None => gap.event(),
        }
    }
    endpoint.send(survivor, tag::THIRD_END, &[]).expect("ending the exchange");
    (number, gap.longest())
}

/// The survivor's half of the exchange; it receives from any source.
pub struct Exchange {
    receive: Option<Operation>,
    reply: Option<Operation>,
    pub number: u64,
    pub ended: bool,
    gap: Gap,
}

const LONGEST: usize = 300 << 10;

impl Exchange {
    pub fn new(engine: &mut Engine) -> Self {
        Self { receive: Some(Self::post(engine)), reply: None, number: 0, ended: false, gap: Gap::new() }
    }

    fn post(engine: &mut Engine) -> Operation {
        let tags = TagMatch { tag: tag::THIRD, ignore: 1 };
        Operation::receive(engine, Source::Any, tags, LONGEST).expect("a receive from anybody")
    }

    pub fn max_gap(&self) -> Duration {
        self.gap.longest()
    }

    /// Deals with what has arrived.
    pub fn turn(&mut self, engine: &mut Engine) {
        if let Some((result, _)) = self.reply.as_mut().and_then(|reply| reply.take(engine)) {
            result.expect("replying to the third rank");
            self.reply = None;
        }
        let Some((result, memory)) = self.receive.as_mut().and_then(|receive| receive.take(engine)) else {
            return;
        };
        let status = result.expect("the receive from anybody goes on whoever dies");
        if status.tag == tag::THIRD_END {
            (self.ended, self.receive) = (true, None);
            return;
        }
        let bytes = exchange_bytes(tag::THIRD, self.number);
        assert_eq!(status.bytes, bytes as u64, "the length of message {}", self.number);
        assert!(
            is_content(tag::THIRD, self.number, &memory[..bytes]),
            "the bytes of message {}",
            self.number
        );
        if self.number == 0 {
            self.gap = Gap::new();
        }
        self.gap.event();
        let reply = content(tag::REPLY, self.number, exchange_bytes(tag::REPLY, self.number));
        // The third rank waits for the reply before it sends again.
        self.reply = Some(
            Operation::send(engine, status.peer, tag::REPLY, reply, SendMode::Standard)
                .expect("replying to the third rank"),
        );
        self.number += 1;
        self.receive = Some(Self::post(engine));
    }
}
