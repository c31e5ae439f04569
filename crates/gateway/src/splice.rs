//! Two connections that are joined: what one end sends, the other gets, without a copy in this
//! process.
//!
//! Bytes go through a pipe by splice(2), as many as the receiving end has room for: what it has not
//! stays with the sending end's kernel, whose window closes. An end of one direction is passed on
//! as such (half-close), a torn connection as a torn one.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::Shutdown;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use crate::flows::ProxiedConnectionKey;
use crate::log::{FlowLine, InternetFlowEnd};
use crate::socket;

/// Two joined connections.
#[derive(Debug)]
pub(crate) struct SplicedConnectionPair {
    /// The end in the network, and that outside.
    ends: [OwnedFd; 2],
    /// From the network to the outside, and back.
    ways: [SpliceDirection; 2],
    pub(crate) line: FlowLine,
    /// The connection of the network's end, if the gateway has let it in by its address.
    pub(crate) key: Option<ProxiedConnectionKey>,
}

/// One direction.
#[derive(Debug, Default)]
struct SpliceDirection {
    /// Where bytes are that the receiving end has no room for.
    pipe: Option<SplicePipe>,
    bytes: u64,
    /// The sending end has ended.
    ended: bool,
    /// The receiving end has been informed of that.
    passed_on: bool,
}

#[derive(Debug)]
struct SplicePipe {
    read: OwnedFd,
    write: OwnedFd,
    held: usize,
}

/// Pipes that hold nothing.
#[derive(Debug, Default)]
pub(crate) struct SplicePipePool(Vec<SplicePipe>);

/// How far a pair has got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SpliceProgress {
    /// It waits for one of its ends.
    Waits,
    /// There is more to carry, after others had their turn.
    More,
    Over(InternetFlowEnd),
}

impl SplicedConnectionPair {
    pub(crate) fn new(
        inside: OwnedFd,
        outside: OwnedFd,
        line: FlowLine,
        key: Option<ProxiedConnectionKey>,
    ) -> SplicedConnectionPair {
        SplicedConnectionPair { ends: [inside, outside], ways: Default::default(), line, key }
    }

    pub(crate) fn ends(&self) -> &[OwnedFd; 2] {
        &self.ends
    }

    /// Carries what there is, up to some megabytes.
    pub(crate) fn pump(&mut self, pipes: &mut SplicePipePool) -> SpliceProgress {
        let mut more = false;
        for way in 0..2 {
            match self.carry(way, pipes) {
                Ok(is_more) => more |= is_more,
                Err(errno) => return SpliceProgress::Over(end_of(errno)),
            }
        }
        match self.ways.iter().all(|way| way.passed_on) {
            true => SpliceProgress::Over(InternetFlowEnd::Closed),
            false if more => SpliceProgress::More,
            false => SpliceProgress::Waits,
        }
    }

    /// The error that an end has without anything to read.
    pub(crate) fn failure(&self) -> Option<InternetFlowEnd> {
        let failure = self.ends.iter().find_map(|end| socket::outcome(end).err());
        failure.map(end_of)
    }

    /// Its line, complete; where it was not closed by both ends, both see it torn.
    pub(crate) fn end(
        self,
        how: InternetFlowEnd,
        pipes: &mut SplicePipePool,
    ) -> (FlowLine, Option<ProxiedConnectionKey>) {
        let SplicedConnectionPair { ends, ways, mut line, key } = self;
        let [there, back] = ways;
        (line.sent_bytes, line.received_bytes) = (there.bytes, back.bytes);
        for pipe in [there.pipe, back.pipe].into_iter().flatten() {
            pipes.put_back(pipe);
        }
        if how != InternetFlowEnd::Closed {
            ends.into_iter().for_each(socket::tear);
        }
        (line, key)
    }

    /// Carries one direction: whether its turn ended before there was nothing more to do.
    fn carry(&mut self, way: usize, pipes: &mut SplicePipePool) -> Result<bool, Errno> {
        let (from, to) = (&self.ends[way], &self.ends[1 - way]);
        let way = &mut self.ways[way];
        let mut turn = 0;
        let outcome = loop {
            if turn >= TURN_BYTES {
                break Ok(true);
            }
            match way.step(from, to, pipes) {
                Ok(0) => break Ok(false),
                Ok(bytes) => turn += bytes,
                Err(errno) => break Err(errno),
            }
        };
        if let Some(pipe) = way.pipe.take_if(|pipe| pipe.held == 0) {
            pipes.put_back(pipe);
        }
        outcome
    }
}

impl SpliceDirection {
    /// Carries once: how many bytes moved; 0: nothing more can be done now.
    fn step(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        pipes: &mut SplicePipePool,
    ) -> Result<usize, Errno> {
        if self.passed_on {
            return Ok(0);
        }
        if self.pipe.is_none() {
            self.pipe = Some(pipes.take()?);
        }
        let Some(pipe) = &mut self.pipe else { return Ok(0) };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let mut moved = 0;
        if pipe.held == 0 && !self.ended {
            match splice(from, None, &pipe.write, None, TURN_BYTES, flags) {
                Ok(0) => self.ended = true,
                Ok(bytes) => (pipe.held, moved) = (bytes, bytes),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(0),
                Err(errno) => return Err(errno),
            }
        }
        while pipe.held > 0 {
            match splice(&pipe.read, None, to, None, pipe.held, flags) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(0),
                Ok(bytes) => {
                    pipe.held -= bytes.min(pipe.held);
                    self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(0));
                    moved += bytes;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        if self.ended {
            // An end that is gone already needs no word.
            let _ = rustix::net::shutdown(to, Shutdown::Write);
            self.passed_on = true;
            return Ok(0);
        }
        Ok(moved)
    }
}

impl SplicePipePool {
    fn take(&mut self) -> Result<SplicePipe, Errno> {
        if let Some(pipe) = self.0.pop() {
            return Ok(pipe);
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A user's pipes may be small after many large ones (pipe(7)): slower, not wrong.
        let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
        Ok(SplicePipe { read, write, held: 0 })
    }

    /// A pipe that still holds bytes of a connection is not used for another.
    fn put_back(&mut self, pipe: SplicePipe) {
        if pipe.held == 0 && self.0.len() < POOL {
            self.0.push(pipe);
        }
    }
}

/// How a connection ended that was not closed by both ends.
fn end_of(errno: Errno) -> InternetFlowEnd {
    match errno {
        Errno::CONNRESET | Errno::PIPE => InternetFlowEnd::Reset,
        Errno::CONNREFUSED => InternetFlowEnd::Refused,
        Errno::TIMEDOUT => InternetFlowEnd::TimedOut,
        Errno::HOSTUNREACH | Errno::NETUNREACH => InternetFlowEnd::Unreachable,
        lack if socket::is_lack(lack) => InternetFlowEnd::Exhausted,
        _ => InternetFlowEnd::Failed,
    }
}

/// What a pair carries before others have their turn.
const TURN_BYTES: usize = 4 << 20;
const PIPE_BYTES: usize = 1 << 20;
const POOL: usize = 32;
