//! The session in which this process stands for a command that runs in a node.

use std::io;

use windtunnel_control::{CommandProgress, ControlClient, ControlRequest};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::Signal;
use windtunnel_sys::signal::SignalReader;
use windtunnel_sys::terminal::{self, PseudoterminalPair};

use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::relay::{self, Relay};

/// Has the run start the command of `request`, stands for it, and returns its exit code.
pub(crate) fn run(mut client: ControlClient, request: ControlRequest) -> Outcome {
    let signals =
        SignalReader::open(&FORWARDED).map_err(|error| failed("take over signals", &error))?;
    if !relay::is_wanted() {
        let ends = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
        client.send(&request, &ends)?;
        return ExecSession { client, signals, relay: None }.until_exit();
    }
    let PseudoterminalPair { controller, terminal } =
        terminal::open_pair().map_err(|error| failed("make a terminal", &error))?;
    let relay = Relay::new(controller).map_err(|error| failed("use a terminal", &error))?;
    client.send(&with_terminal(request), &relay::through(&terminal))?;
    // Only the command may hold its terminal, else its end would not be seen.
    drop(terminal);
    ExecSession { client, signals, relay: Some(relay) }.until_exit()
}

/// SIGWINCH is not passed on: the kernel sends one when the size of the command's terminal changes.
const FORWARDED: [Signal; 5] =
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::WINCH];

fn with_terminal(mut request: ControlRequest) -> ControlRequest {
    if let ControlRequest::Exec { terminal, .. } = &mut request {
        *terminal = true;
    }
    request
}

fn failed(what: &str, error: &io::Error) -> VerbFailure {
    VerbFailure::new(ExitCategory::Machine, format!("cannot {what}: {error}"))
}

struct ExecSession {
    client: ControlClient,
    signals: SignalReader,
    relay: Option<Relay>,
}

impl ExecSession {
    fn until_exit(mut self) -> Outcome {
        let code = loop {
            let ready = self.wait().map_err(|error| failed("wait", &error))?;
            if ready.signal {
                self.forward_signals()?;
            }
            if let Some(relay) = &mut self.relay {
                relay.carry(ready.relay).map_err(|error| failed("use the terminal", &error))?;
            }
            if ready.reply
                && let Some(code) = self.answer()?
            {
                break code;
            }
        };
        if let Some(relay) = &mut self.relay {
            relay.drain();
        }
        Ok(code)
    }

    /// Reads one answer; the exit code if it is the last.
    fn answer(&mut self) -> Result<Option<u8>, VerbFailure> {
        let progress = self.client.receive_answer();
        match progress.inspect_err(|_| self.relay = None)? {
            CommandProgress::Started { .. } => {
                if let Some(relay) = &mut self.relay {
                    // Only now, so that a refusal is printed on a terminal in its usual mode.
                    relay.begin().map_err(|error| failed("use the terminal", &error))?;
                }
                Ok(None)
            }
            CommandProgress::Exited { code } => Ok(Some(code)),
            CommandProgress::NotRun { message, exit } => {
                self.relay = None;
                let code = exit.unwrap_or(ExitCategory::Usage.code());
                Err(VerbFailure::Error { error: message.into(), hint: None, code })
            }
        }
    }

    fn forward_signals(&mut self) -> Result<(), VerbFailure> {
        while let Ok(Some(received)) = self.signals.read() {
            match &mut self.relay {
                Some(relay) if received.signal == Signal::WINCH.as_raw() => relay.adopt_size(),
                None if received.signal == Signal::WINCH.as_raw() => {}
                _ => self.client.send(&ControlRequest::Signal { signal: received.signal }, &[])?,
            }
        }
        Ok(())
    }

    fn wait(&self) -> io::Result<ExecSessionReadiness> {
        let mut polled = vec![
            PollFd::new(&self.client, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        polled.extend(self.relay.iter().flat_map(Relay::interests));
        if self.client.has_buffered() {
            poll::wait(&mut polled, Some(std::time::Duration::ZERO))?;
        } else {
            poll::wait(&mut polled, None)?;
        }
        let relay = self.relay.as_ref().map(|relay| relay.ready(&polled[2..]));
        Ok(ExecSessionReadiness {
            reply: !polled[0].revents().is_empty() || self.client.has_buffered(),
            signal: !polled[1].revents().is_empty(),
            relay: relay.unwrap_or_default(),
        })
    }
}

/// Descriptors that are ready.
struct ExecSessionReadiness {
    reply: bool,
    signal: bool,
    relay: relay::TerminalRelayReadiness,
}
