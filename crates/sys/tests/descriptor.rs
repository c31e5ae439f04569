//! Descriptors in bulk.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use windtunnel_sys::descriptor;

#[test]
fn only_the_given_descriptors_are_closed() {
    let (mut near, far): (Vec<_>, Vec<_>) =
        (0..40).map(|_| UnixStream::pair().expect("sockets")).unzip();
    let (kept, closed): (Vec<_>, Vec<_>) =
        far.into_iter().enumerate().partition(|(at, _)| at % 7 == 0);
    let bystander = File::open("/dev/null").expect("/dev/null");
    descriptor::close_all(closed.into_iter().rev().map(|(_, stream)| OwnedFd::from(stream)));
    for (at, mut stream) in kept {
        stream.write_all(&[7]).expect("a socket that was kept");
        let mut byte = [0];
        near[at].read_exact(&mut byte).expect("its other end");
        assert_eq!(byte, [7]);
    }
    for (_, stream) in near.iter_mut().enumerate().filter(|(at, _)| at % 7 != 0) {
        // The other end is closed.
        assert_eq!(stream.read(&mut [0]).expect("an end"), 0);
    }
    assert!(bystander.metadata().is_ok());
}

#[test]
fn nothing_to_close_closes_nothing() {
    let file = File::open("/dev/null").expect("/dev/null");
    descriptor::close_all([]);
    assert!(file.metadata().is_ok());
}
