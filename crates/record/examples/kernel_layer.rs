//! Counts what the kernel layer records of the network namespaces of processes, until the end of
//! standard input, and what that costs: `kernel_layer PID ...`, as root.

use std::error::Error;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

use windtunnel_model::record::Kind;
use windtunnel_record::drain::{INTERVAL, RecordFeed};
use windtunnel_record::kernel::{Kernel, KernelTraceScope, KernelTraceSettings};
use windtunnel_sys::clock;

fn main() -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let mut kernel = Kernel::open(KernelTraceSettings::of(KernelTraceScope::Namespaces))?;
    let loaded = began.elapsed();
    let mut feeds = Vec::new();
    for (node, pid) in std::env::args().skip(1).enumerate() {
        let inode = std::fs::metadata(format!("/proc/{pid}/ns/net"))?.ino();
        feeds.push(kernel.add_namespace(u32::try_from(inode)?, u32::try_from(node)?)?);
    }
    kernel.start()?;
    println!("loaded in {loaded:?}, attached after {:?}", began.elapsed());
    let (end, ended) = channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(end);
    });
    let (mut records, mut seen, mut took_ns) = (Vec::new(), 0, 0);
    loop {
        let last = ended.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout);
        if last {
            kernel.stop()?;
        }
        let before = clock::thread_cpu_ns();
        for feed in &mut feeds {
            feed.take(usize::MAX, &mut records);
        }
        seen += records.iter().filter(|it| it.kind != Kind::Lost as u8).count() as u64;
        took_ns += clock::thread_cpu_ns() - before;
        records.clear();
        if last {
            break;
        }
    }
    for (node, feed) in feeds.iter().enumerate() {
        let counts = feed.counts();
        println!("{node}: {} lost", counts.lost);
    }
    println!("{seen} records, {} ns of the reader for each", took_ns / seen.max(1));
    Ok(())
}
