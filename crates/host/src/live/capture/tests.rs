//! What becomes of captures.

use windtunnel_control::{ControlClient, ControlListener, ControlReply};
use windtunnel_model::PortId;

use super::*;

fn wanted(id: u64) -> CaptureRequest {
    let place =
        CapturePoint { port: PortId(0), name: "a eth0".to_owned(), description: String::new() };
    CaptureRequest { id, places: vec![place], snap_bytes: 0, unix_offset_ns: 0, room_bytes: 1000 }
}

/// A capture of `a` by this number, whose thread has nothing to say yet.
fn running(captures: &mut CaptureController, number: u64, to: CaptureDestination) {
    let (tap, counts) = CaptureTap::start(&wanted(number), io::sink(), |_| ()).unwrap();
    drop(tap);
    captures.running.push(ActiveCapture { number, place: "a".to_owned(), to, counts });
}

fn outcome(id: u64, lost: u64, stopped: Option<CaptureStopReason>) -> CaptureOutcome {
    CaptureOutcome { id, seen: 10, lost, stopped }
}

#[test]
fn what_is_missing_in_a_capture_is_said_by_where_it_went() {
    let folder = tempfile::tempdir().unwrap();
    let mut connections =
        ControlConnectionTable::new(ControlListener::open(folder.path()).unwrap());
    let mut captures = CaptureController::new(Arc::new(Wake::open().unwrap()));
    let full = || Some(CaptureStopReason::Failed("it is full".to_owned()));
    let cases = [
        (CaptureDestination::Folder, outcome(0, 0, None)),
        (CaptureDestination::Folder, outcome(1, 3, None)),
        (CaptureDestination::Folder, outcome(2, 4, full())),
        (CaptureDestination::Client(5), outcome(3, 10, Some(CaptureStopReason::ReaderGone))),
        (CaptureDestination::Gone, outcome(4, 2, None)),
    ];
    for (to, outcome) in cases {
        running(&mut captures, outcome.id, to);
        captures.sender.send(outcome).unwrap();
    }
    let IncompleteCaptures { files, others } = captures.finish(&mut connections);
    let lost = |lost| {
        format!(
            "{lost} of 10 packets of the capture of a are missing: they came faster than they \
             were read"
        )
    };
    let ended = "the capture of a ended before the run, after 10 packets: it is full";
    assert_eq!(files, [lost(3), ended.to_owned()]);
    assert_eq!(others, [lost(2)]);
}

#[test]
fn a_client_is_answered_with_what_became_of_its_capture() {
    let folder = tempfile::tempdir().unwrap();
    let mut connections =
        ControlConnectionTable::new(ControlListener::open(folder.path()).unwrap());
    let path = folder.path().to_owned();
    let client =
        std::thread::spawn(move || ControlClient::connect(&path).unwrap().receive().unwrap());
    let mut captures = CaptureController::new(Arc::new(Wake::open().unwrap()));
    let began = Instant::now();
    while connections.turn().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20));
        assert_eq!(connections.accept("net"), None);
    }
    let id = connections.turn()[0];
    running(&mut captures, 0, CaptureDestination::Client(id));
    captures.conclude(&outcome(0, 2, None), &mut connections);
    let (packets, lost) = (10, 2);
    let expected =
        ControlReply::Captured(CaptureResult { packets, lost, reader_gone: false, failure: None });
    assert_eq!(client.join().unwrap(), expected);
}

#[test]
fn a_capture_whose_client_has_gone_is_ended_by_its_number() {
    let mut captures = CaptureController::new(Arc::new(Wake::open().unwrap()));
    running(&mut captures, 8, CaptureDestination::Client(5));
    assert_eq!(captures.leave(4), None);
    assert_eq!(captures.leave(5), Some(8));
    assert_eq!(captures.leave(5), None);
}
