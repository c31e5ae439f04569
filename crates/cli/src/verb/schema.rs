//! `schema`: the scenario file's JSON Schema.

use clap::builder::FalseyValueParser;

use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::output;

/// Print the JSON Schema of the scenario file
///
/// Editors check and complete scenario files with it.
#[derive(Debug, clap::Args)]
pub(crate) struct SchemaArguments {
    /// No difference: a schema is JSON in any case
    #[arg(long, env = "WINDTUNNEL_JSON", value_parser = FalseyValueParser::new())]
    json: bool,
}

pub(crate) fn run(arguments: &SchemaArguments) -> Outcome {
    let SchemaArguments { json: _ } = arguments;
    output::json(&windtunnel_scenario::schema())?;
    Ok(ExitCategory::Fine.code())
}
