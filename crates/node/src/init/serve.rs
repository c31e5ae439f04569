//! An init's loop: requests, ended programs, watches, echoes, until the host process is gone.

use std::os::fd::OwnedFd;
use std::time::Duration;

use windtunnel_sys::clock;
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::signal;

use super::echo::EchoMeasurement;
use super::probe::ProgramProbeSet;
use super::programs::NodeProgramTable;
use super::{gateway, interference, network, observe, watch};
use crate::channel::{ChannelError, SeqpacketSocket};
use crate::message::{ListeningEndpoint, NodeInitReply, NodeInitRequest};

/// Serves until the channel fails; that it is [`ChannelError::Gone`] is the good end.
pub(super) fn serve(
    programs: NodeProgramTable,
    channel: &SeqpacketSocket,
    signals: signal::SignalReader,
    v6: bool,
) -> Result<(), ChannelError> {
    let (watches, echoes, probes) = (Vec::new(), Vec::new(), ProgramProbeSet::new()?);
    let mut server = NodeInitServer { channel, signals, programs, watches, echoes, probes, v6 };
    loop {
        server.turn()?;
    }
}

struct NodeInitServer<'a> {
    channel: &'a SeqpacketSocket,
    signals: signal::SignalReader,
    programs: NodeProgramTable,
    watches: Vec<(u64, ListeningEndpoint)>,
    echoes: Vec<EchoMeasurement>,
    probes: ProgramProbeSet,
    /// Whether the node has IPv6.
    v6: bool,
}

impl NodeInitServer<'_> {
    fn turn(&mut self) -> Result<(), ChannelError> {
        self.wait()?;
        if let Some((request, descriptors)) = self.channel.receive(Some(Duration::ZERO))? {
            self.handle(request, descriptors)?;
        }
        while self.signals.read()?.is_some() {}
        while let Some(reply) = self.programs.reap() {
            self.reply(&reply)?;
        }
        if let Some(report) = self.programs.limiter().take() {
            self.reply(&NodeInitReply::Limited(Box::new(report)))?;
        }
        while let Some(reply) = self.probes.take() {
            self.reply(&reply)?;
        }
        self.programs.resume();
        self.look()?;
        self.echo()
    }

    fn wait(&self) -> Result<(), ChannelError> {
        let mut descriptors = vec![
            PollFd::new(self.channel, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(self.probes.done(), PollFlags::IN),
        ];
        let sockets = self.echoes.iter().map(|echo| PollFd::new(echo.socket(), PollFlags::IN));
        descriptors.extend(sockets);
        let news = self.programs.news();
        descriptors.extend(news.map(|news| PollFd::new(news, PollFlags::IN)));
        match poll::wait(&mut descriptors, self.timeout()) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let now_ns = clock::monotonic_ns();
        let times = self.echoes.iter().map(EchoMeasurement::wake_at_ns);
        let times = times.chain(self.programs.resumption().due_ns());
        let times = times.map(|at_ns| Duration::from_nanos(at_ns.saturating_sub(now_ns)));
        let look = (!self.watches.is_empty()).then_some(LOOK_EVERY);
        times.chain(look).min()
    }

    fn handle(
        &mut self,
        request: NodeInitRequest,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), ChannelError> {
        match request {
            NodeInitRequest::Continue => Ok(()),
            NodeInitRequest::Spawn(spawn) => {
                let reply = self.programs.spawn(&spawn, &descriptors);
                self.reply(&reply)
            }
            NodeInitRequest::Signal { id, signal, token } => self.signal(id, signal, token),
            NodeInitRequest::Interference => {
                self.reply(&NodeInitReply::Interference(interference::look()))
            }
            NodeInitRequest::Watch { token, what } => {
                self.watches.push((token, what));
                Ok(())
            }
            NodeInitRequest::Unwatch { token } => {
                self.watches.retain(|(other, _)| *other != token);
                Ok(())
            }
            NodeInitRequest::EndEcho { token } => {
                let ended = self.echoes.iter_mut().filter(|echo| echo.token() == token);
                ended.for_each(EchoMeasurement::end);
                Ok(())
            }
            NodeInitRequest::Routes(edit) => network::edit(&edit).or_else(|error| {
                let message = format!("{error}: {}", error.source);
                self.reply(&NodeInitReply::RoutesFailed { message })
            }),
            // A host process that has closed the other end is not interested any more.
            NodeInitRequest::Diagnose => {
                let _ = descriptors.first().map(observe::diagnose);
                Ok(())
            }
            NodeInitRequest::Supervise { library } => {
                let failed = self.programs.supervise(descriptors, library);
                failed.map_or(Ok(()), |reply| self.reply(&reply))
            }
            NodeInitRequest::Limit(asked) => {
                let failed = self.programs.limit(&asked);
                failed.map_or(Ok(()), |reply| self.reply(&reply))
            }
            NodeInitRequest::Receive => {
                let failed = self.programs.receive(descriptors);
                failed.map_or(Ok(()), |reply| self.reply(&reply))
            }
            NodeInitRequest::Gateway => self.begin_gateway(descriptors),
            NodeInitRequest::LimitProgram(limits) => {
                self.programs.limits().give(limits, descriptors);
                Ok(())
            }
            NodeInitRequest::Probe { token, what, timeout_ns } => {
                let failed = self.probes.begin(token, what, timeout_ns).err();
                failed.map_or(Ok(()), |reply| self.reply(&reply))
            }
            NodeInitRequest::Echo { token, address, count, interval_ns } => {
                let echo = EchoMeasurement::start(token, address, count, interval_ns);
                let failed = echo.map(|echo| self.echoes.push(echo)).err();
                failed.map_or(Ok(()), |reply| self.reply(&reply))
            }
        }
    }

    /// Signals a program, and reports when that was done to what asks for it.
    fn signal(
        &mut self,
        id: Option<u64>,
        signal: i32,
        token: Option<u64>,
    ) -> Result<(), ChannelError> {
        let failed = self.programs.signal(id, signal);
        let at_ns = clock::monotonic_ns();
        let sent = token.map(|token| NodeInitReply::Signalled { token, at_ns });
        failed.into_iter().chain(sent).try_for_each(|reply| self.reply(&reply))
    }

    /// Where that fails, the gateway process sees that its socket is closed.
    fn begin_gateway(&self, descriptors: Vec<OwnedFd>) -> Result<(), ChannelError> {
        let _ = gateway::begin(descriptors, self.v6);
        Ok(())
    }

    fn look(&mut self) -> Result<(), ChannelError> {
        let (found, open) = std::mem::take(&mut self.watches)
            .into_iter()
            .partition(|(_, what)| watch::listens(what));
        self.watches = open;
        let found: Vec<(u64, ListeningEndpoint)> = found;
        found.into_iter().try_for_each(|(token, _)| self.reply(&NodeInitReply::Listening { token }))
    }

    fn echo(&mut self) -> Result<(), ChannelError> {
        for mut echo in std::mem::take(&mut self.echoes) {
            match echo.advance()? {
                Some(reply) => self.reply(&reply)?,
                None => self.echoes.push(echo),
            }
        }
        Ok(())
    }

    /// A host process that is slow to listen is waited for; one that is gone is not.
    fn reply(&self, reply: &NodeInitReply) -> Result<(), ChannelError> {
        loop {
            match self.channel.send(reply, &[]) {
                Err(ChannelError::Stuck) => {}
                sent => return sent,
            }
        }
    }
}

/// How soon a new listener is seen.
const LOOK_EVERY: Duration = Duration::from_millis(5);
