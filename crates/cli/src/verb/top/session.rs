//! The loop of `top`: the run, keys and signals meet here.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use windtunnel_control::{ControlClient, ControlClientError, ControlRequest};
use windtunnel_model::{Plan, Span};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::Signal;
use windtunnel_sys::signal::SignalReader;

use super::app::{KeyPressEffect, TopViewState};
use super::canvas::ScreenCanvas;
use super::draw::draw;
use super::input::{TerminalEvent, TerminalEventReceiver};
use super::order::{self, RunChangeRequest};
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output;
use crate::terminal::Screen;

/// Shows the run until the user, a signal or the run ends it.
pub(super) fn run(client: ControlClient, plan: Plan, interval: Span) -> Outcome {
    let name = client.name().to_owned();
    // Before there are threads: they inherit that these are not for them.
    let signals = SignalReader::open(&[Signal::INT, Signal::TERM, Signal::HUP])
        .map_err(|error| failed("take over signals", &error))?;
    let screen = Screen::enter().map_err(|error| failed("use the terminal", &error))?;
    let inputs = TerminalEventReceiver::start().map_err(|error| failed("read keys", &error))?;
    let session = TopSession {
        client,
        signals,
        inputs,
        shown: None,
        app: TopViewState::new(plan),
        colours: output::data_colours(),
        interval: Duration::from(interval),
        orders: VecDeque::new(),
        asked: None,
        due: Instant::now(),
    };
    let ending = session.until_end();
    // Messages from here on are on the user's own screen.
    drop(screen);
    match ending? {
        TopSessionEndReason::Quit => Ok(ExitCategory::Fine.code()),
        TopSessionEndReason::RunEnded => {
            output::talk(&format!("{name} has ended"));
            Ok(ExitCategory::Fine.code())
        }
        TopSessionEndReason::Signal(number) => Ok(u8::try_from(128 + number).unwrap_or(u8::MAX)),
    }
}

fn failed(what: &str, error: &io::Error) -> VerbFailure {
    VerbFailure::new(ExitCategory::Machine, format!("cannot {what}: {error}"))
}

/// Why the session is over.
enum TopSessionEndReason {
    Quit,
    RunEnded,
    Signal(i32),
}

/// A request that is not yet answered.
enum PendingRequest {
    Snapshot,
    /// The message once it is done.
    Order(String),
}

struct TopSession {
    client: ControlClient,
    signals: SignalReader,
    inputs: TerminalEventReceiver,
    /// What the terminal shows.
    shown: Option<ScreenCanvas>,
    app: TopViewState,
    colours: bool,
    interval: Duration,
    /// Still to be sent: one request at a time, so that each reply has its request.
    orders: VecDeque<RunChangeRequest>,
    asked: Option<(PendingRequest, Instant)>,
    /// When the next look at the run is to be taken.
    due: Instant,
}

impl TopSession {
    fn until_end(mut self) -> Result<TopSessionEndReason, VerbFailure> {
        loop {
            if self.ask()?.is_some() {
                return Ok(TopSessionEndReason::RunEnded);
            }
            self.draw()?;
            let ready = self.wait()?;
            if let Some(received) = ready.signal {
                return Ok(TopSessionEndReason::Signal(received));
            }
            if ready.reply && self.receive()?.is_some() {
                return Ok(TopSessionEndReason::RunEnded);
            }
            if ready.terminal_gone {
                return Ok(TopSessionEndReason::Signal(Signal::HUP.as_raw()));
            }
            if self.take_inputs()? {
                return Ok(TopSessionEndReason::Quit);
            }
        }
    }

    /// Sends the next request, if none is pending; `RunDisconnection` if the run has ended.
    fn ask(&mut self) -> Result<Option<RunDisconnection>, VerbFailure> {
        if self.asked.is_some() {
            return Ok(None);
        }
        let now = Instant::now();
        let (sent, asked) = if let Some(order) = self.orders.pop_front() {
            (self.client.send(order.request.message(), &[]), PendingRequest::Order(order.done))
        } else if !self.app.paused && now >= self.due {
            (self.client.send(&ControlRequest::Snapshot, &[]), PendingRequest::Snapshot)
        } else {
            return Ok(None);
        };
        self.asked = Some((asked, now));
        Ok(gone(sent)?.err())
    }

    /// Receives a reply; `RunDisconnection` if the run has ended.
    fn receive(&mut self) -> Result<Option<RunDisconnection>, VerbFailure> {
        let Some((asked, at)) = self.asked.take() else {
            return Ok(gone(self.client.receive())?.err());
        };
        // After a change its effect is to be shown at once.
        self.due = match asked {
            PendingRequest::Snapshot => at + self.interval,
            PendingRequest::Order(_) => Instant::now(),
        };
        match asked {
            PendingRequest::Snapshot => match gone(self.client.receive_answer())? {
                Ok(snapshot) if !self.app.paused => self.app.update(snapshot),
                Ok(_) => {}
                Err(gone) => return Ok(Some(gone)),
            },
            PendingRequest::Order(done) => match self.client.receive_answer::<()>() {
                Err(ControlClientError::Declined { message, hint }) => {
                    self.app.say(order::message(&message, hint.as_deref()), true);
                }
                answer => match gone(answer)? {
                    Ok(()) => self.app.say(done, false),
                    Err(gone) => return Ok(Some(gone)),
                },
            },
        }
        Ok(None)
    }

    /// Executes typed keys; true to quit.
    fn take_inputs(&mut self) -> Result<bool, VerbFailure> {
        for input in self.inputs.take() {
            match input {
                TerminalEvent::Key(key) => match self.app.key(key) {
                    KeyPressEffect::Nothing => {}
                    KeyPressEffect::Quit => return Ok(true),
                    KeyPressEffect::Order(order) => self.orders.push_back(*order),
                },
                TerminalEvent::Resized => {}
                TerminalEvent::Lost(error) => return Err(failed("read keys", &error)),
            }
        }
        Ok(false)
    }

    fn draw(&mut self) -> Result<(), VerbFailure> {
        let silent = self.asked.as_ref().map_or(0, |(_, since)| since.elapsed().as_secs());
        let unusable = |error: &io::Error| failed("use the terminal", error);
        let (columns, rows) = crossterm::terminal::size().map_err(|error| unusable(&error))?;
        let mut canvas = ScreenCanvas::new(usize::from(columns), usize::from(rows));
        draw(&mut canvas, &mut self.app, self.colours, silent);
        let bytes = canvas.changes_since(self.shown.as_ref());
        self.shown = Some(canvas);
        let mut terminal = io::stdout().lock();
        let written = terminal.write_all(bytes.as_bytes()).and_then(|()| terminal.flush());
        written.map_err(|error| unusable(&error))
    }

    fn wait(&self) -> Result<TopSessionReadiness, VerbFailure> {
        let stdin = rustix::stdio::stdin();
        let mut polled = [
            PollFd::new(&self.client, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.inputs, PollFlags::IN),
            // poll(2) reports a hangup of the terminal without requested events.
            PollFd::from_borrowed_fd(stdin, PollFlags::empty()),
        ];
        let timeout = match &self.asked {
            _ if self.client.has_buffered() => Duration::ZERO,
            // The age of the pending request is shown in seconds.
            Some(_) => Duration::from_secs(1),
            None if self.app.paused => Duration::from_secs(3600),
            None => self.due.saturating_duration_since(Instant::now()),
        };
        match poll::wait(&mut polled, Some(timeout)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(failed("wait", &error));
            }
            _ => {}
        }
        let events = |index: usize| polled[index].revents();
        let received = if events(1).is_empty() { None } else { self.signals.read().ok().flatten() };
        Ok(TopSessionReadiness {
            reply: !events(0).is_empty() || self.client.has_buffered(),
            signal: received.map(|received| received.signal),
            terminal_gone: events(3).intersects(PollFlags::HUP | PollFlags::ERR),
        })
    }
}

/// Descriptors that are ready.
struct TopSessionReadiness {
    reply: bool,
    signal: Option<i32>,
    terminal_gone: bool,
}

/// The run is over: it has closed the connection.
struct RunDisconnection;

/// Distinguishes the end of the run from a failure.
fn gone<T>(
    outcome: Result<T, ControlClientError>,
) -> Result<Result<T, RunDisconnection>, VerbFailure> {
    match outcome {
        Ok(value) => Ok(Ok(value)),
        Err(ControlClientError::Closed { .. }) => Ok(Err(RunDisconnection)),
        Err(ControlClientError::Talk { source, .. })
            if matches!(
                source.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
            ) =>
        {
            Ok(Err(RunDisconnection))
        }
        Err(other) => Err(other.into()),
    }
}
