//! A line between two processes of a test: what a program would have that
//! passes names and cookies on.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use lmt_conformance::group::Group;

fn address(group: &Group) -> SocketAddr {
    SocketAddr::from_abstract_name(format!("lmt-knem-test-{}", group.id())).expect("a short name")
}

pub struct Line(UnixStream);

impl Line {
    /// For rank 0: its lines to all others, in their order.
    pub fn to_all(group: &Group) -> Vec<Self> {
        let listener = UnixListener::bind_addr(&address(group)).expect("the name is this group's");
        group.barrier();
        let mut lines: Vec<(u8, Self)> = (1..group.size())
            .map(|_| {
                let mut line = Self(listener.accept().expect("the others connect").0);
                (line.receive()[0], line)
            })
            .collect();
        lines.sort_by_key(|(rank, _)| *rank);
        lines.into_iter().map(|(_, line)| line).collect()
    }

    /// For all others: the line to rank 0.
    pub fn to_first(group: &Group) -> Self {
        group.barrier();
        let mut line = Self(UnixStream::connect_addr(&address(group)).expect("rank 0 listens"));
        line.send(&[group.rank() as u8]);
        line
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(&(bytes.len() as u32).to_ne_bytes()).expect("the other reads");
        self.0.write_all(bytes).expect("the other reads");
    }

    pub fn receive(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).expect("the other writes");
        let mut bytes = vec![0; u32::from_ne_bytes(length) as usize];
        self.0.read_exact(&mut bytes).expect("the other writes");
        bytes
    }

    /// Returns when the other has called it as often.
    pub fn meet(&mut self) {
        self.send(&[]);
        assert!(self.receive().is_empty());
    }
}
