//! `capture`: frames of a node or link of a live run, as they come.

use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::FalseyValueParser;
use windtunnel_control::{CaptureResult, ControlClient, ControlRequest};
use windtunnel_model::{Bytes, Plan};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::Signal;
use windtunnel_sys::signal::SignalReader;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::live::LiveRunSelector;
use crate::output::{self, OutputDestination};

/// Capture frames of a node or link of a live run as pcapng, until Ctrl-C or the end of the run
///
/// `windtunnel capture web | wireshark -k -i -` shows them live. Frames are whole, as the node sends
/// and receives them; times are those of the emulated network, in nanoseconds. Of a link its ends at
/// nodes are captured. A reader that is too slow loses frames and slows down nothing; how many it
/// lost, and where, is in the capture and is said at the end.
#[derive(Debug, clap::Args)]
pub(crate) struct CaptureArguments {
    /// A node, or a link with a node at an end
    #[arg(value_name = "NODE|LINK")]
    place: String,
    /// Write to this new file; `-`: to standard output
    #[arg(short, long, value_name = "FILE", env = "WINDTUNNEL_WRITE", default_value = "-")]
    write: PathBuf,
    /// Overwrite a file that is there already
    #[arg(long, env = "WINDTUNNEL_FORCE", value_parser = FalseyValueParser::new())]
    force: bool,
    /// Keep so much of each frame, such as 96B [default: all]
    #[arg(short, long, value_name = "BYTES", env = "WINDTUNNEL_SNAPLEN")]
    snaplen: Option<Bytes>,
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: &CaptureArguments) -> Outcome {
    let snap_bytes = snap_bytes(arguments.snaplen)?;
    let destination = OutputDestination::new(arguments.write.clone(), arguments.force);
    if destination.path().is_none() && io::stdout().is_terminal() {
        let text = "frames are not for a terminal";
        return Err(
            VerbFailure::new(ExitCategory::Usage, text).hint("-w FILE, or `| wireshark -k -i -`")
        );
    }
    let mut client = arguments.live.connect()?;
    let places = places(&arguments.live.plan()?, &arguments.place)?;
    let signals = SignalReader::open(&[Signal::INT, Signal::TERM, Signal::HUP])
        .map_err(|error| failed("take over signals", &error))?;
    let file = destination.create()?;
    let request = ControlRequest::capture(arguments.place.clone(), snap_bytes);
    let begun = match &file {
        Some(file) => client.ask_with(&request, &[file.as_fd()]),
        None => client.ask_with(&request, &[rustix::stdio::stdout()]),
    };
    begun.inspect_err(|_| remove_empty(file.as_ref(), &arguments.write))?;
    output::talk(&format!("capturing {}", places.join(", ")));
    let is_output = file.is_none();
    let session = CaptureSession { client, signals, is_output };
    match session.until_captured()? {
        Some(captured) => conclude(arguments, is_output, &captured),
        None => Ok(ENDED_TWICE),
    }
}

/// Zero stands for all.
fn snap_bytes(snaplen: Option<Bytes>) -> Result<u32, VerbFailure> {
    let Some(Bytes(bytes)) = snaplen else { return Ok(0) };
    u32::try_from(bytes).ok().filter(|bytes| *bytes > 0).ok_or_else(|| {
        let text = format!("--snaplen {}: between one byte and 4 GB are kept", Bytes(bytes));
        VerbFailure::new(ExitCategory::Usage, text)
    })
}

/// Where frames of this node or link are captured.
pub(crate) fn places(plan: &Plan, place: &str) -> Result<Vec<String>, VerbFailure> {
    windtunnel_host::capture_places(plan, place).map_err(|(text, hint)| {
        let failure = VerbFailure::new(ExitCategory::Usage, text);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

struct CaptureSession {
    client: ControlClient,
    signals: SignalReader,
    is_output: bool,
}

impl CaptureSession {
    /// Waits for the end of the capture, which a signal asks for. `None`: a second one has come.
    fn until_captured(mut self) -> Result<Option<CaptureResult>, VerbFailure> {
        let mut has_asked = false;
        loop {
            let (reply, signal, closed) = self.wait(has_asked)?;
            if reply {
                return Ok(Some(self.client.receive_answer()?));
            }
            if signal || closed {
                let _ = self.signals.read();
                if std::mem::replace(&mut has_asked, true) {
                    output::talk("the last frames may be missing in the capture");
                    return Ok(None);
                }
                self.client.send(&ControlRequest::CaptureEnd, &[])?;
            }
        }
    }

    /// Whether there is a reply or a signal, and whether the reader of standard output has gone.
    fn wait(&self, has_asked: bool) -> Result<(bool, bool, bool), VerbFailure> {
        let output = rustix::stdio::stdout();
        let mut polled = vec![
            PollFd::new(&self.client, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        if self.is_output && !has_asked {
            polled.push(PollFd::new(&output, PollFlags::empty()));
        }
        let timeout = self.client.has_buffered().then_some(Duration::ZERO);
        poll::wait(&mut polled, timeout).map_err(|error| failed("wait", &error))?;
        let is_ready = |at: usize| polled.get(at).is_some_and(|it| !it.revents().is_empty());
        Ok((is_ready(0) || self.client.has_buffered(), is_ready(1), is_ready(2)))
    }
}

fn conclude(arguments: &CaptureArguments, is_output: bool, captured: &CaptureResult) -> Outcome {
    let CaptureResult { packets, lost, reader_gone, failure } = captured;
    if let Some(why) = failure {
        let to = if is_output {
            "standard output".to_owned()
        } else {
            arguments.write.display().to_string()
        };
        let text =
            format!("cannot write to {to}: {why}; {packets} packets were captured until then");
        return Err(VerbFailure::new(ExitCategory::Machine, text));
    }
    if *reader_gone {
        output::talk("the reader has closed the capture");
        return Err(VerbFailure::ReaderGone);
    }
    output::talk(&format!("{packets} packets captured, {lost} of them lost"));
    if *lost > 0 {
        output::talk(
            "warning: packets came faster than they were read; --snaplen keeps less of each",
        );
    }
    if arguments.format.json && !is_output {
        output::json(captured)?;
    }
    Ok(ExitCategory::Fine.code())
}

/// The exit code after a second Ctrl-C.
const ENDED_TWICE: u8 = 130;

/// A refused capture leaves no file.
fn remove_empty(file: Option<&File>, path: &Path) {
    let is_empty = |file: &File| file.metadata().is_ok_and(|it| it.is_file() && it.len() == 0);
    if file.is_some_and(is_empty) {
        let _ = fs::remove_file(path);
    }
}

fn failed(what: &str, error: &io::Error) -> VerbFailure {
    VerbFailure::new(ExitCategory::Machine, format!("cannot {what}: {error}"))
}
