//! Unix sockets: making, naming, connecting, and one datagram at a time.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, Shutdown, SockFlag, SockType, UnixAddr,
    UnixCredentials, bind, connect, getsockopt, listen, sendmsg, shutdown, socket, sockopt,
};

use super::{ConnectError, sys};
use crate::base::process::PeerProcess;
use crate::vocabulary::identity::Address;

/// How many connections may wait to be accepted; the kernel cuts it to
/// net.core.somaxconn, whose default is this.
const BACKLOG: i32 = 4096;

/// How often a folder's lock is asked for, a millisecond apart.
const LOCK_TRIES: u32 = 1000;

/// A listening socket, whose file, if it has one, is removed in
/// [`Listener::close`].
#[derive(Debug)]
pub(super) struct Listener {
    pub fd: OwnedFd,
    /// The file with its device and inode, so that nobody else's is removed.
    file: Option<(PathBuf, u64, u64)>,
}

/// Why an attempt to connect did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectFailure {
    /// The other's backlog is full.
    Full,
    /// Nobody listens there, or not yet.
    Nobody,
    /// This process or the machine is short of descriptors or memory.
    Short(Errno),
    /// It will not work later either.
    Never(Errno),
}

/// How a datagram fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// It is on its way.
    Yes,
    /// The socket's buffer is full; epoll tells when it is not.
    Full,
    /// Too many descriptors are in flight, or memory is short; only time tells.
    Later,
    /// The connection is broken.
    Broken,
}

fn new_socket() -> Result<OwnedFd, Errno> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)
}

fn file_of(address: &Address) -> Option<PathBuf> {
    address.folder().map(|folder| folder.join(format!("lmt-{}", address.id())))
}

fn name_of(address: &Address) -> Result<UnixAddr, Errno> {
    match file_of(address) {
        Some(path) => UnixAddr::new(&path),
        None => UnixAddr::new_abstract(format!("lmt-{}", address.id()).as_bytes()),
    }
}

/// Listens under the name that the address says.
pub(super) fn listen_at(address: &Address, allow_other_users: bool) -> Result<Listener, ConnectError> {
    let failed = |call| move |errno: Errno| ConnectError::System { call, errno: errno as i32 };
    let name = name_of(address).map_err(failed("naming the socket"))?;
    let fd = new_socket().map_err(failed("socket"))?;
    let Some(path) = file_of(address) else {
        match bind(fd.as_raw_fd(), &name) {
            Err(Errno::EADDRINUSE) => return Err(ConnectError::NameInUse { id: address.id() }),
            answer => answer.map_err(failed("bind"))?,
        }
        listen_on(&fd).map_err(failed("listen"))?;
        return Ok(Listener { fd, file: None });
    };
    let folder = address.folder().unwrap_or(Path::new("."));
    let of_folder = |error: io::Error| ConnectError::Folder {
        folder: folder.to_owned(),
        errno: error.raw_os_error().unwrap_or(0),
    };
    // Two endpoints that find the same stale file must not both replace it:
    // the folder is locked from the first bind to listen.
    let _lock = lock_folder(folder).map_err(of_folder)?;
    let mut bound = bind(fd.as_raw_fd(), &name);
    if bound == Err(Errno::EADDRINUSE) && is_stale(&name) {
        std::fs::remove_file(&path).map_err(of_folder)?;
        bound = bind(fd.as_raw_fd(), &name);
    }
    match bound {
        Err(Errno::EADDRINUSE) => return Err(ConnectError::NameInUse { id: address.id() }),
        Err(errno) => return Err(of_folder(errno.into())),
        Ok(()) => {}
    }
    let mode = if allow_other_users { 0o666 } else { 0o600 };
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).map_err(of_folder)?;
    listen_on(&fd).map_err(failed("listen"))?;
    let metadata = std::fs::symlink_metadata(&path).map_err(of_folder)?;
    Ok(Listener { fd, file: Some((path, metadata.dev(), metadata.ino())) })
}

fn listen_on(fd: &OwnedFd) -> Result<(), Errno> {
    listen(fd, Backlog::new(BACKLOG).unwrap_or(Backlog::MAXCONN))
}

fn lock_folder(folder: &Path) -> io::Result<Flock<File>> {
    let mut file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(folder)?;
    for _ in 0..LOCK_TRIES {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((back, Errno::EWOULDBLOCK | Errno::EINTR)) => file = back,
            Err((_, errno)) => return Err(errno.into()),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(Errno::EWOULDBLOCK.into())
}

/// Whether the name is that of an endpoint that is gone: its file stands, but
/// nobody listens.
fn is_stale(name: &UnixAddr) -> bool {
    let Ok(fd) = new_socket() else { return false };
    connect(fd.as_raw_fd(), name) == Err(Errno::ECONNREFUSED)
}

impl Listener {
    /// Ends listening, even where a forked child holds the socket too, and
    /// removes the socket's file, if there is one and it still is ours.
    pub fn close(&mut self) {
        let _ = shutdown(self.fd.as_raw_fd(), Shutdown::Both);
        let Some((path, dev, ino)) = self.file.take() else { return };
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { return };
        if (metadata.dev(), metadata.ino()) == (dev, ino) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Takes one connection off the backlog; `None` when there is none left.
pub(super) fn accept(listener: &Listener) -> Result<Option<OwnedFd>, Errno> {
    loop {
        match sys::accept(listener.fd.as_fd()) {
            Ok(fd) => return Ok(Some(fd)),
            Err(Errno::EAGAIN) => return Ok(None),
            Err(Errno::EINTR | Errno::ECONNABORTED) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// One attempt to connect.
pub(super) fn try_connect(address: &Address) -> Result<OwnedFd, ConnectFailure> {
    let name = name_of(address).map_err(ConnectFailure::Never)?;
    let fd = new_socket().map_err(miss)?;
    loop {
        match connect(fd.as_raw_fd(), &name) {
            Ok(()) => return Ok(fd),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(miss(errno)),
        }
    }
}

fn miss(errno: Errno) -> ConnectFailure {
    match errno {
        Errno::EAGAIN => ConnectFailure::Full,
        Errno::ECONNREFUSED | Errno::ENOENT => ConnectFailure::Nobody,
        _ if is_shortage(errno) => ConnectFailure::Short(errno),
        _ => ConnectFailure::Never(errno),
    }
}

/// Whether this says that the process or the machine is short of something
/// that may be there later.
pub(super) fn is_shortage(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM | Errno::ETOOMANYREFS | Errno::ENOSPC
    )
}

/// Who is at the other end, as the kernel noted at its connect or listen.
pub(super) fn credentials(fd: &OwnedFd) -> Result<UnixCredentials, Errno> {
    getsockopt(fd, sockopt::PeerCredentials)
}

/// The process at the other end; `None` when it is dead.
pub(super) fn process(fd: &OwnedFd, credentials: &UnixCredentials) -> Result<Option<PeerProcess>, Errno> {
    let process = match sys::peer_pidfd(fd.as_fd()) {
        Ok(pidfd) => Some(PeerProcess::new(credentials.pid(), Some(pidfd))),
        // Kernels before 6.16 make no pidfd of a process that is reaped.
        Err(Errno::EINVAL | Errno::ESRCH) => None,
        Err(errno) if is_shortage(errno) => return Err(errno),
        Err(_) => process_by_pid(fd, credentials)?,
    };
    Ok(process.filter(PeerProcess::is_alive))
}

/// The process at the other end where the kernel has no SO_PEERPIDFD (before
/// Linux 6.5). The pid may have been given to another process before
/// pidfd_open; so afterwards the connection must still stand and the process
/// must be of the user that connected. What remains is a process of the same
/// user that got the pid of a dead one whose forked child keeps the socket.
pub(super) fn process_by_pid(
    fd: &OwnedFd,
    credentials: &UnixCredentials,
) -> Result<Option<PeerProcess>, Errno> {
    let pid = credentials.pid();
    if pid <= 0 {
        return Ok(Some(PeerProcess::new(0, None)));
    }
    let pidfd = match crate::base::pidfd::pidfd_open(pid) {
        Ok(pidfd) => pidfd,
        Err(Errno::ESRCH) => return Ok(None),
        Err(errno) if is_shortage(errno) => return Err(errno),
        // Before Linux 5.3, or forbidden: the socket tells of the death.
        Err(_) => return Ok(Some(PeerProcess::new(pid, None))),
    };
    let owner = std::fs::metadata(format!("/proc/{pid}")).map(|metadata| metadata.uid()).ok();
    // A process that may not be read belongs to root in /proc.
    let same_user = owner.is_none_or(|uid| uid == credentials.uid() || uid == 0);
    Ok((same_user && !has_ended(fd)).then(|| PeerProcess::new(pid, Some(pidfd))))
}

/// Whether the other end of the connection is closed.
pub(super) fn has_ended(fd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::empty())];
    let hung_up = |fds: &[PollFd<'_>; 1]| fds[0].revents().is_some_and(|r| r.contains(PollFlags::POLLHUP));
    poll(&mut fds, PollTimeout::ZERO).is_ok() && hung_up(&fds)
}

/// Sends one datagram without waiting.
pub(super) fn send(fd: BorrowedFd<'_>, bytes: &[u8], descriptors: &[OwnedFd]) -> Sent {
    let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control = if raw.is_empty() { &[][..] } else { &rights[..] };
    let parts = [io::IoSlice::new(bytes)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    loop {
        return match sendmsg::<UnixAddr>(fd.as_raw_fd(), &parts, control, flags, None) {
            Ok(_) => Sent::Yes,
            Err(Errno::EINTR) => continue,
            Err(Errno::EAGAIN) => Sent::Full,
            Err(errno) if is_shortage(errno) => Sent::Later,
            Err(errno) => {
                tracing::debug!(%errno, "a datagram could not be sent");
                Sent::Broken
            }
        };
    }
}

/// What is to be read from a connection.
pub(super) enum Received {
    /// A datagram.
    Datagram(sys::Datagram),
    /// Nothing at the moment.
    Nothing,
    /// The other end is closed and everything it sent is read.
    End,
}

/// Receives one datagram without waiting.
pub(super) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Received {
    loop {
        return match sys::receive(fd, buffer) {
            // An empty datagram is not of our protocol; it ends the
            // connection as a close does.
            Ok(datagram) if datagram.bytes == 0 => Received::End,
            Ok(datagram) => Received::Datagram(datagram),
            // ECONNRESET is told once, when the other end closed without
            // having read all; what it sent before can still be read.
            Err(Errno::EINTR | Errno::ECONNRESET) => continue,
            Err(errno) if errno == Errno::EAGAIN || is_shortage(errno) => Received::Nothing,
            Err(_) => Received::End,
        };
    }
}

/// Ends a connection for both sides, even where a forked child of this process
/// holds the descriptor too. What was sent before can still be read.
pub(super) fn close(fd: impl AsRawFd) {
    let _ = shutdown(fd.as_raw_fd(), Shutdown::Both);
}
