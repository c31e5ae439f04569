//! Which nodes have something to read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use windtunnel_model::NodeId;

use super::nodes::NodeInitMessenger;

/// A set of nodes that is readable when one of them is: its cost is that of those that have something
/// to say, however many there are (epoll(7)).
#[derive(Debug)]
pub(crate) struct Readiness {
    set: OwnedFd,
}

impl Readiness {
    /// # Errors
    /// What epoll_create(2) and epoll_ctl(2) say.
    pub(crate) fn of(inits: &dyn NodeInitMessenger) -> io::Result<Readiness> {
        Readiness::of_descriptors(inits.descriptors())
    }

    fn of_descriptors<'a>(
        nodes: impl IntoIterator<Item = (NodeId, BorrowedFd<'a>)>,
    ) -> io::Result<Readiness> {
        let set = epoll::create(CreateFlags::CLOEXEC)?;
        for (node, descriptor) in nodes {
            epoll::add(&set, descriptor, EventData::new_u64(u64::from(node.0)), EventFlags::IN)?;
        }
        Ok(Readiness { set })
    }

    /// Forgets a node: without its other end, a channel would stay readable.
    pub(super) fn remove(&self, descriptor: BorrowedFd<'_>) {
        // One that is not there needs nothing.
        let _ = epoll::delete(&self.set, descriptor);
    }

    /// Nodes that have something to read. Of very many, others come at the next call.
    pub(super) fn nodes(&self) -> Vec<NodeId> {
        let mut ready = Vec::with_capacity(AT_ONCE);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Interrupted: at the next call.
        let _ = epoll::wait(&self.set, spare_capacity(&mut ready), Some(&at_once));
        let number = |event: &epoll::Event| u32::try_from(event.data.u64()).ok();
        ready.iter().filter_map(number).map(NodeId).collect()
    }
}

impl AsFd for Readiness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

const AT_ONCE: usize = 256;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn nodes_are_ready_while_they_have_something_to_read_until_they_are_forgotten() {
        let (mut a, a_end) = UnixStream::pair().unwrap();
        let (b, mut b_end) = UnixStream::pair().unwrap();
        let both = [(NodeId(3), a.as_fd()), (NodeId(5), b.as_fd())];
        let readiness = Readiness::of_descriptors(both).unwrap();
        assert_eq!(readiness.nodes(), []);
        b_end.write_all(b"x").unwrap();
        assert_eq!(readiness.nodes(), [NodeId(5)]);
        drop(a_end);
        let mut both = readiness.nodes();
        both.sort_unstable();
        assert_eq!(both, [NodeId(3), NodeId(5)]);
        assert_eq!(a.read(&mut [0]).unwrap(), 0);
        readiness.remove(a.as_fd());
        readiness.remove(a.as_fd());
        assert_eq!(readiness.nodes(), [NodeId(5)]);
    }
}
