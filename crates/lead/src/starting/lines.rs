//! Lines that another machine writes, each of bounded length.

use std::io::{BufRead, ErrorKind};

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LaunchOutputLine {
    Text(Vec<u8>),
    /// It is longer than [`LINE_BYTES_MAX`]; nothing of it is kept.
    Overlong,
}

/// The lines of a stream, until it is over or broken.
#[derive(Debug)]
pub(super) struct LaunchLineReader<R> {
    stream: R,
    /// Whether the rest of an overlong line comes: it is read, so that the writer is not held up,
    /// and dropped.
    in_overlong: bool,
}

impl<R: BufRead> LaunchLineReader<R> {
    pub(super) fn of(stream: R) -> Self {
        LaunchLineReader { stream, in_overlong: false }
    }
}

impl<R: BufRead> Iterator for LaunchLineReader<R> {
    type Item = LaunchOutputLine;

    /// An overlong line is returned as soon as it is one: its end may never come.
    fn next(&mut self) -> Option<LaunchOutputLine> {
        let mut line = Vec::new();
        loop {
            let bytes = match self.stream.fill_buf() {
                Ok([]) => return (!line.is_empty()).then_some(LaunchOutputLine::Text(line)),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            let is_over = line.len().saturating_add(part.len()) > LINE_BYTES_MAX;
            if !self.in_overlong && !is_over {
                line.extend_from_slice(part);
            }
            let used = end.map_or(bytes.len(), |end| end.saturating_add(1));
            self.stream.consume(used);
            let was_overlong = self.in_overlong;
            self.in_overlong = (was_overlong || is_over) && end.is_none();
            match (was_overlong, end) {
                (false, _) if is_over => return Some(LaunchOutputLine::Overlong),
                (false, Some(_)) => return Some(LaunchOutputLine::Text(line)),
                _ => {}
            }
        }
    }
}

/// The longest line that is read: what agents announce and shells say is much shorter.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read, repeat};

    use super::*;

    /// The lines of what comes in pieces of so many bytes.
    fn lines(stream: impl Read, piece: usize) -> Vec<LaunchOutputLine> {
        LaunchLineReader::of(BufReader::with_capacity(piece, stream)).collect()
    }

    fn text(text: &[u8]) -> LaunchOutputLine {
        LaunchOutputLine::Text(text.to_vec())
    }

    #[test]
    fn lines_are_cut_at_their_ends_whatever_pieces_they_come_in() {
        for piece in 1..9 {
            let seen = lines(&b"one\n\nthree\nlast"[..], piece);
            assert_eq!(seen, [text(b"one"), text(b""), text(b"three"), text(b"last")]);
        }
        assert_eq!(lines(&b""[..], 1), []);
    }

    #[test]
    fn the_longest_line_is_read_and_one_byte_more_is_too_many() {
        let longest = vec![b'x'; LINE_BYTES_MAX];
        for piece in [7, 8192, 2 * LINE_BYTES_MAX] {
            let streams = longest.chain(&b"\nx"[..]).chain(&longest[..]).chain(&b"\nnext\n"[..]);
            let seen = lines(streams, piece);
            assert_eq!(seen, [text(&longest), LaunchOutputLine::Overlong, text(b"next")]);
        }
    }

    #[test]
    fn a_line_without_an_end_is_overlong_before_the_stream_is_over() {
        let mut endless = LaunchLineReader::of(BufReader::new(repeat(b'x')));
        assert_eq!(endless.next(), Some(LaunchOutputLine::Overlong));
    }
}
