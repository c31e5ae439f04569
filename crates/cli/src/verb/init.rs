//! `init`: a first scenario file.

mod template;

use std::path::{Path, PathBuf};

use clap::builder::FalseyValueParser;
use serde::Serialize;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output::{self, OutputDestination};
use template::ScenarioTemplate;

/// Write a first scenario file, with comments, for one of ten common cases
///
/// The file runs as it is, with programs that most machines have. Beside it goes the schema of
/// scenario files, which editors with a YAML language server find by the first line, and by which
/// they complete and check.
#[derive(Debug, clap::Args)]
pub(crate) struct InitArguments {
    /// The file to write; `windtunnel run` without a file finds this name
    #[arg(value_name = "FILE", default_value = crate::load::USUAL_NAME, env = "WINDTUNNEL_FILE")]
    file: PathBuf,
    /// What the file is about
    #[arg(
        short,
        long,
        value_name = "CASE",
        env = "WINDTUNNEL_TEMPLATE",
        default_value = "client-server"
    )]
    template: ScenarioTemplate,
    /// Write no schema beside the file
    #[arg(long, env = "WINDTUNNEL_NO_SCHEMA", value_parser = FalseyValueParser::new())]
    no_schema: bool,
    /// Overwrite files that are there already
    #[arg(long, env = "WINDTUNNEL_FORCE", value_parser = FalseyValueParser::new())]
    force: bool,
    #[command(flatten)]
    format: OutputFormat,
}

/// What was written, for `--json`.
#[derive(Debug, Serialize)]
struct InitOutput<'a> {
    template: &'static str,
    file: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<PathBuf>,
}

pub(crate) fn run(arguments: &InitArguments) -> Outcome {
    let file = &arguments.file;
    let schema = (!arguments.no_schema).then(|| file.with_file_name(SCHEMA_NAME));
    let text = arguments.template.text(schema.is_some().then_some(SCHEMA_NAME));
    // First: where it may not be overwritten, nothing is written.
    OutputDestination::new(file.clone(), arguments.force).write(&text)?;
    if let Some(schema) = &schema {
        // One that is there is that of another file here, and is brought up to date.
        let text = serde_json::to_string_pretty(&windtunnel_scenario::schema())
            .map_err(|error| VerbFailure::caused(ExitCategory::Internal, error))?;
        OutputDestination::new(schema.clone(), true).write(&format!("{text}\n"))?;
    }
    let template = arguments.template.name();
    if arguments.format.json {
        output::json(&InitOutput { template, file, schema })?;
        return Ok(ExitCategory::Fine.code());
    }
    let named = if file.as_os_str() == crate::load::USUAL_NAME {
        String::new()
    } else {
        format!(" {}", file.display())
    };
    output::data(&format!(
        "{} ({template}): `windtunnel check{named}` shows the network, `windtunnel run{named}` runs it\n",
        file.display()
    ))?;
    Ok(ExitCategory::Fine.code())
}

const SCHEMA_NAME: &str = "windtunnel.schema.json";
