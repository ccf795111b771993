use super::*;
use crate::matching::{Post, comparisons};
use proptest::prelude::*;

/// What MPI says, word by word: two vectors, searched from the front.
#[derive(Default)]
struct Naive {
    posted: Vec<(Pattern, u32)>,
    /// Those that stay.
    standing: Vec<u32>,
    unexpected: Vec<(PeerKey, u64, u32)>,
}

impl Naive {
    fn arrive(&mut self, source: PeerKey, tag: u64) -> Option<u32> {
        let at = self.posted.iter().position(|(pattern, _)| pattern.accepts(source, tag))?;
        let serial = self.posted[at].1;
        if !self.standing.contains(&serial) {
            self.posted.remove(at);
        }
        Some(serial)
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
    PostStanding(Pattern),
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
        1 => pattern().prop_map(Event::PostStanding),
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
            Event::PostStanding(pattern) => self.post_standing(pattern, serial),
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

    fn post_standing(&mut self, pattern: Pattern, serial: u32) {
        while let Some(message) = self.real.take(pattern) {
            assert_eq!(Some((message.source, message.tag, message.payload)), self.naive.take(pattern));
        }
        self.receives.push((self.real.post_standing(pattern, serial), serial));
        self.naive.posted.push((pattern, serial));
        self.naive.standing.push(serial);
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

/// A few receives of other shapes stand among the exact ones, and before them.
fn with_wildcards(matcher: &mut TagMatcher<u64, ()>, count: u64) {
    for tag in 1..=count {
        for source in [Some(1), None] {
            let masked = Pattern { source, tag: tag << 32, ignore: 0xff };
            assert!(matches!(matcher.post(masked, MANY), Post::Queued(_)));
        }
        assert!(matches!(matcher.post(Pattern { source: None, ..exact(tag << 32) }, MANY), Post::Queued(_)));
        let _posted = matcher.post(Pattern { source: Some(2), ..exact(tag) }, MANY);
    }
}

/// Looks of `count` receives that are posted, and of what then takes them out
/// in reverse or not.
fn looks_of_posted(
    count: u64,
    reverse: bool,
    mut take: impl FnMut(&mut TagMatcher<u64, ()>, u64, PostedHandle),
) -> u64 {
    let mut matcher = TagMatcher::<u64, ()>::new();
    with_wildcards(&mut matcher, count);
    let mut handles = Vec::new();
    for tag in 0..count {
        let Post::Queued(handle) = matcher.post(exact(tag), tag) else { panic!("nothing has arrived") };
        handles.push((tag, handle));
    }
    if reverse {
        handles.reverse();
    }
    comparisons::of(|| handles.iter().for_each(|(tag, handle)| take(&mut matcher, *tag, *handle)))
}

#[test]
fn posted_receives_are_found_and_cancelled_by_as_many_looks_in_any_order_and_number() {
    let arrive = |matcher: &mut TagMatcher<u64, ()>, tag, _| assert_eq!(matcher.arrive(1, tag), Some(tag));
    let cancel = |matcher: &mut TagMatcher<u64, ()>, tag, handle| {
        assert_eq!(matcher.cancel_posted(handle), Some(tag));
    };
    for reverse in [false, true] {
        for count in [10, MANY] {
            // One for each of four shapes, and one to take it out; once a walk past all, and all are
            // entered.
            let looks = looks_of_posted(count, reverse, arrive);
            assert!(looks <= (5 + 5 + 5) * count, "{looks} looks for {count}, in reverse: {reverse}");
        }
        assert_eq!(looks_of_posted(MANY, reverse, cancel), 0);
    }
}

/// Looks of `count` receives of one shape among as many messages, in reverse or
/// not.
fn looks_of_unexpected(pattern: impl Fn(u64) -> Pattern, count: u64, reverse: bool) -> u64 {
    let mut matcher = TagMatcher::<(), u64>::new();
    for number in 0..count {
        matcher.keep(1 + (number % 7) as PeerKey, number << 8 | 3, number);
    }
    let mut numbers: Vec<u64> = (0..count).collect();
    if reverse {
        numbers.reverse();
    }
    comparisons::of(|| {
        for number in numbers {
            let pattern = pattern(number);
            assert_eq!(matcher.peek(pattern).map(|(_, message)| *message.payload), Some(number));
            assert!(matches!(matcher.post(pattern, ()), Post::Matched((), m) if m.payload == number));
        }
    })
}

#[test]
fn unexpected_messages_are_found_by_a_few_looks_in_any_order_and_shape() {
    let source = |number: u64| Some(1 + (number % 7) as PeerKey);
    let exact = |number| Pattern { source: source(number), tag: number << 8 | 3, ignore: 0 };
    let any_source = |number| Pattern { source: None, ..exact(number) };
    let masked = |number| Pattern { tag: number << 8, ignore: 0xff, ..exact(number) };
    let masked_any = |number| Pattern { source: None, ..masked(number) };
    for reverse in [false, true] {
        for shape in [&exact as &dyn Fn(u64) -> Pattern, &any_source, &masked, &masked_any] {
            let looks = looks_of_unexpected(shape, MANY, reverse);
            // The first walk past all, and entering all, once.
            assert!(looks <= 6 * MANY, "{looks} looks, in reverse: {reverse}");
        }
    }
}

/// More shapes than are indexed still find what they should, and once the queue
/// was empty others have their turn.
#[test]
fn shapes_beyond_those_that_are_indexed_walk() {
    let mut matcher = TagMatcher::<(), u64>::new();
    for round in 0..3 {
        (0..200).for_each(|tag| {
            matcher.keep(1, tag, tag);
        });
        for tag in (0..200).rev() {
            let ignore = 1 << (20 + 8 * round + tag % 6);
            let found = matcher.take(Pattern { source: None, tag, ignore });
            assert_eq!(found.map(|message| message.payload), Some(tag));
            let used = matcher.indexed.iter().flatten().count();
            assert!(used == INDEXES || tag > 150 || tag == 0, "{used} at {tag}");
        }
        assert_eq!(matcher.indexed.iter().flatten().count(), 0);
        assert!(matcher.tagged.is_empty());
    }
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
    assert!(matcher.posted.is_empty() && matcher.tagged.is_empty());
}
