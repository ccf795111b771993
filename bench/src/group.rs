//! The ranks of a benchmark as processes: this program again, with a hidden
//! subcommand. They talk with the command by lines of JSON: the job goes to
//! their standard input, events come from their standard output.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::error::BenchError;
use crate::job::{Event, Job, RankCard};
use crate::limits::{METHODS, Pair};
use crate::measures::{self, Bell};
use crate::runner::Runner;

/// The hidden subcommand.
pub const RANK_COMMAND: &str = "bench-rank";

/// How long nothing may be heard from any rank before the run is given up.
const SILENCE: Duration = Duration::from_secs(300);

#[derive(Debug, Serialize, Deserialize)]
struct Assignment {
    rank: u32,
    parent: i32,
    job: Job,
}

/// The processes; they are ended when this is dropped.
#[derive(Debug)]
struct Group {
    children: Vec<Child>,
    inputs: Vec<ChildStdin>,
    events: Receiver<(usize, Option<Event>)>,
}

impl Drop for Group {
    fn drop(&mut self) {
        for child in &mut self.children {
            // An error means that it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts the ranks, lets them work, and hands on what they tell.
///
/// # Errors
/// A rank fails or ends, nothing is heard for five minutes, or `hear` fails;
/// all ranks have ended then.
pub fn run(job: &Job, hear: &mut dyn FnMut(Event) -> Result<(), BenchError>) -> Result<(), BenchError> {
    let mut group = start(job)?;
    let cards = group.cards(job.ranks as usize, hear)?;
    for input in &mut group.inputs {
        write_line(input, &cards).map_err(|error| failure("a rank cannot be told its peers", &error))?;
    }
    let mut working = job.ranks;
    while working > 0 {
        match group.next()? {
            (_, Event::Done) => working -= 1,
            (_, event) => hear(event)?,
        }
    }
    Ok(())
}

fn start(job: &Job) -> Result<Group, BenchError> {
    let program = std::env::current_exe()
        .map_err(|error| failure("the path of this program cannot be found", &error))?;
    let (sender, events) = channel();
    let mut group = Group { children: Vec::new(), inputs: Vec::new(), events };
    for rank in 0..job.ranks {
        let mut child = Command::new(&program)
            .arg(RANK_COMMAND)
            // Where Yama rules, the ranks admit whom this process starts.
            .env(lmt::launch::ENV_LAUNCHER_PID, std::process::id().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failure(&format!("rank {rank} cannot be started"), &error))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        group.children.push(child);
        if let (Some(mut input), Some(output)) = (input, output) {
            listen(rank as usize, output, sender.clone())
                .map_err(|error| failure(&format!("rank {rank} cannot be listened to"), &error))?;
            let assignment = Assignment { rank, parent: Pid::this().as_raw(), job: job.clone() };
            write_line(&mut input, &assignment)
                .map_err(|error| failure(&format!("rank {rank} cannot be told its job"), &error))?;
            group.inputs.push(input);
        }
    }
    Ok(group)
}

/// Reads a rank's events in a thread of their own; `None` once it has ended.
fn listen(
    rank: usize,
    output: impl io::Read + Send + 'static,
    sender: Sender<(usize, Option<Event>)>,
) -> io::Result<()> {
    let listening = move || {
        for line in BufReader::new(output).lines() {
            let event = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            let over = event.is_none();
            // Nobody listens any more once the run is given up.
            if sender.send((rank, event)).is_err() || over {
                return;
            }
        }
        let _ = sender.send((rank, None));
    };
    // Without a handle the thread goes on by itself.
    thread::Builder::new().spawn(listening).map(drop)
}

impl Group {
    fn next(&mut self) -> Result<(usize, Event), BenchError> {
        loop {
            match self.events.recv_timeout(SILENCE) {
                Ok((_, Some(Event::Failed(sentence)))) => return Err(BenchError::Failure(sentence)),
                Ok((rank, Some(event))) => return Ok((rank, event)),
                Ok((rank, None)) => self.ended(rank)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Err(BenchError::Failure(format!(
                        "nothing was heard from the ranks for {} s; try fewer ranks or smaller sizes",
                        SILENCE.as_secs()
                    )));
                }
            }
        }
    }

    /// A rank's output is over: fine after its last word, which the caller has
    /// counted, if it ended well.
    fn ended(&mut self, rank: usize) -> Result<(), BenchError> {
        let status = self.children[rank].wait();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(BenchError::Failure(format!("rank {rank} ended unexpectedly: {status}"))),
            Err(error) => Err(failure(&format!("rank {rank} ended unexpectedly"), &error)),
        }
    }

    fn cards(
        &mut self,
        ranks: usize,
        hear: &mut dyn FnMut(Event) -> Result<(), BenchError>,
    ) -> Result<Vec<RankCard>, BenchError> {
        let mut cards = vec![None; ranks];
        while cards.iter().any(Option::is_none) {
            match self.next()? {
                (rank, Event::Card(card)) => cards[rank] = Some(card),
                (_, event) => hear(event)?,
            }
        }
        Ok(cards.into_iter().flatten().collect())
    }
}

/// What a rank does: the whole life of the process behind the hidden
/// subcommand. Its failure travels as an event.
///
/// # Errors
/// [`BenchError::RankFailed`], once the command knows why.
pub fn rank_main<E: Engine>(engine: &E) -> Result<(), BenchError> {
    let mut input = io::stdin().lock();
    let mut tell = |event: Event| {
        write_line(&mut io::stdout().lock(), &event).map_err(|error| BenchError::from_output(&error))
    };
    let result = work(engine, &mut input, &mut tell);
    let last = match &result {
        Ok(()) => Event::Done,
        Err(error) => Event::Failed(error.to_string()),
    };
    tell(last)?;
    result.map_err(|_| BenchError::RankFailed)
}

fn work<E: Engine>(
    engine: &E,
    input: &mut impl BufRead,
    tell: &mut dyn FnMut(Event) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let Assignment { rank, parent, job } = read_line(input)?;
    end_with(parent)?;
    pin(&job, rank)?;
    let opened: Vec<E::Opened> =
        job.mechanisms.iter().map(|name| engine.open(name, rank, job.ranks)).collect::<Result<_, _>>()?;
    let memory = (job.limits && rank == 0).then(Pair::memory).transpose().map_err(limits_failed)?;
    let has_bell = !job.pattern.figures().is_empty();
    let bell = (has_bell && rank == 0).then(Bell::new).transpose().map_err(|error| bell_failed(&error))?;
    tell(Event::Card(RankCard {
        addresses: opened.iter().map(|opened| engine.address(opened)).collect(),
        limits: memory.as_ref().map(|memory| memory.card()),
        bell: bell.as_ref().and_then(Bell::card),
    }))?;
    let cards: Vec<RankCard> = read_line(input)?;
    let bell = match (bell, cards.first().and_then(|card| card.bell.as_ref())) {
        (None, Some(card)) => Some(Bell::open(card).map_err(|error| bell_failed(&error))?),
        (bell, _) => bell,
    };
    let mut pair = match (memory, cards.first().and_then(|card| card.limits.as_ref())) {
        (Some(memory), _) => Some(Pair::first(memory).map_err(limits_failed)?),
        (None, Some(card)) if rank == 1 => Some(Pair::second(card).map_err(limits_failed)?),
        _ => None,
    };
    if let (0, Some(pair)) = (rank, &pair) {
        METHODS
            .iter()
            .filter_map(|method| pair.refused(method))
            .try_for_each(|note| tell(Event::Note(note)))?;
    }
    let mut links = Vec::new();
    for (index, opened) in opened.into_iter().enumerate() {
        let addresses: Vec<Vec<u8>> =
            cards.iter().map(|card| card.addresses.get(index).cloned().unwrap_or_default()).collect();
        links.push(engine.join(opened, &addresses)?);
    }
    match bell {
        Some(bell) => measures::run(&job, rank, &mut links, bell, tell),
        None => Runner::new(&job, rank, &mut links, pair.as_mut(), tell)?.run(),
    }
}

fn bell_failed(error: &io::Error) -> BenchError {
    failure("the ranks have no way to wake each other", error)
}

fn limits_failed(error: crate::limits::LimitError) -> BenchError {
    BenchError::Failure(error.to_string())
}

/// Ends this process when the command ends, however it ends.
fn end_with(parent: i32) -> Result<(), BenchError> {
    set_pdeathsig(Signal::SIGKILL)
        .map_err(|errno| failure("the kernel refuses PR_SET_PDEATHSIG", &errno.into()))?;
    if getppid().as_raw() == parent {
        Ok(())
    } else {
        Err(BenchError::Failure("the command that started this rank has ended".into()))
    }
}

fn pin(job: &Job, rank: u32) -> Result<(), BenchError> {
    let Some(&cpu) = job.cpus.get(rank as usize) else { return Ok(()) };
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|errno| failure(&format!("rank {rank} cannot be pinned on CPU {cpu}"), &errno.into()))
}

fn write_line(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    output.write_all(line.as_bytes())?;
    output.flush()
}

fn read_line<T: DeserializeOwned>(input: &mut impl BufRead) -> Result<T, BenchError> {
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| failure("the job cannot be read", &error))?;
    serde_json::from_str(&line)
        .map_err(|_| BenchError::Failure("this subcommand is for lmt itself; use lmt bench".into()))
}

fn failure(what: &str, error: &io::Error) -> BenchError {
    BenchError::Failure(format!("{what}: {error}"))
}
