//! `edit`: the page of a scenario file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use windtunnel_report::ReportDocument;
use windtunnel_routing::Routes;
use windtunnel_scenario::{LoadedScenario, ScenarioMistake, ScenarioOverrides};
use windtunnel_web::{WebServerContent, WebServerOptions};

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::render::page::{self, BrowserOptions};
use crate::render::paths::{NodePairFilter, paths};
use crate::{load, presence};

/// Edit a scenario file in the browser, with its map and its mistakes beside it
///
/// Prints the address of the page. The file stays the source: the page shows its text, checks it as
/// `check` does while it is written, and saves it; what another program writes is shown. A file
/// that has changed meanwhile is not overwritten. Ctrl-C ends the page.
#[derive(Debug, clap::Args)]
pub(crate) struct EditArguments {
    /// The scenario file [default: windtunnel.yaml in this folder, or in the nearest one above it that
    /// has it]
    #[arg(value_name = "FILE", env = "WINDTUNNEL_FILE")]
    file: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one. Other machines reach it if the address is not one of
    /// loopback: without encryption
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "WINDTUNNEL_WEB_LISTEN",
        default_value = "127.0.0.1:0"
    )]
    listen: SocketAddr,
    #[command(flatten)]
    opening: BrowserOptions,
    #[command(flatten)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: &EditArguments) -> Outcome {
    let named = arguments.file.clone().map_or_else(load::usual, Ok)?;
    let path = named.canonicalize().map_err(|error| {
        let text = format!("cannot read the scenario {}: {error}", named.display());
        VerbFailure::new(ExitCategory::Scenario, text)
            .hint("name a scenario file; `windtunnel init` writes a first one")
    })?;
    let file = path.clone();
    let check = Arc::new(move |text: &str| checked(&file, &named, text));
    let program = PathBuf::from(page::THIS_PROGRAM);
    let options = WebServerOptions {
        listen: arguments.listen,
        program,
        shown: WebServerContent::File { path, check },
    };
    page::serve(options, &arguments.opening, arguments.format.json)
}

/// What a text describes, or its mistakes; both, where only programs are missing here.
fn checked(path: &Path, named: &Path, text: &str) -> Value {
    let (name, base) = (named.display().to_string(), load::folder_of(path));
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem.unwrap_or_default();
    let loaded = load::resolve(&name, text.as_bytes(), &stem, &base, ScenarioOverrides::default());
    let mut loaded = match loaded {
        Ok(loaded) => loaded,
        Err(failure) => return json!({ "errors": mistakes(&failure) }),
    };
    let errors = match presence::check(&mut loaded, &name, text.as_bytes(), &base) {
        Ok(()) => Vec::new(),
        Err(failure) => mistakes(&failure),
    };
    let (paths, left_out) =
        paths(&loaded.plan, &Routes::compute(&loaded.plan), NodePairFilter::default(), PATHS_MAX);
    json!({
        "document": ReportDocument::draft(&loaded.plan),
        "errors": errors,
        "notices": notices(&loaded),
        "paths": paths,
        "paths_left_out": left_out,
    })
}

/// The mistakes with their places.
fn mistakes(failure: &VerbFailure) -> Vec<Value> {
    let place = |mistake: &ScenarioMistake| {
        // As many carets as characters are meant.
        let carets = mistake.snippet.lines().last().unwrap_or_default().matches('^').count();
        let end = usize::try_from(mistake.column).unwrap_or(usize::MAX).saturating_add(carets);
        let mut value = json!({
            "line": mistake.line, "column": mistake.column, "message": mistake.message,
            "end_line": mistake.line, "end_column": end,
        });
        if let Some(hint) = &mistake.hint {
            value["hint"] = hint.as_str().into();
        }
        value
    };
    match failure {
        VerbFailure::Scenario(errors) => errors.mistakes().iter().map(place).collect(),
        VerbFailure::Mistake(mistake) => vec![place(mistake)],
        other => vec![json!({ "line": 1, "column": 1, "message": other.causes() })],
    }
}

fn notices(loaded: &LoadedScenario) -> Vec<Value> {
    let notice = |notice: &windtunnel_scenario::ScenarioNotice| match notice.place {
        Some((line, column)) => {
            json!({ "line": line, "column": column, "message": notice.message })
        }
        None => json!({ "message": notice.message }),
    };
    loaded.notices.iter().map(notice).collect()
}

const PATHS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_its_map_and_paths_or_mistakes_at_their_places() {
        let check = |text: &str| checked(Path::new("/x/net.yaml"), Path::new("net.yaml"), text);
        let good = check("nodes: {a: {}, b: {}}\nlinks: [{between: [a, b], latency: 5ms}]\n");
        assert_eq!(good["errors"], json!([]));
        assert_eq!(good["document"]["mode"], "edit");
        assert_eq!(good["document"]["runs"][0]["map"]["links"][0]["name"], "a--b");
        assert_eq!(good["paths"][0]["latency"], "5ms");
        let wrong = check("nodes: {a: {}, b: {}}\nlinks: [{between: [a, b], latncy: 5ms}]\n");
        let error = &wrong["errors"][0];
        assert_eq!((&error["line"], &error["column"]), (&2.into(), &27.into()));
        assert_eq!(
            (&error["end_column"], &error["hint"]),
            (&33.into(), &"did you mean `latency`?".into())
        );
        assert!(wrong.get("document").is_none());
        let missing = check("nodes: {a: {run: no-such-program-here}}\n");
        assert_eq!(missing["errors"][0]["line"], 1);
        assert_eq!(missing["document"]["runs"][0]["map"]["vertices"][0]["name"], "a");
    }
}
