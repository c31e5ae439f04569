//! What the preload library adds to a call: `call_cost [ROUNDS]`; see bench/record/call.
//!
//! Two processes make the same calls in turn, one with the library and one without; the one with it
//! first with recording off, then on. Times are those of the processor that the process had. Between
//! the pieces the rings are emptied, so that every call has room.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use windtunnel_model::record::region::Layout;
use windtunnel_record::preload::{LIBRARY, REGION_VARIABLE};
use windtunnel_sys::clock;
use windtunnel_sys::region::{Reader, Region};

const CALLS: u32 = 5000;
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
    let layout = Layout { rings: 2, slots: 1 << 15, sockets: 1 << 10 };
    let region = Arc::new(Region::create_in(&file, layout)?);
    let mut reader = Reader::new(Arc::clone(&region));
    let mut without = Caller::start(&mut Command::new(std::env::current_exe()?))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.env("LD_PRELOAD", &library).env(REGION_VARIABLE, &path);
    let mut with = Caller::start(&mut command)?;
    let mut records = Vec::new();
    println!(
        "{:<34} {:>9} {:>18} {:>18}",
        "ns a call", "without", "standby adds", "recording adds"
    );
    for kind in KINDS {
        let mut rows = Vec::new();
        for round in 0..rounds + 5 {
            let bare = without.piece(kind)?;
            region.set_recording(false);
            let standby = with.piece(kind)?;
            region.set_recording(true);
            let recording = with.piece(kind)?;
            for ring in 0..layout.rings {
                let drained = reader.drain(ring, usize::MAX, &mut records);
                assert!(drained.gap.is_none(), "the rings have room for a piece");
            }
            let expected = match kind {
                "file" => 0,
                "recv" => CALLS as usize,
                _ => 2 * CALLS as usize,
            };
            assert!(
                records.len() >= expected && records.len() < expected + 40,
                "{}",
                records.len()
            );
            records.clear();
            if round >= 5 {
                rows.push((bare, standby - bare, recording - bare));
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
        println!("{title:<34} {:>9.1} {:>18} {:>18}", bare[1], spread(standby), spread(recording));
    }
    Ok(())
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

    /// Nanoseconds that a call took.
    fn piece(&mut self, kind: &str) -> Result<f64, Box<dyn Error>> {
        writeln!(self.orders, "{kind}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().parse()?)
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
    let mut ours = TcpStream::connect(listener.local_addr()?)?;
    let (_theirs, _) = listener.accept()?;
    ours.set_nonblocking(true)?;
    let udp = UdpSocket::bind("127.0.0.1:0")?;
    udp.connect(udp.local_addr()?)?;
    let mut zero = File::open("/dev/zero")?;
    let mut bytes = [0; 1];
    for line in std::io::stdin().lines() {
        let line = line?;
        let begin = clock::thread_cpu_ns();
        let mut per_turn = 1.0;
        for _ in 0..CALLS {
            match line.as_str() {
                "file" => zero.read_exact(&mut bytes)?,
                "recv" => assert!(ours.read(&mut bytes).is_err()),
                _ => {
                    udp.send(&bytes)?;
                    udp.recv(&mut bytes)?;
                    per_turn = 2.0;
                }
            }
        }
        let took_ns = clock::thread_cpu_ns() - begin;
        println!("{}", took_ns as f64 / f64::from(CALLS) / per_turn);
    }
    Ok(())
}

fn quartiles(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
}
