//! Unix stream sockets as a link: what the patterns are tested with, so that
//! their tests do not depend on what they are to measure.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::patterns::link::{Incoming, Link, LinkError, Outgoing};

/// One rank with a stream to every other.
#[derive(Debug)]
pub struct SocketLink {
    rank: u32,
    streams: Vec<Option<UnixStream>>,
}

impl SocketLink {
    /// A rank whose stream to rank i is `streams[i]`, with none to itself.
    ///
    /// # Errors
    /// The kernel refuses to make the streams non-blocking.
    pub fn new(rank: u32, streams: Vec<Option<UnixStream>>) -> io::Result<Self> {
        streams.iter().flatten().try_for_each(|stream| stream.set_nonblocking(true))?;
        Ok(Self { rank, streams })
    }

    fn stream(&mut self, rank: u32) -> Result<&mut UnixStream, LinkError> {
        let missing = || LinkError(format!("there is no stream to rank {rank}"));
        self.streams.get_mut(rank as usize).and_then(Option::as_mut).ok_or_else(missing)
    }

    /// Sleeps until one of the streams named can go on.
    fn sleep(&self, wanted: &[(u32, PollFlags)]) -> Result<(), LinkError> {
        let mut fds: Vec<PollFd<'_>> = wanted
            .iter()
            .filter_map(|&(rank, flags)| {
                let stream = self.streams.get(rank as usize)?.as_ref()?;
                Some(PollFd::new(stream.as_fd(), flags))
            })
            .collect();
        poll(&mut fds, PollTimeout::NONE).map(|_| ()).map_err(LinkError::new)
    }
}

/// A message on its way: header and data, and how much of both has moved.
///
/// Streams keep order, and every pattern receives from one rank in the order
/// in which that rank sends; so a message that is not the next is an error.
struct Moving {
    header: [u8; 16],
    moved: usize,
}

fn header(tag: u64, bytes: usize) -> [u8; 16] {
    let mut header = [0; 16];
    header[..8].copy_from_slice(&tag.to_le_bytes());
    header[8..].copy_from_slice(&(bytes as u64).to_le_bytes());
    header
}

impl Link for SocketLink {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn ranks(&self) -> u32 {
        // A group's size came from a u32.
        self.streams.len() as u32
    }

    fn send(&mut self, to: u32, tag: u64, data: &[u8]) -> Result<(), LinkError> {
        self.transfer(&[Outgoing { to, tag, data }], &mut [])
    }

    fn receive(&mut self, from: u32, tag: u64, data: &mut [u8]) -> Result<(), LinkError> {
        self.transfer(&[], &mut [Incoming { from, tag, data }])
    }

    fn transfer(&mut self, sends: &[Outgoing<'_>], receives: &mut [Incoming<'_>]) -> Result<(), LinkError> {
        let mut out: Vec<Moving> =
            sends.iter().map(|send| Moving { header: header(send.tag, send.data.len()), moved: 0 }).collect();
        let mut into: Vec<Moving> = receives.iter().map(|_| Moving { header: [0; 16], moved: 0 }).collect();
        loop {
            let mut wanted = Vec::new();
            for (send, moving) in sends.iter().zip(&mut out) {
                let blocked = wanted.contains(&(send.to, PollFlags::POLLOUT));
                if !blocked && !write_some(self.stream(send.to)?, send, moving)? {
                    wanted.push((send.to, PollFlags::POLLOUT));
                }
            }
            for (receive, moving) in receives.iter_mut().zip(&mut into) {
                let blocked = wanted.contains(&(receive.from, PollFlags::POLLIN));
                if !blocked && !read_some(self.stream(receive.from)?, receive, moving)? {
                    wanted.push((receive.from, PollFlags::POLLIN));
                }
            }
            if wanted.is_empty() {
                return Ok(());
            }
            self.sleep(&wanted)?;
        }
    }
}

/// Writes what the stream takes; whether that was all.
fn write_some(stream: &mut UnixStream, send: &Outgoing<'_>, moving: &mut Moving) -> Result<bool, LinkError> {
    let all = 16 + send.data.len();
    while moving.moved < all {
        let part = match moving.header.get(moving.moved..) {
            Some(rest) if !rest.is_empty() => rest,
            _ => &send.data[moving.moved - 16..],
        };
        match stream.write(part) {
            Ok(bytes) => moving.moved += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(LinkError(format!("sending to rank {} failed: {error}", send.to))),
        }
    }
    Ok(true)
}

/// Reads what the stream has; whether that was all.
fn read_some(
    stream: &mut UnixStream,
    receive: &mut Incoming<'_>,
    moving: &mut Moving,
) -> Result<bool, LinkError> {
    let from = receive.from;
    let wanted = header(receive.tag, receive.data.len());
    while moving.moved < 16 + receive.data.len() {
        let part = match moving.header.get_mut(moving.moved..) {
            Some(rest) if !rest.is_empty() => rest,
            _ => &mut receive.data[moving.moved - 16..],
        };
        match stream.read(part) {
            Ok(0) => return Err(LinkError(format!("rank {from} has ended"))),
            Ok(bytes) => moving.moved += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(LinkError(format!("receiving from rank {from} failed: {error}"))),
        }
        if moving.moved == 16 && moving.header != wanted {
            return Err(LinkError(format!("rank {from} sent another message than the one expected")));
        }
    }
    Ok(true)
}

/// A stream between each two of so many ranks.
pub fn group(ranks: usize) -> Vec<SocketLink> {
    let mut streams: Vec<Vec<Option<UnixStream>>> =
        (0..ranks).map(|_| (0..ranks).map(|_| None).collect()).collect();
    for (upper, lower) in (0..ranks).flat_map(|upper| (0..upper).map(move |lower| (upper, lower))) {
        let (one, other) = UnixStream::pair().unwrap();
        streams[lower][upper] = Some(one);
        streams[upper][lower] = Some(other);
    }
    let numbered = (0u32..).zip(streams);
    numbered.map(|(rank, streams)| SocketLink::new(rank, streams).unwrap()).collect()
}
