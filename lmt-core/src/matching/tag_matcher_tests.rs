use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// What MPI says, word by word: two vectors, searched from the front.
#[derive(Default)]
struct Naive {
    posted: Vec<(Pattern, u32)>,
    unexpected: Vec<(PeerKey, u64, u32)>,
}

impl Naive {
    fn arrive(&mut self, source: PeerKey, tag: u64) -> Option<u32> {
        let at = self.posted.iter().position(|(pattern, _)| pattern.accepts(source, tag))?;
        Some(self.posted.remove(at).1)
    }

    fn at(&self, pattern: Pattern) -> Option<usize> {
        self.unexpected.iter().position(|(source, tag, _)| pattern.accepts(*source, *tag))
    }

    fn take(&mut self, pattern: Pattern) -> Option<(PeerKey, u64, u32)> {
        self.at(pattern).map(|at| self.unexpected.remove(at))
    }
}

#[derive(Clone, Debug)]
enum Event {
    Arrive(PeerKey, u64),
    Post(Pattern),
    Peek(Pattern),
    Take(Pattern),
    CancelPosted(prop::sample::Index),
    RemoveUnexpected(prop::sample::Index),
    Find(PeerKey, u32),
    Gone(PeerKey),
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let source = prop_oneof![8 => (0u32..4).prop_map(Some), 2 => Just(None)];
    let ignore = prop_oneof![6 => Just(0u64), 2 => 0u64..8, 1 => Just(u64::MAX), 1 => any::<u64>()];
    (source, 0u64..8, ignore).prop_map(|(source, tag, ignore)| Pattern { source, tag, ignore })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        10 => (0u32..4, 0u64..8).prop_map(|(source, tag)| Event::Arrive(source, tag)),
        8 => pattern().prop_map(Event::Post),
        2 => pattern().prop_map(Event::Peek),
        1 => pattern().prop_map(Event::Take),
        1 => any::<prop::sample::Index>().prop_map(Event::CancelPosted),
        1 => any::<prop::sample::Index>().prop_map(Event::RemoveUnexpected),
        1 => (0u32..4, 1u32..4).prop_map(|(source, divisor)| Event::Find(source, divisor)),
        1 => (0u32..4).prop_map(Event::Gone),
    ]
}

/// Both matchers, and the handles given out, live or stale.
#[derive(Default)]
struct Pair {
    real: TagMatcher<u32, u32>,
    naive: Naive,
    serial: u32,
    receives: Vec<(PostedHandle, u32)>,
    messages: Vec<(UnexpectedHandle, u32)>,
}

impl Pair {
    fn apply(&mut self, event: &Event) {
        self.serial += 1;
        let serial = self.serial;
        match *event {
            Event::Arrive(source, tag) => {
                let got = self.real.arrive(source, tag);
                assert_eq!(got, self.naive.arrive(source, tag));
                if got.is_none() {
                    self.messages.push((self.real.keep(source, tag, serial), serial));
                    self.naive.unexpected.push((source, tag, serial));
                }
            }
            Event::Post(pattern) => match (self.real.post(pattern, serial), self.naive.take(pattern)) {
                (Post::Matched(receive, message), Some(expected)) => {
                    assert_eq!(receive, serial);
                    assert_eq!((message.source, message.tag, message.payload), expected);
                }
                (Post::Queued(handle), None) => {
                    self.naive.posted.push((pattern, serial));
                    self.receives.push((handle, serial));
                }
                (real, naive) => panic!("{real:?} where the oracle says {naive:?}"),
            },
            Event::Peek(pattern) => {
                let got = self.real.peek(pattern).map(|(_, m)| (m.source, m.tag, *m.payload));
                assert_eq!(got, self.naive.at(pattern).map(|at| self.naive.unexpected[at]));
            }
            Event::Take(pattern) => {
                let got = self.real.take(pattern).map(|m| (m.source, m.tag, m.payload));
                assert_eq!(got, self.naive.take(pattern));
            }
            Event::CancelPosted(ref index) => self.cancel(index),
            Event::RemoveUnexpected(ref index) => self.remove(index),
            Event::Find(source, divisor) => {
                let got = self.real.find_unexpected(source, &mut |payload| payload % divisor == 0);
                let payload = got.and_then(|handle| self.real.unexpected_mut(handle).copied());
                let mut all = self.naive.unexpected.iter();
                let expected = all.find(|(from, _, payload)| *from == source && payload % divisor == 0);
                assert_eq!(payload, expected.map(|message| message.2));
            }
            Event::Gone(source) => self.gone(source),
        }
        assert_eq!(self.real.posted(), self.naive.posted.len());
        assert_eq!(self.real.unexpected(), self.naive.unexpected.len());
    }

    fn cancel(&mut self, index: &prop::sample::Index) {
        if self.receives.is_empty() {
            return;
        }
        let (handle, serial) = self.receives[index.index(self.receives.len())];
        let at = self.naive.posted.iter().position(|receive| receive.1 == serial);
        assert_eq!(self.real.cancel_posted(handle), at.map(|at| self.naive.posted.remove(at).1));
    }

    fn remove(&mut self, index: &prop::sample::Index) {
        if self.messages.is_empty() {
            return;
        }
        let (handle, serial) = self.messages[index.index(self.messages.len())];
        let at = self.naive.unexpected.iter().position(|message| message.2 == serial);
        let expected = at.map(|at| self.naive.unexpected.remove(at));
        let got = self.real.remove_unexpected(handle);
        assert_eq!(got.map(|m| (m.source, m.tag, m.payload)), expected);
    }

    fn gone(&mut self, source: PeerKey) {
        let (mut posted, mut unexpected) = (Vec::new(), Vec::new());
        let odd = &mut |_: u64, payload: &u32| payload % 2 == 1;
        self.real.peer_gone(source, odd, &mut |p| posted.push(p), &mut |u| unexpected.push(u));
        let named = |receive: &mut (Pattern, u32)| receive.0.source == Some(source);
        let expected: Vec<_> = self.naive.posted.extract_if(.., named).map(|receive| receive.1).collect();
        assert_eq!(posted, expected);
        let useless = |message: &mut (PeerKey, u64, u32)| message.0 == source && message.2 % 2 == 1;
        let expected: Vec<_> = self.naive.unexpected.extract_if(.., useless).map(|m| m.2).collect();
        assert_eq!(unexpected, expected);
    }
}

proptest! {
    #[test]
    fn the_matcher_does_what_two_vectors_do(events in prop::collection::vec(event(), 1..400)) {
        let mut pair = Pair::default();
        events.iter().for_each(|event| pair.apply(event));
    }
}

const MANY: u64 = 10_000;

fn exact(tag: u64) -> Pattern {
    Pattern { source: Some(1), tag, ignore: 0 }
}

/// The fastest of some runs, which is the one that nothing else disturbed.
fn fastest(mut run: impl FnMut() -> Duration) -> Duration {
    (0..15).map(|_| run()).min().unwrap_or_default()
}

fn posted_run(tags: impl Iterator<Item = u64> + Clone) -> Duration {
    fastest(|| {
        let mut matcher = TagMatcher::<u64, ()>::new();
        (0..MANY).for_each(|tag| assert!(matches!(matcher.post(exact(tag), tag), Post::Queued(_))));
        let begin = Instant::now();
        tags.clone().for_each(|tag| assert_eq!(matcher.arrive(1, tag), Some(tag)));
        begin.elapsed()
    })
}

fn unexpected_run(tags: impl Iterator<Item = u64> + Clone) -> Duration {
    fastest(|| {
        let mut matcher = TagMatcher::<(), u64>::new();
        for tag in 0..MANY {
            matcher.keep(1, tag, tag);
        }
        let begin = Instant::now();
        for tag in tags.clone() {
            assert!(matches!(matcher.post(exact(tag), ()), Post::Matched((), m) if m.payload == tag));
        }
        begin.elapsed()
    })
}

#[test]
fn many_posted_receives_match_in_reverse_as_fast_as_in_order() {
    let (forth, back) = (posted_run(0..MANY), posted_run((0..MANY).rev()));
    assert!(back < forth * 3, "in order {forth:?}, in reverse {back:?}");
}

#[test]
fn many_unexpected_messages_match_in_reverse_as_fast_as_in_order() {
    let (forth, back) = (unexpected_run(0..MANY), unexpected_run((0..MANY).rev()));
    assert!(back < forth * 3, "in order {forth:?}, in reverse {back:?}");
}

#[test]
fn nothing_grows_once_warm() {
    let mut matcher = TagMatcher::<u64, u64>::new();
    let mut capacities = Vec::new();
    for round in 0..200 {
        for tag in round * 64..round * 64 + 64 {
            assert!(matches!(matcher.post(exact(tag), tag), Post::Queued(_)));
            assert_eq!(matcher.arrive(1, tag), Some(tag));
            matcher.keep(1, tag, tag);
        }
        for tag in round * 64..round * 64 + 64 {
            assert!(matcher.take(exact(tag)).is_some());
        }
        capacities.push((matcher.receives.slots(), matcher.messages.slots(), matcher.tagged.capacity()));
    }
    // A hash table that empties itself keeps its place; it may tidy up once.
    assert_eq!(capacities[20].0, 1);
    assert_eq!(capacities[20].1, 64);
    assert!(capacities[199].2 <= capacities[1].2 * 2, "{capacities:?}");
    assert!(matcher.exact.is_empty() && matcher.tagged.is_empty());
}
