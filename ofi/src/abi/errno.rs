//! `fi_errno.h`: what went wrong. The numbers up to 255 are those of errno(3).

use std::ffi::c_int;

/// A positive `fi_errno`; what functions return is its negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub c_int);

impl Errno {
    pub const NOENT: Self = Self(libc::ENOENT);
    pub const IO: Self = Self(libc::EIO);
    pub const AGAIN: Self = Self(libc::EAGAIN);
    pub const NOMEM: Self = Self(libc::ENOMEM);
    pub const FAULT: Self = Self(libc::EFAULT);
    pub const ADDRINUSE: Self = Self(libc::EADDRINUSE);
    pub const BUSY: Self = Self(libc::EBUSY);
    pub const INVAL: Self = Self(libc::EINVAL);
    pub const NOSYS: Self = Self(libc::ENOSYS);
    pub const NOMSG: Self = Self(libc::ENOMSG);
    pub const NODATA: Self = Self(libc::ENODATA);
    pub const MSGSIZE: Self = Self(libc::EMSGSIZE);
    pub const NOPROTOOPT: Self = Self(libc::ENOPROTOOPT);
    pub const OPNOTSUPP: Self = Self(libc::EOPNOTSUPP);
    pub const CONNRESET: Self = Self(libc::ECONNRESET);
    pub const HOSTUNREACH: Self = Self(libc::EHOSTUNREACH);
    pub const TIMEDOUT: Self = Self(libc::ETIMEDOUT);
    pub const CANCELED: Self = Self(libc::ECANCELED);
    pub const ACCES: Self = Self(libc::EACCES);
    pub const OTHER: Self = Self(256);
    pub const TOOSMALL: Self = Self(257);
    pub const OPBADSTATE: Self = Self(258);
    pub const AVAIL: Self = Self(259);
    pub const BADFLAGS: Self = Self(260);
    pub const DOMAIN: Self = Self(262);
    pub const NOCQ: Self = Self(263);
    pub const TRUNC: Self = Self(265);
    pub const NOEQ: Self = Self(261);
    pub const NOKEY: Self = Self(266);
    pub const NOAV: Self = Self(267);

    /// What a function that failed returns.
    pub const fn returned(self) -> isize {
        -(self.0 as isize)
    }

    /// The same of one that returns an `int`.
    pub const fn returned_int(self) -> c_int {
        -self.0
    }

    /// What it means, in a few words.
    pub fn text(self) -> &'static str {
        match self {
            Self::TOOSMALL => "Provided buffer is too small",
            Self::OPBADSTATE => "Operation not permitted in current state",
            Self::AVAIL => "Error available",
            Self::BADFLAGS => "Flags not supported",
            Self::NOEQ => "Missing or unavailable event queue",
            Self::DOMAIN => "Invalid resource domain",
            Self::NOCQ => "Missing or unavailable completion queue",
            Self::TRUNC => "Truncation error",
            Self::NOKEY => "Required key not available",
            Self::NOAV => "Missing or unavailable address vector",
            Self(number @ 1..=255) => nix::errno::Errno::from_raw(number).desc(),
            _ => "Unspecified error",
        }
    }
}
