//! What ranks write, on its way to the user or into memory.

use std::io::{self, BufRead, BufReader, PipeReader, Read, Write};
use std::thread::JoinHandle;

/// Where a line is cut when a rank writes no line end.
const LINE_MAX_BYTES: u64 = 64 << 10;
/// How much of each stream is kept when output is captured: its beginning and
/// its end, half of this each.
const CAPTURE_MAX_BYTES: usize = 2 << 20;

/// What one rank has written, when it was captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RankOutput {
    /// Standard output. Of more than 2 MiB the middle is left out.
    pub stdout: Vec<u8>,
    /// Standard error, likewise.
    pub stderr: Vec<u8>,
}

impl RankOutput {
    /// Whether something may be left out: either stream is as long as is kept of one, 2 MiB.
    pub fn may_be_cut(&self) -> bool {
        self.stdout.len() >= CAPTURE_MAX_BYTES || self.stderr.len() >= CAPTURE_MAX_BYTES
    }
}

/// A thread that reads one stream to its end.
pub(super) type Reader = JoinHandle<Vec<u8>>;

/// Writes every line of `from` with `prefix` before it, each in one piece, so
/// that lines of different ranks never mix.
pub(super) fn forward(from: PipeReader, prefix: String, to_stderr: bool) -> io::Result<Reader> {
    std::thread::Builder::new().name("lmt-output".to_owned()).spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        loop {
            line.clear();
            line.extend_from_slice(prefix.as_bytes());
            let read = from.by_ref().take(LINE_MAX_BYTES).read_until(b'\n', &mut line);
            if !matches!(read, Ok(1..)) {
                return Vec::new();
            }
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            // When nobody reads our output any more, the ranks need not know:
            // the stream is read on, so that they do not block.
            let _ = if to_stderr {
                io::stderr().lock().write_all(&line)
            } else {
                let mut stdout = io::stdout().lock();
                stdout.write_all(&line).and_then(|()| stdout.flush())
            };
        }
    })
}

/// Keeps what comes out of `from`.
pub(super) fn capture(mut from: PipeReader) -> io::Result<Reader> {
    std::thread::Builder::new().name("lmt-output".to_owned()).spawn(move || {
        let mut kept = Vec::new();
        let mut block = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut block) {
            kept.extend_from_slice(&block[..count]);
            if kept.len() > CAPTURE_MAX_BYTES {
                let half = CAPTURE_MAX_BYTES / 2;
                kept.drain(half..kept.len() - half);
            }
        }
        kept
    })
}
