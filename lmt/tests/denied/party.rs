//! What the tests of denials share: a group of two, the messages between them,
//! and what is asked afterwards.

use lmt::{Config, Endpoint, PeerId};
use lmt_conformance::denials::Confinement;
use lmt_conformance::group::{Group, Results, Test};
use lmt_core::mechanism::{Abilities, Counters, MechanismStatus};
use lmt_core::selection::{Taken, Why};

use crate::common::{LIMIT, configured_by, folder, join, pattern, receive_and_check};

/// Lengths of the messages, in bytes; those above the eager limit are large.
pub const SIZES: [usize; 6] = [0, 8, 4 << 10, 512 << 10, 1 << 20, 16 << 20];
/// Large messages of one exchange, sent and received.
pub const LARGE: u64 = 6;
/// Bytes of the large messages of one exchange in one direction.
pub const LARGE_BYTES: u64 = (512 << 10) + (1 << 20) + (16 << 20);

/// The mechanisms that need the right to another's memory.
pub const DENIED: [&str; 3] = ["cma", "knem-user", "ioat-software"];

pub const ALL: Abilities = Abilities { read: true, write: true, cooperate: false };
pub const NONE: Abilities = Abilities { read: false, write: false, cooperate: false };

/// A group of two, each under its confinement.
pub fn two(name: &str, first: &Confinement, second: &Confinement) -> Test {
    let test = Test::new(name, 2).time_limit(LIMIT).confine(0, first).confine(1, second);
    configured_by(&folder(name), test)
}

/// Whether the other process of a group of two is denied the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    First,
    Second,
    Both,
}

impl Whom {
    pub fn includes(self, rank: u32) -> bool {
        match self {
            Self::First => rank == 0,
            Self::Second => rank == 1,
            Self::Both => true,
        }
    }
}

/// All mechanisms in the order of the list, whatever rules and calibrations
/// would prefer: the tests know which is next.
pub fn in_order(config: &mut Config) {
    config.mechanisms = Some(lmt::mechanism_names().into_iter().map(str::to_owned).collect());
}

/// One process of two, with what it knows of the other.
pub struct Party<'a> {
    pub group: &'a Group,
    pub endpoint: Endpoint,
    pub peer: PeerId,
    sent: u64,
}

impl<'a> Party<'a> {
    /// # Panics
    /// When the process is the superuser, or holds a capability.
    pub fn new(group: &'a Group) -> Self {
        Self::with(group, in_order)
    }

    /// # Panics
    /// As [`Self::new`].
    pub fn with(group: &'a Group, change: impl FnOnce(&mut Config) + 'static) -> Self {
        assert!(
            !nix::unistd::geteuid().is_root() || is_in_user_namespace(),
            "the superuser is denied nothing"
        );
        assert_eq!(capabilities(), 0, "capabilities would be exempt from what is denied");
        let (endpoint, peers) = join(group, change);
        let peer = peers[1 - group.rank() as usize];
        Self { group, endpoint, peer, sent: 0 }
    }

    /// Messages of every size in both directions, every byte of which is
    /// checked.
    pub fn exchange(&mut self) {
        for bytes in SIZES {
            let seed = self.sent * 2;
            self.sent += 1;
            if self.group.rank() == 0 {
                self.endpoint.send(self.peer, seed, &pattern(seed, bytes)).expect("it is sent");
                receive_and_check(&self.endpoint, self.peer, seed + 1, seed + 1, bytes);
            } else {
                receive_and_check(&self.endpoint, self.peer, seed, seed, bytes);
                self.endpoint.send(self.peer, seed + 1, &pattern(seed + 1, bytes)).expect("it is sent");
            }
        }
    }

    pub fn standing(&self, mechanism: &str) -> MechanismStatus {
        let all = self.endpoint.mechanism_status(self.peer);
        all.into_iter().find(|(name, _)| *name == mechanism).expect("it is in the list").1
    }

    pub fn counters(&self, mechanism: &str) -> Counters {
        let all = self.endpoint.counters(self.peer);
        all.into_iter().find(|(name, _)| *name == mechanism).expect("it is in the list").1
    }

    /// The mechanisms that brought messages to their end, with how many.
    pub fn used(&self) -> Vec<(&'static str, u64)> {
        let all = self.endpoint.counters(self.peer).into_iter();
        all.map(|(name, counters)| (name, counters.messages)).filter(|(_, messages)| *messages > 0).collect()
    }

    /// # Panics
    /// Unless this process knows that it can do nothing by `mechanism`, with
    /// this errno and a sentence with all of these words.
    pub fn is_denied(&self, mechanism: &str, errno: i32, words: &[&str]) {
        let standing = self.standing(mechanism);
        assert_eq!(standing.ours, Abilities::default(), "{mechanism}: {standing:?}");
        let reason = standing.reason.unwrap_or_else(|| panic!("{mechanism} is denied and nobody says why"));
        assert_eq!(reason.errno, errno, "{mechanism}: {reason}");
        for word in words {
            assert!(reason.sentence.contains(word), "{mechanism}: no `{word}` in: {reason}");
        }
        assert!(!reason.sentence.contains('\n'), "{reason}");
        self.is_explained(mechanism, errno, words);
    }

    /// The same of what is told to people who ask about a large message: that
    /// the mechanism is not taken, or only in part, and why.
    fn is_explained(&self, mechanism: &str, errno: i32, words: &[&str]) {
        let explanation = self.endpoint.explain(self.peer, 1 << 20).expect("the peer is known");
        let text = explanation.to_string();
        let other = explanation.not_taken.iter().find(|other| other.mechanism == mechanism);
        // The peer may be able to fetch the message.
        let works = self.standing(mechanism).theirs.read;
        let said = match (other, &explanation.taken) {
            (Some(other), _) if !works => {
                assert_eq!((other.why, other.errno), (Why::Unavailable, Some(errno)), "{text}");
                &other.sentence
            }
            (Some(other), _) => return assert_ne!(other.why, Why::Unavailable, "{text}"),
            (None, Taken::By { mechanism: taken, .. }) if works && taken == mechanism => {
                &explanation.notes.join("\n")
            }
            (None, _) => panic!("{mechanism} is not told of in: {text}"),
        };
        let errno = nix::errno::Errno::from_raw(errno).to_string();
        for word in words.iter().copied().chain([errno.as_str()]) {
            assert!(said.contains(word) && text.contains(word), "{mechanism}: no `{word}` in: {text}");
        }
    }

    /// What is said of a large message to the peer besides what is not taken.
    pub fn notes(&self) -> String {
        self.endpoint.explain(self.peer, 1 << 20).expect("the peer is known").notes.join("\n")
    }

    /// By which mechanism a large message to the peer would go now.
    pub fn would_take(&self) -> String {
        let explanation = self.endpoint.explain(self.peer, 1 << 20).expect("the peer is known");
        match explanation.taken {
            Taken::By { mechanism, .. } => mechanism,
            other => panic!("a large message would go {other}"),
        }
    }

    /// Every mechanism's standing, for the comparison of two groups.
    pub fn report(&self) {
        for (name, standing) in self.endpoint.mechanism_status(self.peer) {
            self.group.report(format_args!(
                "{name} ours {:?} theirs {:?} reason {:?}",
                standing.ours, standing.theirs, standing.reason
            ));
        }
        self.group.report(format_args!("used {:?}", self.used()));
    }
}

/// What the ranks of a group reported, as one text.
pub fn text_of(results: &Results) -> String {
    results.reports.iter().map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n\n")
}

fn is_in_user_namespace() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").expect("procfs");
    map.split_whitespace().nth(2) == Some("1")
}

/// The permitted capabilities as bits.
fn capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("CapPrm:")).expect("the kernel has them");
    u64::from_str_radix(line.trim(), 16).expect("a number")
}
