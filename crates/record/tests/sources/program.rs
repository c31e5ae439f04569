//! A program in a node that goes on when it is asked to.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};

use windtunnel_node::{NodeInitRequest, RunningNode};

use crate::support::spawn;

pub(crate) struct Program {
    input: PipeWriter,
    output: BufReader<File>,
}

impl Program {
    pub(crate) fn start(node: &RunningNode, id: u64, argv: &[&str]) -> Program {
        let (theirs, input) = std::io::pipe().unwrap();
        let (output, writer) = std::io::pipe().unwrap();
        let fds = [theirs.as_fd(), writer.as_fd(), writer.as_fd()];
        node.send(&NodeInitRequest::Spawn(spawn(id, argv)), &fds).unwrap();
        Program { input, output: BufReader::new(OwnedFd::from(output).into()) }
    }

    /// The next line that it says.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Lets it go on.
    pub(crate) fn go_on(&mut self) {
        self.say("");
    }

    /// Writes a line to it.
    pub(crate) fn say(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}
