//! Lines of files that may be damaged or hostile: none is longer than all that windtunnel writes.

use std::io::{self, BufRead, Read};

/// Reads a line with its end into `line`, which is emptied first; nothing at the end of the file.
///
/// # Errors
/// If it is longer than [`LINE_BYTES_MAX`], or cannot be read.
pub(crate) fn line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    line.clear();
    let read = input.take(LINE_BYTES_MAX + 1).read_until(b'\n', line)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > LINE_BYTES_MAX {
        return Err(io::Error::other(format!("a line has more than {LINE_BYTES_MAX} bytes")));
    }
    Ok(())
}

pub(crate) const LINE_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_is_refused_before_it_is_in_memory() {
        let mut input = io::BufReader::new(b"one\n".chain(io::repeat(0)));
        let mut text = Vec::new();
        line(&mut input, &mut text).unwrap();
        assert_eq!(text, b"one\n");
        let error = line(&mut input, &mut text).unwrap_err();
        assert_eq!(error.to_string(), "a line has more than 1048576 bytes");
        assert!(text.len() <= 1 << 21);
    }

    #[test]
    fn the_end_of_a_file_is_an_empty_line() {
        let mut text = b"old".to_vec();
        line(&mut io::empty(), &mut text).unwrap();
        assert!(text.is_empty());
    }
}
