//! A group of an MPI's ranks, alive and asleep between its turns.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use lmt::launch::Running;

use super::command::{reason, start, text_of};
use super::installation::{Installation, Variables};
use crate::own_folder::OwnFolder;

/// How long the ranks may take to be there.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long one turn may take, in seconds; the ranks know it too.
const TURN_LIMIT_S: u64 = 60;
/// How much later than that an answer may come.
const GRACE: Duration = Duration::from_secs(5);
/// How long the ranks may take to end.
const END_LIMIT: Duration = Duration::from_secs(5);
/// How often it is looked whether a rank has connected.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// What all ranks of a group do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn<'a> {
    /// The pattern's name.
    pub pattern: &'a str,
    /// The messages' length.
    pub bytes: u64,
    /// Messages of a group of buffers.
    pub window: usize,
    /// Iterations inside the time.
    pub iterations: u64,
    /// Iterations before it.
    pub warm_up: u64,
    /// Whether buffers are touched.
    pub in_use: bool,
    /// Whether messages rotate through the buffers.
    pub rotate: bool,
}

impl Turn<'_> {
    fn line(&self) -> String {
        let Self { pattern, bytes, window, iterations, warm_up, .. } = self;
        let (in_use, rotate) = (u8::from(self.in_use), u8::from(self.rotate));
        format!("turn {pattern} {bytes} {window} {iterations} {warm_up} {in_use} {rotate}\n")
    }
}

/// How the ranks of a group are started.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// How many.
    pub ranks: u32,
    /// The CPU of each; empty when they are not pinned.
    pub cpus: &'a [usize],
    /// CPUs that may be used at all.
    pub cores: usize,
    /// Bytes of each of a rank's two buffers.
    pub buffer_bytes: u64,
}

/// The group; its ranks end with it, and the folder is removed.
pub struct MpiGroup {
    streams: Vec<BufReader<UnixStream>>,
    running: Option<Running>,
    /// What the MPI says it is.
    pub library: String,
    /// Removed last.
    _folder: Vec<OwnFolder>,
}

impl MpiGroup {
    /// Starts the ranks, pins them and gets their buffers ready.
    ///
    /// # Errors
    /// They do not start, or cannot be pinned: a sentence.
    pub fn start(
        mpi: &Installation,
        program: &Path,
        variables: &Variables,
        setup: &Setup<'_>,
    ) -> Result<Self, String> {
        let parent = std::env::temp_dir();
        let folder = OwnFolder::new(&parent)
            .map_err(|error| format!("no folder can be made in {}: {error}", parent.display()))?;
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| format!("the socket {} cannot be made: {error}", socket.display()))?;
        let mut variables = variables.clone();
        // What it leaves behind when it is killed goes with the folder.
        variables.push(("TMPDIR", folder.path().into()));
        let shared = OwnFolder::new(Path::new("/dev/shm")).ok();
        if let Some(shared) = &shared {
            variables.push(("OMPI_MCA_btl_sm_backing_directory", shared.path().into()));
        }
        if setup.cpus.is_empty() {
            variables.push(("I_MPI_PIN", "0".into()));
        }
        let arguments = mpi.launch_arguments(setup.ranks, setup.cores, program, &socket);
        let running = start(&mpi.mpiexec, arguments, &variables)?;
        let folders = [Some(folder), shared].into_iter().flatten().collect();
        let mut group =
            Self { streams: Vec::new(), running: Some(running), library: String::new(), _folder: folders };
        group.meet(&listener, setup).map_err(|sentence| group.why(sentence))?;
        Ok(group)
    }

    /// Does a turn; each rank's seconds.
    ///
    /// # Errors
    /// A rank fails or hangs: a sentence; the group is of no more use then.
    pub fn turn(&mut self, turn: &Turn<'_>) -> Result<Vec<f64>, String> {
        let line = turn.line();
        let told = self.streams.iter_mut().try_for_each(|stream| tell(stream, &line));
        let answers = told.and_then(|()| {
            let answers = self.streams.iter_mut().map(answer);
            answers.collect::<Result<Vec<f64>, String>>()
        });
        answers.map_err(|sentence| self.why(sentence))
    }

    fn meet(&mut self, listener: &UnixListener, setup: &Setup<'_>) -> Result<(), String> {
        let mut connected: Vec<Option<BufReader<UnixStream>>> = (0..setup.ranks).map(|_| None).collect();
        let deadline = Instant::now() + START_LIMIT;
        while connected.iter().any(Option::is_none) {
            match listener.accept() {
                Ok((stream, _)) => {
                    let (rank, library, stream) = hello(stream, setup.ranks)?;
                    if rank == 0 {
                        self.library = library;
                    }
                    connected[rank] = Some(stream);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.still_starting(deadline)?,
                Err(error) => return Err(format!("a rank cannot connect: {error}")),
            }
        }
        self.streams = connected.into_iter().flatten().collect();
        for (rank, stream) in self.streams.iter_mut().enumerate() {
            let cpu = setup.cpus.get(rank).map_or(-1, |&cpu| i64::try_from(cpu).unwrap_or(-1));
            tell(stream, &format!("setup {cpu} {} {TURN_LIMIT_S}\n", setup.buffer_bytes))?;
        }
        self.streams.iter_mut().try_for_each(|stream| answer(stream).map(|_| ()))
    }

    fn still_starting(&self, deadline: Instant) -> Result<(), String> {
        if self.running.as_ref().is_none_or(|running| running.exit_of(0).is_some()) {
            return Err("its launcher ended before all ranks were there".to_owned());
        }
        if Instant::now() >= deadline {
            return Err(format!("its ranks were not there within {} s", START_LIMIT.as_secs()));
        }
        thread::sleep(POLL_INTERVAL);
        Ok(())
    }

    /// Ends the group and adds the launcher's own words.
    fn why(&mut self, sentence: String) -> String {
        self.streams.clear();
        let Some(running) = self.running.take() else { return sentence };
        // A launcher whose ranks have failed has a reason to tell.
        running.wait_for(Duration::from_secs(1));
        running.end_now();
        format!("{sentence}{}", reason(&text_of(&running.wait())))
    }
}

impl Drop for MpiGroup {
    fn drop(&mut self) {
        // A rank that does not listen any more is ended below.
        let told = self.streams.iter_mut().all(|stream| tell(stream, "end\n").is_ok());
        if let Some(running) = self.running.take() {
            if told {
                running.wait_for(END_LIMIT);
            }
            drop(running);
        }
    }
}

fn tell(stream: &mut BufReader<UnixStream>, line: &str) -> Result<(), String> {
    stream.get_mut().write_all(line.as_bytes()).map_err(|error| format!("a rank does not listen: {error}"))
}

fn read(stream: &mut BufReader<UnixStream>) -> Result<String, String> {
    let mut line = String::new();
    match stream.read_line(&mut line) {
        Ok(0) => Err("a rank has ended".to_owned()),
        Ok(_) => Ok(line.trim_end().to_owned()),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Err(format!("a rank did not answer within {TURN_LIMIT_S} s"))
        }
        Err(error) => Err(format!("a rank cannot be heard: {error}")),
    }
}

/// The seconds in a rank's answer.
fn answer(stream: &mut BufReader<UnixStream>) -> Result<f64, String> {
    parse_answer(&read(stream)?)
}

fn parse_answer(line: &str) -> Result<f64, String> {
    let seconds = line.strip_prefix("ok ").and_then(|seconds| seconds.parse::<f64>().ok());
    match (seconds, line.strip_prefix("error ")) {
        (Some(seconds), _) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
        (_, Some(sentence)) => Err(sentence.to_owned()),
        _ => Err(format!("a rank wrote what is no answer, {line:?}")),
    }
}

/// Who has connected: its number, its library and the stream.
fn hello(stream: UnixStream, ranks: u32) -> Result<(usize, String, BufReader<UnixStream>), String> {
    let limit = Duration::from_secs(TURN_LIMIT_S) + GRACE;
    stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_read_timeout(Some(limit)))
        .map_err(|error| format!("a rank's socket cannot be set up: {error}"))?;
    let mut stream = BufReader::new(stream);
    let line = read(&mut stream)?;
    let (rank, library) = parse_hello(&line, ranks)?;
    Ok((rank, library, stream))
}

fn parse_hello(line: &str, ranks: u32) -> Result<(usize, String), String> {
    let words: Vec<&str> = line.splitn(4, ' ').collect();
    let parsed = match words[..] {
        ["hello", rank, size, library] => Some((rank.parse::<u32>().ok(), size.parse::<u32>().ok(), library)),
        _ => None,
    };
    match parsed {
        Some((Some(rank), Some(size), library)) if size == ranks && rank < ranks => {
            Ok((rank as usize, library.to_owned()))
        }
        Some((_, Some(size), _)) if size != ranks => {
            Err(format!("its launcher started groups of {size} ranks where one of {ranks} was asked for"))
        }
        _ => Err(format!("a rank greets with {line:?}")),
    }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
