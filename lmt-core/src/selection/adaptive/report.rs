//! What streams have found, for people.

/// What is known of one stream: messages of one class of sizes to one peer.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamReport {
    /// The mean length of the last messages, in bytes.
    pub message_bytes: f64,
    /// From one send to the next by the way that is chosen, in ns; nothing while
    /// too few were sent.
    pub period_ns: Option<f64>,
    /// The way that is chosen, as `name:model`, or `eager`.
    pub chosen: String,
    /// All ways among which the stream chooses, in the order of the policy.
    pub ways: Vec<WayReport>,
    /// Trials.
    pub trials: u32,
    /// How often another way was chosen.
    pub switches: u32,
    /// How often the period has changed for good.
    pub changes: u32,
    /// Whether all ways were tried since the last change, so that few trials
    /// follow.
    pub is_settled: bool,
    /// Whether the peer chooses for both: each message is answered by the way it
    /// came.
    pub is_led: bool,
    /// The time of all trials, in ns.
    pub tried_ns: u64,
    /// The time of the whole stream, in ns.
    pub total_ns: u64,
}

impl StreamReport {
    /// By which rule messages take the way that is chosen.
    pub(crate) fn rule(&self) -> String {
        format!(
            "of {} ways the best for messages of this size to this peer, by what they took",
            self.ways.len()
        )
    }

    /// What was tried and chosen, a sentence each.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let Some(period_ns) = self.period_ns else {
            return vec!["adapt: too few such messages were sent to choose by".to_owned()];
        };
        let of_ways = self.ways.iter().filter(|way| way.way != self.chosen).map(|way| match way.period_ns {
            None if way.trials == 0 => format!("{} not tried", way.way),
            None => format!("{} not tried since the period changed ({})", way.way, trials(way.trials)),
            Some(ns) => format!("{} {:.1} us ({})", way.way, ns / 1e3, trials(way.trials)),
        });
        let state = match (self.is_led, self.is_settled) {
            (true, _) => "the peer chooses for both",
            (false, true) => "settled",
            (false, false) => "still trying",
        };
        let changes = match self.changes {
            0 => String::new(),
            1 => ", the period has changed once".to_owned(),
            changes => format!(", the period has changed {changes} times"),
        };
        let percent = 100.0 * self.tried_ns as f64 / self.total_ns.max(1) as f64;
        vec![
            format!(
                "adapt: from one such send to the next {:.1} us by {}; {}",
                period_ns / 1e3,
                self.chosen,
                of_ways.collect::<Vec<_>>().join(", ")
            ),
            format!("adapt: {state}{changes}; {}, {percent:.2} % of the time", trials(self.trials)),
        ]
    }
}

fn trials(count: u32) -> String {
    if count == 1 { "1 trial".to_owned() } else { format!("{count} trials") }
}

/// What one way of a stream takes.
#[derive(Clone, Debug, PartialEq)]
pub struct WayReport {
    /// The way, as `name:model`, or `eager`.
    pub way: String,
    /// How often it was tried.
    pub trials: u32,
    /// From one send to the next, in ns, reckoned from the ratio to the chosen
    /// way; nothing where it was not tried since the period has last changed.
    pub period_ns: Option<f64>,
}
