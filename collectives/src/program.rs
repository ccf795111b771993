//! What one rank does in one collective call: a [`Program`], worked out before
//! anything moves. Pure data: algorithms make programs (`algorithms/`), the
//! executor runs them, and a simulator runs those of all ranks side by side in
//! tests, in any order.
#![forbid(unsafe_code)]

/// Memory of one rank that a call works on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Place {
    /// What the caller gives; never written. In place there is none, but that of
    /// reduce's root: others, who do not know that it is in place, reach its output
    /// as its input ([`Exposed::input`]).
    Input,
    /// What the caller gets.
    Output,
    /// Scratch memory of [`Program::work_bytes`] bytes.
    Work,
}

/// A stretch of a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    /// Of which memory.
    pub place: Place,
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

impl Span {
    /// `bytes` bytes of the input from `offset` on.
    pub const fn input(offset: u64, bytes: u64) -> Self {
        Self { place: Place::Input, offset, bytes }
    }

    /// `bytes` bytes of the output from `offset` on.
    pub const fn output(offset: u64, bytes: u64) -> Self {
        Self { place: Place::Output, offset, bytes }
    }

    /// `bytes` bytes of the scratch memory from `offset` on.
    pub const fn work(offset: u64, bytes: u64) -> Self {
        Self { place: Place::Work, offset, bytes }
    }
}

/// Where in another rank's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remote {
    /// At an offset of a place that all ranks know.
    At(Place, u64),
    /// Where that rank's table of its input or output says that its block of a rank
    /// is: ranks know the lengths of what they send and receive, but not where others
    /// keep it. The length in the table must be the transfer's.
    Listed {
        /// The input or the output.
        place: Place,
        /// Whose block.
        of: u32,
    },
}

/// One thing that a rank does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Says that this rank has come to this point of the call. Points grow.
    Publish(u32),
    /// Waits until a rank has come to this point.
    Await {
        /// Which rank.
        rank: u32,
        /// Which point.
        point: u32,
    },
    /// Copies out of another rank's memory, without its help.
    Get {
        /// Which rank.
        rank: u32,
        /// Where it is there.
        from: Remote,
        /// Where it goes here.
        into: Span,
    },
    /// Copies into another rank's memory, without its help.
    Put {
        /// Which rank.
        rank: u32,
        /// Where it is here.
        from: Span,
        /// Where it goes there.
        into: Remote,
    },
    /// Sends a message. Messages of one lane between two ranks arrive in order.
    Send {
        /// To which rank.
        rank: u32,
        /// What.
        from: Span,
    },
    /// Receives a message of exactly this length.
    Receive {
        /// From which rank.
        rank: u32,
        /// Where it goes.
        into: Span,
    },
    /// Copies within this rank.
    Copy {
        /// From here.
        from: Span,
        /// To there, equally long, without overlap.
        into: Span,
    },
    /// `into = from op into`, element by element: `from` is of lower ranks than
    /// `into`, where the order matters.
    CombineBefore {
        /// The left operand.
        from: Span,
        /// The right operand, and the result.
        into: Span,
    },
    /// `into = into op from`: `from` is of higher ranks than `into`.
    CombineAfter {
        /// The right operand.
        from: Span,
        /// The left operand, and the result.
        into: Span,
    },
    /// Shows a stretch to all ranks in this rank's slot of shared memory, from
    /// `at` on. Those that come after the meeting have seen what comes before it;
    /// for the rest they await a point.
    Post {
        /// What.
        from: Span,
        /// Where in the slot.
        at: u64,
    },
    /// Copies out of what another rank has posted. Only after the meeting.
    Take {
        /// Whose slot.
        rank: u32,
        /// Where in the slot.
        at: u64,
        /// Where it goes, and how much.
        into: Span,
    },
    /// Copies a stretch into a cell of the memory that two ranks have in common, to be
    /// taken by the other ([`Action::Accept`]). Of two cells, by even and odd numbers.
    /// From each call to the next that has the same cells they change places, so that
    /// what a rank has taken last it writes first.
    Hand {
        /// What; no longer than a cell.
        from: Span,
        /// Which cell.
        cell: u32,
    },
    /// Takes over what the other rank has handed, by the cache lines. Only after the
    /// meeting.
    Accept {
        /// Which cell.
        cell: u32,
        /// Where it goes, and how much.
        into: Span,
    },
}

/// Which of a rank's memory others may reach in a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exposed {
    /// Others get from the input.
    pub input: bool,
    /// Others get from the output or put into it.
    pub output: bool,
    /// Others get from the scratch memory or put into it.
    pub work: bool,
}

/// Which tables of blocks a rank shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tables {
    /// That of its input.
    pub input: bool,
    /// That of its output.
    pub output: bool,
}

/// What begins together; the next step begins when all of it has ended.
pub type Step = Vec<Action>;

/// What one rank does in one call.
///
/// A call begins with `before` (local copies, posts and what is handed only), then the
/// rank has come and goes on with what is `early`, then all ranks meet, which makes their
/// first posts, addresses and tables known to each other, and then the steps follow. A rank's
/// memory may be reached by others from the meeting on until it has ended: an algorithm
/// whose ranks reach into each other awaits, at its end, the last point of those that do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Local work before the meeting.
    pub before: Step,
    /// What this rank does as soon as it has come, whether it has met the others or
    /// not: posts, each followed by a point, and local copies.
    pub early: Vec<Step>,
    /// What follows.
    pub steps: Vec<Step>,
    /// How much scratch memory it needs.
    pub work_bytes: u64,
    /// How much of its slot it uses.
    pub slot_bytes: u64,
    /// How much of its output it copies itself: what it takes out of slots and what it has
    /// already.
    pub written_bytes: u64,
    /// What others may reach.
    pub exposed: Exposed,
    /// Which tables of blocks this rank shows, for [`Remote::Listed`].
    pub tables: Tables,
}

impl Program {
    /// With [`Program::slot_bytes`] and [`Program::written_bytes`] as its actions have them.
    pub(crate) fn with_slot(mut self) -> Self {
        let actions = || self.before.iter().chain(self.early.iter().chain(&self.steps).flatten());
        let written = actions().map(|action| match action {
            Action::Take { into, .. } | Action::Copy { into, .. } if into.place == Place::Output => {
                into.bytes
            }
            _ => 0,
        });
        let written_bytes = written.fold(0, u64::saturating_add);
        let ends = actions().filter_map(|action| match action {
            Action::Post { from, at } => Some(at.saturating_add(from.bytes)),
            _ => None,
        });
        (self.slot_bytes, self.written_bytes) = (ends.max().unwrap_or(0), written_bytes);
        self
    }

    /// Adds a step of one action.
    pub fn then(&mut self, action: Action) -> &mut Self {
        self.steps.push(vec![action]);
        self
    }

    /// Adds a step, unless it is empty.
    pub fn then_all(&mut self, actions: Step) -> &mut Self {
        if !actions.is_empty() {
            self.steps.push(actions);
        }
        self
    }
}
