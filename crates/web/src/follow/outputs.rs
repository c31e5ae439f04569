//! What programs write.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use windtunnel_model::Plan;
use windtunnel_sys::below::FolderHandle;

use super::tail::FileTailReader;
use crate::hub::{ServerSentEvent, ServerSentEventHub};

/// The files of all programs.
#[derive(Debug)]
pub(super) struct ProgramOutputFollower {
    files: Vec<ProgramOutputFile>,
    /// Which is looked at next.
    next: usize,
}

#[derive(Debug)]
struct ProgramOutputFile {
    node: String,
    program: usize,
    stream: &'static str,
    tail: FileTailReader,
}

/// Text that a program has written.
#[derive(Debug, Serialize)]
struct ProgramOutputChunk<'a> {
    node: &'a str,
    program: usize,
    stream: &'static str,
    text: String,
    /// Where it begins in the file.
    offset: u64,
    /// Bytes before it that are left out, because it was too much.
    #[serde(skip_serializing_if = "is_zero")]
    skipped: u64,
}

impl ProgramOutputFollower {
    pub(super) fn open(folder: &Arc<FolderHandle>, plan: &Plan) -> Self {
        let mut files = Vec::new();
        for node in &plan.nodes {
            let several = node.programs.len() > 1;
            for program in 0..node.programs.len() {
                for stream in ["stdout", "stderr"] {
                    let name = match several {
                        true => format!("{stream}.{program}"),
                        false => stream.to_owned(),
                    };
                    let path = Path::new("nodes").join(&node.name).join(name);
                    let tail = FileTailReader::at_end(folder, path);
                    files.push(ProgramOutputFile {
                        node: node.name.clone(),
                        program,
                        stream,
                        tail,
                    });
                }
            }
        }
        ProgramOutputFollower { files, next: 0 }
    }

    /// New text of some of the files; of all in turn.
    pub(super) fn read(&mut self, hub: &ServerSentEventHub) {
        let count = self.files.len().min(FILES_AT_ONCE);
        for _ in 0..count {
            let index = self.next;
            self.next = (index + 1) % self.files.len();
            let output = &mut self.files[index];
            let behind = output.tail.behind();
            if behind == 0 {
                continue;
            }
            let skipped = if behind > BEHIND_MAX { output.tail.skip_but(BYTES) } else { 0 };
            let offset = output.tail.position();
            let bytes = output.tail.bytes(BYTES);
            let text = whole_characters(&bytes, &mut output.tail);
            let (node, program, stream) = (&output.node, output.program, output.stream);
            hub.write(ServerSentEvent::new(
                "output",
                &ProgramOutputChunk { node, program, stream, text, offset, skipped },
            ));
        }
    }
}

/// The text; a character at the end of which a part is missing is read again.
fn whole_characters(bytes: &[u8], tail: &mut FileTailReader) -> String {
    if let Err(error) = std::str::from_utf8(bytes) {
        let (end, cut) = (error.valid_up_to(), error.error_len().is_none());
        if cut && end > 0 {
            tail.back(bytes.len() - end);
            return String::from_utf8_lossy(&bytes[..end]).into_owned();
        }
    }
    String::from_utf8_lossy(bytes).into_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

const FILES_AT_ONCE: usize = 256;
/// Of a file, at a time.
const BYTES: u64 = 16 << 10;
/// With more, what lies between is left out: the file has it.
const BEHIND_MAX: u64 = 256 << 10;
