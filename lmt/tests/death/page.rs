//! Memory that the killer, the survivor, the third rank and all victims share:
//! where each round is, and when its victim was killed.
#![allow(unsafe_code)] // Words of a shared mapping become atomics here.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::time::{ClockId, clock_gettime};

/// Where the victim of a round is with its messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[repr(u64)]
pub enum Phase {
    Starting = 0,
    /// A connection is attempted, or awaited; no HELLO yet.
    Connect = 1,
    /// From the first HELLO until the connection is established.
    Handshake = 2,
    /// An RTS is made or seen; nothing has been copied.
    Rts = 3,
    /// Between the first and the last step of the mechanism.
    Chunk = 4,
    /// After the last step, until the request is complete.
    Finish = 5,
    /// Between messages.
    Between = 6,
}

impl Phase {
    pub const COUNTED: [Self; 5] = [Self::Connect, Self::Handshake, Self::Rts, Self::Chunk, Self::Finish];

    fn from_number(number: u64) -> Self {
        match number {
            1 => Self::Connect,
            2 => Self::Handshake,
            3 => Self::Rts,
            4 => Self::Chunk,
            5 => Self::Finish,
            6 => Self::Between,
            _ => Self::Starting,
        }
    }
}

/// The words of a round.
#[derive(Clone, Copy)]
pub enum Word {
    /// 1 once the victim is about to be started.
    Begun = 0,
    Phase = 1,
    /// When the victim was killed, in nanoseconds of CLOCK_MONOTONIC; 0 before.
    KilledAt = 2,
    /// 1 once the victim's endpoint listens.
    Listening = 3,
    /// 1 once the connection is established on the victim's side.
    Connected = 4,
    /// 1 once the victim is dead and waited for.
    Reaped = 5,
    /// 1 once every operation of the survivor with the victim has ended.
    Done = 6,
}

/// The words of the whole test.
#[derive(Clone, Copy)]
pub enum Global {
    /// The two halves of the group's id, and 1 once both ranks are ready.
    GroupHigh = 0,
    GroupLow = 1,
    Ready = 2,
    /// 1 when all rounds are over.
    Stop = 3,
}

const WORDS_PER_ROUND: usize = 16;
const GLOBAL_WORDS: usize = 16;

pub struct Page {
    map: MmapRaw,
    rounds: usize,
    _file: File,
}

impl Page {
    /// A new page; the path by which the test's other processes open it.
    pub fn create(rounds: usize) -> (Self, String) {
        let fd: OwnedFd = memfd_create("lmt-death", MFdFlags::MFD_CLOEXEC).expect("memfd_create");
        let file = File::from(fd);
        file.set_len((8 * (GLOBAL_WORDS + rounds * WORDS_PER_ROUND)) as u64).expect("ftruncate");
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        (Self::map(file, rounds), path)
    }

    pub fn open(path: &str, rounds: usize) -> Self {
        let file = File::options().read(true).write(true).open(path).expect("the page of the test");
        Self::map(file, rounds)
    }

    fn map(file: File, rounds: usize) -> Self {
        let map = MmapOptions::new().map_raw(&file).expect("mapping the page of the test");
        assert!(map.len() >= 8 * (GLOBAL_WORDS + rounds * WORDS_PER_ROUND));
        Self { map, rounds, _file: file }
    }

    pub fn rounds(&self) -> usize {
        self.rounds
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(8 * (index + 1) <= self.map.len());
        // SAFETY: the address lies within the mapping, as asserted.
        let address = unsafe { self.map.as_mut_ptr().cast::<u64>().add(index) };
        // SAFETY: it is aligned, as the mapping is and words are 8 bytes; the
        // mapping lives as long as `self`; every process uses atomics only.
        unsafe { AtomicU64::from_ptr(address) }
    }

    fn round_word(&self, round: usize, word: Word) -> &AtomicU64 {
        assert!(round < self.rounds);
        self.word(GLOBAL_WORDS + round * WORDS_PER_ROUND + word as usize)
    }

    // SeqCst throughout: one order of all marks, and speed does not matter.

    pub fn global(&self, word: Global) -> u64 {
        self.word(word as usize).load(Ordering::SeqCst)
    }

    pub fn set_global(&self, word: Global, value: u64) {
        self.word(word as usize).store(value, Ordering::SeqCst);
    }

    pub fn get(&self, round: usize, word: Word) -> u64 {
        self.round_word(round, word).load(Ordering::SeqCst)
    }

    pub fn is_set(&self, round: usize, word: Word) -> bool {
        self.get(round, word) != 0
    }

    pub fn set(&self, round: usize, word: Word, value: u64) {
        self.round_word(round, word).store(value, Ordering::SeqCst);
    }

    pub fn phase(&self, round: usize) -> Phase {
        Phase::from_number(self.get(round, Word::Phase))
    }

    pub fn set_phase(&self, round: usize, phase: Phase) {
        self.set(round, Word::Phase, phase as u64);
    }

    /// From one phase to the next, if that is where the victim is.
    pub fn advance_phase(&self, round: usize, from: Phase, to: Phase) {
        let word = self.round_word(round, Word::Phase);
        let _was = word.compare_exchange(from as u64, to as u64, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Notes the time just before the victim is killed.
    pub fn note_kill(&self, round: usize) {
        let word = self.round_word(round, Word::KilledAt);
        let _was = word.compare_exchange(0, now_ns(), Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// CLOCK_MONOTONIC, which all processes of a machine share.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC exists");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
