//! `record -- COMMAND` and `record --pid`: records of programs outside any emulation.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::builder::FalseyValueParser;
use windtunnel_model::Bytes;
use windtunnel_model::plan::RecordLayerSet;
use windtunnel_model::record::kind::RecordSource;
use windtunnel_outside::record::{
    self, ProcessRecordingError, ProcessRecordingOptions, ProcessRecordingSummary,
};
use windtunnel_trace::report::RecordingReport;

use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output;
use crate::verb::run::{layer, new_run_folder};

/// What is recorded outside any emulation.
#[derive(Debug, clap::Args)]
pub(super) struct HostRecordingOptions {
    /// Record this process, and those that it starts, until it ends or Ctrl-C: the kernel layer
    /// (which needs CAP_BPF and CAP_PERFMON) and TCP's state
    #[arg(long, value_name = "PID", env = "WINDTUNNEL_PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) pid: Option<u32>,
    /// Where the records go, a folder that is new or empty [default: runs/NAME-DATE-TIME, with a
    /// link `latest` beside it]
    #[arg(short, long, value_name = "DIR", env = "WINDTUNNEL_OUT")]
    out: Option<PathBuf>,
    /// Only these layers: calls, tcp, kernel; one that cannot be recorded is then an error
    #[arg(
        long,
        value_name = "LAYER",
        env = "WINDTUNNEL_LAYERS",
        value_delimiter = ',',
        value_parser = layer
    )]
    layers: Vec<RecordSource>,
    /// Leave addresses and ports out of the records; flows stay distinct
    #[arg(long, env = "WINDTUNNEL_ANONYMOUS", value_parser = FalseyValueParser::new())]
    anonymous: bool,
    /// The most bytes of records on the disk
    #[arg(long, value_name = "SIZE", env = "WINDTUNNEL_MAX", default_value = "4GB")]
    max: Bytes,
    /// Record this command, on the machine's own network, and exit with its code
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "pid")]
    pub(super) command: Vec<OsString>,
}

impl HostRecordingOptions {
    pub(super) fn run(&self) -> Outcome {
        match self.pid {
            Some(pid) => {
                let wanted = self.wanted(&format!("process-{pid}"))?;
                let recorded = record::process(&wanted, pid).map_err(failed)?;
                close(&recorded, &wanted.folder);
                Ok(ExitCategory::Fine.code())
            }
            None => {
                let program = self.command.first().map_or(OsStr::new(""), |program| program);
                let wanted = self.wanted(&name_of(program))?;
                let recorded = record::command(&wanted, &self.command, waits).map_err(failed)?;
                close(&recorded, &wanted.folder);
                Ok(u8::try_from(recorded.exit_code.unwrap_or(0)).unwrap_or(u8::MAX))
            }
        }
    }

    fn wanted(&self, name: &str) -> Result<ProcessRecordingOptions, VerbFailure> {
        Ok(ProcessRecordingOptions {
            folder: new_run_folder(self.out.as_deref(), name)?,
            link_latest: self.out.is_none(),
            layers: RecordLayerSet::of(self.layers.clone()),
            anonymous: self.anonymous,
            max: self.max,
        })
    }
}

fn waits(living: u64) {
    let programs =
        if living == 1 { "a program is".to_owned() } else { format!("{living} programs are") };
    output::talk(&format!(
        "{programs} left whose calls wait for windtunnel: it stays until the end of them, or Ctrl-C"
    ));
}

/// The line on standard error at the end.
fn close(recorded: &ProcessRecordingSummary, folder: &Path) {
    output::talk(&line(&recorded.records, folder));
    for what in &recorded.records.unseen {
        output::talk(&format!("not seen: {what}"));
    }
}

/// How many records of each layer, how many were lost, where they are, and what is not there.
fn line(records: &RecordingReport, folder: &Path) -> String {
    let layers = records.layers.iter().filter(|(_, layer)| layer.events > 0);
    let counts: Vec<String> =
        layers.map(|(name, layer)| format!("{name} {}", layer.records)).collect();
    let counts = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
    let lost: u64 = records.layers.values().map(|layer| layer.lost).sum();
    let mut line = format!("records: {counts}; {lost} lost; in {}", folder.display());
    let engine = RecordSource::Engine.name();
    let others = records.unavailable.iter().filter(|(name, _)| *name != engine);
    for (name, why) in others {
        line.push_str(&format!("; no layer {name}: {why}"));
    }
    if let Some(failure) = &records.failure {
        line.push_str(&format!("; {failure}"));
    }
    line
}

/// What the folder of a command is called.
fn name_of(program: &OsStr) -> String {
    let file =
        Path::new(program).file_name().map_or_else(String::new, |it| it.display().to_string());
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._+-".contains(letter);
    let name: String = file.chars().filter(|letter| fits(*letter)).take(NAME_LETTERS_MAX).collect();
    if name.is_empty() { "record".to_owned() } else { name }
}

fn failed(error: ProcessRecordingError) -> VerbFailure {
    let hint = match &error {
        ProcessRecordingError::Layer { layer: RecordSource::Kernel, .. } => {
            Some("run it as root, or leave the layer out: --layers tcp")
        }
        ProcessRecordingError::Layer { layer: RecordSource::Calls, .. } => {
            Some("`windtunnel record -- COMMAND` records them from the start")
        }
        ProcessRecordingError::Layer { layer: RecordSource::Engine, .. } => {
            Some("`windtunnel run --record` records a run of an emulated network")
        }
        ProcessRecordingError::Folder(_) => Some("name another place with --out DIR"),
        _ => None,
    };
    let code = match &error {
        ProcessRecordingError::Command(error) => match error.kind() {
            std::io::ErrorKind::NotFound => ExitCategory::NOT_FOUND,
            _ => ExitCategory::NOT_EXECUTABLE,
        },
        ProcessRecordingError::NoProcess(_) => ExitCategory::Usage.code(),
        ProcessRecordingError::Layer {
            layer: RecordSource::Engine | RecordSource::Calls, ..
        } => ExitCategory::Usage.code(),
        _ => ExitCategory::Machine.code(),
    };
    let error: Box<dyn Error + Send + Sync> = error.into();
    VerbFailure::Error { error, hint: hint.map(str::to_owned), code }
}

const NAME_LETTERS_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use windtunnel_trace::report::RecordLayer;

    use super::*;

    #[test]
    fn the_closing_line_has_counts_losses_the_place_and_what_is_not_there() {
        let layer = |records, lost| RecordLayer {
            events: records + lost,
            records,
            lost,
            lost_at_source: lost,
            fill_max_permille: 0,
        };
        let records = RecordingReport {
            layers: [("calls".to_owned(), layer(7, 2)), ("tcp".to_owned(), layer(5, 0))].into(),
            unavailable: [("engine", "no network"), ("kernel", "this process has not CAP_BPF")]
                .map(|(name, why)| (name.to_owned(), why.to_owned()))
                .into(),
            ..RecordingReport::default()
        };
        let expected = "records: calls 7, tcp 5; 2 lost; in runs/x; no layer kernel: this process \
                        has not CAP_BPF";
        assert_eq!(line(&records, Path::new("runs/x")), expected);
        let none = line(&RecordingReport::default(), Path::new("o"));
        assert_eq!(none, "records: none; 0 lost; in o");
    }

    #[test]
    fn a_folder_has_the_name_of_its_program() {
        assert_eq!(name_of(OsStr::new("/usr/bin/curl")), "curl");
        assert_eq!(name_of(OsStr::new("./my tool")), "mytool");
        assert_eq!(name_of(OsStr::new("/")), "record");
    }
}
