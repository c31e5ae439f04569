//! Local sockets that carry descriptors.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use windtunnel_sys::{process, unix};

#[test]
fn messages_keep_their_borders() {
    let (left, right) = unix::seqpacket_pair().unwrap();
    unix::send(&left, b"one", &[]).unwrap();
    unix::send(&left, b"two more", &[]).unwrap();
    let mut buffer = [0; 64];
    assert_eq!(unix::receive(&right, &mut buffer).unwrap().bytes, 3);
    assert_eq!(unix::receive(&right, &mut buffer).unwrap().bytes, 8);
    assert_eq!(&buffer[..8], b"two more");
}

#[test]
fn descriptors_travel_and_are_close_on_exec() {
    let (left, right) = UnixStream::pair().unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let sent: OwnedFd = reader.into();
    let descriptors = [sent.as_fd(); unix::DESCRIPTORS_MAX];
    assert_eq!(unix::send(&left, b"x", &descriptors).unwrap(), 1);
    let mut buffer = [0; 8];
    let received = unix::receive(&right, &mut buffer).unwrap();
    assert_eq!((received.bytes, received.descriptors.len(), received.truncated), (1, 8, false));
    for descriptor in &received.descriptors {
        let flags = rustix::io::fcntl_getfd(descriptor).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
    drop(sent);
    writer.write_all(b"through").unwrap();
    drop(writer);
    let mut text = String::new();
    let first = received.descriptors.into_iter().next().unwrap();
    File::from(first).read_to_string(&mut text).unwrap();
    assert_eq!(text, "through");
}

#[test]
fn nine_descriptors_are_refused() {
    let (left, right) = unix::seqpacket_pair().unwrap();
    let error = unix::send(&left, b"x", &[right.as_fd(); 9]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn a_message_longer_than_the_buffer_is_marked() {
    let (left, right) = unix::seqpacket_pair().unwrap();
    unix::send(&left, b"longer", &[]).unwrap();
    let received = unix::receive(&right, &mut [0; 2]).unwrap();
    assert_eq!((received.bytes, received.truncated), (2, true));
}

#[test]
fn a_closed_peer_is_an_error_for_the_sender_and_the_end_for_the_receiver() {
    let (left, right) = unix::seqpacket_pair().unwrap();
    drop(right);
    let error = unix::send(&left, b"x", &[]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EPIPE));
    assert_eq!(unix::receive(&left, &mut [0; 2]).unwrap().bytes, 0);
}

#[test]
fn the_peer_of_a_pair_is_the_process_itself() {
    let (left, _right) = unix::seqpacket_pair().unwrap();
    let peer = unix::peer_credentials(&left).unwrap();
    let user = process::current_user();
    assert_eq!((peer.pid, peer.uid, peer.gid), (Some(process::current()), user.uid, user.gid));
}
