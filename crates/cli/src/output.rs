//! Writing to standard output (data) and standard error (talk).

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;

/// Writes data to standard output.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::writing(&error))
}

/// Writes data to a file, or to standard output without one.
pub(crate) fn file(path: Option<&Path>, text: &str) -> Result<(), Failure> {
    let Some(path) = path else { return data(text) };
    std::fs::write(path, text).map_err(|error| {
        let text = format!("cannot write {}: {error}", path.display());
        Failure::new(Exit::Machine, text)
    })
}

/// Writes a value to standard output as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, value)
        .map_err(|error| Failure::writing(&error.into()))?;
    out.write_all(b"\n").and_then(|()| out.flush()).map_err(|error| Failure::writing(&error))
}

/// Writes a line to standard error. If nobody reads it, nobody misses it.
pub(crate) fn talk(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether standard output may be coloured.
pub(crate) fn data_colours() -> bool {
    io::stdout().is_terminal() && colours_wanted()
}

/// Whether standard error may be coloured.
pub(crate) fn talk_colours() -> bool {
    io::stderr().is_terminal() && colours_wanted()
}

/// What the user says about colours: the convention of no-color.org, and terminals that have none.
fn colours_wanted() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}
