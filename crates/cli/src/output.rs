//! Writing to standard output (data) and standard error (talk).

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::builder::FalseyValueParser;
use serde::Serialize;
use windtunnel_host::PlanFitConcern;

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// Writes data to standard output.
pub(crate) fn data(text: &str) -> Result<(), VerbFailure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| VerbFailure::writing(&error))
}

/// Where a text goes.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputDestination {
    /// Write to this new file instead of standard output
    #[arg(short, long, value_name = "FILE", env = "WINDTUNNEL_OUTPUT")]
    output: Option<PathBuf>,
    /// Overwrite a file that is there already
    #[arg(long, env = "WINDTUNNEL_FORCE", value_parser = FalseyValueParser::new())]
    force: bool,
}

impl OutputDestination {
    /// Standard output, or a file.
    pub(crate) fn new(path: PathBuf, force: bool) -> Self {
        OutputDestination { output: Some(path), force }
    }

    /// The file, unless it is standard output.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| path.as_os_str() != "-")
    }

    /// Writes the text to the file. Without one nothing is written.
    pub(crate) fn write(&self, text: &str) -> Result<(), VerbFailure> {
        let (Some(path), Some(mut file)) = (self.path(), self.create()?) else { return Ok(()) };
        file.write_all(text.as_bytes()).map_err(|error| writing(path, &error))
    }

    /// Makes the file. `None`: it is standard output.
    pub(crate) fn create(&self) -> Result<Option<File>, VerbFailure> {
        let Some(path) = self.path() else { return Ok(None) };
        let mut options = OpenOptions::new();
        options.write(true);
        // A pipe or a device has no content to lose.
        let is_special = path.metadata().is_ok_and(|data| !data.is_file() && !data.is_dir());
        match self.force || is_special {
            true => options.create(!is_special).truncate(!is_special),
            false => options.create_new(true),
        };
        options.open(path).map(Some).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let text = format!("{} is there already", path.display());
                VerbFailure::new(ExitCategory::Usage, text).hint("--force overwrites it")
            }
            _ => writing(path, &error),
        })
    }
}

fn writing(path: &Path, error: &io::Error) -> VerbFailure {
    VerbFailure::new(ExitCategory::Machine, format!("cannot write {}: {error}", path.display()))
}

/// Writes a value to standard output as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), VerbFailure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, value)
        .map_err(|error| VerbFailure::writing(&error.into()))?;
    out.write_all(b"\n").and_then(|()| out.flush()).map_err(|error| VerbFailure::writing(&error))
}

/// Writes a line to standard error. Errors of writing are ignored.
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

/// The user's choice of colours: the convention of no-color.org, and terminals that have none.
fn colours_wanted() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

/// Says what a plan may not get.
pub(crate) fn warn(concerns: &[PlanFitConcern]) {
    for PlanFitConcern { text, hint, .. } in concerns {
        talk(&format!("warning: {text}"));
        if let Some(hint) = hint {
            talk(&format!("hint: {hint}"));
        }
    }
}
