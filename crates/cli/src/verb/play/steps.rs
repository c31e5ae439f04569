//! The steps of one side of a TCP connection.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::ops::Add;
use std::thread;
use std::time::{Duration, Instant};

use windtunnel_evidence::workload::{Action, Step};

/// What was moved.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Played {
    pub(super) written: u64,
    pub(super) read: u64,
}

impl Add for Played {
    type Output = Played;

    fn add(self, other: Played) -> Played {
        Played { written: self.written + other.written, read: self.read + other.read }
    }
}

impl<'a> std::iter::Sum<&'a Played> for Played {
    fn sum<I: Iterator<Item = &'a Played>>(all: I) -> Played {
        all.fold(Played::default(), |sum, one| sum + *one)
    }
}

/// Does the steps; `done` gets the number of each when it has ended.
///
/// # Errors
/// If the connection fails, or ends before all bytes have come.
pub(super) fn play(
    mut stream: TcpStream,
    steps: &[Step],
    mut done: impl FnMut(usize),
) -> io::Result<Played> {
    // Small writes go out at once, as those of most programs that wait for answers do.
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; largest(steps)];
    let mut played = Played::default();
    let mut before = Instant::now();
    for (number, step) in (1..).zip(steps) {
        pause(before, step.think_ns);
        match step.action {
            Action::Write(bytes) => {
                stream.write_all(&buffer[..bytes as usize])?;
                played.written += u64::from(bytes);
            }
            Action::Read(bytes) => {
                stream.read_exact(&mut buffer[..bytes as usize])?;
                played.read += u64::from(bytes);
            }
            Action::ReadEnd(_) => drain(&mut stream)?,
            Action::Shutdown(_) => stream.shutdown(Shutdown::Write)?,
            Action::Close(_) => {
                drop(stream);
                done(number);
                return Ok(played);
            }
        }
        before = Instant::now();
        done(number);
    }
    Ok(played)
}

/// Reads to the end; a side that was reset has ended, too.
pub(super) fn drain(stream: &mut TcpStream) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sleeps until so long after a moment.
pub(super) fn pause(after: Instant, think_ns: u64) {
    let left = Duration::from_nanos(think_ns).saturating_sub(after.elapsed());
    if !left.is_zero() {
        thread::sleep(left);
    }
}

pub(super) fn largest(steps: &[Step]) -> usize {
    let sizes = steps.iter().map(|step| match step.action {
        Action::Write(bytes) | Action::Read(bytes) => bytes as usize,
        _ => 0,
    });
    sizes.max().unwrap_or(0)
}
