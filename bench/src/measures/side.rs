//! A message between ranks 0 and 1 of which rank 0 measures one side.

use std::time::{Duration, Instant};

use super::{Case, Course, Doorbell};
use crate::error::BenchError;
use crate::patterns::guarded::{Against, Guarded};
use crate::patterns::handling::{Handling, Message, Verified};
use crate::patterns::link::{Link, LinkError, Step};

/// Rank 0 receives.
pub(super) const RECEIVE: &str = "receive";
/// Rank 0 sends.
pub(super) const SEND: &str = "send";

/// The messages' tag.
const TAG: u64 = 1;
/// How long rank 0 lets pass after rank 1 has said that it goes to sleep.
pub(super) const FALLING_ASLEEP: Duration = Duration::from_micros(100);
/// Messages of a verifying pass, against either guard page.
const VERIFIED_MESSAGES: u64 = 2;

/// The sides of every link.
pub(super) fn cases(links: usize) -> Vec<Case> {
    let sides = |link| [RECEIVE, SEND].map(|name| Case { link, name, regions: None });
    (0..links).flat_map(sides).collect()
}

/// What rank 1 does once it has begun its part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// It waits for the message to be over, making progress.
    Awake,
    /// It sleeps and makes none, until rank 0 has waited for so long without
    /// coming to an end.
    Asleep(Duration),
}

/// One message. Rank 0 begins its side when rank 1 has begun the other, calls
/// `during`, and waits; it returns the seconds of that.
///
/// Where rank 1 sleeps, what cannot be done without it is not done before
/// `during` is over: then the bell wakes rank 1, within the time measured. If
/// rank 0's side ends by itself, the bell rings after that time.
pub(super) fn message<L: Link>(
    link: &mut L,
    case: &Case,
    data: &mut [u8],
    doorbell: &mut Doorbell,
    peer: Peer,
    during: Step<'_>,
) -> Result<f64, LinkError> {
    if link.rank() == 0 {
        measured(link, case, data, doorbell, peer, during)
    } else {
        other(link, case, data, doorbell, peer)
    }
}

/// Rank 1's part.
fn other<L: Link>(
    link: &mut L,
    case: &Case,
    data: &mut [u8],
    doorbell: &mut Doorbell,
    peer: Peer,
) -> Result<f64, LinkError> {
    let mut begun = || {
        doorbell.ring()?;
        if peer == Peer::Awake { Ok(()) } else { doorbell.wait() }
    };
    match case.name {
        RECEIVE => link.send_during(0, TAG, data, &mut begun, &mut || Ok(true))?,
        _ => link.receive_during(0, TAG, data, &mut begun, &mut || Ok(true))?,
    }
    Ok(0.0)
}

/// Rank 0's part.
fn measured<L: Link>(
    link: &mut L,
    case: &Case,
    data: &mut [u8],
    doorbell: &mut Doorbell,
    peer: Peer,
    during: Step<'_>,
) -> Result<f64, LinkError> {
    doorbell.wait()?;
    pause(FALLING_ASLEEP);
    let mut waiting: Option<Instant> = None;
    let mut rung = peer == Peer::Awake;
    let mut help = || {
        let Peer::Asleep(backoff) = peer else { return Ok(true) };
        if !rung && waiting.get_or_insert_with(Instant::now).elapsed() >= backoff {
            rung = true;
            doorbell.ring()?;
        }
        Ok(rung)
    };
    let start = Instant::now();
    match case.name {
        RECEIVE => link.receive_during(1, TAG, data, during, &mut help)?,
        _ => link.send_during(1, TAG, data, during, &mut help)?,
    }
    let seconds = start.elapsed().as_secs_f64();
    if !rung {
        doorbell.ring()?;
    }
    Ok(seconds)
}

/// Lets time pass without sleeping, which would let the core slow down, and
/// without touching memory.
pub(super) fn pause(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Sends messages of a case between guard pages and checks every byte; how
/// many, on rank 0.
pub(super) fn verify<L: Link>(
    course: &mut Course<'_, L>,
    case: &Case,
    bytes: usize,
    peer: Peer,
) -> Result<u64, BenchError> {
    let mut verified = Verified::default();
    let rank = course.rank;
    let receives = (rank == 0) == (case.name == RECEIVE);
    let source = if receives { 1 - rank } else { rank };
    for number in 0..2 * VERIFIED_MESSAGES {
        let against = if number % 2 == 0 { Against::Front } else { Against::Back };
        let mut guarded = Guarded::new(bytes, against).map_err(|error| {
            BenchError::Failure(format!("there is no memory for buffers between guard pages: {error}"))
        })?;
        let data = guarded.as_mut_slice();
        let name = Message { source, tag: TAG, number };
        if receives {
            verified.before_receive(data)
        } else {
            verified.before_send(data, name)
        }
        course.with_link(case, 0, |link, _, doorbell| {
            message(link, case, data, doorbell, peer, &mut || Ok(()))
        })?;
        if receives {
            verified.after_receive(data, name);
        }
    }
    if let Some(fault) = verified.fault {
        return Err(BenchError::Failure(format!("{}: {fault}", course.job.mechanisms[case.link])));
    }
    // Whoever receives has checked them, or has failed by now.
    course.doorbell.meet().map_err(super::between_ranks)?;
    Ok(2 * VERIFIED_MESSAGES)
}
