//! A part for tests: its process is a shell that passes frames between the agent's socket and two
//! pipes of the test.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use windtunnel_control::SoftwareVersion;
use windtunnel_control::frame::{self, FrameDecoder};
use windtunnel_control::part::{FromPart, PartSetup, ToPart};

use super::live::PATIENCE;
use crate::PartWorkerCommand;

/// One process that an agent starts as a part.
pub(super) struct FakePart {
    folder: tempfile::TempDir,
    orders: Receiver<ToPart>,
    to_agent: File,
}

impl FakePart {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is a folder");
        let [to_agent, mut from_agent] = [TO_AGENT, FROM_AGENT].map(|name| {
            let path = folder.path().join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
            // Both ends at once: opening does not wait for the other process.
            OpenOptions::new().read(true).write(true).open(path).expect("the pipe opens")
        });
        let (sender, orders) = channel();
        thread::spawn(move || {
            let (mut frames, mut is_greeted) = (FrameDecoder::default(), false);
            let mut buffer = [0; 4096];
            while let Ok(got @ 1..) = from_agent.read(&mut buffer) {
                frames.add(&buffer[..got]);
                if !is_greeted {
                    is_greeted = frames.take::<SoftwareVersion>().expect("a version").is_some();
                }
                while is_greeted && let Some(order) = frames.take().expect("an order") {
                    if sender.send(order).is_err() {
                        return;
                    }
                }
            }
        });
        let mut part = FakePart { folder, orders, to_agent };
        part.write(&frame::encode(&SoftwareVersion::own()).expect("a version"));
        part
    }

    /// How the agent starts it.
    pub(super) fn worker(&self) -> PartWorkerCommand {
        let path = |name: &str| self.folder.path().join(name).into_os_string();
        let script = "exec 3<&0; cat \"$1\" >&3 & exec cat <&3 >\"$2\"";
        let words = ["-c", script, "part"].map(Into::into).into_iter();
        let arguments = words.chain([path(TO_AGENT), path(FROM_AGENT)]).collect();
        PartWorkerCommand { program: "/bin/sh".into(), arguments }
    }

    /// Where the agent has the folders of its parts.
    pub(super) fn parts_folder(&self) -> PathBuf {
        self.folder.path().join("parts")
    }

    pub(super) fn send(&mut self, message: &FromPart) {
        self.write(&frame::encode(message).expect("a message"));
    }

    /// The next order of the agent but those about clocks, which come at any time.
    pub(super) fn order(&self) -> ToPart {
        loop {
            match self.orders.recv_timeout(PATIENCE).expect("an order comes in time") {
                ToPart::Clocks { .. } => {}
                order => return order,
            }
        }
    }

    pub(super) fn setup(&self) -> PartSetup {
        match self.order() {
            ToPart::Setup(setup) => *setup,
            other => panic!("{other:?} is not a setup"),
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.to_agent.write_all(bytes).expect("the pipe takes it");
    }
}

const TO_AGENT: &str = "to-agent";
const FROM_AGENT: &str = "from-agent";
