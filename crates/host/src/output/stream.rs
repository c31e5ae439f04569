//! One pipe on its way to one file.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use regex::Regex;

use super::carry::{LogWatch, OutputStreamSetup};
use crate::observer::{Observer, ObserverNotice};
use windtunnel_verdict::evidence::{LogLine, LogMatches, OutputByteCounts, ProgramKey};

/// A pipe that is being carried.
pub(super) struct OutputPipe {
    key: ProgramKey,
    source: String,
    error: bool,
    pipe: OwnedFd,
    /// `None` once writing failed.
    file: Option<File>,
    file_name: String,
    file_path: PathBuf,
    limit_bytes: u64,
    volume: OutputByteCounts,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    ready: Option<Regex>,
    matched: bool,
    /// Lines so far, in the file's numbering.
    lines: u64,
    watches: Vec<(LogWatch, LogMatches)>,
    shown: LineRateCounter,
}

/// What is left of a stream.
pub(super) struct ClosedOutputStream {
    pub(super) volume: OutputByteCounts,
    pub(super) logs: Vec<LogMatches>,
    pub(super) path: PathBuf,
    pub(super) before: PriorOutputFile,
}

/// What was written to a file before its program starts again.
#[derive(Default)]
pub(super) struct PriorOutputFile {
    pub(super) lines: u64,
    /// `None` if it was not open yet, or could not be written.
    pub(super) file: Option<File>,
}

/// How many lines the observer saw in the current second.
struct LineRateCounter {
    second: u64,
    lines: u32,
    skipped: u64,
}

/// What a read brought.
pub(super) enum PipeReadOutcome {
    More,
    Closed,
    /// The file can no longer be written; the pipe is still drained.
    Failed(String),
}

impl OutputPipe {
    /// A stream, and why its file cannot be written if it cannot.
    ///
    /// `before` is what an earlier start of the program has left: its file is not opened again, as
    /// the program may have put something else in its place.
    pub(super) fn open(
        carry: OutputStreamSetup,
        limit_bytes: u64,
        before: PriorOutputFile,
    ) -> (Self, Option<String>) {
        let name = carry.file.display().to_string();
        let PriorOutputFile { lines, file } = before;
        let file = file.map_or_else(|| carry.folder.append(&carry.inner), Ok);
        let (file, failure) = match file {
            Ok(file) => (Some(file), None),
            Err(error) => (None, Some(format!("cannot write {name}: {error}"))),
        };
        let stream = OutputPipe {
            key: carry.key,
            source: carry.source,
            error: carry.error,
            pipe: carry.pipe,
            file,
            file_name: name,
            limit_bytes,
            volume: OutputByteCounts::default(),
            line: Vec::new(),
            ready: carry.ready,
            matched: false,
            lines,
            watches: carry
                .watches
                .into_iter()
                .map(|watch| {
                    let (expectation, key, file) =
                        (watch.expectation, carry.key, carry.file.clone());
                    (watch, LogMatches { expectation, key, file, lines: 0, first: None })
                })
                .collect(),
            file_path: carry.file,
            shown: LineRateCounter { second: 0, lines: 0, skipped: 0 },
        };
        (stream, failure)
    }

    pub(super) fn key(&self) -> ProgramKey {
        self.key
    }

    /// Whether a line has matched since the last call.
    pub(super) fn take_match(&mut self) -> bool {
        std::mem::take(&mut self.matched)
    }

    /// Reads once.
    pub(super) fn read(
        &mut self,
        buffer: &mut [u8],
        now_ns: u64,
        observer: &dyn Observer,
    ) -> PipeReadOutcome {
        let got = match rustix::io::read(&self.pipe, &mut *buffer) {
            Ok(0) => return PipeReadOutcome::Closed,
            Ok(got) => got,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {
                return PipeReadOutcome::More;
            }
            Err(_) => return PipeReadOutcome::Closed,
        };
        let bytes = &buffer[..got];
        let failure = self.keep(bytes);
        self.split_lines(bytes, now_ns, observer);
        failure.map_or(PipeReadOutcome::More, PipeReadOutcome::Failed)
    }

    /// Shows the last line, if it has no end, and gives the totals.
    pub(super) fn close(mut self, now_ns: u64, observer: &dyn Observer) -> ClosedOutputStream {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.whole_line(&line, now_ns, observer);
        }
        self.report_skipped(observer);
        let logs = self.watches.into_iter().map(|(_, seen)| seen).collect();
        let before = PriorOutputFile { lines: self.lines, file: self.file };
        ClosedOutputStream { volume: self.volume, logs, path: self.file_path, before }
    }

    fn keep(&mut self, bytes: &[u8]) -> Option<String> {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let room = self.limit_bytes.saturating_sub(self.volume.bytes);
        let kept = usize::try_from(room.min(size)).unwrap_or(bytes.len());
        self.volume.bytes += size;
        let mut failure = None;
        let written = match &mut self.file {
            Some(file) => file.write_all(&bytes[..kept]).map(|()| kept),
            None => Ok(0),
        };
        let written = written.unwrap_or_else(|error| {
            failure = Some(format!("cannot write {}: {error}", self.file_name));
            self.file = None;
            0
        });
        self.volume.discarded += size - u64::try_from(written).unwrap_or(size);
        failure
    }

    fn split_lines(&mut self, bytes: &[u8], now_ns: u64, observer: &dyn Observer) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            if self.line.is_empty() {
                self.whole_line(&rest[..end], now_ns, observer);
            } else {
                self.line.extend_from_slice(&rest[..end]);
                let line = std::mem::take(&mut self.line);
                self.whole_line(&line, now_ns, observer);
            }
            rest = &rest[end + 1..];
        }
        // A line without end is cut for the observer; the file has it whole.
        let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
        self.line.extend_from_slice(&rest[..rest.len().min(room)]);
    }

    fn whole_line(&mut self, line: &[u8], now_ns: u64, observer: &dyn Observer) {
        self.lines += 1;
        let wanted = self.ready.is_some() || !self.watches.is_empty();
        let show = self.may_show(now_ns / 1_000_000_000, observer);
        if !wanted && !show {
            return;
        }
        let text = String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES_MAX)]);
        if self.ready.as_ref().is_some_and(|pattern| pattern.is_match(&text)) {
            self.ready = None;
            self.matched = true;
        }
        let text = text.trim_end_matches('\r');
        let number = self.lines;
        for (watch, seen) in &mut self.watches {
            if (watch.from_ns..watch.to_ns).contains(&now_ns) && watch.pattern.is_match(text) {
                seen.lines += 1;
                let text = || text.chars().take(TEXT_KEPT).collect();
                seen.first.get_or_insert_with(|| LogLine { number, at_ns: now_ns, text: text() });
            }
        }
        if show {
            self.show(text, observer);
        }
    }

    fn may_show(&mut self, second: u64, observer: &dyn Observer) -> bool {
        if second != self.shown.second {
            self.report_skipped(observer);
            self.shown = LineRateCounter { second, lines: 0, skipped: 0 };
        }
        self.shown.lines += 1;
        let show = self.shown.lines <= LINES_SHOWN_PER_SECOND;
        self.shown.skipped += u64::from(!show);
        show
    }

    fn report_skipped(&mut self, observer: &dyn Observer) {
        let skipped = std::mem::take(&mut self.shown.skipped);
        if skipped > 0 {
            let lines = if skipped == 1 { "line" } else { "lines" };
            let text = format!("… {skipped} more {lines}, not shown: see {}", self.file_name);
            self.show(&text, observer);
        }
    }

    fn show(&self, line: &str, observer: &dyn Observer) {
        let (source, node, error) = (self.source.as_str(), self.key.node, self.error);
        observer.notice(&ObserverNotice::Output { source, node, error, line });
    }
}

const LINE_BYTES_MAX: usize = 16 * 1024;
/// Characters of a line that a report shows.
const TEXT_KEPT: usize = 120;
const LINES_SHOWN_PER_SECOND: u32 = 200;

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use windtunnel_sys::below::FolderHandle;

    use super::*;

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl Observer for Lines {
        fn notice(&self, notice: &ObserverNotice<'_>) {
            if let ObserverNotice::Output { line, .. } = notice {
                self.0.lock().unwrap().push((*line).to_owned());
            }
        }
    }

    fn stream(folder: &std::path::Path, limit: u64, ready: Option<&str>) -> (OutputPipe, OwnedFd) {
        let (carry, writer) = carry(folder, ready);
        let (stream, failure) =
            OutputPipe::open(carry, limit, PriorOutputFile { lines: 7, file: None });
        assert_eq!(failure, None);
        (stream, writer)
    }

    fn carry(folder: &std::path::Path, ready: Option<&str>) -> (OutputStreamSetup, OwnedFd) {
        let (pipe, writer) = rustix::pipe::pipe().unwrap();
        let carry = OutputStreamSetup {
            key: ProgramKey { node: 0, program: 0 },
            source: "web".into(),
            error: false,
            pipe,
            folder: Arc::new(FolderHandle::open(folder).unwrap()),
            inner: "stdout".into(),
            file: folder.join("stdout"),
            ready: ready.map(|pattern| Regex::new(pattern).unwrap()),
            watches: vec![LogWatch {
                expectation: 3,
                pattern: Regex::new("^y$").unwrap(),
                from_ns: 10,
                to_ns: 20,
            }],
        };
        (carry, writer)
    }

    fn write_and_read(stream: &mut OutputPipe, writer: &OwnedFd, text: &[u8], lines: &Lines) {
        rustix::io::write(writer, text).unwrap();
        let mut buffer = vec![0; 65536];
        assert!(matches!(stream.read(&mut buffer, 0, lines), PipeReadOutcome::More));
    }

    #[test]
    fn lines_are_shown_whole_however_they_were_written_and_one_makes_ready() {
        let folder = tempfile::tempdir().unwrap();
        let (mut stream, writer) = stream(folder.path(), 1000, Some("^listening on \\d+$"));
        let lines = Lines::default();
        write_and_read(&mut stream, &writer, b"one\nlisten", &lines);
        assert!(!stream.take_match());
        write_and_read(&mut stream, &writer, b"ing on 80\nlast", &lines);
        assert!(stream.take_match());
        stream.close(0, &lines);
        assert_eq!(*lines.0.lock().unwrap(), ["one", "listening on 80", "last"]);
        let kept = std::fs::read_to_string(folder.path().join("stdout")).unwrap();
        assert_eq!(kept, "one\nlistening on 80\nlast");
    }

    #[test]
    fn a_program_that_starts_again_writes_to_its_file_whatever_has_taken_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout");
        let (mut first, writer) = stream(folder.path(), 1000, None);
        let lines = Lines::default();
        write_and_read(&mut first, &writer, b"one\n", &lines);
        let before = first.close(0, &lines).before;
        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink("secret", &path).unwrap();
        let (carry, writer) = carry(folder.path(), None);
        let (mut second, failure) = OutputPipe::open(carry, 1000, before);
        assert_eq!(failure, None);
        write_and_read(&mut second, &writer, b"two\n", &lines);
        let read = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((read("moved"), read("secret")), ("one\ntwo\n".into(), "secret".into()));
        // One whose file is not open does not follow the link either.
        let (carry, _writer) = self::carry(folder.path(), None);
        let (_, failure) = OutputPipe::open(carry, 1000, PriorOutputFile::default());
        assert!(failure.unwrap().contains("symbolic link"));
    }

    #[test]
    fn output_beyond_the_limit_is_discarded_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let (mut stream, writer) = stream(folder.path(), 10, None);
        let lines = Lines::default();
        write_and_read(&mut stream, &writer, b"0123456789abcdef\n", &lines);
        let volume = stream.close(0, &lines).volume;
        assert_eq!(volume, OutputByteCounts { bytes: 17, discarded: 7 });
        assert_eq!(std::fs::read(folder.path().join("stdout")).unwrap(), b"0123456789");
    }

    #[test]
    fn a_flood_shows_a_bounded_number_of_lines_and_says_how_many_more_there_were() {
        let folder = tempfile::tempdir().unwrap();
        let (mut stream, writer) = stream(folder.path(), 1 << 20, None);
        let lines = Lines::default();
        write_and_read(&mut stream, &writer, &b"y\n".repeat(1000), &lines);
        stream.close(0, &lines);
        let lines = lines.0.into_inner().unwrap();
        assert_eq!(lines.len(), 201);
        assert!(lines[200].starts_with("… 800 more lines, not shown: see "), "{}", lines[200]);
    }

    #[test]
    fn lines_of_a_window_are_counted_and_the_first_is_found_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (mut stream, writer) = stream(folder.path(), 1000, None);
        let lines = Lines::default();
        let mut buffer = vec![0; 1000];
        for (now_ns, text) in [(9, "y\nno\n"), (10, "no\ny\ny\r\n"), (20, "y\n")] {
            rustix::io::write(&writer, text.as_bytes()).unwrap();
            assert!(matches!(stream.read(&mut buffer, now_ns, &lines), PipeReadOutcome::More));
        }
        let closed = stream.close(30, &lines);
        // Seven lines were there before, and two came too early.
        let first = LogLine { number: 11, at_ns: 10, text: "y".into() };
        assert_eq!((closed.logs[0].lines, &closed.logs[0].first), (2, &Some(first)));
        assert_eq!((closed.logs[0].expectation, closed.before.lines), (3, 13));
    }
}
