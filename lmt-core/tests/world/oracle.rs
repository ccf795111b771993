//! What MPI promises of matching, in the plainest form: two vectors searched
//! from the front. Every endpoint runs it beside the real matcher.

use lmt_core::matching::{Matcher, Pattern, Post, PostedHandle, TagMatcher, Unexpected};
use lmt_core::rendezvous::{Rts, SendId};

/// An unexpected message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub message: usize,
    /// Absent for an eager one.
    pub rts: Option<Rts>,
    /// How the sender names it, if it wants to hear of the match.
    pub send_id: Option<SendId>,
}

/// The receive that was posted, and what it matched at once.
pub type Posted = (Option<PostedHandle>, Option<(usize, Arrived)>);

/// The real matcher and the naive one, fed with the same events.
#[derive(Default)]
pub struct Checked {
    real: TagMatcher<usize, Arrived>,
    posted: Vec<(Pattern, usize)>,
    unexpected: Vec<(usize, u64, Arrived)>,
}

impl Checked {
    /// The receive that a message goes to; without one the message is kept.
    pub fn arrive(&mut self, source: usize, tag: u64, arrived: Arrived) -> Option<usize> {
        let naive = self.posted.iter().position(|(pattern, _)| pattern.accepts(source as u32, tag));
        let naive = naive.map(|at| self.posted.remove(at).1);
        let real = self.real.arrive(source as u32, tag);
        assert_eq!(real, naive, "the message went to another receive");
        if real.is_none() {
            self.real.keep(source as u32, tag, arrived);
            self.unexpected.push((source, tag, arrived));
        }
        real
    }

    pub fn post(&mut self, pattern: Pattern, receive: usize) -> Posted {
        let naive = self.naive_take(pattern);
        match self.real.post(pattern, receive) {
            Post::Queued(handle) => {
                assert_eq!(naive, None, "a waiting message was overlooked");
                self.posted.push((pattern, receive));
                (Some(handle), None)
            }
            Post::Matched(payload, message) => {
                assert_eq!(payload, receive);
                (None, Some(same(message, naive)))
            }
        }
    }

    pub fn take(&mut self, pattern: Pattern) -> Option<(usize, Arrived)> {
        let naive = self.naive_take(pattern);
        let peeked = self.real.peek(pattern).map(|(_, message)| message.payload.message);
        assert_eq!(peeked, naive.map(|(_, _, arrived)| arrived.message));
        let real = self.real.take(pattern);
        assert_eq!(real.is_some(), naive.is_some());
        real.map(|message| same(message, naive))
    }

    fn naive_take(&mut self, pattern: Pattern) -> Option<(usize, u64, Arrived)> {
        let mut all = self.unexpected.iter();
        let at = all.position(|(source, tag, _)| pattern.accepts(*source as u32, *tag))?;
        Some(self.unexpected.remove(at))
    }

    pub fn cancel(&mut self, handle: PostedHandle, receive: usize) -> bool {
        let at = self.posted.iter().position(|(_, payload)| *payload == receive);
        let naive = at.map(|at| self.posted.remove(at).1);
        assert_eq!(self.real.cancel_posted(handle), naive);
        naive.is_some()
    }

    /// Takes out the message that its sender wants back.
    pub fn withdraw(&mut self, source: usize, send_id: SendId) -> Option<Arrived> {
        let wanted = |arrived: &Arrived| arrived.send_id == Some(send_id);
        let handle = self.real.find_unexpected(source as u32, &mut { wanted })?;
        let arrived = self.real.remove_unexpected(handle).unwrap().payload;
        let mut all = self.unexpected.iter();
        let at = all.position(|(from, _, arrived)| *from == source && wanted(arrived)).unwrap();
        assert_eq!(self.unexpected.remove(at).2, arrived);
        Some(arrived)
    }

    /// The receives that only the dead peer could have satisfied, and its
    /// messages that can no longer be fetched.
    pub fn gone(&mut self, source: usize) -> (Vec<usize>, Vec<Arrived>) {
        let (mut posted, mut lost) = (Vec::new(), Vec::new());
        let useless = |arrived: &Arrived| arrived.rts.is_some();
        let source_key = source as u32;
        self.real
            .peer_gone(source_key, &mut |_, a| useless(a), &mut |p| posted.push(p), &mut |u| lost.push(u));
        let named = |receive: &mut (Pattern, usize)| receive.0.source == Some(source_key);
        let naive: Vec<_> = self.posted.extract_if(.., named).map(|receive| receive.1).collect();
        assert_eq!(posted, naive);
        self.unexpected.retain(|(from, _, arrived)| *from != source || !useless(arrived));
        assert_eq!(self.real.unexpected(), self.unexpected.len());
        (posted, lost)
    }

    pub fn unexpected(&self) -> usize {
        assert_eq!(self.real.unexpected(), self.unexpected.len());
        self.unexpected.len()
    }

    pub fn posted(&self) -> usize {
        assert_eq!(self.real.posted(), self.posted.len());
        self.posted.len()
    }
}

fn same(real: Unexpected<Arrived>, naive: Option<(usize, u64, Arrived)>) -> (usize, Arrived) {
    let real = (real.source as usize, real.tag, real.payload);
    assert_eq!(Some(real), naive, "the receive got another message");
    (real.0, real.2)
}
