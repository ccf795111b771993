//! Both ends copy one message: whoever is late, stopped, busy or never comes,
//! every byte arrives once.

mod common;

use std::time::{Duration, Instant};

use lmt::mechanism::Counters;
use lmt::{Endpoint, OperationError, PeerId, Source, TagMatch};
use lmt_conformance::group::Group;
use lmt_conformance::{group, test_name};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const MIB: usize = 1 << 20;
const LIMIT: Duration = Duration::from_secs(60);
/// How long an end that is late stays away.
const AWAY: Duration = Duration::from_millis(300);
/// What both ends can copy by, of any memory and on a stock kernel.
const MECHANISMS: [&str; 2] = ["cma", "knem-user"];

/// One of two ranks.
struct End<'g> {
    name: &'static str,
    group: &'g Group,
    endpoint: Endpoint,
    peer: PeerId,
}

impl<'g> End<'g> {
    /// Connected, by both ends alone; `None` where that does not work here.
    fn open(name: &'static str, group: &'g Group) -> Option<Self> {
        let way = format!("{name}:both");
        let endpoint = Endpoint::builder()
            .id(group.id().member(group.rank()))
            .mechanisms(&[&way])
            .configure(|config| config.eager_max_bytes = 0)
            .build()
            .expect("an endpoint");
        let peer = endpoint.insert_peer(&group.address(1 - group.rank())).expect("there is room");
        group.barrier();
        endpoint.send(peer, 0, &[]).expect("the other is there");
        endpoint.receive(Source::Peer(peer), TagMatch::exactly(0), &mut []).expect("the other is there");
        let standing =
            endpoint.mechanism_status(peer).into_iter().find(|(one, _)| *one == name).expect("probed").1;
        match standing.reason {
            None => Some(Self { name, group, endpoint, peer }),
            Some(reason) => {
                group.report(format!("skip: {reason}"));
                None
            }
        }
    }

    fn is_sender(&self) -> bool {
        self.group.rank() == 0
    }

    fn send(&self, tag: u64, bytes: usize) {
        self.endpoint.send(self.peer, tag, &common::pattern(tag, bytes)).expect("arrives");
    }

    fn receive(&self, tag: u64, bytes: usize) {
        let mut into = vec![0; bytes];
        self.endpoint.receive(Source::Peer(self.peer), TagMatch::exactly(tag), &mut into).expect("arrives");
        assert!(into == common::pattern(tag, bytes), "message {tag} arrived with wrong bytes");
    }

    fn counters(&self) -> Counters {
        let all = self.endpoint.counters(self.peer);
        all.into_iter().find(|(name, _)| *name == self.name).expect("it is there").1
    }

    /// Neither leaves before the other is done.
    fn meet(&self) {
        self.endpoint.send(self.peer, 0, &[]).expect("the other is there");
        self.endpoint.receive(Source::Peer(self.peer), TagMatch::exactly(0), &mut []).expect("it is there");
    }
}

fn in_two_ranks(test: &str, body: impl Fn(&End<'_>)) {
    for name in MECHANISMS {
        let results = group::run(test, 2, LIMIT, |group| {
            if let Some(end) = End::open(name, group) {
                body(&end);
            }
        });
        common::skip_if_told(name, &results.reports);
    }
}

/// Both wait: each copies its part. Where others want the cores, too, the sender
/// is often not there, and then is not expected for a while; so one series counts
/// in which it was.
#[test]
fn both_ends_copy_where_both_wait() {
    in_two_ranks(test_name!(), |end| {
        const MESSAGES: u64 = 20;
        const MAX_SERIES: u64 = 60;
        let all = MESSAGES * 4 * MIB as u64;
        let (mut series, mut helped) = (0, false);
        while !helped && series < MAX_SERIES {
            series += 1;
            let before = end.counters().peer_bytes;
            for tag in 1..=MESSAGES {
                if end.is_sender() { end.send(tag, 4 * MIB) } else { end.receive(tag, 4 * MIB) }
            }
            let verdict = (!end.is_sender()).then(|| end.counters().peer_bytes - before > all / 10);
            helped = common::verdict(&end.endpoint, end.peer, verdict);
        }
        end.meet();
        let (counters, all) = (end.counters(), series * all);
        if end.is_sender() {
            assert_eq!((counters.sent.bytes, counters.peer_bytes), (all, 0));
            assert!(counters.bytes > 0, "the sender never helped");
        } else {
            assert_eq!(counters.bytes + counters.peer_bytes, all);
            assert!(helped, "the sender hardly helped: {counters:?}");
        }
    });
}

#[test]
fn a_late_receiver_gets_all() {
    in_two_ranks(test_name!(), |end| {
        for (tag, bytes) in [(1, MIB), (2, 65_537), (3, 5 * MIB + 3)] {
            if end.is_sender() {
                end.send(tag, bytes);
            } else {
                std::thread::sleep(AWAY);
                end.receive(tag, bytes);
            }
        }
        end.meet();
    });
}

/// A sender that has announced its message and computes is not waited for.
#[test]
fn a_busy_sender_is_not_waited_for() {
    in_two_ranks(test_name!(), |end| {
        for tag in 1..=5 {
            if end.is_sender() {
                let data = common::pattern(tag, 5 * MIB);
                end.endpoint.scope(|scope| {
                    let send = scope.send(end.peer, tag, &data).expect("begins");
                    end.group.barrier();
                    std::thread::sleep(AWAY);
                    send.wait().expect("arrives");
                });
            } else {
                end.group.barrier();
                let begun = Instant::now();
                end.receive(tag, 5 * MIB);
                assert!(begun.elapsed() < AWAY, "the receiver has waited for the sender");
            }
            end.meet();
        }
        let counters = end.counters();
        if !end.is_sender() {
            assert_eq!((counters.bytes, counters.peer_bytes), (25 * MIB as u64, 0));
        }
    });
}

/// Whoever computes through one message after the other is soon not even asked.
#[test]
fn short_ones_of_a_busy_sender_arrive_while_it_is_not_there() {
    const MESSAGES: u64 = 40;
    const BYTES: usize = 65_537;
    in_two_ranks(test_name!(), |end| {
        for tag in 1..=MESSAGES {
            if end.is_sender() {
                let data = common::pattern(tag, BYTES);
                end.endpoint.scope(|scope| {
                    let send = scope.send(end.peer, tag, &data).expect("begins");
                    // Until it has been received.
                    end.group.barrier();
                    end.group.barrier();
                    send.wait().expect("arrives");
                });
            } else {
                end.group.barrier();
                end.receive(tag, BYTES);
                end.group.barrier();
            }
        }
        end.meet();
        let counters = end.counters();
        let (sent, received) = (counters.sent.messages, counters.received.messages);
        if end.is_sender() {
            assert_eq!((counters.messages, sent, counters.bytes), (MESSAGES, MESSAGES, 0));
        } else {
            let all = MESSAGES * BYTES as u64;
            assert_eq!((received, counters.bytes, counters.peer_bytes), (MESSAGES, all, 0));
        }
    });
}

/// Returns once a process is stopped: a signal to go on that comes before is lost.
fn await_stop(pid: i32) {
    let is_stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
        // Its state stands behind its name in brackets (proc_pid_stat(5)).
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    };
    while !is_stopped() {
        std::thread::yield_now();
    }
}

/// A sender that has announced its message and is stopped never comes.
#[test]
fn a_sender_that_never_comes_is_not_missed() {
    in_two_ranks(test_name!(), |end| {
        let pid = std::process::id() as i32;
        if end.is_sender() {
            let data = common::pattern(1, 5 * MIB);
            end.endpoint.send(end.peer, 9, &pid.to_ne_bytes()).expect("arrives");
            end.endpoint.scope(|scope| {
                let send = scope.send(end.peer, 1, &data).expect("begins");
                end.group.barrier();
                kill(Pid::this(), Signal::SIGSTOP).expect("a process may stop itself");
                send.wait().expect("it arrived long ago");
            });
        } else {
            let mut pid = [0; 4];
            let source = Source::Peer(end.peer);
            end.endpoint.receive(source, TagMatch::exactly(9), &mut pid).expect("arrives");
            end.group.barrier();
            let pid = i32::from_ne_bytes(pid);
            await_stop(pid);
            end.receive(1, 5 * MIB);
            kill(Pid::from_raw(pid), Signal::SIGCONT).expect("it is there");
        }
        end.meet();
    });
}

#[test]
fn a_receiver_that_never_comes_lets_the_sender_take_its_message_back() {
    in_two_ranks(test_name!(), |end| {
        if end.is_sender() {
            let data = common::pattern(1, MIB);
            let result = end.endpoint.scope(|scope| scope.send(end.peer, 1, &data).expect("begins").cancel());
            assert_eq!(result, Err(OperationError::Cancelled));
            end.send(2, MIB);
        } else {
            end.receive(2, MIB);
        }
        end.meet();
    });
}

/// A writer that is stopped at random instants, perhaps in the middle of a part:
/// everything waits for it, and every byte is right.
#[test]
fn a_sender_that_is_stopped_and_goes_on_spoils_nothing() {
    in_two_ranks(test_name!(), |end| {
        const MESSAGES: u64 = 400;
        const STOPS: u32 = 60;
        if end.is_sender() {
            let pid = std::process::id() as i32;
            end.endpoint.send(end.peer, 1 << 20, &pid.to_ne_bytes()).expect("arrives");
            (1..=MESSAGES).for_each(|tag| end.send(tag, MIB + tag as usize));
        } else {
            let mut pid = [0; 4];
            let (source, tags) = (Source::Peer(end.peer), TagMatch::exactly(1 << 20));
            end.endpoint.receive(source, tags, &mut pid).expect("arrives");
            let pid = Pid::from_raw(i32::from_ne_bytes(pid));
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    for stop in 0..STOPS {
                        std::thread::sleep(Duration::from_micros(u64::from(stop * 7919 % 3000)));
                        kill(pid, Signal::SIGSTOP).expect("it is there");
                        std::thread::sleep(Duration::from_millis(2));
                        kill(pid, Signal::SIGCONT).expect("it is there");
                    }
                });
                (1..=MESSAGES).for_each(|tag| end.receive(tag, MIB + tag as usize));
            });
        }
        end.meet();
    });
}

/// Each sends and receives at once: nobody waits for the other's help.
#[test]
fn exchanges_arrive_whole() {
    in_two_ranks(test_name!(), |end| {
        for round in 1..=100_u64 {
            let bytes = 100_000 * (round as usize % 7) + round as usize;
            let (mine, theirs) =
                (2 * round + u64::from(end.group.rank()), 2 * round + u64::from(1 - end.group.rank()));
            let (out, mut into) = (common::pattern(mine, bytes), vec![0; bytes]);
            end.endpoint.scope(|scope| {
                let source = Source::Peer(end.peer);
                let receive = scope.receive(source, TagMatch::exactly(theirs), &mut into).expect("posts");
                let send = scope.send(end.peer, mine, &out).expect("begins");
                receive.wait().expect("arrives");
                send.wait().expect("arrives");
            });
            assert!(into == common::pattern(theirs, bytes), "round {round}");
        }
        end.meet();
    });
}
