//! The programs at both ends: what each writes is a function of what it has read.

use windtunnel_model::{Span, Time};

use crate::tcp::{State, Tcp};

/// What the two programs do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// The client writes pieces with pauses and half-closes; the server sends everything back.
    Echo { bytes: usize, piece: usize, pause: Span },
    /// The server writes and closes.
    Download { bytes: usize },
    /// The same, and the client reads so many bytes each 10 ms.
    Slow { bytes: usize, rate: usize },
    /// Requests of 16 bytes, each sent when the reply to the last is complete.
    Reply { rounds: usize, bytes: usize },
    /// The client writes and half-closes; the server answers with what it counted.
    Upload { bytes: usize },
    /// The server writes and closes, and the client closes without waiting for that.
    Clash { bytes: usize },
    /// Replies have the time of day, in milliseconds.
    Clock { rounds: usize },
}

const REQUEST: usize = 16;

/// The bytes of a stream: no period that a segment's length could hide.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8).collect()
}

impl Program {
    /// Everything that the client writes in the end.
    fn requests(self) -> Vec<u8> {
        match self {
            Program::Echo { bytes, .. } | Program::Upload { bytes } => pattern(bytes),
            Program::Reply { rounds, .. } | Program::Clock { rounds } => pattern(REQUEST * rounds),
            Program::Download { .. } | Program::Slow { .. } | Program::Clash { .. } => Vec::new(),
        }
    }

    /// Everything that the client reads in the end; `None` where that is not fixed.
    pub(crate) fn replies(self) -> Option<Vec<u8>> {
        match self {
            Program::Echo { bytes, .. }
            | Program::Download { bytes }
            | Program::Slow { bytes, .. }
            | Program::Clash { bytes } => Some(pattern(bytes)),
            Program::Reply { rounds, bytes } => Some(pattern(rounds * bytes)),
            Program::Upload { bytes } => Some((bytes as u64).to_be_bytes().to_vec()),
            Program::Clock { .. } => None,
        }
    }

    /// The server's program does what it can.
    pub(crate) fn serve(self, now: Time, tcp: &mut Tcp) {
        if tcp.fin_queued || tcp.state == State::Closed {
            return;
        }
        let (got, sent) = (tcp.received.len(), tcp.data.len());
        tcp.read(now, usize::MAX);
        let has_ended = tcp.peer_fin.is_some_and(|fin| tcp.rcv_nxt > fin);
        let mut closes = has_ended;
        let reply = match self {
            Program::Echo { .. } => tcp.received[sent..].to_vec(),
            Program::Download { bytes }
            | Program::Slow { bytes, .. }
            | Program::Clash { bytes } => {
                closes = true;
                pattern(bytes)[sent..].to_vec()
            }
            Program::Reply { bytes, .. } => pattern(got / REQUEST * bytes)[sent..].to_vec(),
            Program::Upload { .. } if has_ended => (got as u64).to_be_bytes().to_vec(),
            Program::Upload { .. } => Vec::new(),
            Program::Clock { .. } => {
                let due = got / REQUEST * 8 - sent;
                (now.as_nanos() / 1_000_000).to_be_bytes().repeat(due / 8)
            }
        };
        if !reply.is_empty() {
            tcp.write(now, &reply);
        }
        if closes {
            tcp.shutdown(now);
        }
    }
}

/// The client's program.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    program: Program,
    requests: Vec<u8>,
    next_at: Time,
    /// When it read something, and the longest time between two such times.
    pub(crate) read_at: Option<Time>,
    pub(crate) silence: Span,
    pub(crate) silent_until: Time,
}

impl Client {
    pub(crate) fn new(program: Program) -> Self {
        Self {
            program,
            requests: program.requests(),
            next_at: Time::ZERO,
            read_at: None,
            silence: Span::ZERO,
            silent_until: Time::ZERO,
        }
    }

    /// Does what it can; when it wants to be called again.
    pub(crate) fn act(&mut self, now: Time, tcp: &mut Tcp) -> Option<Time> {
        if tcp.state != State::Open {
            return None;
        }
        let paced = now >= self.next_at;
        let amount = match self.program {
            Program::Slow { rate, .. } if paced => rate,
            Program::Slow { .. } => 0,
            _ => usize::MAX,
        };
        let read = tcp.read(now, amount);
        if read > 0 {
            let gap = self.read_at.map_or(Span::ZERO, |at| now.since(at));
            if gap > self.silence {
                self.silence = gap;
                self.silent_until = now;
            }
            self.read_at = Some(now);
        }
        self.write(now, tcp, paced);
        let waits = matches!(self.program, Program::Slow { .. }) && tcp.taken < tcp.received.len()
            || matches!(self.program, Program::Echo { .. }) && !tcp.fin_queued;
        let is_paced = matches!(self.program, Program::Slow { .. } | Program::Echo { .. });
        if is_paced && paced {
            self.next_at = now + self.pause();
        }
        waits.then_some(self.next_at)
    }

    fn pause(&self) -> Span {
        match self.program {
            Program::Echo { pause, .. } => pause,
            _ => Span::from_millis(10),
        }
    }

    fn write(&mut self, now: Time, tcp: &mut Tcp, paced: bool) {
        if tcp.fin_queued {
            return;
        }
        let (written, all) = (tcp.data.len(), self.requests.len());
        let has_ended = tcp.peer_fin.is_some_and(|fin| tcp.rcv_nxt > fin);
        let until = match self.program {
            Program::Echo { piece, .. } if paced => (written + piece).min(all),
            Program::Echo { .. } => written,
            Program::Upload { .. } => all,
            Program::Reply { bytes, .. } => all.min((tcp.taken / bytes + 1) * REQUEST),
            Program::Clock { .. } => all.min((tcp.taken / 8 + 1) * REQUEST),
            Program::Download { .. } | Program::Slow { .. } | Program::Clash { .. } => 0,
        };
        if until > written {
            let piece = self.requests[written..until].to_vec();
            tcp.write(now, &piece);
        }
        let closes = match self.program {
            Program::Echo { .. } | Program::Upload { .. } => until == all,
            Program::Reply { rounds, bytes } => tcp.taken == rounds * bytes,
            Program::Clock { rounds } => tcp.taken == rounds * 8,
            Program::Download { .. } | Program::Slow { .. } => {
                has_ended && tcp.taken == tcp.received.len()
            }
            Program::Clash { bytes } => tcp.taken * 2 >= bytes,
        };
        if closes {
            tcp.shutdown(now);
        }
    }
}
