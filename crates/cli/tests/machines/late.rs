//! A part of a run that learns of its beginning too late: the test acts as its agent.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use windtunnel_control::SoftwareVersion;
use windtunnel_control::frame::{self, FrameDecoder};
use windtunnel_control::part::{FromPart, PartSetup, SharedOptions, ToPart};
use windtunnel_model::{Bytes, Span};
use windtunnel_sys::clock;

use super::support::Machines;

#[test]
fn a_part_that_learns_of_the_beginning_after_its_time_reports_how_late_it_began() {
    // Whether parts can be made here.
    if Machines::new(1).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut part = Part::start(folder.path().join("part"));
    part.wait_for(|said| matches!(said, FromPart::Prepared));
    part.send(&ToPart::Peers { addresses: vec![None] });
    part.wait_for(|said| matches!(said, FromPart::Reached));
    part.send(&ToPart::Measure);
    part.wait_for(|said| matches!(said, FromPart::Measured));
    let late_ns = 105_000_000;
    part.send(&ToPart::Begin { origin_ns: clock::monotonic_ns() - late_ns });
    let is_reported = |said: &FromPart| {
        let FromPart::Notice { notice } = said else { return false };
        notice.contains("began-late") && notice.contains("\"host\":\"one\"")
    };
    part.wait_for(is_reported);
    part.wait_for(|said| matches!(said, FromPart::Ended));
    let results = std::fs::read(folder.path().join("part/part.json")).unwrap();
    let results: serde_json::Value = serde_json::from_slice(&results).unwrap();
    let began_late: Span = serde_json::from_value(results["began_late"].clone()).unwrap();
    assert!(began_late >= Span::from_nanos(late_ns), "{began_late}");
}

/// A part, and its agent's end of the socket.
struct Part {
    child: std::process::Child,
    stream: UnixStream,
    frames: FrameDecoder,
}

impl Part {
    fn start(folder: std::path::PathBuf) -> Part {
        let (stream, theirs) = UnixStream::pair().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
        command.arg("part").stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        let child = command.spawn().unwrap();
        drop(command);
        let mut part = Part { child, stream, frames: FrameDecoder::default() };
        part.stream.write_all(&frame::encode(&SoftwareVersion::own()).unwrap()).unwrap();
        while part.frames.take::<SoftwareVersion>().unwrap().is_none() {
            part.read();
        }
        part.send(&ToPart::Setup(Box::new(setup(folder))));
        part
    }

    fn send(&mut self, message: &ToPart) {
        self.stream.write_all(&frame::encode(message).unwrap()).unwrap();
    }

    #[track_caller]
    fn read(&mut self) {
        let mut buffer = [0; 4096];
        let got = self.stream.read(&mut buffer).unwrap();
        assert!(got > 0, "the part has ended");
        self.frames.add(&buffer[..got]);
    }

    /// Waits until it says this. Its end is the end of the stream.
    #[track_caller]
    fn wait_for(&mut self, wanted: impl Fn(&FromPart) -> bool) {
        loop {
            while let Some(said) = self.frames.take::<FromPart>().unwrap() {
                assert!(!matches!(said, FromPart::Failed { .. }), "{said:?}");
                if wanted(&said) {
                    return;
                }
            }
            self.read();
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A run of one machine with one program.
fn setup(folder: std::path::PathBuf) -> PartSetup {
    let source = windtunnel_scenario::ScenarioSource {
        name: "net.yaml",
        text: b"model: paths\nnodes: {a: {run: 'true'}}\n",
        default_name: "net",
        base_dir: "/",
    };
    PartSetup {
        run: 7,
        plan: windtunnel_scenario::load(&source).unwrap().plan,
        plan_hash: "0".repeat(64),
        member: 0,
        members: vec!["one".to_owned()],
        placement: vec![0],
        key: None,
        folder,
        base_dir: "/".into(),
        bind: [127, 0, 0, 1].into(),
        ports: (17_448, 17_547),
        shared: SharedOptions {
            max_lateness: Span::from_millis(5),
            output_limit: Bytes(1 << 20),
            offload: true,
            packet_memory: Bytes(1 << 28),
        },
    }
}
