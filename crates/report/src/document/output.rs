//! What programs wrote: the beginning and the end of it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use serde::Serialize;

/// What a node's programs wrote to one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeOutputExcerpt {
    pub node: String,
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// Size of all of it.
    pub bytes: u64,
    /// The beginning; all of it if there is no tail.
    pub head: String,
    /// The end, where something between the two is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
}

impl NodeOutputExcerpt {
    /// Reads at most `room` bytes of a file; `None` if there is nothing in it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(
        mut file: File,
        node: &str,
        stream: &'static str,
        room: u64,
    ) -> io::Result<Option<NodeOutputExcerpt>> {
        let bytes = file.metadata()?.len();
        if bytes == 0 {
            return Ok(None);
        }
        let mut part = |from: u64, most: u64| -> io::Result<String> {
            file.seek(SeekFrom::Start(from))?;
            let mut text = Vec::new();
            (&mut file).take(most).read_to_end(&mut text)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        let (head, tail) = match bytes <= room {
            true => (part(0, room)?, None),
            false => (part(0, room / 2)?, Some(part(bytes - room / 2, room / 2)?)),
        };
        Ok(Some(NodeOutputExcerpt { node: node.to_owned(), stream, bytes, head, tail }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_output_the_beginning_and_the_end_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout");
        let read = |room| {
            NodeOutputExcerpt::read(File::open(&path).unwrap(), "web", "stdout", room).unwrap()
        };
        std::fs::write(&path, "").unwrap();
        assert_eq!(read(100), None);
        std::fs::write(&path, "begin-middle-end").unwrap();
        let all = read(16).unwrap();
        assert_eq!((all.head.as_str(), all.tail, all.bytes), ("begin-middle-end", None, 16));
        let cut = read(10).unwrap();
        assert_eq!((cut.head.as_str(), cut.tail.as_deref()), ("begin", Some("e-end")));
    }
}
