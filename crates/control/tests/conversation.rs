//! A client and a run talk over a real socket.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;

use windtunnel_control::{
    ConnectionInput, ControlClient, ControlClientError, ControlConnection, ControlListener,
    ControlReply, ControlRequest, LaneStatus, RunStatus, Snapshot,
};

fn connected(folder: &std::path::Path) -> (ControlListener, ControlClient, ControlConnection) {
    let listener = ControlListener::open(folder).unwrap();
    let (client, connection) = std::thread::scope(|scope| {
        let client = scope.spawn(|| ControlClient::connect(folder).unwrap());
        let connection = loop {
            wait_for(&listener);
            if let Some(connection) = listener.accept("trial").unwrap() {
                break connection;
            }
        };
        (client.join().unwrap(), connection)
    });
    (listener, client, connection)
}

fn wait_for(descriptor: &impl AsFd) {
    use windtunnel_sys::poll::{PollFd, PollFlags, wait};
    wait(&mut [PollFd::new(descriptor, PollFlags::IN)], None).unwrap();
}

#[test]
fn a_request_and_its_descriptors_arrive_and_the_reply_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (_listener, mut client, mut connection) = connected(folder.path());
    assert_eq!(client.name(), "trial");
    let file = folder.path().join("given");
    std::fs::write(&file, "through the socket").unwrap();
    client.send(&ControlRequest::Ps, &[File::open(&file).unwrap().as_fd()]).unwrap();
    wait_for(&connection);
    let Some(ConnectionInput::Request(request, mut descriptors)) = connection.receive() else {
        panic!("no request");
    };
    assert_eq!(*request, ControlRequest::Ps);
    let mut text = String::new();
    File::from(descriptors.remove(0)).read_to_string(&mut text).unwrap();
    assert_eq!(text, "through the socket");
    connection.reply(&ControlReply::Done).unwrap();
    assert_eq!(client.receive().unwrap(), ControlReply::Done);
}

#[test]
fn a_malformed_line_is_distinguished_from_a_closed_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (_listener, client, mut connection) = connected(folder.path());
    windtunnel_sys::unix::send(&client, b"{\"request\":\"dance\"}\n", &[]).unwrap();
    wait_for(&connection);
    assert!(matches!(connection.receive(), Some(ConnectionInput::Unreadable(_))));
    assert!(connection.receive().is_none());
    drop(client);
    wait_for(&connection);
    assert!(matches!(connection.receive(), Some(ConnectionInput::Closed)));
}

#[test]
fn a_client_that_sends_without_end_is_served_one_request_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let (_listener, client, mut connection) = connected(folder.path());
    let many = b"{\"request\":\"ps\"}\n".repeat(1000);
    windtunnel_sys::unix::send(&client, &many, &[]).unwrap();
    wait_for(&connection);
    assert!(matches!(connection.receive(), Some(ConnectionInput::Request(..))));
    assert!(connection.has_more(), "more was read, and waits");
    for served in 2..=1000 {
        assert!(matches!(connection.receive(), Some(ConnectionInput::Request(..))), "{served}");
    }
    assert!(connection.receive().is_none());
    assert!(!connection.has_more());
}

#[test]
fn a_line_without_end_is_refused_and_ends_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (_listener, client, mut connection) = connected(folder.path());
    let piece = [b'x'; 65536];
    let mut sent = 0;
    let message = loop {
        if sent <= 1 << 20 {
            sent += windtunnel_sys::unix::send(&client, &piece, &[]).unwrap();
        }
        match connection.receive() {
            Some(ConnectionInput::Unreadable(message)) => break message,
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    };
    assert_eq!(message, "a line over 1048576 bytes");
    assert!(connection.has_more());
    assert!(matches!(connection.receive(), Some(ConnectionInput::Closed)));
}

#[test]
fn a_client_beyond_the_limit_gets_the_reason_and_leaves_the_queue() {
    let folder = tempfile::tempdir().unwrap();
    let mut listener = ControlListener::open(folder.path()).unwrap();
    std::thread::scope(|scope| {
        let client = scope.spawn(|| ControlClient::connect(folder.path()));
        wait_for(&listener);
        assert!(listener.refuse("trial", "too many open files").unwrap());
        let error = client.join().unwrap().unwrap_err();
        assert!(
            matches!(&error, ControlClientError::Refused { why, .. } if why == "too many open files")
        );
        assert!(error.hint().is_some());
    });
    assert!(!listener.refuse("trial", "no client waits").unwrap());
}

#[test]
fn a_folder_with_a_path_longer_than_a_socket_address_works() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("d".repeat(120));
    std::fs::create_dir(&folder).unwrap();
    let (listener, client, _connection) = connected(&folder);
    assert_eq!(client.name(), "trial");
    drop(listener);
    assert!(!folder.join("control.sock").exists());
}

#[test]
fn only_the_owner_may_open_the_socket_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    for umask in [0, 0o002, 0o022, 0o077] {
        // Other tests make nothing that a wider mask would harm.
        let before = windtunnel_sys::process::set_umask(umask);
        let listener = ControlListener::open(folder.path()).unwrap();
        windtunnel_sys::process::set_umask(before);
        let mode =
            folder.path().join("control.sock").symlink_metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "with umask {umask:03o}");
        drop(listener);
    }
}

#[test]
fn a_folder_without_a_run_is_an_error_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let error = ControlClient::connect(folder.path()).unwrap_err();
    assert!(matches!(error, ControlClientError::NoRun { .. }));
    assert!(error.hint().unwrap().contains("windtunnel run"));
}

#[test]
fn a_reply_longer_than_the_socket_holds_arrives_whole_without_blocking_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let (_listener, mut client, mut connection) = connected(folder.path());
    let lane = |n: usize| LaneStatus { link: format!("link-{n}"), ..LaneStatus::default() };
    let status = RunStatus {
        name: "trial".to_owned(),
        elapsed_ns: 1,
        nodes: Vec::new(),
        services: Vec::new(),
        nats: Vec::new(),
    };
    let links: Vec<LaneStatus> = (0..5000).map(lane).collect();
    let long =
        ControlReply::Snapshot(Box::new(Snapshot { status, sampled_ns: 0, window_ns: 0, links }));
    // More than two megabytes: no default of a Unix socket takes that.
    connection.reply(&long).unwrap();
    assert!(connection.is_unsent());
    let received = std::thread::scope(|scope| {
        let reader = scope.spawn(|| client.receive().unwrap());
        while connection.is_unsent() {
            use windtunnel_sys::poll::{PollFd, PollFlags, wait};
            wait(&mut [PollFd::new(&connection, PollFlags::OUT)], None).unwrap();
            connection.flush().unwrap();
        }
        reader.join().unwrap()
    });
    assert_eq!(received, long);
}

#[test]
fn a_client_that_never_reads_is_refused_further_replies() {
    let folder = tempfile::tempdir().unwrap();
    let (_listener, _client, mut connection) = connected(folder.path());
    let message = "x".repeat(1 << 20);
    let long = ControlReply::Error { message, hint: None };
    let taken = (0..100).take_while(|_| connection.reply(&long).is_ok()).count();
    assert!((30..40).contains(&taken), "{taken} megabytes were kept");
}
