//! Arguments that several verbs have. Those of one verb are in its file.

use clap::builder::FalseyValueParser;

/// A command of a node, in the words of a shell.
pub(crate) fn node_command(text: &str) -> Result<String, String> {
    match shell_words::split(text) {
        Err(_) => Err("a quote is not closed".to_owned()),
        Ok(words) if words.is_empty() => Err("no command; leave it out for no program".to_owned()),
        Ok(_) if text.contains('\0') => Err("it holds a NUL character".to_owned()),
        Ok(_) => Ok(text.to_owned()),
    }
}

/// The format of the output.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OutputFormat {
    /// Write JSON to standard output, with the fields of the human output; failures too
    #[arg(long, env = "WINDTUNNEL_JSON", value_parser = FalseyValueParser::new())]
    pub(crate) json: bool,
}

/// What is added to the scenario.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReservationOptions {
    /// Give several nodes something together, as `reserve` of a scenario does, beside what that
    /// reserves, such as 'site={of: [web, db], cpu: {min: 80%}}'; may be given more than once. A name
    /// that the scenario has is refused. The variable holds one
    #[arg(long, value_name = "NAME={of: …}", env = "WINDTUNNEL_RESERVE")]
    pub(crate) reserve: Vec<String>,
}
