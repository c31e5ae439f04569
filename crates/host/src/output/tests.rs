//! Pipes of programs that are carried by the thread.

use std::sync::Mutex;

use regex::Regex;
use windtunnel_sys::below::FolderHandle;
use windtunnel_verdict::evidence::OutputByteCounts;

use super::*;
use crate::observer::ObserverNotice;

/// Lines that an observer was shown, with their source.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Observer for Lines {
    fn notice(&self, notice: &ObserverNotice<'_>) {
        if let ObserverNotice::Output { source, error, line, .. } = notice {
            let stream = if *error { "err" } else { "out" };
            self.0.lock().unwrap().push(format!("{source} {stream}: {line}"));
        }
    }
}

struct Bench {
    folder: tempfile::TempDir,
    lines: Lines,
    wake: Arc<Wake>,
    output: OutputCollector,
    matches: Receiver<ReadinessLineMatch>,
}

impl Bench {
    fn new(limit_bytes: u64) -> Self {
        let (lines, wake) = (Lines::default(), Arc::new(Wake::open().unwrap()));
        let observer = Arc::new(lines.clone());
        let (output, matches) =
            OutputCollector::start(observer, limit_bytes, Arc::clone(&wake)).unwrap();
        Bench { folder: tempfile::tempdir().unwrap(), lines, wake, output, matches }
    }

    /// Has the thread carry a pipe, to which `text` is written before it is closed.
    fn write(&self, key: ProgramKey, error: bool, text: &str) {
        let (pipe, writer) = rustix::pipe::pipe().unwrap();
        let file = self.folder.path().join(if error { "stderr" } else { "stdout" });
        let ready = Some(Regex::new("^up$").unwrap());
        let watches = vec![LogWatch {
            expectation: 2,
            pattern: Regex::new("o").unwrap(),
            from_ns: 0,
            to_ns: u64::MAX,
        }];
        let source = "web".to_owned();
        let folder = Arc::new(FolderHandle::open(self.folder.path()).unwrap());
        let inner = file.file_name().unwrap().into();
        self.output.carry(OutputStreamSetup {
            key,
            source,
            error,
            pipe,
            folder,
            inner,
            file,
            ready,
            watches,
        });
        rustix::io::write(&writer, text.as_bytes()).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

const WEB: ProgramKey = ProgramKey { node: 0, program: 0 };

#[test]
fn both_streams_of_a_program_reach_their_files_and_the_observer() {
    let bench = Bench::new(1_000);
    bench.write(WEB, false, "one\ntwo");
    bench.write(WEB, true, "oops\n");
    let (folder, lines) = (bench.folder, bench.lines);
    let carried = bench.output.finish();
    let read = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!((read("stdout"), read("stderr")), ("one\ntwo".to_owned(), "oops\n".to_owned()));
    let mut shown = lines.0.lock().unwrap().clone();
    shown.sort();
    assert_eq!(shown, ["web err: oops", "web out: one", "web out: two"]);
    assert_eq!(carried.volumes[&WEB], OutputByteCounts { bytes: 12, discarded: 0 });
    assert_eq!(carried.failure, None);
}

#[test]
fn a_line_that_makes_a_program_ready_is_reported_while_it_runs() {
    let bench = Bench::new(1_000);
    let key = ProgramKey { node: 3, program: 1 };
    bench.write(key, false, "starting\nup\nup\n");
    // The thread reports it without being asked.
    assert_eq!(bench.matches.recv(), Ok(ReadinessLineMatch(key)));
    assert!(bench.wake.clear().is_ok());
    let _ = bench.output.finish();
    assert!(bench.matches.recv().is_err(), "it is reported once");
}

#[test]
fn lines_that_expectations_ask_for_are_counted_by_stream() {
    let bench = Bench::new(1_000);
    bench.write(WEB, false, "one\ntwo\nsix\n");
    bench.write(WEB, true, "zero\n");
    let mut logs = bench.output.finish().logs;
    logs.sort_by_key(|seen| seen.lines);
    let counts: Vec<_> = logs.iter().map(|seen| (seen.expectation, seen.lines)).collect();
    assert_eq!(counts, [(2, 1), (2, 2)]);
    assert_eq!(
        logs[1].first.as_ref().map(|line| (line.number, line.text.as_str())),
        Some((1, "one"))
    );
}

#[test]
fn a_program_that_starts_again_goes_on_with_its_file() {
    let bench = Bench::new(1_000);
    bench.write(WEB, false, "up\n");
    // What the first life wrote has been read.
    assert_eq!(bench.matches.recv(), Ok(ReadinessLineMatch(WEB)));
    bench.write(WEB, false, "up\n");
    assert_eq!(bench.matches.recv(), Ok(ReadinessLineMatch(WEB)));
    assert_eq!(bench.read("stdout"), "up\nup\n");
    let carried = bench.output.finish();
    assert_eq!(carried.volumes[&WEB].bytes, 6);
}

#[test]
fn a_file_that_cannot_be_written_is_a_failure_and_the_pipe_is_drained_all_the_same() {
    let bench = Bench::new(1_000);
    let folder = bench.folder.path().join("stdout");
    std::fs::create_dir(&folder).unwrap();
    bench.write(WEB, false, &"x".repeat(50_000));
    let carried = bench.output.finish();
    let failure = carried.failure.expect("a folder cannot be written to");
    assert!(failure.contains("stdout"), "{failure}");
    assert_eq!(carried.volumes[&WEB].bytes, 50_000);
}
