//! The steps of one side of a TCP connection.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::ops::Add;
use std::thread;
use std::time::{Duration, Instant};

use windtunnel_evidence::workload::{WorkloadAction, WorkloadStep};

/// What was moved.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReplayByteCounts {
    pub(super) written: u64,
    pub(super) read: u64,
}

impl Add for ReplayByteCounts {
    type Output = ReplayByteCounts;

    fn add(self, other: ReplayByteCounts) -> ReplayByteCounts {
        ReplayByteCounts { written: self.written + other.written, read: self.read + other.read }
    }
}

impl<'a> std::iter::Sum<&'a ReplayByteCounts> for ReplayByteCounts {
    fn sum<I: Iterator<Item = &'a ReplayByteCounts>>(all: I) -> ReplayByteCounts {
        all.fold(ReplayByteCounts::default(), |sum, one| sum + *one)
    }
}

/// Does the steps; `done` gets the number of each when it has ended.
///
/// # Errors
/// If the connection fails, or ends before all bytes have come.
pub(super) fn play(
    mut stream: TcpStream,
    steps: &[WorkloadStep],
    mut done: impl FnMut(usize),
) -> io::Result<ReplayByteCounts> {
    // Small writes go out at once, as those of most programs that wait for answers do.
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; largest(steps)];
    let mut played = ReplayByteCounts::default();
    let mut before = Instant::now();
    for (number, step) in (1..).zip(steps) {
        pause(before, step.think_ns);
        match step.action {
            WorkloadAction::Write(bytes) => {
                stream.write_all(&buffer[..bytes as usize])?;
                played.written += u64::from(bytes);
            }
            WorkloadAction::Read(bytes) => {
                stream.read_exact(&mut buffer[..bytes as usize])?;
                played.read += u64::from(bytes);
            }
            WorkloadAction::ReadEnd(_) => drain(&mut stream)?,
            WorkloadAction::Shutdown(_) => stream.shutdown(Shutdown::Write)?,
            WorkloadAction::Close(_) => {
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

pub(super) fn largest(steps: &[WorkloadStep]) -> usize {
    let sizes = steps.iter().map(|step| match step.action {
        WorkloadAction::Write(bytes) | WorkloadAction::Read(bytes) => bytes as usize,
        _ => 0,
    });
    sizes.max().unwrap_or(0)
}
