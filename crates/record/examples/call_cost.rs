//! What the preload library adds to a call: `call_cost [ROUNDS]`; see bench/record/call.
//!
//! A process makes the same call in turn by the C library, which is where the preload library stands,
//! and past it, as a system call of its own. The difference of both within one process is free of what
//! differs between processes, such as where their memory lies. The same difference in a process
//! without the preload library is what the C library itself takes. Times are those of the processor.
//! Between the pieces the rings are emptied, so that every call has room.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use rustix::net::{RecvFlags, SendFlags};
use windtunnel_model::record::region::RecordRegionLayout;
use windtunnel_record::preload::{LIBRARY, REGION_VARIABLE};
use windtunnel_sys::clock;
use windtunnel_sys::region::{MappedRecordRegion, RecordRegionReader};

/// Of one way, before the other has its turn.
const BLOCK: u32 = 250;
const BLOCKS: u32 = 20;
const KINDS: [&str; 3] = ["file", "recv", "udp"];

fn main() -> Result<(), Box<dyn Error>> {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("calls") {
        return calls();
    }
    let rounds: usize = argument.map_or(Ok(200), |rounds| rounds.parse())?;
    let folder = tempfile::tempdir()?;
    let (library, path) = (folder.path().join("preload.so"), folder.path().join("region"));
    std::fs::write(&library, LIBRARY)?;
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
    let layout = RecordRegionLayout { rings: 2, slots: 1 << 15, sockets: 1 << 10 };
    let region = Arc::new(MappedRecordRegion::create_in(&file, layout)?);
    let mut reader = RecordRegionReader::new(Arc::clone(&region));
    let mut without = Caller::start(&mut Command::new(std::env::current_exe()?))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.env("LD_PRELOAD", &library).env(REGION_VARIABLE, &path);
    let mut with = Caller::start(&mut command)?;
    println!(
        "{:<34} {:>9} {:>20} {:>20}",
        "ns a call", "without", "standby adds", "recording adds"
    );
    for kind in KINDS {
        let mut rows = Vec::new();
        for round in 0..rounds + 5 {
            let [past, by] = without.piece(kind)?;
            let c_library = by - past;
            region.set_recording(false);
            let [past, by] = with.piece(kind)?;
            let standby = by - past - c_library;
            region.set_recording(true);
            let [past, by] = with.piece(kind)?;
            let recording = by - past - c_library;
            check_records(kind, &mut reader);
            if round >= 5 {
                rows.push((past + c_library, standby, recording));
            }
        }
        let title = match kind {
            "file" => "read of a file",
            "recv" => "recv that finds nothing (EAGAIN)",
            _ => "send and recv of UDP, each",
        };
        let bare = quartiles(rows.iter().map(|row| row.0));
        let standby = quartiles(rows.iter().map(|row| row.1));
        let recording = quartiles(rows.iter().map(|row| row.2));
        let spread = |[low, middle, high]: [f64; 3]| format!("{middle:.1} ({low:.1} {high:.1})");
        println!("{title:<34} {:>9.1} {:>20} {:>20}", bare[1], spread(standby), spread(recording));
    }
    Ok(())
}

/// Empties the rings, in which each call has to be.
fn check_records(kind: &str, reader: &mut RecordRegionReader) {
    let mut records = Vec::new();
    for ring in 0..reader.region().layout().rings {
        let drained = reader.drain(ring, usize::MAX, &mut records);
        assert!(drained.gap.is_none(), "the rings have room for a piece");
    }
    let calls = (BLOCK * BLOCKS) as usize;
    let expected = match kind {
        "file" => 0,
        "recv" => calls,
        _ => 2 * calls,
    };
    assert!((expected..expected + 40).contains(&records.len()), "{}", records.len());
}

/// A process that makes calls when it is asked to.
struct Caller {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Caller {
    fn start(command: &mut Command) -> Result<Caller, Box<dyn Error>> {
        let mut child =
            command.arg("calls").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = child.stdin.take().ok_or("the pipe was asked for")?;
        let answers = BufReader::new(child.stdout.take().ok_or("the pipe was asked for")?);
        Ok(Caller { child, orders, answers })
    }

    /// Nanoseconds that a call took past the C library, and by it.
    fn piece(&mut self, kind: &str) -> Result<[f64; 2], Box<dyn Error>> {
        writeln!(self.orders, "{kind}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let (past, by) = line.trim().split_once(' ').ok_or("two numbers")?;
        Ok([past.parse()?, by.parse()?])
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process that makes the calls.
fn calls() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut tcp = TcpStream::connect(listener.local_addr()?)?;
    let (_theirs, _) = listener.accept()?;
    tcp.set_nonblocking(true)?;
    let udp = UdpSocket::bind("127.0.0.1:0")?;
    udp.connect(udp.local_addr()?)?;
    let mut zero = File::open("/dev/zero")?;
    let mut bytes = [0; 1];
    for line in std::io::stdin().lines() {
        let line = line?;
        let [past, by] = match line.as_str() {
            "file" => {
                let other = zero.try_clone()?;
                in_turn(
                    |bytes| assert_eq!(rustix::io::read(&other, bytes), Ok(1)),
                    |bytes| zero.read_exact(bytes).expect("there are always zeros"),
                    &mut bytes,
                )
            }
            "recv" => {
                let other = tcp.try_clone()?;
                in_turn(
                    |bytes| {
                        assert!(rustix::net::recv(&other, bytes, RecvFlags::empty()).is_err());
                    },
                    |bytes| assert!(tcp.read(bytes).is_err()),
                    &mut bytes,
                )
            }
            _ => in_turn(
                |bytes| {
                    assert_eq!(rustix::net::send(&udp, bytes, SendFlags::NOSIGNAL), Ok(1));
                    assert!(rustix::net::recv(&udp, bytes, RecvFlags::empty()).is_ok());
                },
                |bytes| {
                    assert!(udp.send(bytes).is_ok());
                    assert!(udp.recv(bytes).is_ok());
                },
                &mut bytes,
            ),
        };
        let per_turn = if line == "udp" { 2.0 } else { 1.0 };
        println!("{} {}", past / per_turn, by / per_turn);
    }
    Ok(())
}

/// Makes a call in both ways, block by block; nanoseconds of processor time that each took.
fn in_turn(
    mut past: impl FnMut(&mut [u8; 1]),
    mut by: impl FnMut(&mut [u8; 1]),
    bytes: &mut [u8; 1],
) -> [f64; 2] {
    let mut took_ns = [0; 2];
    for _ in 0..BLOCKS {
        let begin = clock::thread_cpu_ns();
        (0..BLOCK).for_each(|_| past(bytes));
        let middle = clock::thread_cpu_ns();
        (0..BLOCK).for_each(|_| by(bytes));
        let end = clock::thread_cpu_ns();
        took_ns[0] += middle - begin;
        took_ns[1] += end - middle;
    }
    took_ns.map(|ns| ns as f64 / f64::from(BLOCK * BLOCKS))
}

fn quartiles(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
}
