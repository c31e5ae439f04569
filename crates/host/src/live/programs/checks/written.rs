//! What a check writes: its end is shown where the check has failed.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The last bytes that a command has written to its standard output and error.
#[derive(Debug, Default)]
pub(super) struct CommandOutputTail {
    /// Until all that can write to it are gone.
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
}

impl From<OwnedFd> for CommandOutputTail {
    /// The descriptor must not block.
    fn from(pipe: OwnedFd) -> CommandOutputTail {
        CommandOutputTail { pipe: Some(pipe), bytes: Vec::new() }
    }
}

impl CommandOutputTail {
    pub(super) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads what is there, but no more at a time than a pipe holds: a command that writes without end
    /// must not keep the others from being looked at.
    pub(super) fn read(&mut self) {
        let mut part = [0; 4096];
        for _ in 0..READS_MAX {
            let Some(pipe) = &self.pipe else { return };
            match rustix::io::read(pipe, &mut part) {
                Ok(count) if count > 0 => self.bytes.extend_from_slice(&part[..count]),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Ok(_) | Err(_) => self.pipe = None,
            }
        }
        let excess = self.bytes.len().saturating_sub(BYTES_KEPT);
        self.bytes.drain(..excess);
    }
}

/// `: ` and the last lines, in one; nothing if there are none.
impl fmt::Display for CommandOutputTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy(&self.bytes);
        // What ends with a carriage return alone is written over, such as a progress meter.
        let lines = text.split('\n').filter_map(|line| line.trim_end().rsplit('\r').next());
        let mut lines: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.drain(..lines.len().saturating_sub(LINES_SHOWN));
        if lines.is_empty() {
            return Ok(());
        }
        let line = lines.join(" / ");
        let excess = line.chars().count().saturating_sub(CHARACTERS_SHOWN);
        let cut = if excess > 0 { "…" } else { "" };
        let plain = line.chars().skip(excess).filter(|c| !c.is_control());
        write!(f, ": {cut}{}", plain.collect::<String>())
    }
}

/// Of 4 KiB each: as much as a pipe holds.
const READS_MAX: usize = 16;
/// As Docker keeps of a health check.
const BYTES_KEPT: usize = 4096;
const LINES_SHOWN: usize = 3;
const CHARACTERS_SHOWN: usize = 300;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn written(text: &[u8]) -> CommandOutputTail {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::ioctl_fionbio(&reader, true).unwrap();
        let mut written = CommandOutputTail::from(reader);
        let mut file = std::fs::File::from(writer);
        for part in text.chunks(4096) {
            file.write_all(part).unwrap();
            written.read();
        }
        assert!(written.pipe().is_some());
        drop(file);
        written.read();
        assert!(written.pipe().is_none(), "it is at its end");
        written
    }

    #[test]
    fn the_last_lines_are_shown_in_one_without_what_acts_on_a_terminal() {
        let shown = |text: &[u8]| written(text).to_string();
        assert_eq!(shown(b""), "");
        assert_eq!(shown(b"\n \n"), "");
        assert_eq!(shown(b"a\nb\n\nc\r\nd\n"), ": b / c / d");
        assert_eq!(shown(b"  0%\r 50%\rcurl: (7) no\n\x1b[31mred\n"), ": curl: (7) no / [31mred");
    }

    #[test]
    fn of_much_that_is_written_the_end_is_kept() {
        let mut text = vec![b'x'; 1 << 20];
        text.extend_from_slice(b" the end");
        let written = written(&text);
        assert_eq!(written.bytes.len(), 4096);
        let shown = written.to_string();
        assert!(shown.starts_with(": …xxx") && shown.ends_with("x the end"), "{shown}");
        assert_eq!(shown.chars().count(), 303);
    }
}
