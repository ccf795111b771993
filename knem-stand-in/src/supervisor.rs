//! The thread that answers the clients' calls.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};

use crate::client::Client;
use crate::driver::{Driver, Reply};
use crate::options::Options;
use crate::sys::{self, Answer};

/// What the supervisor says to the thread that starts it and that it serves.
pub const READY: u8 = 1;

/// Runs until no process is left under the filter whose number comes over
/// `start`.
pub fn run(start: UnixStream, options: Options) {
    let Some((listener, mut driver)) = prepare(start, options) else {
        return;
    };
    loop {
        let mut waited = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        if poll(&mut waited, PollTimeout::NONE).is_err() {
            continue;
        }
        let happened = waited[0].revents().unwrap_or(PollFlags::empty());
        if happened.contains(PollFlags::POLLIN) {
            if let Some(call) = sys::receive(&listener) {
                serve(&mut driver, &Client { call, listener: &listener });
            }
        } else if happened.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL) {
            return;
        }
    }
}

/// Takes the listener over. This thread's descriptors are its own from here on:
/// a child that another thread forks inherits neither the listener, which would
/// keep calls waiting for nobody, nor a client's open device, which would keep
/// its regions alive.
fn prepare(mut start: UnixStream, options: Options) -> Option<(OwnedFd, Driver)> {
    unshare(CloneFlags::CLONE_FILES).ok()?;
    sys::close_all_but(start.as_raw_fd());
    let driver = Driver::new(options).ok()?;
    start.write_all(&[READY]).ok()?;
    let mut number = [0; 4];
    start.read_exact(&mut number).ok()?;
    let listener = sys::descriptor_of_the_process(RawFd::from_ne_bytes(number)).ok()?;
    start.write_all(&[READY]).ok()?;
    Some((listener, driver))
}

fn serve(driver: &mut Driver, client: &Client<'_>) {
    let id = client.call.id;
    let result = match driver.handle(client) {
        Reply::Plain(answer) => sys::respond(client.listener, id, &answer),
        Reply::Opened { file, close_on_exec } => {
            match sys::respond_with_file(client.listener, id, &file, close_on_exec) {
                Ok(()) => Ok(()),
                Err(error) => sys::respond(client.listener, id, &Answer::Error(error)),
            }
        }
    };
    if let Err(error) = result {
        eprintln!("knem-stand-in: a call could not be answered: {error}");
    }
}
